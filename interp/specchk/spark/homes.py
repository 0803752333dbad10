"""Homes: the executor that has a partition's table, and the lots of partitions taken by tasks.

A table is in files of one executor.  A task that runs elsewhere has to read all earlier levels from slices,
and leaves a second table there: without homes two executors have twice all states between them, four have 3.6
times, and machines add no room.  So each partition has an executor as its home, where its tasks run
(`moving`).  Partitions move only if executors were lost or added, and then as few as possible.

A task costs tens of milliseconds whatever it does, nearly all of them Spark's.  So while levels and tables
are small, a task takes several partitions with the same home, a *lot*.

Not here: how Spark is made to run a task at its home (`moving`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from py4j.protocol import Py4JError
from pyspark import SparkContext

from specchk.spark.session import is_local, slots
from specchk.spark.states.rows import Lot

WORK = 100_000  # states to expand that are worth a task of their own
TABLES = 1 << 25  # bytes of tables that a task may have open, if there are several
MOST = 64  # partitions in a lot: each has three files open
SLOT_BYTES = 20  # of a table, for each state: 8 at a load that is between LOAD / 4 and LOAD
LOOKS = 3  # failed look-ups of the executors in a row, after which there are no more
NO_HOMES = "tables have no homes, and are rebuilt where Spark moves a task: it does not name its executors"


class Executor(NamedTuple):
    """An executor, as Spark names it."""

    host: str
    name: str

    @property
    def location(self) -> str:
        """The executor as a preferred location."""
        return f"executor_{self.host}_{self.name}"


class Placement(NamedTuple):
    """The tasks of a job: for each its lot, and where it is to run ("" if Spark chooses)."""

    lots: tuple[Lot, ...]
    places: tuple[str, ...]


class Load(Struct, frozen=True):
    """The work of a job: states to expand, known states, and the bytes of one state."""

    frontier: int
    known: int
    state_bytes: int


class Homes:
    """The homes of a search's partitions; `is_known` is False if Spark does not name its executors."""

    def __init__(self, context: SparkContext, partitions: int) -> None:
        self._context = context
        self._homes: tuple[Executor | None, ...] = (None,) * partitions
        self._seen: list[Executor] = []
        self._failed = 0
        self.is_known = True

    def placed(self, load: Load) -> Placement:
        """The tasks of the next job, after assigning homes to all partitions."""
        alive = self._executors()
        self._homes = dealt(self._homes, alive)
        cores = max(1, slots(self._context) // max(1, len(alive)))
        lots: list[Lot] = []
        places: list[str] = []
        for home in (*alive, None):
            own = [number for number, executor in enumerate(self._homes) if executor == home]
            parts = lots_of(own, cores, len(self._homes), load)
            lots += parts
            places += [home.location if home is not None else ""] * len(parts)
        return Placement(tuple(lots), tuple(places))

    def is_lost(self) -> bool:
        """Whether a home is no longer available; False if that cannot be known."""
        alive = self._executors()
        return self.is_known and not {home for home in self._homes if home is not None}.issubset(alive)

    def _executors(self) -> list[Executor]:
        # One process has all tables, wherever its tasks run.
        if not self.is_known or is_local(self._context):
            return []
        try:
            self._seen, self._failed = executors(self._context), 0
        except (Py4JError, AttributeError, TypeError):
            # A list that changes while it is read is read again at the next look-up.  Without a gateway, or
            # with one of another Spark, there is never a list.
            self._failed += 1
            if self._failed == LOOKS:
                self.is_known, self._seen = False, []
        return self._seen


def executors(context: SparkContext) -> list[Executor]:
    """The available executors, in order."""
    scheduler: Any = context._jsc.sc()
    # From the monitoring API: `getExecutorInfos`, which Python has too, does not name executors.
    summaries = scheduler.statusStore().executorList(True).iterator()
    found = []
    while summaries.hasNext():
        summary = summaries.next()
        # Spark lists an executor as soon as it is registered, with a port only when it can keep data, too.
        # Before that it runs no task, and is named in another way.
        host, colon, port = (summary.hostPort() or "").rpartition(":")
        if summary.id() != "driver" and colon and port.isdigit():
            found.append(Executor(host, summary.id()))
    return sorted(found)


def tasks_of(context: SparkContext, partitions: int) -> int:
    """The tasks that share the work on partitions without tables; each task has a cost."""
    return max(1, min(partitions, 4 * slots(context)))


def dealt(homes: Sequence[Executor | None], alive: Sequence[Executor]) -> tuple[Executor | None, ...]:
    """Homes among the available executors: the old ones, as long as none has more than its share."""
    if not alive:
        return (None,) * len(homes)
    share, more = divmod(len(homes), len(alive))
    kept = {executor: [n for n, home in enumerate(homes) if home == executor] for executor in alive}
    # If shares cannot be equal, those with most partitions keep one more, so that as few as possible move.
    most = sorted(alive, key=lambda executor: -len(kept[executor]))
    room = {executor: share + (place < more) for place, executor in enumerate(most)}
    found: list[Executor | None] = [None] * len(homes)
    for executor in alive:
        for number in kept[executor][: room[executor]]:
            found[number] = executor
            room[executor] -= 1
    free = [executor for executor in alive for _ in range(room[executor])]
    for number, home in enumerate(found):
        if home is None:
            found[number] = free.pop()
    return tuple(found)


def lots_of(partitions: Sequence[int], cores: int, of: int, load: Load) -> list[Lot]:
    """The lots of some of `of` partitions with the same home, at least one for each core."""
    if not partitions:
        return []
    table = load.known * (load.state_bytes + SLOT_BYTES) // of
    tasks = max(
        cores,
        -(-len(partitions) * load.frontier // (of * WORK)),
        -(-len(partitions) * table // TABLES),
        -(-len(partitions) // MOST),
    )
    many = min(tasks, len(partitions))
    return [tuple(partitions[number::many]) for number in range(many)]
