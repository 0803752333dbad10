"""The search on Spark: the driver's side.

The native engine explores the small levels here.  Before it would expand a level of `handover`
states it hands over: from then on levels are made by Spark jobs (`stages`), and the driver only counts,
explains and decides.  Verdict, counts, coverage and counterexamples are the native engine's, on any
number of partitions and executors: a level is a set of states, whoever found them first, and what is
reported of it is the smallest.

What is kept for good is in the ledger (`ledger`); the driver can be lost at any time.

Not here: what a task does (`tasks`), how a session is had (`session`).
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import Any

from pyspark import SparkContext

from specchk.ir.footprint import lists_horizon
from specchk.ir.program import Program
from specchk.native import engine as native
from specchk.native.claims import purpose_of
from specchk.native.compiler import exchange_code
from specchk.native.explain import Explainer
from specchk.native.identity import Identity, Unusable, identity_of
from specchk.native.machine.frames import old_records, records_of
from specchk.native.machine.layout import layout_of
from specchk.native.store import Found
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.findings import Findings
from specchk.search.symmetry import Symmetry, symmetry_of
from specchk.search.verdict import INTERRUPTED, Inconclusive, Outcome, Statistics
from specchk.spark.ledger import (
    ROOMS,
    Handed,
    hand_over,
    handed_of,
    look_through,
    make_ready,
    read_handed,
    see_that_there_is_one,
    write_handed,
)
from specchk.spark.parcel import Parcel, host_of
from specchk.spark.reasons import given_up, native_alone, not_handed_over, not_written, unread
from specchk.spark.session import is_local, session, slots
from specchk.spark.slices import Slice, Slices, Spoiled, Tally, folder_of
from specchk.spark.stages import SPARK_FAILED, Levels, Made
from specchk.spark.storage import Storage, Unwritable, storage_at
from specchk.spark.tasks import Forget, Precede, confirmed, preceding

HANDOVER = 500_000  # states; in the time that these take the native engine Spark has hardly begun a level
SMALL_LEVEL = 200_000  # states; the driver looks for predecessors among so few itself
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; the first four as in `search.reference.Options`.

    `master`, `settings`: of the session, where one has to be made.  `partitions` 0: one for each core of
    the executors.  `ledger`: a path or URI that driver and executors share; None is a directory for
    this run only.  `scratch`: where executors keep their tables, and tasks on one machine what they
    send.  `shuffle`: let Spark's shuffle move the states on one machine, too.
    """

    budget: Budget = Budget()
    symmetry: bool = True
    keep_going: bool = False
    strict: bool = False
    master: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    partitions: int = 0
    handover: int = HANDOVER
    ledger: str | None = None
    resume: bool = False
    scratch: str | None = None
    shuffle: bool = False


def run(program: Program, options: Options = Options(), on_progress: OnProgress | None = None) -> Outcome:
    """Explore a program on Spark.

    `layout.Unsupported` where only the reference engine can, `session.Unavailable` without Spark,
    `identity.Unusable` for a ledger that cannot be taken up, or that another search has.
    """
    layout_of(program)
    if options.ledger is None:
        with session(options.master, dict(options.settings)) as context:
            if not is_local(context):
                raise Unusable("on a cluster the search needs a ledger (--ledger) that all machines reach")
            with tempfile.TemporaryDirectory(prefix="specchk-ledger-", ignore_cleanup_errors=True) as folder:
                return Search(program, options, on_progress, context, folder).run()
    storage = storage_at(options.ledger)
    if options.resume:
        see_that_there_is_one(storage)
    claim = storage.claim(purpose_of(program))  # before a session, which costs seconds
    with claim, session(options.master, dict(options.settings)) as context:
        return Search(program, options, on_progress, context, options.ledger).run()


@dataclass(slots=True)
class Search:
    """One search, in one context."""

    program: Program
    options: Options
    on_progress: OnProgress | None
    context: SparkContext
    place: str
    storage: Storage = field(init=False)
    symmetry: Symmetry | None = field(init=False)
    symmetry_text: str = field(init=False)
    findings: Findings = field(init=False)
    explain: Explainer = field(init=False)
    meter: Meter = field(init=False)
    handed: Handed = field(init=False)
    parcel: Any = field(init=False)  # a broadcast of the packed parcel
    packed: bytes = field(init=False)
    sizes: list[int] = field(init=False, default_factory=list)
    tally: Tally = field(init=False)
    outside: int = field(init=False, default=0)
    noted: dict[tuple[str, str], tuple[Found, int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.storage = storage_at(self.place, durable=self.options.ledger is not None)
        self.symmetry, self.symmetry_text = symmetry_of(self.program, wanted=self.options.symmetry)
        self.findings = Findings(self.program)
        layout = layout_of(self.program)
        self.explain = Explainer(self.program, layout, self, self.symmetry)
        self.meter = Meter(self.options.budget)

    @property
    def _renamings(self) -> list[Any]:
        return self.symmetry.renamings if self.symmetry is not None else []

    def run(self) -> Outcome:
        """Explore, and say what was found."""
        identity = identity_of(
            self.program, self._renamings, ROOMS,
            keep_going=self.options.keep_going, compact=False,
        )  # fmt: skip
        if self.options.resume:
            self._take_up(read_handed(self.storage, identity))
        else:
            make_ready(self.storage)
            answer = self._small_levels(identity)
            if answer is not None:
                return answer
        try:
            self._levels()
            self._explain()
        finally:
            self._forget()
        return self._outcome()

    # ------------------------------------------------------------ taking over

    def _small_levels(self, identity: Identity) -> Outcome | None:
        """The native engine's part; its answer, if that is all."""
        options = self.options
        taken = native.Options(
            options.budget, options.symmetry, options.keep_going, options.strict, handover=options.handover
        )
        search = native.Search(self.program, taken, self.on_progress)
        try:
            search.explore()
            if not search.is_handed_over:
                return native_alone(search.outcome(), options.handover)
            partitions = options.partitions or max(2, self.context.defaultParallelism)
            handed = handed_of(search, identity, uuid.uuid4().hex[:12], partitions)
            self._ship(handed)
            try:
                hand_over(search, host_of(self.packed).kernel, self._slices, partitions)
                write_handed(self.storage, handed)
            except Unwritable as error:
                self.storage.remove(folder_of(handed.run))
                return not_handed_over(search, str(error))
            self.findings = search.findings
        finally:
            search.store.release()
        self._begin(handed)
        return None

    def _ship(self, handed: Handed) -> None:
        layout, renamings = layout_of(self.program), self._renamings
        code = exchange_code(self.program, layout, renamings)
        options = self.options
        parcel = Parcel(
            handed.run, self.program, renamings, code, handed.partitions, self.place, options.scratch,
            len(handed.sizes), durable=options.ledger is not None,
        )  # fmt: skip
        self.packed = parcel.packed()
        self.parcel = self.context.broadcast(self.packed)

    def _begin(self, handed: Handed) -> None:
        self.handed = handed
        self.sizes, self.tally, self.outside = list(handed.sizes), handed.tally, handed.outside

    def _take_up(self, handed: Handed) -> None:
        """A search of a driver that was lost."""
        if self.options.partitions not in (0, handed.partitions):
            raise Unusable(f"the ledger has {handed.partitions} partitions, and they cannot be changed")
        self._ship(handed)
        self._begin(handed)
        self.meter.started -= handed.seconds
        for found, depth in handed.noted:
            self._note(found, depth)
        try:
            look_through(self._slices, handed)
            self._catch_up()
        except Spoiled as error:
            raise Unusable(str(error)) from error

    def _catch_up(self) -> None:
        """The levels that were done."""
        while self._goes_on:
            slices = self._slices.level(len(self.sizes), self.handed.partitions)
            if slices is None:
                return
            self._count(slices)

    @property
    def _slices(self) -> Slices:
        return host_of(self.packed).slices

    # ------------------------------------------------------------ levels

    @property
    def _goes_on(self) -> bool:
        if self.findings.stopped or not self.sizes[-1]:
            return False
        violated = self.findings.found or any(kind != "reached" for kind, _ in self.noted)
        return self.options.keep_going or not violated

    def _levels(self) -> None:
        """The levels that are left, until there are no new states or a limit stops it."""
        try:
            with closing(self._made()) as levels:
                while self._goes_on:
                    made = next(levels)
                    if made.slices is not None:
                        self._count(made.slices)
                        self._report(made.slices, made.seconds)
                    reason = self.meter.exceeded(sum(self.sizes))
                    if reason is not None and self.sizes[-1]:
                        self.findings.stopped = Inconclusive(reason, budget=True)
        except KeyboardInterrupt:
            self.findings.stopped = Inconclusive(INTERRUPTED, budget=False)
        except Spoiled as error:
            self.findings.stopped = unread(str(error))
        except Unwritable as error:
            self.findings.stopped = not_written(str(error))
        except SPARK_FAILED as error:
            reason = self.meter.exceeded(0)
            over = Inconclusive(reason, budget=True) if reason is not None else None
            self.findings.stopped = over or given_up(error, len(self.sizes) + 1)
        if not self.sizes[-1]:
            self.sizes.pop()

    def _made(self) -> Generator[Made, None, None]:
        """Levels as Spark makes them."""
        makes = Levels(self.context, self.parcel, self.handed, self._slices, self._describe, self.sizes)
        options = self.options
        if is_local(self.context) and self.handed.partitions <= slots(self.context) and not options.shuffle:
            sent = host_of(self.packed).scratch / "sent" if options.scratch else Path(self.context._temp_dir)
            return makes.on_one_machine(sent)
        return makes.through_shuffle(self._within_time)

    def _describe(self, text: str) -> None:
        """Describe this thread's next jobs in Spark's own UI."""
        self.context.setJobGroup(self.handed.run, f"specchk {self.program.spec}: {text}")

    def _within_time(self, job: Callable[[], list[int]]) -> list[int]:
        """The job's result; it is cancelled when time is up."""
        limit = self.options.budget.max_seconds
        if limit is None:
            return job()
        timer = Timer(
            max(0.0, limit - self.meter.seconds), self.context.cancelJobGroup, args=(self.handed.run,)
        )
        timer.start()
        try:
            return job()
        finally:
            timer.cancel()

    def _count(self, slices: Sequence[Slice]) -> None:
        """A level is done: its numbers, and what was found in it."""
        tally = sum((about.tally for about in slices), Tally())
        depth = len(self.sizes)
        for found in confirmed(
            host_of(self.packed), depth - 1, tally.found, self.explain.ends, self.findings
        ):
            self._note(found, depth)
        self.tally += Tally(tally.generated, tally.cuts, tally.counts)
        self.outside += sum(about.outside for about in slices)
        self.sizes.append(sum(about.inside for about in slices))

    def _report(self, slices: Sequence[Slice], seconds: float) -> None:
        if self.on_progress is None:
            return
        new = [about.inside for about in slices]
        generated = sum(about.tally.generated for about in slices)
        outside = sum(about.outside for about in slices)
        sent = sum(about.received_bytes for about in slices)
        skew = max(new) * len(new) / max(1, sum(new))
        note = (
            f"level {len(self.sizes)}: {sum(new)} new, {generated - sum(new) - outside} again, "
            f"{sent / (1 << 20):.1f} MB shuffled, skew {skew:.2f}, {seconds:.2f} s"
        )
        self.on_progress(Progress(
            sum(self.sizes), self.tally.generated, len(self.sizes), sum(new), self.meter.seconds,
            resident_bytes(), note,
        ))  # fmt: skip

    # ------------------------------------------------------------ findings

    def _note(self, found: Found, depth: int) -> None:
        """Keep what was found after so many levels, of each kind and name the first."""
        record = records_of(self.program)[found.record]
        name = record.kind, record.name
        known = (
            record.name in self.findings.reached if record.kind == "reached" else name in self.findings.found
        )
        if not known:
            self.noted.setdefault(name, (found, depth))

    def _explain(self) -> None:
        """Make violations and witnesses of what was noted: in the end, when all cores are free for it.

        Also after a stop, violations first: what was found is told.
        """
        try:
            for kind, name in sorted(self.noted, key=lambda noted: noted[0] == "reached"):
                found, depth = self.noted[kind, name]
                record, levels = records_of(self.program)[found.record], range(depth)
                if kind == "reached":
                    self.findings.reached[name] = self.explain.witness(name, found.state, levels)
                else:
                    of_level = found.record < old_records(self.program)
                    violation = self.explain.violation(record, found, levels, of_level=of_level)
                    self.findings.found[kind, name] = violation
        except Spoiled as error:
            self.findings.stopped = unread(str(error))
        except KeyboardInterrupt:
            self.findings.stopped = Inconclusive(INTERRUPTED, budget=False)

    def predecessor(self, target: Sequence[int], level: int, /) -> tuple[int, ...] | None:
        """The smallest state of a level that has the target as a successor."""
        many, wanted = self.handed.partitions, tuple(target)
        if self.sizes[level] > SMALL_LEVEL:
            with suppress(*SPARK_FAILED):  # without Spark the driver does it: it reaches the ledger, too
                self._describe(f"a trace through level {level + 1}")
                numbers = self.context.parallelize(range(many), many)
                return min(numbers.mapPartitions(Precede(self.parcel, level, wanted)).collect(), default=None)
        host = host_of(self.packed)
        found = [preceding(host, level, partition, wanted) for partition in range(many)]
        return min((state for state in found if state is not None), default=None)

    # ------------------------------------------------------------ the end

    def _forget(self) -> None:
        """Remove the executors' tables; those of machines that no task reaches are left."""
        many = self.handed.partitions
        shutil.rmtree(host_of(self.packed).scratch, ignore_errors=True)
        try:
            self._describe("remove tables")
            self.context.parallelize(range(many), many).mapPartitions(Forget(self.parcel)).collect()
        except SPARK_FAILED:
            return

    def _outcome(self) -> Outcome:
        tally, options = self.tally, self.options
        complete = self.findings.is_complete(keep_going=options.keep_going)
        verdict = self.findings.conclude(
            tally.counts,
            complete=complete,
            strict=options.strict,
            cut=tally.cuts > 0 or lists_horizon(self.program),
            outside=self.outside > 0,
        )
        statistics = Statistics(
            distinct=sum(self.sizes), generated=tally.generated + self.handed.initial, depth=len(self.sizes),
            levels=tuple(self.sizes), seconds=self.meter.seconds, horizon_cuts=tally.cuts,
            symmetry=self.symmetry_text,
        )  # fmt: skip
        warnings = self.findings.warnings(tally.counts, complete=complete)
        reached = tuple(self.findings.reached.items())
        return Outcome(self.program, "spark", verdict, statistics, tally.counts, warnings, reached)
