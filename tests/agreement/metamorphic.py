"""Changes of a spec's text that must change nothing, or only what is stated here.

A transformation gives another text and what its answers owe those of the first (`Relation`): which counts are
equal, how names are mapped back.  None where a text has no place for it.  Source: Chen, Cheung, Yiu,
"Metamorphic testing: a new approach for generating next test cases" (1998).

| change | states | transitions | names of violations |
|---|---|---|---|
| rename everything | equal | equal | mapped back |
| shuffle declarations | equal | equal | equal, but for who is blamed for an undefined step |
| swap two guards or conjuncts | equal | equal | equal, where nothing is undefined |
| split an action by cases | equal | equal | the halves are the action |
| an unused variable, a redundant invariant, a definition for an expression | equal | equal | equal |
| `when` as a `match` of an option | equal | equal | equal |
| a number as a variable that never changes | equal | equal | equal |
| an action twice | equal | as many more as the action takes | its double is the action |
| other elements of a sort | equal | equal | equal |
| a further horizon | not fewer | not fewer | what is found is found, in no more steps |
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from specchk.lang.syntax.parse import parse_tokens
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Source
from specchk.search.findings import INCOMPLETE
from specchk.search.verdict import Outcome, Violated

BUILTINS = {
    "min", "max", "sum", "card", "subsets", "some", "get", "len", "head", "last", "tail", "append", "prefix",
    "suffix", "elements", "add", "remove", "count", "first", "none", "_",
}  # fmt: skip
PROPERTIES = ("invariant", "step invariant", "reachable", "constraint", "liveness")


@dataclass(frozen=True)
class Relation:
    """The required relation between the answers to the changed text and to the original.

    `names`: of a violation in the changed text, its name in the first.  `doubled`: an action that was written
    twice.  `grows`: there may be more of everything.  `is_partial`: what is undefined may change.
    """

    names: dict[str, str] = field(default_factory=dict)
    doubled: str | None = None
    grows: bool = False
    is_partial: bool = False
    reblames: bool = False


Change = Callable[[Random, str], "tuple[str, Relation] | None"]


def declarations(text: str) -> list[str]:
    """The declarations of a text, each with the lines that belong to it."""
    return [part for part in re.split(r"(?m)^(?=[^\W\d])", text) if part]


def renamed(random: Random, text: str) -> tuple[str, Relation] | None:
    """Every name except those of built-in functions is replaced by another one, in the same order."""
    source, report = Source("renamed", text), Report()
    new = random.choice(("q_{}", "{}_r", "Zz{}"))
    out, end, names = [], 0, {}
    for offset, tokens in parse_tokens(source, report):
        for token in tokens:
            if token.type == "NAME" and str(token) not in BUILTINS:
                start = offset + (token.start_pos or 0)
                names[new.format(token)] = str(token)
                out += [text[end:start], new.format(token)]
                end = start + len(token)
    return "".join([*out, text[end:]]), Relation(names)


def shuffled(random: Random, text: str) -> tuple[str, Relation] | None:
    """Variables, definitions, actions and properties are in another order."""
    parts = declarations(text)
    moved = [at for at, part in enumerate(parts) if _is(part, "var", "action", "def", *PROPERTIES)]
    order = random.sample(moved, len(moved))
    if order == moved:
        return None
    other = list(parts)
    for place, at in zip(moved, order, strict=True):
        other[place] = parts[at]
    return "".join(other), Relation(reblames=True)


def swapped(random: Random, text: str) -> tuple[str, Relation] | None:
    """Two consecutive guards, or the sides of an `and` or `or`, are exchanged."""
    pairs = list(re.finditer(r"(?m)^([ ]+require [^\n]*\n)\1?([ ]+require [^\n]*\n)", text))
    sides = list(re.finditer(r"\(([^()\n]+)\) (and|or) \(([^()\n]+)\)", text))
    found = [match for match in [*pairs, *sides] if match.group(1) != match.group(match.lastindex or 1)]
    if not found:
        return None
    match = random.choice(found)
    if match in sides:
        new = f"({match.group(3)}) {match.group(2)} ({match.group(1)})"
    elif _indent(match.group(1)) == _indent(match.group(2)):
        new = match.group(2) + match.group(1)
    else:
        return None
    return text[: match.start()] + new + text[match.end() :], Relation(is_partial=True)


def split(random: Random, text: str) -> tuple[str, Relation] | None:
    """One action becomes two, exactly one of which is always permitted by a further guard."""
    case = _case(random, text)
    found = _pick(random, text, "action")
    if case is None or found is None:
        return None
    at, parts = found
    name, head, body = _action(parts[at])
    halves = [
        f"action {name}_{tag}{head}\n    require {test}\n{body}"
        for tag, test in (("yes", case), ("no", f"not ({case})"))
    ]
    other = [*parts[:at], *halves, *parts[at + 1 :]]
    return "".join(other), Relation({f"{name}_yes": name, f"{name}_no": name})


def doubled(random: Random, text: str) -> tuple[str, Relation] | None:
    """One action appears twice, under two names."""
    found = _pick(random, text, "action")
    if found is None:
        return None
    at, parts = found
    name, head, body = _action(parts[at])
    other = [*parts[: at + 1], f"action {name}_again{head}\n{body}", *parts[at + 1 :]]
    return "".join(other), Relation({f"{name}_again": name}, doubled=name)


def with_unused_variable(random: Random, text: str) -> tuple[str, Relation] | None:
    """A variable that nothing reads or writes."""
    kind, value = random.choice((("0..5", "3"), ("bool", "true"), ("set[0..2]", "{ 1 }"), ("bool?", "none")))
    return _before(text, "action", f"var zz_unused : {kind} = {value}\n")


def with_redundant_invariant(random: Random, text: str) -> tuple[str, Relation] | None:
    """An invariant that nothing can violate."""
    case = _case(random, text)
    return None if case is None else _before(text, "model", f"invariant zz_true: ({case}) or not ({case})\n")


def with_definition(random: Random, text: str) -> tuple[str, Relation] | None:
    """The body of a property becomes a definition's."""
    parts = declarations(text)
    places = [
        at for at, part in enumerate(parts) if re.match(r"(invariant|reachable) \w+: \S[^\n]*\n$", part)
    ]
    if not places:
        return None
    at = random.choice(places)
    head, body = parts[at].split(": ", 1)
    made = [f"def zz_outlined(): bool = {body}", f"{head}: zz_outlined()\n"]
    return "".join([*parts[:at], *made, *parts[at + 1 :]]), Relation()


def with_variable_number(random: Random, text: str) -> tuple[str, Relation] | None:
    """A number that is compared, added or stored in an action is read from a variable that never changes."""
    parts = declarations(text)
    found = [
        (at, match)
        for at, part in enumerate(parts) if _is(part, "action")
        for match in re.finditer(r"(?<=[<>=+] )([0-3])(?= *[\n)])", part)
        if "zz" not in part
    ]  # fmt: skip
    if not found:
        return None
    at, match = random.choice(found)
    part = parts[at]
    parts[at] = part[: match.start()] + "zz_number" + part[match.end() :]
    return _before("".join(parts), "action", f"var zz_number : 0..3 = {match.group(1)}\n")


def matched(random: Random, text: str) -> tuple[str, Relation] | None:
    """A `when` becomes a `match` on an option, whose content the first case reads."""
    places = list(re.finditer(
        r"(?m)^( +)when ([^\n]*):\n((?:\1 +[^\n]*\n)+)(?:\1else:\n((?:\1 +[^\n]*\n)+))?", text
    ))  # fmt: skip
    if not places:
        return None
    place = random.choice(places)
    pad, condition, then, orelse = place.groups(default="")
    orelse = orelse or f"{pad}    skip\n"
    cases = [
        f"{pad}    some zz_case:\n{pad}        require zz_case\n{_deeper(then)}",
        f"{pad}    none:\n{_deeper(orelse)}",
    ]
    if random.random() < 0.5:
        cases.reverse()
    else:
        cases[1] = cases[1].replace("none:", "_:", 1)
    made = f"{pad}match (if {condition} then some(true) else none):\n{''.join(cases)}"
    return text[: place.start()] + made + text[place.end() :], Relation()


def _deeper(lines: str) -> str:
    return re.sub(r"(?m)^", "    ", lines[:-1]) + "\n"


def with_other_elements(random: Random, text: str) -> tuple[str, Relation] | None:
    """The elements of a sort are given by name, and a binding to the first is one to another element."""
    found = re.search(r"\b(Node|R) = ([23])", text)
    if found is None or "choose" in text:
        return None
    names = ["zebra", "ant", "mole"][: int(found.group(2))]
    other = text.replace(found.group(), f"{found.group(1)} = {{{', '.join(names)}}}")
    return re.sub(r"\bhome = first\b", f"home = {random.choice(names)}", other), Relation()


def with_further_horizon(random: Random, text: str) -> tuple[str, Relation] | None:
    """Offsets end one later."""
    del random
    found = re.search(r"\bH = (\d)", text)
    if found is None:
        return None
    other = text[: found.start(1)] + str(int(found.group(1)) + 1) + text[found.end(1) :]
    return other, Relation(grows=True)


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (
        renamed, shuffled, swapped, split, doubled, with_unused_variable, with_redundant_invariant,
        with_definition, with_variable_number, matched, with_other_elements, with_further_horizon,
    )
}  # fmt: skip


def _is(part: str, *kinds: str) -> bool:
    return any(part.startswith(f"{kind} ") for kind in kinds)


def _pick(random: Random, text: str, kind: str) -> tuple[int, list[str]] | None:
    parts = declarations(text)
    places = [at for at, part in enumerate(parts) if _is(part, kind)]
    return (random.choice(places), parts) if places else None


def _action(part: str) -> tuple[str, str, str]:
    """Name, parameters with the colon, and body of an action with a block."""
    match = re.match(r"action (\w+)(\([^\n]*\):)\n", part)
    assert match is not None, part
    return match.group(1), match.group(2), part[match.end() :]


def _before(text: str, kind: str, line: str) -> tuple[str, Relation] | None:
    parts = declarations(text)
    at = next((at for at, part in enumerate(parts) if _is(part, kind)), None)
    return None if at is None else ("".join([*parts[:at], line, *parts[at:]]), Relation())


def _case(random: Random, text: str) -> str | None:
    """A test of the state that always has a value: whether a variable still has its initial value."""
    found = re.findall(r"(?m)^var (\w+) : [^\n=]+ = ([^\n]+)$", text)
    named = [
        (name, value) for name, value in found if value not in ("{}", "[]", "none") and " for " not in value
    ]
    if not named:
        return None
    name, value = random.choice(named)
    return f"{name} == {value}"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@dataclass(frozen=True)
class Said:
    """An engine's results on a spec: `violations` and `witnesses` with the lengths of their traces."""

    verdict: str
    violations: frozenset[tuple[str, str, int | None]]
    witnesses: frozenset[tuple[str, int]]
    levels: tuple[int, ...]
    generated: int
    taken: dict[str, int]  # how often each action
    is_cut: bool = False  # a budget ended it after a violation: what came then depends on the order

    @classmethod
    def of(cls, outcome: Outcome) -> Said:
        found = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
        points = zip(outcome.program.points, outcome.coverage, strict=True)
        return cls(
            type(outcome.verdict).__name__,
            frozenset((v.kind, v.name, len(v.trace.steps) if v.trace is not None else None) for v in found),
            frozenset((name, len(trace.steps)) for name, trace in outcome.witnesses),
            outcome.statistics.levels,
            outcome.statistics.generated,
            {point.owner: count for point, count in points if point.kind == "action"},
            any(warning.startswith(INCOMPLETE) for warning in outcome.warnings),
        )

    @property
    def is_undefined(self) -> bool:
        return any(kind == "undefined" for kind, _, _ in self.violations)

    @property
    def shortest(self) -> int | None:
        return min((length for _, _, length in self.violations if length is not None), default=None)

    def mapped(self, relation: Relation) -> frozenset[tuple[str, str, int | None]]:
        """The violations in the names of the original text; the blame is left out if it may change."""
        names = relation.names
        return frozenset(
            (kind, "" if kind == "undefined" and relation.reblames else names.get(name, name), length)
            for kind, name, length in self.violations
        )


def broken(first: Said, other: Said, relation: Relation, *, counts: bool = True) -> list[str] | None:
    """The violated parts of a relation; None if the two cannot be compared.

    `counts`: whether the engine's counts are those of states, which no order of exploration changes.
    """
    if "Inconclusive" in (first.verdict, other.verdict) or first.is_cut or other.is_cut:
        return None
    if (relation.is_partial or relation.grows) and (first.is_undefined or other.is_undefined):
        return None
    if relation.grows:
        return _shrunk(first, other)
    wrong = []
    if first.verdict != other.verdict or first.mapped(relation) != other.mapped(relation):
        wrong.append(
            f"{first.verdict} {set(first.violations)} became {other.verdict} {set(other.violations)}"
        )
    names = relation.names
    if first.witnesses != frozenset((names.get(name, name), length) for name, length in other.witnesses):
        wrong.append(f"witnesses {set(first.witnesses)} became {set(other.witnesses)}")
    if counts and first.levels != other.levels:
        wrong.append(f"levels {first.levels} became {other.levels}")
    more = first.taken[relation.doubled] if relation.doubled is not None else 0
    if counts and not first.is_undefined and first.generated + more != other.generated:
        wrong.append(f"{first.generated} transitions, and {more}, became {other.generated}")
    return wrong


def _shrunk(first: Said, other: Said) -> list[str]:
    """The findings within a horizon that are missing, or later, within a further one."""
    wrong = []
    if first.shortest is not None and (other.shortest is None or other.shortest > first.shortest):
        wrong.append(f"a violation in {first.shortest} steps became one in {other.shortest}")
    if other.shortest is None:
        reached = dict(other.witnesses)
        wrong += [
            f"the witness {name} in {length} steps became one in {reached.get(name)}"
            for name, length in first.witnesses
            if reached.get(name, length + 1) > length
        ]
    return wrong
