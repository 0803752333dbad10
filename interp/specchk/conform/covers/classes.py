"""Effect classes: the edges of a state graph with the same effect, and refusals for the same reason.

The class of an edge is its action, the marks that the way to it left (`meaning.tracing`: branches taken,
signs of comparisons, arms of matches), and its effect: each place that changes and how, where a
place is a variable with fields and keys, a key being the parameter that has its value, or `other`.

    hw[l] up        remote[l][f] new       fetch[f].body to Records       log[other].cached grows

The class of a refusal is the action and the marks of all paths that end: which part of which guard
fails, and for which signs.  Both are derived from the spec alone, finite, and the same everywhere:
a class's id is made of words of the spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from specchk.conform.covers.cases import EffectClass, stable_id
from specchk.ir.program import Action
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.tracing import Decision, Marks, Tracer
from specchk.meaning.values import State, positions

Key = tuple[int, Marks, tuple[str, ...]]
ProbeKey = tuple[int, frozenset[Marks]]
MAX_TEXT = 60
KEPT = 4096  # effects: many edges change the same places in the same way


class Classifier:
    """Assigns classes to edges and refusals; a class is identified by its key and described once."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.program = tracer.program
        self._texts = _distinct(tracer)
        self._known = lru_cache(KEPT)(self._effect)

    def effect(self, index: int, args: Sequence[Any], before: State, after: State) -> tuple[str, ...]:
        """The changed places, with the kind of each change, ascending."""
        pairs = enumerate(zip(before, after, strict=True))
        # Most variables of a step are the same objects before and after it.
        changed = tuple([(slot, old, new) for slot, (old, new) in pairs if old is not new and old != new])
        return self._known(index, tuple(args), changed)

    def _effect(
        self, index: int, args: Sequence[Any], changed: tuple[tuple[int, Any, Any], ...]
    ) -> tuple[str, ...]:
        effects: set[str] = set()
        action = self.program.actions[index]
        for slot, old, new in changed:
            variable = self.program.variables[slot]
            effects.update(self._changes(variable.name, variable.type, old, new, (action, args)))
        return tuple(sorted(effects))

    def _changes(
        self, place: str, kind: Type, old: Any, new: Any, at: tuple[Action, Sequence[Any]]
    ) -> Iterator[str]:
        if old == new:
            return
        match kind:
            case Map():
                for key, was, now in zip(positions(kind.key), old, new, strict=True):
                    if was != now:
                        inside = f"{place}[{_called(key, kind.key, at)}]"
                        yield from self._changes(inside, kind.value, was, now, at)
            case Record(is_tuple=False):
                for (name, part), was, now in zip(kind.fields, old, new, strict=True):
                    yield from self._changes(f"{place}.{name}", part, was, now, at)
            # Within one variant its fields change; between two variants, only the variant counts.
            case Union() if old[0] == new[0] and kind.variants[old[0]][1].element is None:
                yield from self._changes(place, kind.variants[old[0]][1], old[1], new[1], at)
            case Option() if old and new:
                yield from self._changes(place, kind.item, old[0], new[0], at)
            case _:
                yield f"{place} {_turn(kind, old, new, at)}"

    def described(self, key: Key) -> EffectClass:
        """The class of a step, in terms of the spec."""
        index, marks, effect = key
        branches = tuple(sorted(self._branch(mark) for mark in marks if mark.kind == "branch"))
        # Ids are digests of these words, so they are sorted: the order of a set is no order.
        signs = tuple(sorted({self._sign(mark) for mark in marks if mark.kind != "branch"}))
        return self._named(index, branches, signs, effect)

    def described_refusal(self, key: ProbeKey) -> EffectClass:
        """The class of a refusal; its `effect` has the guards that fail."""
        index, ends = key
        marks = {mark for end in ends for mark in end}
        signs = tuple(sorted({self._sign(mark) for mark in marks if mark.kind not in ("branch", "end")}))
        fails = tuple(sorted({f"not: {self._texts[mark.where]}" for mark in marks if mark.kind == "end"}))
        signs_of = [sorted(self._sign(mark) for mark in end if mark.kind != "branch") for end in ends]
        # With one dead end its marks are complete; with several, which of them belong together.
        paths = tuple(sorted(map("; ".join, signs_of))) if len(ends) > 1 else ()
        return self._named(index, paths, signs, fails)

    def _named(
        self, index: int, branches: tuple[str, ...], signs: tuple[str, ...], effect: tuple[str, ...]
    ) -> EffectClass:
        action = self.program.actions[index].name
        # The headings between the lists distinguish two classes whose words only moved from one list to
        # another.
        parts = [action, "branches", *branches, "signs", *signs, "effect", *effect]
        return EffectClass(stable_id(parts), action, branches, signs, effect)

    def _branch(self, mark: Decision) -> str:
        point = self.program.points[mark.where]
        return f"{_short(point.span.text)} -> {point.label}"

    def _sign(self, mark: Decision) -> str:
        return f"{self._texts[mark.where]} {mark.kind} {mark.how}"


def _distinct(tracer: Tracer) -> dict[int, str]:
    """The guards at each place, numbered if several have the same text."""
    seen: Counter[str] = Counter()
    texts = {}
    # By place in the text and not in the order of first visits, which depends on the states that were seen.
    for span in sorted(tracer.places, key=lambda one: (one.start, one.end)):
        text = _short(span.text)
        seen[text] += 1
        texts[tracer.place(span)] = f"{text} #{seen[text]}" if seen[text] > 1 else text
    return texts


def _called(key: Any, kind: Type, at: tuple[Action, Sequence[Any]]) -> str:
    """A key, named after the first parameter of its type with the same value."""
    action, args = at
    for param, arg in zip(action.params, args, strict=True):
        # By role instead of by name: an action's effect on its own replica is one class for all replicas.
        if param.type == kind and arg == key:
            return param.name
    return "other"


def _turn(kind: Type, old: Any, new: Any, at: tuple[Action, Sequence[Any]]) -> str:
    """The kind of change of a value without parts."""
    match kind:
        case Int():
            # By how much is left out on purpose: classes stay few when bounds grow.
            return "up" if new > old else "down"
        case Bool():
            return "true" if new else "false"
        case Enum():
            return f"to {kind.members[new]}"
        case Sort():
            return f"to {_called(new, kind, at)}"
        case Option():
            return "new" if new else "gone"
        case Union():
            return f"to {kind.variants[new[0]][0]}"
        case Set():
            if set(old) < set(new):
                return "grows"
            return "shrinks" if set(new) < set(old) else "changes"
        case Seq() | Bag():
            if len(old) == len(new):
                return "changes"
            return "longer" if len(new) > len(old) else "shorter"
    return "changes"


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
