"""Encodings that are kept, for states that share trees.

An encoding depends on the trees that it reads, and on nothing else.  So it is noted which ones it reads,
and where another state has these very trees it is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from specchk.ir.program import Property
from specchk.symbolic.induction.encode.bools import Truth, conj
from specchk.symbolic.induction.encode.program import State, System
from specchk.symbolic.induction.encode.scope import ReadState, WatchedState
from specchk.symbolic.induction.encode.steps import ActionInstance, Arguments, arguments, instance
from specchk.symbolic.induction.encode.trees import Tree

T = TypeVar("T")
Numbers = tuple[int, ...]  # of slots, or the identities of their trees


class Recall(Generic[T]):
    """Results by the trees that were read for them."""

    def __init__(self) -> None:
        # With all trees of the first state: as long as these live no other tree has their identities.
        self._known: dict[Hashable, dict[Numbers, dict[Numbers, tuple[T, State]]]] = {}

    def get(
        self, key: Hashable, state: State, after: State, run: Callable[[WatchedState, WatchedState], T]
    ) -> T:
        """The result of a run for a state and the one after it."""
        trees, known = (*state, *after), self._known.setdefault(key, {})
        for slots, table in known.items():
            recalled = table.get(_identities(trees, slots))
            if recalled is not None:
                return recalled[0]
        read: set[int] = set()
        result = run(WatchedState(state, read), WatchedState(after, read, len(state)))
        slots = tuple(sorted(read))
        known.setdefault(slots, {})[_identities(trees, slots)] = (result, trees)
        return result


def _identities(trees: Sequence[Tree], slots: Numbers) -> Numbers:
    return tuple([id(trees[slot]) for slot in slots])


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
            instances.append(_rebased(made, state))
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
    outcomes = [
        replace(one, after=tuple([new if slot in one.assigned else now
                                  for slot, (new, now) in enumerate(zip(one.after, state, strict=True))]))
        for one in made.outcomes
    ]  # fmt: skip
    return replace(made, outcomes=tuple(outcomes))
