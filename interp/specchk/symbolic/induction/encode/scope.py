"""The context of an encoded expression: the state, the locals, and the path to it.

An undefined expression is a fault only where it is evaluated, so every fault is noted with the path:
the guards, branches and short circuits passed on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct, field

from specchk.lang.text.source import Span
from specchk.symbolic.induction.encode.bools import Truth, conj
from specchk.symbolic.induction.encode.trees import CannotEncode, Tree


class Unencodable(Exception):
    """A construct that the symbolic engines cannot encode, with its place."""

    def __init__(self, span: Span, reason: str) -> None:
        self.span = span
        self.reason = reason
        # The arguments unchanged: an exception that is sent to another process is made again from them.
        super().__init__(span, reason)

    def __str__(self) -> str:
        return f"{self.span.where}: {self.reason}"


ReadPlace = tuple[int, int | None]  # a slot, and the position of one entry of its map


class WatchedState(Struct, frozen=True):
    """A state that records the places read, in order, with slots from number `first` on."""

    trees: Sequence[Tree]
    read: dict[ReadPlace, None]
    first: int = 0

    def __getitem__(self, slot: int) -> Tree:
        self.read[self.first + slot, None] = None
        return self.trees[slot]

    def entry(self, slot: int, position: int) -> Tree:
        """One entry of a map: the others are not read."""
        self.read[self.first + slot, position] = None
        return self.trees[slot][position]


ReadState = Sequence[Tree] | WatchedState


def entry(state: ReadState, slot: int, position: int) -> Tree:
    """One entry of a variable that is a map."""
    return state.entry(slot, position) if isinstance(state, WatchedState) else state[slot][position]


class Entries(Struct, frozen=True):
    """New entries at some positions of a map; the others are unchanged."""

    table: Mapping[int, Tree]

    def over(self, old: Sequence[Tree]) -> Tree:
        """The map after the step, given its entries before it."""
        return tuple([self.table.get(position, tree) for position, tree in enumerate(old)])


def written(state: ReadState, writes: Mapping[int, Tree | Entries]) -> tuple[Tree, ...]:
    """The state after writes; unwritten places keep their trees, which are not read."""
    trees = list(state.trees if isinstance(state, WatchedState) else state)
    for slot, new in writes.items():
        trees[slot] = new.over(trees[slot]) if isinstance(new, Entries) else new
    return tuple(trees)


class StepScope(Struct):
    """The scope of a step; `after` is the state before it as long as nothing is written."""

    before: ReadState
    after: ReadState
    locals: dict[int, Tree] = field(default_factory=dict)
    path: list[Truth] = field(default_factory=list)
    faults: list[Truth] = field(default_factory=list)

    def fail(self, when: Truth) -> None:
        """Note that an expression is undefined on this path if `when` holds."""
        condition = conj([*self.path, when])
        if condition is not False:
            # A fault that cannot happen is not noted: most checks of a step are decided by its constants.
            self.faults.append(condition)

    @contextmanager
    def under(self, *conditions: Truth) -> Iterator[None]:
        """A context whose encodings are evaluated only if the conditions hold."""
        size = len(self.path)
        self.path.extend(c for c in conditions if c is not True)
        try:
            yield
        finally:
            del self.path[size:]


@contextmanager
def placed(span: Span) -> Iterator[None]:
    """A context that adds a place to `CannotEncode`."""
    try:
        yield
    except CannotEncode as reason:
        raise Unencodable(span, str(reason)) from None


def of_state(state: ReadState, after: ReadState | None = None) -> StepScope:
    """The scope of a predicate of a state, or of a step."""
    return StepScope(state, state if after is None else after)
