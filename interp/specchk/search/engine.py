"""The course of a search, defined once for all engines.

An engine keeps and expands states; everything else is here: budget, progress,
interruption, the sizes of levels, the end of the search, and the verdict.  A search is breadth first,
level by level, and a level is always completed unless the budget ends it: counts, verdict and the
length of counterexamples then depend only on the program.

A new engine is a class of this protocol and a line in `search.engines`; the contract that all of
them keep is `tests/agreement/test_contract.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, ClassVar, Protocol, TypeVar

from msgspec import Struct

from specchk.ir.footprint import lists_horizon
from specchk.ir.ignored import decide_nothing
from specchk.ir.program import Program, Same
from specchk.ir.verify import verify_passes
from specchk.lang.text.source import Span
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.coverage import NO_CHANGE
from specchk.search.extrapolate import expected
from specchk.search.findings import NO_MEMORY, NOTHING_TO_CHECK, UNSEARCHED, Findings, outside_of
from specchk.search.liveness.explored import Explored
from specchk.search.liveness.regions import ListedSteps, Look, StepSource
from specchk.search.refined import claim, wrong_beginnings
from specchk.search.symmetry import Renaming, counted_by_order, symmetry_of
from specchk.search.temporal import TemporalCheck
from specchk.search.verdict import Inconclusive, Outcome, Statistics, Symbolic, Violation, stopped_by
from specchk.search.watch import LimitReached

REPORT_EVERY_S = 0.25
OnProgress = Callable[[Progress], None]
F = TypeVar("F")  # a frontier, as an engine keeps it


class Unsupported(Exception):
    """An engine cannot run this program, although the reference engine can; the text is the reason.

    With its place in the spec, if one is known (`Placing`).
    """

    def __init__(self, reason: str, span: Span | None = None) -> None:
        super().__init__(reason)
        self.reason, self.span = reason, span

    def __str__(self) -> str:
        return self.reason if self.span is None else f"{self.reason}, at {self.span.where}"


class Placing:
    """A context that gives an `Unsupported` its place, if it has none: the innermost one counts."""

    __slots__ = ("span",)

    def __init__(self, span: Span) -> None:
        self.span = span

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """Add the place."""
        if isinstance(error, Unsupported):
            error.span = error.span or self.span


class Unusable(Exception):
    """Kept states cannot be resumed, or cannot be written; the text is the reason."""


class Unavailable(Exception):
    """Something that an engine needs is not on this machine; the text names it."""


class Options(Struct, frozen=True):
    """Options of a search, common to all engines.

    `symmetry`: count states that differ only by renaming once.  `keep_going`: search on after the
    level of the first violation.  `strict`: actions never enabled are violations.  `on_end` is called with
    the engine and its outcome while the states are still there.  `lowered`: the program before the last pass,
    if neither is verified yet.
    """

    budget: Budget = Budget()
    symmetry: bool = True
    keep_going: bool = False
    strict: bool = False
    on_end: Callable[[Any, Outcome], None] | None = None
    lowered: Program | None = None

    def verify(self, program: Program) -> None:
        """Verify the program if it is not verified yet; raises `IllegalProgram`."""
        if self.lowered is not None:
            verify_passes(Same(self.lowered), Same(program))


class Totals(Struct, frozen=True):
    """The counts of an engine at the end of a search, for the outcome's `Statistics`.

    `outside`: a constraint left states out.  `skipped`: steps to states that differ from a known one in
    ignored variables only, so that they are not searched.  `has_horizons`: numbers of `nat upto` end at the
    horizon, so that a program that lists them is bounded.
    """

    distinct: int
    generated: int
    coverage: tuple[int, ...]
    cuts: int
    outside: bool
    skipped: int = 0
    has_horizons: bool = True
    symbolic: Symbolic | None = None
    warnings: tuple[str, ...] = ()


class Search:
    """One search, on one engine, or handed over from one engine to the next.

    `levels` are the sizes of the levels, the one that is being expanded being the last.
    """

    def __init__(
        self, program: Program, options: Options = Options(), on_progress: OnProgress | None = None
    ) -> None:
        self.program, self.options, self.on_progress = program, options, on_progress
        self.meter, self.findings = Meter(options.budget), Findings(program)
        self.levels: list[int] = []
        self.owed_at_horizon = 0
        self.prepared_s = 0.0  # seconds before the search, such as for compiling
        self._last_report = 0.0
        self.symmetry, self.symmetry_text = symmetry_of(program) if options.symmetry else (None, "off")
        # A part that no state reaches is a violation then, and must not be one of the order of elements.
        if options.strict and any(program.points[i].kind != "branch" for i in self._by_order()):
            self.symmetry, self.symmetry_text = None, "off (--strict: a quantifier may end before a part)"

    @property
    def renamings(self) -> list[Renaming]:
        """The renamings of sort elements that identify states; none without symmetry."""
        return self.symmetry.renamings if self.symmetry is not None else []

    def _by_order(self) -> frozenset[int]:
        """The coverage points whose counts may be 0 only because states were renamed."""
        return counted_by_order(self.program, self.renamings, violated=self.findings.is_violated)

    @property
    def is_stopped(self) -> bool:
        """Whether something ended the search before it had an answer."""
        return self.findings.stopped is not None

    @property
    def is_answered(self) -> bool:
        """Whether a violation was found, and no more are wanted."""
        return self.findings.is_violated and not self.options.keep_going

    def initial_states(self) -> list[State]:
        """The program's initial states; notes an empty set of them, or an undefined `init`."""
        try:
            states = initial_states(self.program)
        except Undefined as undefined:
            self.findings.note(Violation("undefined", "init", None, Blame.of(undefined)))
            return []
        if not states:
            self.findings.stopped = NOTHING_TO_CHECK
        return states

    def _check_beginnings(self) -> None:
        """Note initial states that violate a refinement: here, since a resumed engine has no others."""
        if self.program.refinements:
            with suppress(Undefined):  # of which the engine notes that it is so
                for violation in wrong_beginnings(self.program, initial_states(self.program)):
                    self.findings.note(violation)

    def look(self, states: int, generated: int, frontier: int) -> bool:
        """Check the budget, and report progress now and then; return whether the search is stopped.

        `states` were found, `generated` as in `Statistics`; `frontier` of them are not expanded yet.
        """
        reason = self.meter.exceeded(states)
        # The first reason counts: a search that ran out of time is not one that ran out of memory while it
        # ended.
        if reason is not None and not self.is_stopped:
            self.findings.stopped = Inconclusive(reason, budget=True)
        if self.on_progress is not None and self.meter.seconds - self._last_report >= REPORT_EVERY_S:
            self.report(states, generated, frontier)
        return self.is_stopped

    def report(self, states: int, generated: int, frontier: int, note: str = "") -> None:
        """Report progress, with a note of the engine's own."""
        if self.on_progress is not None:
            self._last_report = self.meter.seconds
            self.on_progress(Progress(
                states, generated, len(self.levels), frontier, self._last_report, resident_bytes(), note,
                expected(self.levels),
            ))  # fmt: skip

    def run(self, engine: Engine[F]) -> None:
        """Search until every answer is known, or something ends the search."""
        self.find_states(engine)
        self.check_temporal(engine)

    def find_states(self, engine: Engine[F]) -> None:
        """The part of a search that finds and checks states."""
        self.options.verify(self.program)
        is_done = False
        while not is_done:
            with self._stoppable():
                self._check_beginnings()
                self._make_levels(engine)
            is_done = True  # an interruption of what follows ends the search, too
            with self._stoppable():
                is_done = engine.finish()
            if not is_done:
                # A violation that stayed would end the next search before its first level; if it is real, it
                # is found again.
                self.findings.clear()
                self.levels.clear()
        if self.findings.has_unsearched and self.options.keep_going and not self.is_stopped:
            self.findings.stopped = UNSEARCHED

    def check_temporal(self, engine: Engine[F]) -> None:
        """Check the temporal properties, if there are any, once all states are known and safe."""
        if not self.program.temporal:
            return
        if not self.findings.is_complete(keep_going=self.options.keep_going) or not sum(self.levels):
            names = ", ".join(map(claim, self.program.temporal))
            self.findings.notes.append(f"not checked, because the search ended before: {names}")
            return
        with self._stoppable():
            fair, coverage = FairSteps(self.program), engine.totals().coverage
            check = TemporalCheck(fair, engine.step_source, self.findings, self.look, coverage)
            check.run()
            self.owed_at_horizon = check.owed_at_horizon

    def _make_levels(self, engine: Engine[F]) -> None:
        frontier = engine.begin()
        while (size := engine.size(frontier)) and not self.is_stopped:
            self.levels.append(size)
            # The only place where a violation ends the search: within a level it would depend on the order of
            # its states what had been counted by then.
            if self.is_answered:
                return
            frontier = engine.expand(frontier)
        if size:  # a level of which the budget allowed a part
            self.levels.append(size)

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt as interrupt:
            # Of the work around this search, which knows what it has so far.
            if isinstance(interrupt, LimitReached) and self.options.budget.watch is None:
                raise
            self.findings.stopped = stopped_by(interrupt)
        except MemoryError:
            self.findings.stopped = NO_MEMORY

    def outcome(self, engine: Engine[F]) -> Outcome:
        """Verdict, counts, coverage and warnings of the search that has ended."""
        totals = engine.totals()
        if totals.outside and not self.levels and not self.is_stopped:
            self.findings.stopped = outside_of(self.program)
        # Before `conclude`, which adds witnesses that were not reached to the findings: with these a complete
        # search would look like an incomplete one.
        skipped = totals.skipped > 0 and not decide_nothing(self.program)
        self.findings.by_order = self._by_order()
        complete = self.findings.is_complete(keep_going=self.options.keep_going) and not skipped
        if complete and self._is_still(totals):
            self.findings.vacuous.append(NO_CHANGE)
        verdict = self.findings.conclude(
            totals.coverage, complete=complete, strict=self.options.strict, outside=totals.outside,
            skipped=skipped,
            cut=totals.cuts > 0 or (totals.has_horizons and lists_horizon(self.program)),
        )  # fmt: skip
        statistics = Statistics(
            distinct=totals.distinct, generated=totals.generated, depth=len(self.levels),
            levels=tuple(self.levels), seconds=self.meter.seconds, prepared_s=self.prepared_s,
            horizon_cuts=totals.cuts, skipped=totals.skipped,
            symmetry=self.symmetry_text, symbolic=totals.symbolic, owed_at_horizon=self.owed_at_horizon,
        )  # fmt: skip
        return Outcome(
            self.program, engine.name, verdict, statistics, totals.coverage,
            (*self.findings.warnings(totals.coverage, complete=complete), *totals.warnings),
            tuple(self.findings.reached.items()), stopped=self.findings.stopped,
            by_order=self.findings.by_order,
        )  # fmt: skip

    def _is_still(self, totals: Totals) -> bool:
        """Whether steps were taken, and none of them changes a state."""
        program, taken = self.program, totals.coverage
        if len(self.levels) != 1 or self.findings.found or not program.variables:
            return False
        if totals.symbolic is not None:
            return False  # narrowed to what may fail it has one level, too; and it knows no horizon
        if not any(taken[action.point] for action in program.actions):
            return False  # each action has a warning
        stepper = Stepper(program)
        after = ((state, end) for state in initial_states(program) for *_, end in stepper.successors(state))
        return all(state == end for state, end in after) and not stepper.horizon_cuts


class Engine(Protocol[F]):
    """An engine: keeps states, expands levels, and finds violations with traces.

    Violations and witnesses are added to `search.findings`.  An engine calls `search.look` frequently
    meanwhile, and returns its present result when that is true.
    """

    name: ClassVar[str]
    search: Search

    def begin(self) -> F:
        """The first frontier, checked: the initial states, or the frontier of a resumed search."""
        ...

    def size(self, frontier: F) -> int:
        """The number of states in a frontier."""
        ...

    def expand(self, frontier: F) -> F:
        """The new states among the successors of a frontier, checked."""
        ...

    def finish(self) -> bool:
        """Complete the remaining work after the last level; return False to restart the search."""
        return True

    def step_source(self, fair: FairSteps, look: Look) -> StepSource:
        """The step graph for temporal properties; by default listed by the reference stepper."""
        return ListedSteps(fair, Explored(fair), look)

    def totals(self) -> Totals:
        """The counts at the end; valid also after an interruption at any moment."""
        ...


def explore(engine: Engine[F]) -> Outcome:
    """Search a program on an engine and answer all of its properties."""
    engine.search.run(engine)
    return concluded(engine)


def concluded(engine: Engine[F]) -> Outcome:
    """The outcome of a search that has ended; `on_end` is given its states first."""
    outcome, options = engine.search.outcome(engine), engine.search.options
    # Limits are those of the search: a result that is written then is not lost to them.
    with options.budget.watch.resting() if options.budget.watch is not None else nullcontext():
        if options.on_end is not None:
            options.on_end(engine, outcome)
    return outcome
