"""The native engine: the reference engine's search, by compiled code.

The two agree on verdict, counts, coverage and the length of counterexamples.  Of several violations
of one property in a level the smallest packed state is reported, and its trace leads back through the
smallest predecessor in every level, so the outcome is the same on any number of workers.  No parents
are stored: the trace is found by expanding the levels before it again.

Memory: with a spill directory, states are moved to a file there when `max_memory_bytes` is reached.  In
compact mode the table holds hashes only; a collision may then hide a state, and the outcome warns how likely
that is.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace

from specchk.ir.program import Program
from specchk.ir.types import Room
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.properties import Functions
from specchk.native.checkpoint import Checkpoints, Saved, room_of
from specchk.native.claims import claimed, purpose_of
from specchk.native.compiler import KernelSource
from specchk.native.explain import Explainer
from specchk.native.identity import identity_of
from specchk.native.machine.frames import CHUNK, DEADLOCK, Thread, check_room
from specchk.native.machine.layout import NoRoom, layout_of
from specchk.native.machine.rooms import FIRST_ROOM, first_room, with_room
from specchk.native.machine.runs import Run
from specchk.native.regions import StepsOfSearch, are_numbered
from specchk.native.store import TOTALS, NotedState, Store, collision_warning
from specchk.native.tiers import LONG, Optimiser, load_kernel
from specchk.processes import cores
from specchk.search.budget import Meter, resident_bytes
from specchk.search.engine import Engine, OnProgress, Options, Search, Totals, Unusable, explore
from specchk.search.findings import Findings
from specchk.search.liveness.regions import Look, StepSource
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Inconclusive, Outcome

PAGE_OUT_EVERY_S = 1.0


class NativeOptions(Options, frozen=True):
    """Options of a search by compiled code.

    `workers` 0 is one for each core.  `compact` keeps hashes instead of whole states in the table.  `spill`:
    the directory of states when memory is used up.  `checkpoint`: a directory, written every
    `checkpoint_every_s` seconds, and read first with `resume`.  `handover`: the states of a level that is
    left to another engine.  `room`: the first room of sets, None for a guess; `anew` replaces a checkpoint
    with too little of it.  `optimise_after`: the successors of a long search.
    `functions`: the program's, where a search before this one made them.
    """

    workers: int = 0
    compact: bool = False
    spill: Path | None = None
    checkpoint: Path | None = None
    checkpoint_every_s: float = 60.0
    resume: bool = False
    handover: int | None = None
    room: Room | None = None
    anew: bool = False
    optimise_after: int = LONG
    functions: Functions | None = None


def search(
    program: Program, options: NativeOptions = NativeOptions(), on_progress: OnProgress | None = None
) -> Outcome:
    """Search a program with compiled code.

    `Unsupported` if only the reference engine can, `Unusable` if a checkpoint cannot be read or placed.
    """
    functions = options.functions or Functions.of(program)
    with ExitStack() as stack:
        room = options.room or first_room(program, functions)
        options = replace(options, functions=functions, room=room)
        place = options.checkpoint
        if place is not None:
            layout_of(with_room(program, room))  # refused before there is a claim; without one, by the engine
            if options.resume and not place.is_dir():  # a claim would create it
                raise Unusable(f"there is no checkpoint in {place}")
            stack.enter_context(claimed(place, purpose_of(program)))
        began = time.monotonic()
        if place is not None and options.resume:
            options = replace(options, room=room_of(place) or room)
        while True:
            try:
                return _searched(Search(program, options, on_progress), options, began)
            except NoRoom:
                options = with_larger_room(options)


def with_larger_room(options: NativeOptions) -> NativeOptions:
    """The options for repeating a search in which a set had too few slots."""
    return replace(options, room=(options.room or FIRST_ROOM).larger, resume=False, anew=True)


def _searched(search: Search, options: NativeOptions, began: float) -> Outcome:
    """The outcome of one search; raises `NoRoom` if a set needs more slots."""
    search.meter.started = began
    engine = NativeEngine(search, options)
    try:
        return explore(engine)
    finally:
        engine.release()


@dataclass(slots=True)
class NativeEngine(Engine[list[Run]]):
    """Keeps states in shared memory, expanded by threads of compiled code; until `store` is released."""

    name: ClassVar[str] = "native"
    search: Search
    options: NativeOptions
    program: Program = field(init=False)
    roomy: Program = field(init=False)  # as it is compiled: sets have slots for their items
    findings: Findings = field(init=False)
    source: KernelSource = field(init=False)
    store: Store = field(init=False)
    explain: Explainer = field(init=False)
    checkpoints: Checkpoints | None = field(init=False, default=None)
    levels: list[list[Run]] = field(init=False, default_factory=list)  # those that were begun
    following: list[Run] = field(init=False, default_factory=list)  # of the level after these, so far
    initial_count: int = field(init=False, default=0)
    noted: list[tuple[NotedState, int]] = field(init=False, default_factory=list)  # and the levels then
    is_handed_over: bool = field(init=False, default=False)
    last_save: float = field(init=False, default=0.0)
    last_page_out: float = field(init=False, default=0.0)
    steps: StepsOfSearch | None = field(init=False, default=None)  # for temporal properties
    optimiser: Optimiser = field(init=False)

    def __post_init__(self) -> None:
        options, search = self.options, self.search
        self.program, self.findings = search.program, search.findings
        if options.spill is not None:  # then memory is no reason to stop
            search.meter = Meter(replace(options.budget, max_memory_bytes=None))
        room = options.room or FIRST_ROOM
        self.roomy = roomy = with_room(self.program, room)
        layout = layout_of(roomy)
        renamings = search.renamings
        self.source = KernelSource(roomy, layout, renamings, options.compact)
        kernel = load_kernel(self.source, is_long=not options.optimise_after)
        self.optimiser = Optimiser(self.source, options.optimise_after)
        limit = options.budget.max_memory_bytes
        expected = self.source.expected_states(options.budget.max_states)
        self.store = Store(roomy, layout, kernel, options.workers or cores(), limit, expected)
        search.prepared_s = search.meter.seconds
        self.explain = Explainer(
            self.program, layout, self.store.predecessor, search.symmetry, options.functions
        )
        if options.checkpoint is not None:
            self.checkpoints = Checkpoints(
                options.checkpoint,
                identity_of(self.program, renamings, keep_going=options.keep_going, compact=options.compact),
                room,
            )

    def begin(self) -> list[Run]:
        """The initial states, or the frontier of a checkpoint."""
        if self.options.resume:
            return self._resume()
        if self.checkpoints is not None:
            self.checkpoints.begin(anew=self.options.anew)
        states = self.search.initial_states()
        self.initial_count = len(states)
        runs: list[Run] = []
        for first in range(0, len(states), CHUNK):
            self.store.add(states[first : first + CHUNK])
            runs += self.store.workers[0].drain()
            # The table can grow only between two calls of the kernel, and initial states may be millions.
            self._make_room()
        runs += self.store.workers[0].end_run()
        self._check_room()
        self._note_found()
        self.following = runs
        return runs

    def _check_room(self) -> None:
        """Raise if a set had more items than slots: all that was found since then is invalid."""
        check_room(self.program, self.store.total(Thread.OVERFLOW), "a set of this search")

    def size(self, frontier: list[Run]) -> int:
        """The number of states in a frontier."""
        return sum(count for _, count in frontier)

    def expand(self, frontier: list[Run]) -> list[Run]:
        """The states of the next level; none if the search is handed over."""
        self.levels.append(frontier)
        if self.options.handover is not None and self.search.levels[-1] >= self.options.handover:
            self.is_handed_over = True
            return []
        return self._finish_level(frontier, [])

    def _finish_level(self, work: list[Run], following: list[Run]) -> list[Run]:
        """Expand the rest of a level; returns the next level, or the part of it that the budget allowed."""
        store, self.following = self.store, following
        store.set_work(work)
        while not store.is_level_done and not self.search.is_stopped:
            store.work(self._should_pause)
            self._check_room()
            if self._is_code_better:
                # No worker runs now; states, table and blocks are the same for both.
                store.kernel = self.optimiser.kernel() or store.kernel
            for worker in store.workers:
                following += worker.drain()
            self._make_room()
            self._look()
            if self._is_save_due:
                following += store.end_runs()
                self._save(following)
        following += store.end_runs()
        # Only of a whole level: in a part of one, the smallest finding would depend on which states the
        # threads had taken.
        if store.is_level_done:
            self._note_found()
        return following

    def _make_room(self) -> None:
        """Grow the table, and move states to disk, before the workers need the room."""
        store, slots = self.store, self.store.slots_for(self.store.used)
        limit = self.options.budget.max_memory_bytes
        try:
            if self.options.spill is not None and limit is not None:
                self._spill(self.options.spill, limit, slots)
            if slots > store.slots and not self.search.is_stopped:
                store.grow(slots)
        except OSError as error:
            self.findings.stopped = Inconclusive(
                f"states cannot be moved to disk ({self.options.spill}: {error.strerror})", budget=True
            )

    def _spill(self, directory: Path, limit: int, slots: int) -> None:
        store = self.store
        room = store.room_for(slots)
        if not store.states.is_spilled and 8 * slots + room > limit:
            store.states.spill(directory, store.used * store.state_bytes, room)
        store.states.make_room(room)
        # The table stays in memory, since every look-up reads another page of it at random.  States are read
        # only if tags agree, and otherwise in order.
        if 8 * slots > limit:
            self.findings.stopped = Inconclusive(
                f"the limit of {limit} bytes of memory (--max-memory) is too small for the table", budget=True
            )
        elif self.search.meter.seconds - self.last_page_out > PAGE_OUT_EVERY_S and resident_bytes() > limit:
            self.last_page_out = self.search.meter.seconds
            store.states.page_out(store.used * store.state_bytes)

    def _should_pause(self) -> bool:
        """Whether the workers should return; polled while they run."""
        self._check_room()
        return self._look() or self._is_save_due or self._is_code_better

    def _look(self) -> bool:
        """Check the budget and report progress; returns whether the search is stopped."""
        store = self.store
        states, generated = store.total(Thread.NEW), store.total(Thread.GENERATED)
        if not store.kernel.is_optimised:
            self.optimiser.consider(generated)
        return self.search.look(states, generated, states - sum(self.search.levels[:-1]))

    @property
    def _is_code_better(self) -> bool:
        """Whether there is optimised code for a search that runs quick code."""
        return not self.store.kernel.is_optimised and self.optimiser.is_done

    @property
    def is_long(self) -> bool:
        """Whether the search is long enough for its code to be worth optimising."""
        return self.store.total(Thread.GENERATED) >= self.options.optimise_after

    def _note_found(self) -> None:
        """Convert the workers' records of the last level to violations and witnesses."""
        best = self.store.smallest_found()
        for worker in self.store.workers:
            worker.forget()
        if DEADLOCK in best and self.explain.ends.lists_horizon:
            best.pop(DEADLOCK)
            # The smallest one of the level, among the states without listed steps.
            resting = chain.from_iterable(self.store.resting(run) for run in self.levels[-1])
            deadlock = self.explain.smallest_deadlock(self.findings, resting)
            if deadlock is not None:
                best[DEADLOCK] = deadlock
        for _, noted in sorted(best.items()):
            self._explain(noted, len(self.levels))

    def _explain(self, noted: NotedState, depth: int) -> None:
        record = self.explain.records[noted.record]
        if not self.findings.has(record.kind, record.name):
            self.noted.append((noted, depth))
            self.explain.note(self.findings, noted, self.levels[:depth])

    @property
    def _is_save_due(self) -> bool:
        due = self.last_save + self.options.checkpoint_every_s
        return self.checkpoints is not None and time.monotonic() >= due

    def _save(self, following: list[Run]) -> None:
        """Write a checkpoint between two pieces of a level."""
        assert self.checkpoints is not None
        store = self.store
        # Findings of the open level have no trace yet, and are kept as packed states; one of each record,
        # since a resumed search gives them all to one worker.
        open_ = [(noted, len(self.levels)) for noted in store.smallest_found().values()]
        saved = Saved(
            store.used, store.taken(), self.levels, self.search.levels, store.unexpanded(), following,
            self.initial_count, [store.total(word) for word in TOTALS], list(self.coverage),
            self.search.meter.seconds,
            [*self.noted, *open_],
        )  # fmt: skip
        try:
            self.checkpoints.save(store, saved)
        except OSError as error:
            self.findings.stopped = self.checkpoints.not_written(error)
        self.last_save = time.monotonic()

    def _resume(self) -> list[Run]:
        """Resume from a checkpoint: finish its level and return the next one."""
        assert self.checkpoints is not None, "resuming needs a directory to resume from"
        saved = self.checkpoints.load(self.store)
        self.store.restore(saved.used, saved.taken, saved.totals, saved.counts)
        self.levels = saved.levels
        self.search.levels[:] = saved.sizes
        self.initial_count, self.last_save = saved.initial, time.monotonic()
        self.search.meter.started -= saved.seconds
        for noted, depth in saved.found:
            # Findings of earlier levels get their traces again.  Those of the open level go back to a worker,
            # since the rest of the level may have smaller ones.
            if depth < len(self.levels):
                self._explain(noted, depth)
            else:
                self.store.workers[0].note(noted)
        return self._finish_level(saved.rest, saved.following)

    def finish(self) -> bool:
        """Confirm a sample of the states if no violation was found."""
        if not (self.search.is_stopped or self.findings.found or self.is_handed_over):
            self.explain.confirm(self.store.sample(chain.from_iterable(self.levels)), self.store.is_kept)
            self.source.note_states(self.store.used)
        return True

    def step_source(self, fair: FairSteps, look: Look) -> StepSource:
        """The step graph over the states of the search, unless only the reference stepper can list it."""
        if self.checkpoints is not None:
            self._save([])  # a search that is resumed begins here
        if not are_numbered(fair):
            return Engine.step_source(self, fair, look)
        self.steps = StepsOfSearch(
            fair, self.roomy, self.store, self.explain, self.levels, self._watched(look),
            compact=self.options.compact, is_long=self.is_long,
        )  # fmt: skip
        return self.steps

    def _watched(self, look: Look) -> Look:
        """A check of the budget and of the graph; memory is left to the search if that spills states."""
        limit = self.options.budget.max_memory_bytes if self.options.spill is not None else None

        def watched(states: int, steps: int, waiting: int) -> None:
            graph = self.steps
            if graph is not None and not graph.is_whole:
                self._note_lost()
            elif graph is not None and limit and 8 * self.store.slots + graph.memory_bytes > limit:
                why = f"the limit of {limit} bytes of memory (--max-memory) is too small for the step graph"
                self.findings.stopped = Inconclusive(why, budget=True)
            look(states, steps, waiting)

        return watched

    def _note_lost(self) -> None:
        """Note that a step leads to a state that is not kept, although the state before was expanded."""
        if not self.options.compact:
            raise ReplayFailed("a step leads to a state that the search did not keep")
        why = "two states share a hash, and one of them was not searched; omit --compact"
        self.findings.stopped = Inconclusive(why, budget=True)

    def release(self) -> None:
        """Free the memory."""
        self.optimiser.stop()
        (self.steps or self.store).release()

    @property
    def coverage(self) -> tuple[int, ...]:
        """How often each of the program's points was reached."""
        return tuple(map(sum, zip(*(worker.counts for worker in self.store.workers), strict=True)))

    def totals(self) -> Totals:
        """The counts at the end."""
        total = self.store.total
        states, outside = total(Thread.NEW), total(Thread.OUTSIDE)
        return Totals(
            states, total(Thread.GENERATED) + self.initial_count, self.coverage, total(Thread.CUTS),
            outside=outside > 0, skipped=total(Thread.SKIPPED),
            warnings=(collision_warning(self.program, states + outside),) if self.options.compact else (),
        )  # fmt: skip
