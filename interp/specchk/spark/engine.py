"""The search on Spark: the driver's side.

The native engine explores the small levels here.  Before it would expand a level of `handover`
states it hands over: from then on levels are made by Spark jobs (`stages`), and the driver only counts,
explains and decides.  Verdict, counts, coverage and counterexamples are the native engine's, on any number of
partitions and executors: a level is a set of states, whoever found them first, and the smallest finding is
reported.

What is kept for good is in the ledger (`ledger`); the driver can be lost at any time.

Not here: tasks (`tasks`), and how a session is obtained (`session`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

from msgspec.structs import replace
from pyspark import SparkContext

from specchk.export.places import absolute_uri, answering, storage_at
from specchk.export.storage import Storage, Unwritable
from specchk.guardian import temporary_folder
from specchk.ir.program import Program
from specchk.ir.types import Room
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.native.claims import purpose_of
from specchk.native.compiler import exchange_code
from specchk.native.engine import NativeEngine, NativeOptions
from specchk.native.explain import Explainer
from specchk.native.identity import Identity, identity_of
from specchk.native.machine.layout import NoRoom, layout_of
from specchk.native.machine.rooms import first_room
from specchk.native.regions import StepsOfSearch, are_numbered
from specchk.native.store import NotedState
from specchk.search.engine import Engine, OnProgress, Options, Search, Totals, Unusable, explore
from specchk.search.findings import Findings
from specchk.search.liveness.regions import Look, StepSource
from specchk.search.verdict import Inconclusive, Outcome
from specchk.spark import ledger
from specchk.spark.confirming import confirm, confirmed
from specchk.spark.exporting import SliceSource
from specchk.spark.homes import NO_HOMES, Homes, tasks_of
from specchk.spark.parcel import Parcel, host_of
from specchk.spark.reach import check_scratch, require_reach, token_in
from specchk.spark.reasons import SPARK_FAILED, ended_by, given_up, native_alone, refuse
from specchk.spark.session import local_session, session
from specchk.spark.stages import LevelMaker, Made, Watch, remove_tables
from specchk.spark.states.loaded import Crowded, LedgerStates
from specchk.spark.states.slices import Slice, Slices, SliceTally, SpoiledSlice, folder_of
from specchk.spark.states.tables import TableCount
from specchk.spark.tasks import precede, preceding

HANDOVER = 500_000  # states; the native engine expands these in the time that Spark takes to begin a level
SMALL_LEVEL = 200_000  # states; the driver looks for predecessors among so few itself


class SparkOptions(Options, frozen=True):
    """The options of a search on Spark.

    `master`, `settings`: of the session, if one has to be made.  `partitions` 0: one for each core of
    the executors.  `ledger`: a path or URI that driver and executors share; None is a directory for
    this run only.  `scratch`: where executors keep their tables.
    """

    master: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    partitions: int = 0
    handover: int = HANDOVER
    ledger: str | None = None
    resume: bool = False
    scratch: str | None = None


def search(
    program: Program, options: SparkOptions = SparkOptions(), on_progress: OnProgress | None = None
) -> Outcome:
    """Search a program on Spark.

    `Unsupported` if only the reference engine can, `SpecError` if variables are ignored, `Unavailable`
    without Spark, `Unusable` for a ledger that cannot be taken up, or that another search has.
    """
    refuse(program)
    if options.ledger is None:
        with (
            local_session(options.master, dict(options.settings)) as context,
            temporary_folder("specchk-ledger-") as folder,
        ):
            return _searched(program, options, on_progress, context, folder)
    place = absolute_uri(options.ledger)
    storage = answering(place)
    if options.resume:
        ledger.require_search(storage)
    with (
        storage.claim(purpose_of(program)),  # before a session, which costs seconds
        token_in(storage, place, options.scratch) as token,
        session(options.master, dict(options.settings)) as context,
    ):
        require_reach(context, storage, token)
        return _searched(program, options, on_progress, context, place)


def _searched(
    program: Program, options: SparkOptions, on_progress: OnProgress | None, context: SparkContext, place: str
) -> Outcome:
    check_scratch(context, options.scratch)
    search, room = Search(program, options, on_progress), first_room(program)
    while True:
        engine = SparkEngine(search, options, context, place)
        try:
            if options.resume:
                engine.take_up()
            elif (answer := engine.small_levels(room)) is not None:
                return answer
            break
        except NoRoom:  # of the native engine; what Spark runs has a bit for each value of a set
            began, search, room = search.meter.started, Search(program, options, on_progress), room.larger
            search.meter.started = began
    try:
        return explore(engine)
    finally:
        engine.release()


@dataclass(slots=True)
class SparkEngine(Engine[int]):
    """Keeps levels as slices in a ledger; a frontier is its number of states."""

    name: ClassVar[str] = "spark"
    search: Search
    options: SparkOptions
    context: SparkContext
    place: str
    program: Program = field(init=False)
    findings: Findings = field(init=False)
    storage: Storage = field(init=False)
    identity: Identity = field(init=False)
    explain: Explainer = field(init=False)
    handed: ledger.Handed = field(init=False)
    homes: Homes = field(init=False)
    parcel: Any = field(init=False)  # a broadcast of the packed parcel
    packed: bytes = field(init=False)
    made: Generator[Made, None, None] | None = field(init=False, default=None)
    tally: SliceTally = field(init=False)
    tables: TableCount = field(init=False, default_factory=TableCount)
    outside: int = field(init=False, default=0)
    is_exhausted: bool = field(init=False, default=False)  # the last level was expanded, too
    noted: dict[tuple[str, str], tuple[NotedState, int]] = field(init=False, default_factory=dict)
    steps: StepsOfSearch | None = field(init=False, default=None)  # for temporal properties

    def __post_init__(self) -> None:
        self.program, self.findings = self.search.program, self.search.findings
        self.storage = storage_at(self.place, durable=self.options.ledger is not None)
        self.explain = Explainer(
            self.program, layout_of(self.program), self.predecessor, self.search.symmetry
        )
        keep_going, renamings = self.options.keep_going, self.search.renamings
        self.identity = identity_of(
            self.program, renamings, ledger.ROOMS, keep_going=keep_going, compact=False
        )

    def small_levels(self, room: Room) -> Outcome | None:
        """Search on the native engine and hand over; the outcome, if complete.  `NoRoom`, as there."""
        ledger.make_ready(self.storage)
        options = self.options
        small = NativeEngine(self.search, NativeOptions(
            options.budget, options.symmetry, options.keep_going, options.strict, handover=options.handover,
            room=room,
        ))  # fmt: skip
        try:
            self.search.find_states(small)
            if not small.is_handed_over:
                self.search.check_temporal(small)
                return native_alone(small, options.handover)
            partitions = options.partitions or max(2, self.context.defaultParallelism)
            handed = ledger.handed_of(small, self.identity, uuid.uuid4().hex[:12], partitions)
            self._ship(handed)
            try:
                # Slices first.  With `ledger.json` the run can be resumed, so all levels must be there before
                # it.
                ledger.hand_over(small, host_of(self.packed).kernel, self._slices, partitions)
                ledger.write_handed(self.storage, handed)
            except Unwritable as error:
                self.storage.remove(folder_of(handed.run))
                self.findings.stopped = ended_by(error)
                return replace(self.search.outcome(small), engine=self.name)
        finally:
            small.release()
        return None

    def take_up(self) -> None:
        """Resume the search of a driver that was lost."""
        handed = ledger.read_handed(self.storage, self.identity)
        if self.options.partitions not in (0, handed.partitions):
            raise Unusable(f"the ledger has {handed.partitions} partitions, and they cannot be changed")
        self._ship(handed)
        self.search.meter.started -= handed.seconds
        self.search.levels[:] = handed.sizes
        for noted, depth in handed.noted:
            self._note(noted, depth)
        try:
            ledger.look_through(self._slices, handed)
            self._catch_up()
        except SpoiledSlice as error:
            raise Unusable(str(error)) from error

    def _catch_up(self) -> None:
        """Count the levels that are already complete."""
        levels = self.search.levels
        while levels[-1] and not self.search.is_answered:
            if (slices := self._slices.level(len(levels), self.handed.partitions)) is None:
                return
            levels.append(self._count(slices))
            self.is_exhausted = not levels[-1]

    def _ship(self, handed: ledger.Handed) -> None:
        renamings, options = self.search.renamings, self.options
        code = exchange_code(self.program, layout_of(self.program), renamings)
        parcel = Parcel(
            handed.run, self.program, renamings, code, handed.partitions, self.place, options.scratch,
            len(handed.sizes), durable=options.ledger is not None,
        )  # fmt: skip
        self.packed = parcel.packed()
        self.parcel = self.context.broadcast(self.packed)
        self.handed, self.tally, self.outside = handed, handed.tally, handed.outside
        self.homes = Homes(self.context, handed.partitions)

    def describe(self, text: str) -> None:
        """Describe the next jobs of this thread in Spark's own UI; they are cancelled as a group."""
        self.context.setJobGroup(self.handed.run, f"specchk {self.program.spec}: {text}")

    @property
    def _slices(self) -> Slices:
        return host_of(self.packed).slices

    def begin(self) -> int:
        """The frontier of the available levels, ready to be expanded on Spark."""
        # `Search.run` adds the size of each frontier, and of this one again.
        frontier = self.search.levels.pop()
        makes = LevelMaker(
            self.context, self.parcel, self.handed, self._slices, self.describe, self.search.levels
        )
        self.made = makes.made(self.homes, self._within_time)
        return frontier

    def size(self, frontier: int) -> int:
        """The number of states in a frontier."""
        return frontier

    def expand(self, frontier: int) -> int:
        """Wait for the next level."""
        with self._given_up():
            for made in self.made or ():
                size = self._count(made.slices)
                self._report(made.slices, size, made.seconds)
                self.is_exhausted = not size
                # Not for the empty level at the end: a complete search has not used up its budget.
                if size:
                    self.search.look(sum(self.search.levels) + size, self.tally.generated, size)
                return size
        return 0

    @contextmanager
    def _given_up(self) -> Iterator[None]:
        """A context in which a failure of Spark's work ends the search, with the reason."""
        try:
            yield
        except (SpoiledSlice, Unwritable, Crowded) as error:
            self.findings.stopped = ended_by(error)
        except SPARK_FAILED as error:
            reason = self.search.meter.exceeded(0)
            over = Inconclusive(reason, budget=True) if reason is not None else None
            self.findings.stopped = over or given_up(error, len(self.search.levels) + 1)

    def _within_time(self, job: Callable[[], list[Slice]]) -> list[Slice]:
        """The job's result; the job is cancelled when time is up."""
        limit = self.options.budget.max_seconds
        if limit is None:
            return job()
        left = max(0.0, limit - self.search.meter.seconds)
        with Watch(partial(self.context.cancelJobGroup, self.handed.run), wait=left):
            return job()

    def _count(self, slices: Sequence[Slice]) -> int:
        """Count a completed level, and record its findings; returns the number of its states."""
        tally = sum((about.tally for about in slices), SliceTally())
        depth = len(self.search.levels)
        host = host_of(self.packed)
        for noted in confirmed(host, depth - 1, tally.found, self.explain, self.findings):
            self._note(noted, depth)
        # Counts alone: findings were noted above, with their level.
        self.tally += SliceTally(tally.generated, tally.cuts, tally.counts)
        self.outside += sum(about.outside for about in slices)
        return sum(about.inside for about in slices)

    def _report(self, slices: Sequence[Slice], size: int, seconds: float) -> None:
        self.tables.add(slices)
        note = self.tables.note(slices, len(self.search.levels) + 1, seconds)
        self.search.report(sum(self.search.levels) + size, self.tally.generated, size, note)

    def _note(self, noted: NotedState, depth: int) -> None:
        """Keep the findings after this many levels, only the first of each kind and name."""
        record = self.explain.records[noted.record]
        name = record.kind, record.name
        if not self.findings.has(*name):
            self.noted.setdefault(name, (noted, depth))
            if record.kind != "reached":
                self.findings.announced.add(name)

    def finish(self) -> bool:
        """Convert records to violations and witnesses, even after a stop; confirm if there are none."""
        # Only now, when all cores are free for it.
        if self.made is not None:
            self.made.close()
        if not self.homes.is_known:
            self.findings.notes.append(NO_HOMES)
        try:
            for kind, name in sorted(self.noted, key=lambda noted: noted[0] == "reached"):
                found, depth = self.noted[kind, name]
                self.explain.note(self.findings, found, range(depth))
            if not (self.search.is_stopped or self.findings.found):
                confirm(self.explain, host_of(self.packed), self.search.levels)
        except SpoiledSlice as error:
            self.findings.stopped = ended_by(error)
        return True

    def predecessor(self, target: Sequence[int], level: int, /) -> tuple[int, ...] | None:
        """The smallest state of a level that has the target as a successor."""
        many, wanted = self.handed.partitions, tuple(target)
        if self.search.levels[level] > SMALL_LEVEL:
            with suppress(*SPARK_FAILED):  # without Spark the driver does it: it reaches the ledger, too
                self.describe(f"a trace through level {level + 1}")
                numbers = self.context.parallelize(range(many), tasks_of(self.context, many))
                task = partial(precede, self.parcel, level, wanted)
                return min(numbers.mapPartitions(task).collect(), default=None)
        return preceding(host_of(self.packed), level, range(many), wanted)

    def step_source(self, fair: FairSteps, look: Look) -> StepSource:
        """The step graph over all states, in the driver, as on the native engine."""
        if not are_numbered(fair):
            return Engine.step_source(self, fair, look)
        host, limit = host_of(self.packed), self.options.budget.max_memory_bytes
        states = LedgerStates(host.slices, host.parcel.partitions, self.search.levels, self.totals())
        with self._given_up():
            self.steps = states.steps(fair, host.kernel, look, limit)
            return self.steps
        look(0, 0, 0)  # raises, as the search is stopped
        raise AssertionError("a search that was stopped has no step graph")

    def export_source(self) -> SliceSource:
        """The slices of all levels, for an export."""
        levels = len([size for size in self.search.levels if size])
        self.describe("export the states")
        return SliceSource(self.context, self.parcel, self.packed, levels, levels - (not self.is_exhausted))

    def release(self) -> None:
        """Release the driver's memory and the executors' tables; those of unreachable machines remain."""
        if self.steps is not None:
            self.steps.release()
        with suppress(*SPARK_FAILED):
            self.describe("remove tables")
            remove_tables(self.context, self.parcel, host_of(self.packed))

    def totals(self) -> Totals:
        """The counts at the end, including those of the native engine's levels."""
        tally, states = self.tally, sum(self.search.levels)
        generated = tally.generated + self.handed.initial
        return Totals(states, generated, tally.counts, tally.cuts, outside=self.outside > 0)
