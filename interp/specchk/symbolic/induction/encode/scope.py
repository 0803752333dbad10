"""The context of an encoded expression: the state, the locals, and the path that leads to it.

An undefined expression is a fault only where it is evaluated, so every fault is noted with the path:
the guards, branches and short circuits passed on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from specchk.lang.text.source import Span
from specchk.symbolic.induction.encode.bools import Truth, conj
from specchk.symbolic.induction.encode.trees import CannotEncode, Tree


@dataclass(frozen=True, slots=True)
class Fault:
    """An expression has no value where `when` holds."""

    when: Truth
    span: Span
    reason: str


class Unencodable(Exception):
    """A use that the symbolic engines cannot encode, with its place."""

    def __init__(self, span: Span, reason: str) -> None:
        self.span = span
        self.reason = reason
        # As they were given: a process hands it to another one, which makes it again from these.
        super().__init__(span, reason)

    def __str__(self) -> str:
        return f"{self.span.where}: {self.reason}"


@dataclass(frozen=True, slots=True)
class WatchedState:
    """A state that notes the slots that are read, from number `first` on."""

    trees: Sequence[Tree]
    read: set[int]
    first: int = 0

    def __getitem__(self, slot: int) -> Tree:
        self.read.add(self.first + slot)
        return self.trees[slot]


ReadState = Sequence[Tree] | WatchedState


def written(state: ReadState, writes: Mapping[int, Tree]) -> tuple[Tree, ...]:
    """The state after writes: slots that are not written keep their very trees, which are not read."""
    trees = state.trees if isinstance(state, WatchedState) else state
    return tuple([writes.get(slot, old) for slot, old in enumerate(trees)])


@dataclass(slots=True)
class StepScope:
    """`after` is the state before as long as there is no step."""

    before: ReadState
    after: ReadState
    locals: dict[int, Tree] = field(default_factory=dict)
    path: list[Truth] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def fail(self, when: Truth, span: Span, reason: str) -> None:
        """Note that an expression has no value on this path where `when` holds."""
        condition = conj([*self.path, when])
        if condition is not False:
            # A fault that cannot happen is none: most checks of a step are decided by its constants.
            self.faults.append(Fault(condition, span, reason))

    @contextmanager
    def under(self, *conditions: Truth) -> Iterator[None]:
        """Anything encoded inside is evaluated only where the conditions hold."""
        size = len(self.path)
        self.path.extend(c for c in conditions if c is not True)
        try:
            yield
        finally:
            del self.path[size:]


@contextmanager
def placed(span: Span) -> Iterator[None]:
    """Give `CannotEncode` its place."""
    try:
        yield
    except CannotEncode as reason:
        raise Unencodable(span, str(reason)) from None


def of_state(state: ReadState, after: ReadState | None = None) -> StepScope:
    """The scope of a predicate of a state, or of a step."""
    return StepScope(state, state if after is None else after)
