"""The native engine: the reference engine's search, done by compiled code.

The two agree on verdict, counts, coverage and the length of counterexamples.  As there, a level is
always completed, and the search stops after the one in which the first violation was found.  Of
several violations of one property in a level the smallest packed state is reported, and its trace
leads back through the smallest predecessor in every level, so the outcome is the same on any number
of workers.  No parents are stored: the trace is found by expanding the levels before it once more.

Memory: with a spill directory the states go to a file there when `max_memory_bytes` is reached.  In
compact mode the table holds hashes only; then a collision may hide a state, and the outcome warns
how likely that is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from specchk.ir.footprint import lists_horizon
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.undefined import Undefined
from specchk.native.checkpoint import Checkpoints, Saved, found_of
from specchk.native.claims import claimed, purpose_of
from specchk.native.compiler import load_kernel
from specchk.native.explain import Explainer
from specchk.native.identity import Unusable, identity_of
from specchk.native.machine.frames import DEADLOCK, Thread, old_records, records_of
from specchk.native.machine.layout import Unsupported, layout_of
from specchk.native.resting import smallest_deadlock
from specchk.native.store import TOTALS, Found, Run, Store
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.findings import NO_MEMORY, NOTHING_TO_CHECK, Findings
from specchk.search.symmetry import Symmetry, symmetry_of
from specchk.search.verdict import (
    INTERRUPTED,
    Inconclusive,
    Outcome,
    Statistics,
)  # fmt: skip

REPORT_EVERY_S = 0.25
PAGE_OUT_EVERY_S = 1.0
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; the first four as in `search.reference.Options`.

    `workers` 0 is one for each core.  `compact` keeps hashes instead of whole states in the table.
    `spill`: where states go when memory is used up.  `checkpoint`: a directory that is written every
    `checkpoint_every_s` seconds and, with `resume`, read at the start.  `handover`: leave the search to
    another engine before a level of so many states is expanded.
    """

    budget: Budget = Budget()
    symmetry: bool = True
    keep_going: bool = False
    strict: bool = False
    workers: int = 0
    compact: bool = False
    spill: Path | None = None
    checkpoint: Path | None = None
    checkpoint_every_s: float = 60.0
    resume: bool = False
    handover: int | None = None


def run(program: Program, options: Options = Options(), on_progress: OnProgress | None = None) -> Outcome:
    """Explore a program.

    `layout.Unsupported` where only the reference engine can, `identity.Unusable` where there is
    nothing to resume from, or no place for a checkpoint.
    """
    layout_of(program)
    place = options.checkpoint
    if place is not None and options.resume and not place.is_dir():  # a claim would make it
        raise Unusable(f"there is no checkpoint in {place}")
    with nullcontext() if place is None else claimed(place, purpose_of(program)):
        search = Search(program, options, on_progress)
        try:
            return search.run()
        finally:
            search.store.release()


@dataclass(slots=True)
class Search:
    """One search; `store` has what it found until it is released."""

    program: Program
    options: Options
    on_progress: OnProgress | None
    symmetry: Symmetry | None = field(init=False, default=None)
    symmetry_text: str = field(init=False)
    findings: Findings = field(init=False)
    store: Store = field(init=False)
    explain: Explainer = field(init=False)
    meter: Meter = field(init=False)
    checkpoints: Checkpoints | None = field(init=False, default=None)
    levels: list[list[Run]] = field(init=False, default_factory=list)
    sizes: list[int] = field(init=False, default_factory=list)
    initial_count: int = field(init=False, default=0)
    noted: list[tuple[Found, int]] = field(init=False, default_factory=list)  # with the number of levels then
    is_handed_over: bool = field(init=False, default=False)
    last_report: float = field(init=False, default=0.0)
    last_save: float = field(init=False, default=0.0)
    last_page_out: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        options = self.options
        spilling = options.spill is not None
        self.meter = Meter(replace(options.budget, max_memory_bytes=None) if spilling else options.budget)
        self.findings = Findings(self.program)
        self.symmetry, self.symmetry_text = symmetry_of(self.program, wanted=options.symmetry)
        layout = layout_of(self.program)
        renamings = self.symmetry.renamings if self.symmetry is not None else []
        kernel = load_kernel(self.program, layout, renamings, compact=options.compact)
        self.store = Store(self.program, layout, kernel, options.workers or os.cpu_count() or 1)
        self.explain = Explainer(self.program, layout, self.store, self.symmetry)
        if options.checkpoint is not None:
            self.checkpoints = Checkpoints(
                options.checkpoint,
                identity_of(self.program, renamings, keep_going=options.keep_going, compact=options.compact),
            )

    def run(self) -> Outcome:
        """Explore, and say what was found."""
        self.explore()
        return self.outcome()

    def explore(self) -> None:
        """Search until all is known, something stops it, or it is handed over."""
        try:
            self._levels(self._resume() if self.options.resume else self._start())
        except KeyboardInterrupt:
            self.findings.stopped = Inconclusive(INTERRUPTED, budget=False)
        except MemoryError:
            self.findings.stopped = NO_MEMORY

    def _start(self) -> list[Run]:
        if self.checkpoints is not None:
            self.checkpoints.begin()
        try:
            states = initial_states(self.program)
        except Undefined as undefined:
            self.findings.note_bad_init(undefined)
            return []
        if not states:
            self.findings.stopped = NOTHING_TO_CHECK
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
        while frontier and not self.findings.stopped:
            self.levels.append(frontier)
            self.sizes.append(sum(count for _, count in frontier))
            if self.findings.found and not self.options.keep_going:
                return
            if self.options.handover is not None and self.sizes[-1] >= self.options.handover:
                self.is_handed_over = True
                return
            frontier = self._finish_level(frontier, [])

    def _finish_level(self, work: list[Run], following: list[Run]) -> list[Run]:
        """Expand what is left of a level; the next one, or nothing where the search was stopped."""
        store = self.store
        store.set_work(work)
        while not store.is_level_done and not self.findings.stopped:
            store.work(self._should_pause)
            for worker in store.workers:
                following += worker.drain()
            self._make_room()
            self._look()
            if self._is_save_due:
                following += [run for worker in store.workers for run in worker.end_run()]
                self._save(following)
        following += [run for worker in store.workers for run in worker.end_run()]
        if self.findings.stopped and not store.is_level_done:
            if following:
                self.sizes.append(sum(count for _, count in following))
            return []
        self._note_found()
        return following

    def _make_room(self) -> None:
        """Grow the table, and move states to disk, before the workers need it."""
        store, slots = self.store, self.store.slots_needed
        limit = self.options.budget.max_memory_bytes
        try:
            if self.options.spill is not None and limit is not None:
                self._spill(self.options.spill, limit, slots)
            if slots > store.slots and not self.findings.stopped:
                store.grow(slots)
        except OSError as error:
            self.findings.stopped = Inconclusive(
                f"states cannot be moved to disk ({self.options.spill}: {error.strerror})", budget=True
            )

    def _spill(self, directory: Path, limit: int, slots: int) -> None:
        store = self.store
        room = (int(slots * 0.625) + store.slack) * store.state_bytes
        if not store.states.is_spilled and 8 * slots + room > limit:
            store.states.spill(directory, store.used * store.state_bytes, room)
        store.states.make_room(room)
        if 8 * slots > limit:
            self.findings.stopped = Inconclusive(
                f"the limit of {limit} bytes of memory (--max-memory) is too small for the table", budget=True
            )
        elif self.meter.seconds - self.last_page_out > PAGE_OUT_EVERY_S and resident_bytes() > limit:
            self.last_page_out = self.meter.seconds
            store.states.page_out(store.used * store.state_bytes)

    def _should_pause(self) -> bool:
        """Whether the workers should return; checked while they run."""
        self._look()
        return self.findings.stopped is not None or self._is_save_due

    def _look(self) -> None:
        """Compare with the budget and report progress."""
        store, states = self.store, self.store.total(Thread.NEW)
        reason = self.meter.exceeded(states)
        if reason is not None and self.findings.stopped is None:
            self.findings.stopped = Inconclusive(reason, budget=True)
        seconds = self.meter.seconds
        if self.on_progress is not None and seconds - self.last_report >= REPORT_EVERY_S:
            self.last_report = seconds
            generated, frontier = store.total(Thread.GENERATED), states - sum(self.sizes[:-1])
            self.on_progress(
                Progress(states, generated, len(self.sizes), frontier, seconds, resident_bytes())
            )

    # ------------------------------------------------------------ findings

    def _note_found(self) -> None:
        """Turn what the workers noted of the last level into violations and witnesses."""
        best: dict[int, Found] = {}
        for worker in self.store.workers:
            for found in worker.found():
                known = best.get(found.record)
                if known is None or (found.state, found.after) < (known.state, known.after):
                    best[found.record] = found
            worker.forget()
        if DEADLOCK in best and self.explain.ends.lists_horizon:
            best.pop(DEADLOCK)
            state = self._deadlock()
            if state is not None:
                best[DEADLOCK] = Found(DEADLOCK, state, state)
        for _, found in sorted(best.items()):
            self._explain(found, len(self.levels))

    def _deadlock(self) -> tuple[int, ...] | None:
        """The smallest deadlock of the last level, among the states in which no step was listed."""
        found = chain.from_iterable(self.store.resting(run) for run in self.levels[-1])
        return smallest_deadlock(self.explain.ends, self.findings, self.store.layout, found)

    def _explain(self, found: Found, depth: int) -> None:
        record, levels = records_of(self.program)[found.record], self.levels[:depth]
        if record.kind == "reached":
            if record.name not in self.findings.reached:
                self.noted.append((found, depth))
                self.findings.reached[record.name] = self.explain.witness(record.name, found.state, levels)
        elif (record.kind, record.name) not in self.findings.found:
            of_level = found.record < old_records(self.program)
            self.noted.append((found, depth))
            violation = self.explain.violation(record, found, levels, of_level=of_level)
            self.findings.found[record.kind, record.name] = violation

    # ------------------------------------------------------------ checkpoints

    @property
    def _is_save_due(self) -> bool:
        if self.checkpoints is None:
            return False
        return time.monotonic() - self.last_save >= self.options.checkpoint_every_s

    def _save(self, following: list[Run]) -> None:
        """Write a checkpoint between two pieces of work."""
        assert self.checkpoints is not None
        store = self.store
        open_ = [(found, len(self.levels)) for worker in store.workers for found in worker.found()]
        saved = Saved(
            store.used, list(store.taken()), self.levels, self.sizes, store.unexpanded(), following,
            self.initial_count, [store.total(word) for word in TOTALS], list(self.coverage),
            self.meter.seconds,
            [(f.record, list(f.state), list(f.after), depth) for f, depth in (*self.noted, *open_)],
        )  # fmt: skip
        try:
            self.checkpoints.save(store, saved)
        except OSError as error:
            self.findings.stopped = self.checkpoints.not_written(error)
        self.last_save = time.monotonic()

    def _resume(self) -> list[Run]:
        """Take up a checkpoint: finish its level and give the next one."""
        assert self.checkpoints is not None, "resuming needs a directory to resume from"
        saved = self.checkpoints.load(self.store)
        self.store.restore(saved.used, saved.taken, saved.totals, saved.counts)
        self.levels, self.sizes = [[(a, b) for a, b in level] for level in saved.levels], saved.sizes
        self.initial_count, self.last_save = saved.initial, time.monotonic()
        self.meter.started -= saved.seconds
        for entry in saved.found:
            found, depth = found_of(entry)
            if depth < len(self.levels):
                self._explain(found, depth)
            else:
                self.store.workers[0].note(found)
        return self._finish_level([(a, b) for a, b in saved.rest], [(a, b) for a, b in saved.following])

    # ------------------------------------------------------------ outcome

    @property
    def coverage(self) -> tuple[int, ...]:
        """How often each of the program's points was reached."""
        return tuple(map(sum, zip(*(worker.counts for worker in self.store.workers), strict=True)))

    def outcome(self) -> Outcome:
        """Verdict, counts, coverage and warnings, once exploring has ended."""
        store, counts = self.store, self.coverage
        complete = self.findings.is_complete(keep_going=self.options.keep_going)
        verdict = self.findings.conclude(
            counts, complete=complete, strict=self.options.strict,
            cut=store.total(Thread.CUTS) > 0 or lists_horizon(self.program),
            outside=store.total(Thread.OUTSIDE) > 0,
        )  # fmt: skip
        statistics = Statistics(
            distinct=store.total(Thread.NEW), generated=store.total(Thread.GENERATED) + self.initial_count,
            depth=len(self.sizes), levels=tuple(self.sizes), seconds=self.meter.seconds,
            horizon_cuts=store.total(Thread.CUTS), symmetry=self.symmetry_text,
        )  # fmt: skip
        warnings = self.findings.warnings(counts, complete=complete)
        if self.options.compact:
            warnings = (*warnings, _collision_warning(store.total(Thread.NEW) + store.total(Thread.OUTSIDE)))
        reached = tuple(self.findings.reached.items())
        return Outcome(self.program, "native", verdict, statistics, counts, warnings, reached)


def _collision_warning(states: int) -> str:
    """How likely it is that 64-bit hashes of two states were equal (birthday bound)."""
    chance = states * states / 2.0**65
    return f"compact: two of {states} states share a 64-bit hash with probability below {chance:.1e}"


__all__ = ["Options", "Search", "Unsupported", "run"]
