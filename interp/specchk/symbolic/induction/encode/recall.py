"""Encodings that are kept, for states that share trees.

An encoding depends on the trees that it reads, and on nothing else.  So it is noted which ones it reads,
and where another state has these very trees it is not made again.  Which place is read next depends on
what was read before, so the known encodings are a tree of decisions by what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from specchk.ir.program import Property
from specchk.symbolic.induction.encode.bools import Truth, conj
from specchk.symbolic.induction.encode.program import State, System
from specchk.symbolic.induction.encode.scope import ReadPlace, ReadState, WatchedState
from specchk.symbolic.induction.encode.steps import ActionInstance, Arguments, arguments, instance
from specchk.symbolic.induction.encode.trees import Tree

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Result(Generic[T]):
    """An encoding; `read` has all that it has read, since no other tree may get their identities."""

    value: T
    read: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class _Read(Generic[T]):
    """The place that is read next, and how it continues with each tree there, by its identity."""

    slot: int
    position: int | None
    ways: dict[int, _Read[T] | _Result[T]] = field(default_factory=dict)


class Recall(Generic[T]):
    """Results by the trees that were read for them."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Read[T] | _Result[T]] = {}

    def get(
        self, key: Hashable, state: State, after: State, run: Callable[[WatchedState, WatchedState], T]
    ) -> T:
        """The result of a run for a state and the one after it."""
        trees = (*state, *after) if after else state
        known = self._known.get(key)
        while isinstance(known, _Read):
            tree = trees[known.slot]
            known = known.ways.get(id(tree if known.position is None else tree[known.position]))
        if known is not None:
            return known.value
        read: dict[ReadPlace, None] = {}
        result = run(WatchedState(state, read), WatchedState(after, read, len(state)))
        self._note(key, trees, read, result)
        return result

    def _note(self, key: Hashable, trees: Sequence[Tree], read: Iterable[ReadPlace], result: T) -> None:
        places = [*read]
        parts = [trees[slot] if position is None else trees[slot][position] for slot, position in places]
        ways: dict[Hashable, _Read[T] | _Result[T]] = self._known
        here: Hashable = key
        for (slot, position), part in zip(places, parts, strict=True):
            step = ways.setdefault(here, _Read(slot, position))
            assert isinstance(step, _Read)
            assert (step.slot, step.position) == (slot, position), "two runs that read the same differ"
            ways, here = step.ways, id(part)  # type: ignore[assignment]
        assert here not in ways
        ways[here] = _Result(result, tuple(parts))


@dataclass(slots=True)
class RecallingSystem(System):
    """As `System`, for many states with trees in common; its instances have names that start with `t.`."""

    _rows: list[tuple[int, Arguments]] = field(init=False)
    _instances: Recall[ActionInstance] = field(init=False, default_factory=Recall)
    _truths: Recall[Truth] = field(init=False, default_factory=Recall)

    def __post_init__(self) -> None:
        actions = enumerate(self.program.actions)
        self._rows = [
            (index, row) for index, action in actions for row in arguments(self.program, action, "t.")
        ]

    def instances(self, state: State, tag: str = "t.") -> list[ActionInstance]:
        """Every action with its arguments from a state."""
        instances = []
        for number, (index, row) in enumerate(self._rows):
            made = self._instances.get(
                number,
                state,
                (),
                lambda read, _: instance(self.program, index, row, read, "t."),  # noqa: B023
            )
            instances.append(_rebased(made, state) if made.outcomes else made)
        return instances

    def kept(self, prop: Property, state: State, after: State | None = None) -> Truth:
        """Whether a property is defined and true of a state, or of a step."""
        return self._truths.get(
            id(prop), state, after or (),
            lambda read, later: conj(self.holds(prop, read, None if after is None else later)),
        )  # fmt: skip

    def unclear(self, prop: Property, state: ReadState) -> Truth:
        """That a property is undefined in a state."""
        assert isinstance(state, tuple)
        return self._truths.get((id(prop), "unclear"), state, (),
                                lambda read, _: System.unclear(self, prop, read))  # fmt: skip


def _rebased(made: ActionInstance, state: State) -> ActionInstance:
    """An instance whose outcomes have another state's trees where nothing is assigned."""
    # By what is assigned, not by what is as before: a value that the first state had by chance is assigned
    # in others, too.
    outcomes = []
    for outcome in made.outcomes:
        after = list(state)
        for slot, positions in outcome.assigned.items():
            new = outcome.after[slot]
            if positions is not None:
                entries = list(state[slot])
                for position in positions:
                    entries[position] = new[position]
                new = tuple(entries)
            after[slot] = new
        outcomes.append(replace(outcome, after=tuple(after)))
    return replace(made, outcomes=tuple(outcomes))
