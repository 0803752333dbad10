"""From the path on which a divergence was found to a short one, replayed on the implementation at every try.

1. Steps are left out as long as the same thing still diverges: halves of the path first, then
   smaller parts, finally single steps (Zeller and Hildebrandt, "Simplifying and Isolating
   Failure-Inducing Input", 2002).  Steps that the spec no longer allows then are left out with them.
2. The spec's shortest path to the state before the divergence, breadth first, is tried instead.

Invariants: the result has diverged on exactly the path that it reports, in the same way (kind
and action); the path is never longer than the one found; the same divergence gives the same result.
An implementation that does not diverge again on its own path is not a function of its steps: this
is reported, with the divergence as it was found.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from specchk.conform.contract.failures import HUNG
from specchk.conform.replay.place import Diverged, Divergence, Place
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.spec_side import ActionCall
from specchk.conform.replay.suites import BREADTH_FIRST, SuiteResult
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.values import State

S = TypeVar("S")
MAX_STEPS = 20_000  # taken on the implementation while shrinking
MAX_STATES = 50_000  # of the spec, searched for a shortest path
Came = dict[State, tuple[State, ActionCall] | None]  # from where, and by what; None for initial states


def shrunk_result(replayer: Replayer[Any], result: SuiteResult) -> SuiteResult:
    """A result with its divergence on the shortest path found; `replayer` is consumed."""
    # Breadth first has a shortest path already; and a fault inside a step strikes in no step taken here.
    if result.divergence is None or result.suite in BREADTH_FIRST:
        return result
    return replace(result, divergence=shrunk(replayer, result.divergence))


def shrunk(replayer: Replayer[Any], divergence: Divergence) -> Divergence:
    """The same divergence on the shortest path found; `replayer` is consumed."""
    if not divergence.trace.steps:
        return divergence
    shrinker = _Shrinker(replayer, divergence)
    # Each try that hangs again takes the whole timeout, so only the straight path is tried then.
    if divergence.kind != HUNG:
        if shrinker.repeat() is None:
            reason = f"{divergence.reason}; repeating the path did not reproduce it".removeprefix("; ")
            return replace(divergence, reason=reason)
        shrinker.leave_out()
    # In this order: the straight path is searched only among the paths that are shorter than the rest.
    shrinker.go_straight()
    return replace(shrinker.best, found_after=len(divergence.trace.steps))


class _Shrinker(Generic[S]):
    def __init__(self, replayer: Replayer[S], divergence: Divergence) -> None:
        self.replayer = replayer
        self.best = divergence
        self.places: list[Place[S]] = []  # along the best path, the last where it diverges
        self.left = MAX_STEPS
        self._by_args = {(instance.index, instance.args): instance for instance in replayer.spec.instances}

    def _moves(self) -> list[ActionCall]:
        """The steps of the best path, each in the way in which it was taken."""
        steps = zip(self.best.trace.steps, self.best.ways, strict=True)
        return [replace(self.replayer.spec.instance(step), ways=(way,)) for step, way in steps]

    def repeat(self) -> Divergence | None:
        """Take the path as it was found."""
        return self._try([], self._moves())

    def _try(self, before: Sequence[Place[S]], moves: Sequence[ActionCall]) -> Divergence | None:
        """Continue from the end of `before`; an equivalent divergence becomes the best one."""
        places = list(before)
        try:
            if not places:
                places.append(self.replayer.begin())
            for move in moves:
                self._go(places, move)
            self._end(places[-1])
        except Diverged as diverged:
            divergence = diverged.divergence
            if self._is_wanted(divergence):
                self.best, self.places = divergence, places
                return divergence
        return None

    def _go(self, places: list[Place[S]], move: ActionCall) -> None:
        """Take one more step, unless the spec does not have it here."""
        self.left -= 1
        # A budget of steps and not of seconds, so that the same divergence shrinks to the same path
        # everywhere.
        place = places[-1]
        allowed = self.replayer.spec.allowed(place.state, move)
        # A step that the spec no longer has here is left out, instead of abandoning the attempt: without
        # what it needed, it usually is not needed either.
        if allowed and self.replayer.spec.inside(place.state):
            places.extend(self.replayer.take(place, move, allowed))

    def _end(self, place: Place[S]) -> None:
        """The event that diverged at the end of the path: a step, a probe, or a check of saved state."""
        self.left -= 1
        step = self.best.step
        if step is None:
            self.replayer.check_kept(place)
            self.replayer.check_reopened(place)
            return
        instance = replace(self.replayer.spec.instance(step), ways=(self.best.way,))
        # By the spec in this state, not by the kind of the divergence: where a shorter path makes the step
        # legal, its acceptance is right, and must not pass as the same mistake.
        if allowed := self.replayer.spec.allowed(place.state, instance):
            self.replayer.take(place, instance, allowed)
        elif self.replayer.spec.forbids(place.state, instance):
            self.replayer.probe(place, [instance])

    def _is_wanted(self, divergence: Divergence) -> bool:
        wanted = self.best
        action, other = (None if each.step is None else each.step.action for each in (wanted, divergence))
        # Kind and action, but neither state nor arguments: a shorter path may show the same mistake
        # elsewhere.
        return (wanted.kind, action) == (divergence.kind, other)

    def leave_out(self) -> None:
        """Leave out parts of the path, first of half its length, until no single step can be omitted."""
        size = max(len(self.best.trace.steps) // 2, 1)
        while size and self.left > 0:
            before = len(self.best.trace.steps)
            self._leave_out_parts(size)
            # Once something was removed, parts of the same size are tried again: the reason to keep them may
            # have been removed as well.
            is_shorter = len(self.best.trace.steps) < before
            size = min(size, len(self.best.trace.steps)) if is_shorter else size // 2

    def _leave_out_parts(self, size: int) -> None:
        """Try to leave out each part of one size, from the end to the beginning."""
        at = len(self.best.trace.steps) - size
        # From the end: omissions there keep the places before them, which need not be taken again.
        while at > -size and self.left > 0:
            start = max(at, 0)
            moves = self._moves()[at + size :]
            if self._try(self.places[: start + 1], moves) is not None:
                at = min(at, len(self.best.trace.steps))
            at -= size

    def go_straight(self) -> None:
        """Take the spec's shortest path to the state before the divergence, if there is a shorter one."""
        target, longest = self.best.trace.last, len(self.best.trace.steps)
        path = self._shortest(target, longest - 1)
        if path is None:
            return
        places = [self.replayer.begin()]
        # The shortest path was found in the spec alone; whether the implementation follows it must be seen.
        try:
            for instance, state in path:
                places.append(self._reach(places[-1], instance, state))
        except (Diverged, StopIteration):
            return  # it chooses another successor, or diverges elsewhere: the longer path is kept
        self._try(places, [])

    def _reach(self, place: Place[S], instance: ActionCall, state: State) -> Place[S]:
        """Take an instance in the first way that leads to a state."""
        allowed = self.replayer.spec.allowed(place.state, instance)
        ways = (replace(instance, ways=(way,)) for way in instance.ways)
        return next(
            after for way in ways for after in self.replayer.take(place, way, allowed) if after.state == state
        )

    def _shortest(self, target: State, longest: int) -> list[tuple[ActionCall, State]] | None:
        """The instances and states of a shortest path in the spec; None if it is longer than `longest`."""
        program = self.replayer.program
        stepper = Stepper(program)
        reached_by: Came = dict.fromkeys(initial_states(program))
        queue = deque((state, 0) for state in reached_by)
        while queue and target not in reached_by and len(reached_by) < MAX_STATES:
            state, depth = queue.popleft()
            # Not deeper than the path that is known: a longer one would be of no use.
            if depth == longest or not self.replayer.spec.inside(state):
                continue
            for index, args, after in stepper.successors(state):
                if after not in reached_by:
                    reached_by[after] = (state, self._by_args[index, args])
                    queue.append((after, depth + 1))
        if target not in reached_by:
            return None
        path = []
        while (before := reached_by[target]) is not None:
            path.append((before[1], target))
            target = before[0]
        return path[::-1]
