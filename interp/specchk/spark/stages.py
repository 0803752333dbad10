"""The jobs that compute levels, with Spark's shuffle between their stages."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from threading import Event, Thread
from typing import Any, NamedTuple, Self

from msgspec import Struct
from pyspark import SparkContext
from pyspark.errors import PySparkException

from specchk.spark.homes import Homes, Load, Placement, tasks_of
from specchk.spark.ledger import Handed
from specchk.spark.moving import moved, numbered
from specchk.spark.parcel import Host
from specchk.spark.reasons import SPARK_FAILED
from specchk.spark.states.slices import Slice, Slices
from specchk.spark.tasks import absorb, expand, forget, move_on

FUSED, AT_MOST = 8, 2_000_000  # levels in one job with shuffles, and states that they are expected to have
ATTEMPTS = 4  # jobs in a row that may lose an executor, as for Spark's stages
WATCH_S = 1.0  # seconds between two checks of the executors
Within = Callable[[Callable[[], list[Slice]]], list[Slice]]


class Made(NamedTuple):
    """A level, and the seconds that it took."""

    slices: list[Slice]
    seconds: float


class LevelMaker(Struct, frozen=True):
    """Computes the levels of a search; `parcel` is a broadcast of the packed parcel.

    `describe`: describes the calling thread's next jobs in Spark's own UI.
    `sizes`: of the levels so far; the caller adds the size of a level before it takes the next one.
    An iterator makes no more levels once it is closed.
    """

    context: SparkContext
    parcel: Any
    handed: Handed
    slices: Slices
    describe: Callable[[str], None]
    sizes: list[int]

    def made(self, homes: Homes, within: Within) -> Generator[Made, None, None]:
        """A level, or a few small ones, by each job, run by `within`.

        A job is repeated if it lost an executor with tables, whose partitions then have other homes.
        """
        lost = 0
        while True:
            began, level = time.monotonic(), len(self.sizes) - 1
            end = level + levels_at_once(self.sizes)
            self.describe(f"expand level {level + 1}, {self.sizes[-1]} states")
            load = Load(self.sizes[-1], sum(self.sizes), self.slices.state_bytes)
            rows = self._rows(homes.placed(load), level, end)
            # Otherwise tasks wait for a lost executor, stage after stage, as long as for one that is busy.
            watch = Watch(partial(self.context.cancelJobGroup, self.handed.run), homes.is_lost)
            try:
                with watch if lost < ATTEMPTS else nullcontext():
                    abouts = within(rows.collect)
            except SPARK_FAILED:
                if not watch.has_ended:
                    raise
                lost += 1
            else:
                seconds, lost = (time.monotonic() - began) / (end - level), 0
                for made in range(level + 1, end + 1):
                    yield Made(self._whole(abouts, made), seconds)
            finally:
                with suppress(*SPARK_FAILED):
                    rows._jrdd.rdd().cleanShuffleDependencies(False)  # else files stay until the JVM collects

    def _rows(self, placed: Placement, level: int, end: int) -> Any:
        """The descriptions of slices to be computed, of the levels from the one after `level` to `end`."""
        lots, places = placed
        rows: Any = numbered(self.context, places)
        rows = rows.mapPartitionsWithIndex(partial(expand, self.parcel, level, lots))
        for between in range(level + 1, end):
            # Absorbing a level and expanding it are one task, so that a fused level costs a shuffle but no
            # job.
            task = partial(move_on, self.parcel, between, lots)
            rows = moved(rows, places).mapPartitionsWithIndex(task)
        return moved(rows, places).mapPartitionsWithIndex(partial(absorb, self.parcel, end, lots))

    def _whole(self, abouts: Sequence[Slice], level: int) -> list[Slice]:
        """A level from the results of its tasks, or from the ledger if an earlier attempt computed a part."""
        returned = {about.partition: about for about in abouts if about.level == level}
        if len(returned) == self.handed.partitions:
            return [returned[partition] for partition in sorted(returned)]
        slices = self.slices.level(level, self.handed.partitions)
        if slices is None:
            raise not_there()
        return slices


class Watch:
    """A context that calls `end` once `is_due` is true, and repeatedly from then on.

    More than once, since Spark forgets to cancel what has not begun yet; and never after the context is left,
    when it would end another job. The first look is after `wait` seconds, or after `WATCH_S`.
    """

    def __init__(
        self, end: Callable[[], None], is_due: Callable[[], bool] = lambda: True, wait: float | None = None
    ) -> None:
        self._end, self._is_due, self._wait = end, is_due, wait
        self._over = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self.has_ended = False

    def _run(self) -> None:
        pause = WATCH_S if self._wait is None else self._wait
        with suppress(*SPARK_FAILED):  # then the job fails as well
            while not self._over.wait(pause):
                self.has_ended = self.has_ended or self._is_due()
                if self.has_ended:
                    self._end()
                pause = WATCH_S

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def remove_tables(context: SparkContext, parcel: Any, host: Host) -> None:
    """Remove the tables of a search, first on this machine; those of unreachable machines remain."""
    shutil.rmtree(host.scratch, ignore_errors=True)
    many = host.parcel.partitions
    numbers = context.parallelize(range(many), tasks_of(context, many))
    numbers.mapPartitions(partial(forget, parcel)).collect()


def not_there() -> PySparkException:
    """The error of a job that succeeded without leaving a result."""
    return PySparkException("RuntimeError: a slice that was made is not in the ledger")


def levels_at_once(sizes: Sequence[int]) -> int:
    """The number of levels per job with shuffles: several, as long as they are likely to be small.

    Each job has a cost, but the findings of a level are reported only once its job is done.
    """
    growth = sizes[-1] / sizes[-2] if len(sizes) > 1 else 2.0
    # As if growth stayed the same: a wrong guess costs one more job, or shows a finding some levels later.
    expected = [sizes[-1] * growth**ahead for ahead in range(FUSED)]
    return max(1, sum(sum(expected[: many + 1]) <= AT_MOST for many in range(FUSED)))
