"""Faults in the middle of steps: the suite `faults`.

A spec's crash comes between two steps; a real one comes between two writes, or in one.  For every
step on the path, and every fault of the spec that the binding can let strike inside it
(`@interruption`), the step is repeated with the fault one occasion later each time,
until it comes too late.  The result must be a state that the spec allows: the fault struck before
the step, or after it.  A variable that is set `aside`, the environment's memory, may also have
its value from before or after the step.

States are explored breadth first, as by `product`; at most `limit` of them are expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from specchk.conform.contract.binding import BindingError, Interruption, Mistake
from specchk.conform.replay.place import Diverged, Divergence, Found, Place
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.spec_side import ActionCall
from specchk.conform.replay.suites import BreadthFirst, SuiteResult
from specchk.meaning.values import State
from specchk.search.verdict import Step

S = TypeVar("S")


def run_faults(replayer: Replayer[Any], limit: int | None = None) -> SuiteResult:
    """Explore spec and implementation together, with faults injected into every step.

    Raises `BindingError` if the binding has no interruption.
    """
    return _Faults(replayer, limit).run()


class _Faults(BreadthFirst[S]):
    name = "faults"

    def __init__(self, replayer: Replayer[S], limit: int | None) -> None:
        super().__init__(replayer, limit)
        names = [variable.name for variable in replayer.program.variables]
        by_action = {fault.action: fault for fault in type(replayer.binding).interruptions()}
        self.faults = [(by_action[instance.label.action], instance) for instance in replayer.spec.instances
                       if instance.label.action in by_action]  # fmt: skip
        self.aside = {one.action: frozenset(map(names.index, one.aside)) for one in by_action.values()}
        if not self.faults:
            hint = "mark a method with @interruption; without one no fault can strike inside a step"
            raise BindingError((Mistake("the binding has no interruption", hint),))

    def vacuous(self) -> str:
        """The reason why this suite is vacuous; empty if it is not."""
        # No refusals here: with 0 forbidden steps the suite is not held to have tried any.
        return super().vacuous() if self.replayer.tally.struck else "no fault struck inside a step"

    def _steps(self, place: Place[S]) -> Iterator[Place[S]]:
        enabled, _ = self.replayer.spec.options(place.state)
        for instance, successors in enabled:
            for fault, striking in self.faults:
                for way in instance.ways:
                    self._interrupt(place, (instance, way, successors), fault, striking)
            yield from self.replayer.take(place, instance, successors)

    def _interrupt(
        self, place: Place[S], taken: tuple[ActionCall, str, tuple[State, ...]], fault: Interruption,
        striking: ActionCall,
    ) -> None:  # fmt: skip
        """Inject a fault at each moment of a step, until the step ends before it."""
        instance, way, successors = taken
        # Crash consistency: a step is atomic, so the fault comes before it or after it, never in the
        # middle.
        around = (place.state, *successors)
        # The fault's own choices as well: each state after it, before and after the step.
        allowed = tuple(s for state in around for s in self.replayer.spec.allowed(state, striking))
        if not allowed:
            # A fault that the spec does not have here (a crash of a stopped process) cannot strike.
            return
        moment = 0
        # One occasion later each time, until the step ends before the fault strikes: every place was tried
        # once.
        while (struck := self.replayer.cut_short(place, instance, way, fault, striking, moment)) is not None:
            left, inside = struck
            if not self._is_allowed(left, allowed, around, self.aside[fault.action]):
                raise Diverged(replace(self._blame(place, striking, inside), expected=allowed, found=left))
            moment += 1

    def _is_allowed(
        self, left: Found, allowed: tuple[State, ...], around: tuple[State, ...], aside: frozenset[int]
    ) -> bool:
        for state in allowed:
            expected: list[object] = list(state)
            for slot in aside:
                # What only the environment remembers may lag; it must still be one of the two, and nothing
                # else.
                if any(left[slot] == near[slot] for near in around):
                    expected[slot] = left[slot]
            if self.replayer.same(expected, left):
                return True
        return False

    def _blame(self, place: Place[S], by: ActionCall, inside: str) -> Divergence:
        reason = (
            f"{inside}\nthe spec reaches this state neither with the fault before that step nor with the "
            "fault after it"
        )
        step = Step(by.label.action, by.label.args, ())
        return Divergence("fault", place.trace(), step, "", reason, ways=place.ways())
