"""The jobs that compute levels, with Spark's shuffle between their stages."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Generator
from contextlib import nullcontext, suppress
from functools import partial
from threading import Event, Thread
from typing import Any, NamedTuple, Self

from msgspec import Struct
from pyspark import SparkContext

from specchk.spark.homes import Homes, Load, Placement, tasks_of
from specchk.spark.ledger import Handed
from specchk.spark.moving import moved, numbered
from specchk.spark.parcel import Host
from specchk.spark.reasons import SPARK_FAILED
from specchk.spark.states.slices import Slice, Slices
from specchk.spark.tasks import absorb, expand, forget

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
        """A level by each job, run by `within`.

        A job is repeated if it lost an executor with tables, whose partitions then have other homes.
        """
        lost = 0
        while True:
            began, level = time.monotonic(), len(self.sizes) - 1
            self.describe(f"expand level {level + 1}, {self.sizes[-1]} states")
            load = Load(self.sizes[-1], sum(self.sizes), self.slices.state_bytes)
            rows = self._rows(homes.placed(load), level)
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
                lost = 0
                yield Made(sorted(abouts, key=lambda about: about.partition), time.monotonic() - began)
            finally:
                with suppress(*SPARK_FAILED):
                    rows._jrdd.rdd().cleanShuffleDependencies(False)  # else files stay until the JVM collects

    def _rows(self, placed: Placement, level: int) -> Any:
        """The descriptions of slices to be computed, of the level after `level`."""
        lots, places = placed
        rows: Any = numbered(self.context, places)
        rows = rows.mapPartitionsWithIndex(partial(expand, self.parcel, level, lots))
        return moved(rows, places).mapPartitionsWithIndex(partial(absorb, self.parcel, level + 1, lots))


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
