"""Places reached by both spec and implementation, and the differences found there.

A `Place` has the state, the saved system, and the path back to the start; a `Divergence` is a
value, with the spec's behaviour that leads to it.

Not here: how places are reached and compared (`replay`), and the report of a divergence
(`divergence`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.conform.contract.binding import OutsideSpec
from specchk.conform.contract.failures import described, is_implementations
from specchk.ir.nodes import Value
from specchk.meaning.values import State
from specchk.search.verdict import Step, Trace

SAVING, OBSERVING = "when its state was saved", "when its state was observed"
S = TypeVar("S")
Found = tuple[Value | None, ...]  # a projected state; None where a variable is unobserved


class ReplayTally(Struct):
    """Counts by action: steps taken, probes refused, and probes not applicable.

    `compared` and `reopened` count states that were compared, and systems that were reopened.
    """

    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    impossible: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    """Successors that the spec allows and the implementation never chose."""
    compared: int = 0
    struck: int = 0
    """Faults that struck inside a step."""
    reopened: int = 0

    def add(self, other: ReplayTally) -> None:
        """Add the counts of another worker."""
        for count in self.__struct_fields__:
            setattr(self, count, getattr(self, count) + getattr(other, count))


class Place(Struct, Generic[S], frozen=True):
    """A state reached by both, the saved system there, and the path to it."""

    state: State
    kept: Any
    step: Step | None = None
    before: Place[S] | None = None
    way: str = ""  # in which the step was taken

    def path(self) -> list[Place[S]]:
        """The places from the start to this one."""
        places = [self]
        while (before := places[-1].before) is not None:
            places.append(before)
        return places[::-1]

    def trace(self) -> Trace:
        """The spec's behaviour up to this place."""
        first, *others = self.path()
        return Trace(first.state, tuple(place.step for place in others if place.step is not None))

    def ways(self) -> tuple[str, ...]:
        """The way in which each step of the trace was taken."""
        return tuple(place.way for place in self.path()[1:])


class Divergence(Struct, frozen=True):
    """The point at which spec and implementation diverge.

    `kind`: `initial` (another initial state), `refused` (an enabled step), `accepted` (a disabled
    one), `state` (the state is no successor of the spec), `changed` (by a refused step),
    `outside` (a state without a projection), `ambiguous` (successors that the projection does not
    distinguish), `restored` (the saved system has another state now), `reopened` (the state on disk
    differs), `fault` (the result of a fault inside a step), `raised` (an exception), `hung` (a
    call that does not return); of an implementation that is a process also `died` (it ended),
    `garbled` (it broke the protocol) and `unrepeatable` (the same requests had another outcome).
    `reason` has further details, if there are any.
    `found` is the implementation's state, `expected` the allowed one instead.  `ways` are those
    in which the trace's steps were taken; `found_after` is how many steps it had before it was shrunk.
    """

    kind: str
    trace: Trace
    step: Step | None
    way: str
    reason: str
    expected: tuple[State, ...] = ()
    found: Found | None = None
    ways: tuple[str, ...] = ()
    found_after: int | None = None


# Made when it is needed: a divergence has its whole trace, and nearly every comparison finds none.
Blame = Callable[[], Divergence]


class Diverged(Exception):
    """Ends a suite; carries the divergence."""

    def __init__(self, divergence: Divergence) -> None:
        self.divergence = divergence
        super().__init__(divergence)

    def __str__(self) -> str:
        return self.divergence.kind


class DivergedBeyond(Diverged):
    """A state with a number above a horizon: a divergence, unless a step leads there; `shown` projects it."""

    def __init__(self, divergence: Divergence, shown: Mapping[str, Any]) -> None:
        super().__init__(divergence)
        self.shown = shown
        self.args = divergence, shown  # by which it is pickled


def at_place(
    place: Place[S], kind: str, reason: str = "", expected: tuple[State, ...] = (), found: Found | None = None
) -> Divergence:
    """The divergence of a place itself, not of a step from it."""
    return Divergence(kind, place.trace(), None, "", reason, expected, found, place.ways())


def is_finding(error: BaseException) -> bool:
    """Whether an exception from a binding's method is about the implementation."""
    return isinstance(error, OutsideSpec) or is_implementations(error)


def failed(error: BaseException, when: str, blame: Divergence) -> Diverged:
    """The finding that the code under test failed, or is outside the spec."""
    if isinstance(error, OutsideSpec):
        # Of a state that was kept, it is the keeping that is at fault.
        kind, reason = "restored" if blame.kind == "restored" else "outside", str(error)
        # Of a projection, which is where most are raised, the reason alone.
        when = "" if when == OBSERVING else when
    else:
        kind, reason = described(error)
    return Diverged(replace(blame, kind=kind, reason=f"{when}: {reason}" if when else reason))
