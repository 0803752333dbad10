"""Random simulation by compiled code: the walks of `explore.simulate`, with its own random numbers.

Walks are numbered, and their numbers decide them (`kernel`).  They are taken in rounds, each twice as long as
the one before up to a limit.  A round is always finished, and its findings are read after it: so a seed has
one outcome on any number of workers, unless time, memory or Control-C ends a round.  Of several violations
that of the smallest number is reported, after the reference stepper has taken the same path
(`explore.simulate.follow`).

A guided walk chooses an action by its weight among those that are enabled, then one of its steps.  The weight
is large if earlier rounds had few steps of the action.  Which errors such walks find sooner, and which later,
is not known beforehand (`bench/engines/simulate.py --errors`), so every second walk is uniform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import ClassVar

from msgspec.structs import replace

from specchk.codegen import ir
from specchk.explore.simulate import (
    Followed,
    Walks,
    begin,
    follow,
    found_nothing,
    outcome_of_walks,
)  # fmt: skip
from specchk.ir.program import Program
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State
from specchk.native.compiler import KernelSource
from specchk.native.kernel.predicates import NewPredicates
from specchk.native.machine.frames import check_room, records_of
from specchk.native.machine.layout import NoRoom, layout_of, mask
from specchk.native.machine.rooms import first_room, with_room
from specchk.native.tiers import Optimiser, load_kernel
from specchk.native.walking.frames import WalkEnd, WalkThread
from specchk.native.walking.kernel import (
    SharedOutSteps,
    WalkKernel,
    emit_check_of_walk,
    emit_note_of_walk,
)  # fmt: skip
from specchk.native.walking.memory import COUNTED, WalkMemory
from specchk.processes import cores
from specchk.search.budget import Meter, Progress, resident_bytes
from specchk.search.findings import NO_MEMORY, NOTHING_TO_CHECK
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import (
    Inconclusive,
    Outcome,
    Statistics,
    Trace,
    Violation,
    WalkCounts,
    stopped_by,
)  # fmt: skip

FIRST_ROUND = 64  # walks
ROUND_STEPS = 1 << 22  # a round has no more, unless it has `LEAST_WALKS`
LEAST_WALKS, MOST_WALKS = 1 << 10, 1 << 16
CONFIRMED_EVERY = 1 << 10  # steps between two reports
MOST_UNCONFIRMED = 16  # walks of a round whose violations are not confirmed; then no other is tried
HEAVIEST = 1 << 20  # the weight of an action, 2^20 of which are still a number of 64 bits

OnProgress = Callable[[Progress], None]


class _Unfinished(Exception):
    """The budget ended while the reference stepper repeated a walk with a finding."""


class StepChoice(Enum):
    """The way in which a walk chooses a step."""

    UNIFORM = "uniform"
    GUIDED = "guided"


class WalkSource(KernelSource, frozen=True, dict=True):
    """The source of the kernel of walks."""

    compact: bool = True  # the table has hashes
    kind: ClassVar = "-walks"
    steps: ClassVar = SharedOutSteps
    kernel: ClassVar = WalkKernel
    entries: ClassVar = (("walk", 2), ("refill", 3))

    def emit_note(self, module: ir.IRModule) -> None:
        """See `KernelSource`."""
        emit_note_of_walk(module, self.program)

    def emit_check(self, new: NewPredicates) -> ir.Function:
        """See `KernelSource`."""
        return emit_check_of_walk(new, self.program)


def simulate(
    program: Program, walks: Walks, workers: int = 0, on_progress: OnProgress | None = None,
    choice: StepChoice = StepChoice.UNIFORM,
) -> Outcome:  # fmt: skip
    """Walk at random until a property fails or all walks are done; `Unsupported` as in a search."""
    meter, room = Meter(walks.budget), first_room(program)
    while True:
        roomy = with_room(program, room)
        source = WalkSource(roomy, layout_of(roomy))
        run = _Run(program, walks, choice, source, workers or cores(), on_progress, meter)
        try:
            return run.outcome()
        except NoRoom:
            room = room.larger


@dataclass(slots=True)
class _Run:
    program: Program
    walks: Walks
    choice: StepChoice
    source: WalkSource
    workers: int
    on_progress: OnProgress | None
    meter: Meter
    memory: WalkMemory | None = field(init=False, default=None)
    optimiser: Optimiser = field(init=False)
    stopped: Inconclusive | None = field(init=False, default=None)
    violation: Violation | None = field(init=False, default=None)
    ended: int = field(init=False, default=0)
    failed: int | None = field(init=False, default=None)
    ends: Ends = field(init=False)
    end_of: Callable[[State], End] = field(init=False)
    reached: dict[str, Trace] = field(init=False, default_factory=dict)
    unconfirmed: tuple[str, ...] = field(init=False, default=())
    prepared_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        stepper = Stepper(self.program)
        self.ends = Ends(self.program, stepper, Properties(self.program, stepper))
        self.end_of = cache(self.ends.without_steps)  # walks end in few states, and open numbers take long
        self.optimiser = Optimiser(self.source)

    def outcome(self) -> Outcome:
        """The outcome of the walks."""
        try:
            self._walk()
            return self._reported()
        finally:
            self.optimiser.stop()
            if self.memory is not None:
                self.memory.release()

    def _walk(self) -> None:
        try:
            states, self.violation = begin(self.program)
            if self.violation is None and states:
                kernel = load_kernel(self.source, is_long=False)
                self.memory = WalkMemory(
                    self.source.program, self.source.layout, kernel, states, self.workers
                )
                self.prepared_s = self.meter.seconds
                self._rounds(self.memory)
            elif self.violation is None:
                self.stopped = NOTHING_TO_CHECK
        except KeyboardInterrupt as interrupt:
            self.stopped = stopped_by(interrupt)
        except MemoryError:
            self.stopped = NO_MEMORY

    def _reported(self) -> Outcome:
        memory = self.memory
        counted, steps, cuts, longest = 0, 0, 0, 0
        coverage, taken = (0,) * len(self.program.points), (0,) * len(self.program.actions)
        if memory is not None:
            counted, steps, cuts = memory.seen, memory.total(WalkThread.STEPS), memory.total(WalkThread.CUTS)
            longest = memory.longest
            coverage = tuple(map(sum, zip(*(worker.counts for worker in memory.workers), strict=True)))
            taken = memory.taken
        statistics = Statistics(
            counted, steps, longest + 1, (), self.meter.seconds, cuts, self.prepared_s,
            walks=WalkCounts(self.ended, taken, self.failed),
        )  # fmt: skip
        verdict = self.violation or self.stopped or found_nothing(self.walks.walks)
        guided = "guided " if self.choice is StepChoice.GUIDED else ""
        outcome = outcome_of_walks(
            self.program,
            f"native ({guided}simulation)",
            verdict,
            statistics,
            coverage,
            self.reached,
            self.walks.seed,
        )
        if counted == COUNTED:
            more = f"distinct states are counted up to {COUNTED}, and the walks visited at least that many"
            outcome = replace(outcome, warnings=(*outcome.warnings, more))
        return replace(outcome, stopped=self.stopped, warnings=(*outcome.warnings, *self.unconfirmed))

    def _rounds(self, memory: WalkMemory) -> None:
        """Take all walks, round by round, up to the first that finds a violation."""
        memory.set_walks(self.walks.seed & mask(64), self.walks.steps)
        first, size = 0, FIRST_ROUND
        most = min(MOST_WALKS, max(LEAST_WALKS, ROUND_STEPS // self.walks.steps))
        while first < self.walks.walks and self.stopped is None:
            if self.choice is StepChoice.GUIDED:
                memory.set_weights(weights(memory.taken))
            memory.set_round(first, min(size, self.walks.walks - first))
            try:
                self._round(memory)
            except KeyboardInterrupt as interrupt:
                self.stopped = stopped_by(interrupt)
            except MemoryError:
                self.stopped = NO_MEMORY
            if memory.total(WalkThread.OVERFLOW):  # none of the walks so far counts
                memory.release()
                self.memory, self.ended, self.reached = None, 0, {}
                return
            ends = list(memory.ends())
            self.ended += len(ends)
            try:
                self.violation = self._violation(memory, ends)
                self._note_witnesses(memory)
            except ReplayFailed as failed:
                if self.violation is None:
                    raise
                self._note_unconfirmed("a witness", [failed])
            except _Unfinished as unfinished:
                # A confirmed violation is reported, although a witness may be missing beside it.
                self.stopped = Inconclusive(str(unfinished), budget=True)
            if self.violation is not None:
                return
            first, size = first + size, min(2 * size, most)
            self._look(memory.seen)

    def _round(self, memory: WalkMemory) -> None:
        while not memory.is_round_done and self.stopped is None:
            # Limits of states only between rounds: where they would end one depends on the workers.
            memory.work(lambda: self._look(0) or self._is_code_better)
            check_room(self.program, memory.total(WalkThread.OVERFLOW), "a set of these walks")
            if self._is_code_better:
                # No worker runs now, and the state of every walk is in memory.
                memory.kernel = self.optimiser.kernel() or memory.kernel

    @property
    def _is_code_better(self) -> bool:
        """Whether there is optimised code for walks that run quick code."""
        return self.memory is not None and not self.memory.kernel.is_optimised and self.optimiser.is_done

    def _look(self, seen: int) -> bool:
        """Check the budget and report progress; returns whether the walks are stopped."""
        memory = self.memory
        assert memory is not None
        steps = memory.total(WalkThread.STEPS)
        if not memory.kernel.is_optimised:
            self.optimiser.consider(steps)
        limit = self.meter.exceeded(seen)
        if limit is not None and self.stopped is None:
            self.stopped = Inconclusive(limit, budget=True)
        if self.on_progress is not None:
            taken = sum(map(bool, memory.taken))
            rate = steps / max(self.meter.seconds - self.prepared_s, 1e-6)
            of_all = f"{taken} of {len(memory.taken)} actions taken"
            self._progress(
                memory, self.on_progress, f"{self.ended} walks, {steps} steps ({rate:.0f}/s), {of_all}"
            )
        return self.stopped is not None

    def _progress(self, memory: WalkMemory, on_progress: OnProgress, note: str) -> None:
        left, steps = self.walks.walks - self.ended, memory.total(WalkThread.STEPS)
        on_progress(
            Progress(memory.seen, steps, memory.longest, left, self.meter.seconds, resident_bytes(), note)
        )

    def _violation(self, memory: WalkMemory, ends: list[tuple[int, WalkEnd, int]]) -> Violation | None:
        """The violation of the first walk with a confirmed one; `ReplayFailed` if there is none."""
        failures: list[ReplayFailed] = []
        for walk, end, steps in ends:
            if end is WalkEnd.FAILED or (end is WalkEnd.IDLE and self._is_deadlock(memory, walk)):
                try:
                    violation = self._confirmed(memory, walk, steps)
                except ReplayFailed as failed:
                    failures.append(failed)
                    if len(failures) == MOST_UNCONFIRMED:
                        break
                    continue
                except _Unfinished:
                    self._note_unconfirmed("a violation", failures)
                    raise
                self._note_unconfirmed("a violation", failures)
                self.failed = walk + 1
                return violation
        if failures:
            raise failures[0]
        return None

    def _confirmed(self, memory: WalkMemory, walk: int, steps: int) -> Violation:
        violation = self._followed(memory, walk, steps, 1, "a violation").violation
        if violation is None:
            raise ReplayFailed(f"no property fails at the end of walk {walk + 1}, where one did")
        return violation

    def _note_unconfirmed(self, what: str, failures: Sequence[ReplayFailed]) -> None:
        """Warn of reports that the reference stepper does not confirm, in addition to a violation."""
        self.unconfirmed += tuple(
            f"{what} was not confirmed, which is a bug of specchk: {failed}" for failed in failures
        )

    def _is_deadlock(self, memory: WalkMemory, walk: int) -> bool:
        return not self.ends.lists_horizon or self.end_of(memory.last_state(walk)) is End.DEADLOCK

    def _note_witnesses(self, memory: WalkMemory) -> None:
        """Note the path of the first walk to each witness first reached in the round."""
        # Now, and not at the end: guided walks of another round have other weights.
        places = []
        for number, record in enumerate(records_of(self.program)):
            candidates = [place for worker in memory.workers if (place := worker.reached(number)) is not None]
            if candidates and record.name not in self.reached:
                places.append((min(candidates), record.name))
        for (walk, step), name in sorted(places):
            followed = self._followed(memory, walk, step, 0, f"the witness of `{name}`")
            if name not in followed.reached:
                raise ReplayFailed(f"`{name}` is not true where walk {walk + 1} found it to be")
            self.reached[name] = followed.reached[name]

    def _followed(self, memory: WalkMemory, walk: int, steps: int, beyond: int, finding: str) -> Followed:
        """The findings of a walk up to a step, or of an attempted further step that fails."""
        path = without_loops(memory.path(walk, steps))
        last = len(path) - 1

        def report(number: int) -> None:
            # The reference stepper takes some thousand steps a second, and a walk may have millions.
            if number and number % CONFIRMED_EVERY == 0:
                taken = f"{number} of {last} steps"
                if self.on_progress is not None:
                    self._progress(memory, self.on_progress, f"confirming walk {walk + 1}: {taken}")
                if (limit := self.meter.exceeded(0)) is not None:
                    # Not a violation yet: by rule, the reference stepper takes every trace first.
                    more = "a larger limit and the same --seed confirm it"
                    reason = f"{limit} before {finding} in walk {walk + 1} was confirmed"
                    raise _Unfinished(f"{reason}: {taken}; {more}")

        return follow(self.program, path, last + beyond, report)


def weights(taken: tuple[int, ...]) -> tuple[int, ...]:
    """The weights of actions by their step counts: an action taken half as often weighs twice as much."""
    # One more on both sides: an action that was never taken has a finite weight, and none has weight 0.
    most = max(taken, default=0)
    return tuple(min(HEAVIEST, (most + 1) // (count + 1)) for count in taken)


def without_loops(path: Sequence[State]) -> list[State]:
    """A path without its cycles; the last step is kept."""
    kept: dict[State, None] = {}
    for state in path[:-1]:
        while state in kept and next(reversed(kept)) != state:
            kept.popitem()
        kept[state] = None
    return [*kept, path[-1]]
