"""The native engine: the reference engine's search, done by compiled code.

The two agree on verdict, counts, coverage and the length of counterexamples.  As there, a level is
always completed, and the search stops after the one in which the first violation was found.  Of
several violations of one property in a level the smallest packed state is reported, and its trace
leads back through the smallest predecessor in every level, so the outcome is the same on any number
of workers.  No parents are stored: the trace is found by expanding the levels before it once more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from specchk.core.budget import Budget, Meter, Progress, resident_bytes
from specchk.core.coverage import complete_search_warnings, vacuous
from specchk.core.initial import initial_states
from specchk.core.symmetry import Symmetry
from specchk.core.undefined import Undefined
from specchk.core.verdict import (
    INTERRUPTED, Blame, Holds, HoldsWithin, Inconclusive, Outcome, Statistics, Trace, Verdict, Violated, Violation,
)  # fmt: skip
from specchk.ir.program import Program
from specchk.native.compiler import load_kernel
from specchk.native.explain import Explainer
from specchk.native.frames import Thread, old_records, records_of
from specchk.native.layout import Unsupported, layout_of
from specchk.native.store import Found, Run, Store

REPORT_EVERY_S = 0.25
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; the first four as in `core.search.Options`. `workers` 0 is one for each core."""

    budget: Budget = Budget()
    symmetry: bool = True
    keep_going: bool = False
    strict: bool = False
    workers: int = 0
    compact: bool = False


def run(program: Program, options: Options = Options(), on_progress: OnProgress | None = None) -> Outcome:  # noqa: B008
    """Explore a program; `Unsupported` where only the reference engine can."""
    search = _Search(program, options, on_progress)
    try:
        return search.run()
    finally:
        search.store.release()


@dataclass(slots=True)
class _Search:
    program: Program
    options: Options
    on_progress: OnProgress | None
    symmetry: Symmetry | None = field(init=False, default=None)
    no_symmetry: str = field(init=False, default="")
    store: Store = field(init=False)
    explain: Explainer = field(init=False)
    meter: Meter = field(init=False)
    levels: list[list[Run]] = field(init=False, default_factory=list)
    sizes: list[int] = field(init=False, default_factory=list)
    initial_count: int = field(init=False, default=0)
    found: dict[tuple[str, str], Violation] = field(init=False, default_factory=dict)
    reached: dict[str, Trace] = field(init=False, default_factory=dict)
    stopped: Inconclusive | None = field(init=False, default=None)
    last_report: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.meter = Meter(self.options.budget)
        if self.options.symmetry:
            symmetry = Symmetry(self.program)
            self.symmetry = symmetry if symmetry.order > 1 else None
            self.no_symmetry = symmetry.reason if symmetry.order == 1 else ""
        layout = layout_of(self.program)
        renamings = self.symmetry.renamings if self.symmetry is not None else []
        kernel = load_kernel(self.program, layout, renamings, compact=self.options.compact)
        self.store = Store(self.program, layout, kernel, self.options.workers or os.cpu_count() or 1)
        self.explain = Explainer(self.program, layout, self.store, self.symmetry)

    def run(self) -> Outcome:
        try:
            self._levels(self._start())
        except KeyboardInterrupt:
            self.stopped = Inconclusive(INTERRUPTED, budget=False)
        except MemoryError:
            self.stopped = Inconclusive("there is no memory left; limit it with --max-memory", budget=True)
        return self._outcome()

    def _start(self) -> list[Run]:
        try:
            states = initial_states(self.program)
        except Undefined as undefined:
            blame = Blame(undefined.span, undefined.reason, ())
            self.found["undefined", "init"] = Violation("undefined", "init", None, blame)
            return []
        if not states:
            self.stopped = Inconclusive("no state satisfies `init`, so there is nothing to check", budget=False)
        self.initial_count = len(states)
        runs: list[Run] = []
        for state in states:
            self.store.add(self.store.layout.pack(state))
            runs += self.store.workers[0].drain()
            self._make_room()
        runs += self.store.workers[0].end_run()
        self._note_found()
        return runs

    # ------------------------------------------------------------ levels

    def _levels(self, frontier: list[Run]) -> None:
        while frontier and not self.stopped:
            self.levels.append(frontier)
            self.sizes.append(sum(count for _, count in frontier))
            if self.found and not self.options.keep_going:
                return
            following = self._expand(frontier)
            if self.stopped:
                if following:
                    self.sizes.append(sum(count for _, count in following))
                return
            self._note_found()
            frontier = following

    def _expand(self, frontier: list[Run]) -> list[Run]:
        store, following = self.store, []
        store.set_work(frontier)
        while not store.is_level_done:
            store.work(self._should_stop)
            for worker in store.workers:
                following += worker.drain()
            self._make_room()
            if self._should_stop() and not store.is_level_done:
                break
        for worker in store.workers:
            following += worker.end_run()
        return following

    def _make_room(self) -> None:
        slots = self.store.slots
        while self.store.used + self.store.slack > slots * 0.625:
            slots *= 2
        if slots > self.store.slots:
            self.store.grow(slots)

    def _should_stop(self) -> bool:
        store, states = self.store, self.store.total(Thread.NEW)
        reason = self.meter.exceeded(states)
        if reason is not None:
            self.stopped = Inconclusive(reason, budget=True)
        seconds = self.meter.seconds
        if self.on_progress is not None and seconds - self.last_report >= REPORT_EVERY_S:
            self.last_report = seconds
            generated, frontier = store.total(Thread.GENERATED), states - sum(self.sizes[:-1])
            self.on_progress(Progress(states, generated, len(self.sizes), frontier, seconds, resident_bytes()))
        return self.stopped is not None

    # ------------------------------------------------------------ findings

    def _note_found(self) -> None:
        """Turn what the workers noted into violations and witnesses; levels end here."""
        best: dict[int, Found] = {}
        for worker in self.store.workers:
            for found in worker.found():
                known = best.get(found.record)
                if known is None or (found.state, found.after) < (known.state, known.after):
                    best[found.record] = found
        records = records_of(self.program)
        for index, found in sorted(best.items()):
            record = records[index]
            if record.kind == "reached":
                if record.name not in self.reached:
                    self.reached[record.name] = self.explain.trace(found.state, self.levels)
            elif (record.kind, record.name) not in self.found:
                of_level = index < old_records(self.program)
                violation = self.explain.violation(record, found, self.levels, of_level=of_level)
                self.found[record.kind, record.name] = violation

    # ------------------------------------------------------------ outcome

    def _outcome(self) -> Outcome:
        store = self.store
        counts = tuple(map(sum, zip(*(worker.counts for worker in store.workers), strict=True)))
        complete = self.stopped is None and (not self.found or self.options.keep_going)
        if complete:
            for prop in self.program.witnesses:
                if prop.name not in self.reached:
                    self.found["unreachable", prop.name] = Violation("unreachable", prop.name, None)
            if self.options.strict:
                for violation in vacuous(self.program, counts):
                    self.found[violation.kind, violation.name] = violation
        statistics = Statistics(
            distinct=store.total(Thread.NEW), generated=store.total(Thread.GENERATED) + self.initial_count,
            depth=len(self.sizes), levels=tuple(self.sizes), seconds=self.meter.seconds,
            horizon_cuts=store.total(Thread.CUTS),
            symmetry=self._symmetry_text(),
        )  # fmt: skip
        warnings = complete_search_warnings(self.program, counts, complete=complete)
        return Outcome(
            self.program, "native", self._verdict(statistics), statistics, counts, warnings, tuple(self.reached.items())
        )

    def _symmetry_text(self) -> str:
        if self.symmetry is not None:
            return f"on ({self.symmetry.order} renamings)"
        return f"off ({self.no_symmetry})" if self.no_symmetry else "off"

    def _verdict(self, statistics: Statistics) -> Verdict:
        if self.found:
            return Violated(tuple(sorted(self.found.values(), key=_length)))
        if self.stopped is not None:
            return self.stopped
        bounds = list(self.program.horizons) if statistics.horizon_cuts else []
        if self.store.total(Thread.OUTSIDE):
            bounds += [prop.name for prop in self.program.constraints]
        return HoldsWithin(tuple(bounds)) if bounds else Holds()


def _length(violation: Violation) -> tuple[int, str, str]:
    steps = len(violation.trace.steps) if violation.trace is not None else 1 << 30
    return steps, violation.kind, violation.name


__all__ = ["Options", "Unsupported", "run"]
