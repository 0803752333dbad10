"""Tasks of executors: expand slices, absorb successors from others, find a predecessor.

    expand: slices of level L, one lot -> blocks and trailers for each task (`rows`)
    absorb: all blocks for one lot     -> its slices of level L + 1

A level is one job of these two, with Spark's shuffle between them (`moving`).  A task has a lot of
partitions that have the same home (`homes`): one while levels are large.

The functions that Spark calls (`expand`, `absorb`, `precede`, `forget`) get a broadcast of the
packed parcel first.

Memory of a task: its buckets, one block, and the pages of its partitions' tables that it touches, which
are files.
"""

from __future__ import annotations

import shutil
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from specchk.native.exchange import Buckets, address_of, address_of_bytes, smallest_predecessor
from specchk.native.machine.frames import Thread
from specchk.native.machine.runs import Run, gaps
from specchk.native.store import Worker
from specchk.spark.parcel import Host, worker_host
from specchk.spark.states.rows import HEAD_BYTES, Lot, Received, Trailer, block_row, target, trailer_row
from specchk.spark.states.slices import Slice, SliceTally
from specchk.spark.visited import Busy, Visited


def tally_from(worker: Worker) -> SliceTally:
    """The counts and records of a worker."""
    return SliceTally(worker[Thread.GENERATED], worker[Thread.CUTS], worker.counts, tuple(worker.found()))


def expand(parcel: Any, level: int, lots: Sequence[Lot], task: int, rows: Iterator[Any]) -> Iterator[bytes]:
    """Targets and rows for a lot's slices of a level; its own input rows are not used."""
    deque(rows, maxlen=0)  # a worker that leaves some unread ends with its task, and a new one takes a second
    host = worker_host(parcel.value)
    slices = [host.slices.about(level, partition) for partition in lots[task]]
    task_of = {partition: number for number, lot in enumerate(lots) for partition in lot}
    sent = [[0, 0] for _ in lots]
    with host.worker() as worker:
        for partition, block in successors(host, worker, slices):
            sent[task_of[partition]][0] += 1
            sent[task_of[partition]][1] += len(block)
            yield target(task_of[partition])
            yield block_row(task, partition, block)
        for number, (blocks, size) in enumerate(sent):
            # The tally to one task alone, or it would be counted once for each.
            tally = tally_from(worker) if number == task_of[0] else SliceTally()
            # Also to tasks that got no block: they must be able to distinguish that from a lost stream.
            yield target(number)
            yield trailer_row(task, Trailer(blocks, size, tally))


def successors(host: Host, worker: Worker, slices: Sequence[Slice]) -> Iterator[tuple[int, bytes]]:
    """The successors of slices: (partition, packed states), each partition repeatedly."""
    states = sum(about.inside for about in slices)
    buckets = Buckets(host.parcel.program, host.layout, host.kernel, host.parcel.partitions, states)
    try:
        for about in slices:
            if not about.inside:
                continue
            with host.slices.open(about.level, about.partition) as opened:
                for data, count in opened.blocks():
                    yield from buckets.expand(worker, address_of(data), count)
        yield from buckets.drain()
    finally:
        buckets.release()


def absorb(parcel: Any, level: int, lots: Sequence[Lot], task: int, rows: Iterator[bytes]) -> Iterator[Slice]:
    """Write the slices of a lot from successors sent to it; their descriptions, once they are permanent."""
    host = worker_host(parcel.value)
    # If another attempt made it, the slice in the ledger counts, whatever `rows` would have.
    done = {partition: host.slices.done(level, partition) for partition in lots[task]}
    missing = [partition for partition, about in done.items() if about is None]
    received = Received(len(lots), rows)
    if missing:
        with ExitStack() as tables:
            making = {}
            for number in missing:
                visited = tables.enter_context(closing(opened(host, level, number)))
                making[number] = tables.enter_context(making_of(host, visited, level, number))
            for partition, row in received.blocks():
                if partition in making:
                    making[partition].take(address_of_bytes(row) + HEAD_BYTES, len(row) - HEAD_BYTES)
            for partition, slice_ in making.items():
                done[partition] = slice_.keep(received.tally if partition == 0 else SliceTally())
    yield from (about for about in done.values() if about is not None)


class Making:
    """A slice being computed; `visited` has all levels before it."""

    def __init__(
        self, host: Host, visited: Visited, worker: Worker, level: int, partition: int, caught_up: int
    ) -> None:
        self._host, self._visited, self._worker = host, visited, worker
        self._level, self._partition, self._caught_up = level, partition, caught_up
        visited.begin()
        self._first = visited.used
        self._size = 0
        self._runs: list[Run] = []

    def take(self, address: int, size: int) -> None:
        """Absorb a block of states."""
        # On arrival, although a trailer may show at the end that something is missing: then no slice is
        # written, and the visited set is reset to the level before.
        self._runs += self._visited.absorb(self._worker, address, size // self._host.state_bytes)
        self._size += size

    def keep(self, tally: SliceTally) -> Slice:
        """Write new states as a slice, and the level to the visited set; `tally` is the sending tasks'."""
        visited, runs = self._visited, [*self._runs, *self._worker.end_run()]
        inside = sum(count for _, count in runs)
        about = Slice(
            self._level, self._partition, inside, visited.used - self._first - inside, self._size,
            tally + tally_from(self._worker), self._host.place, visited.used, self._caught_up,
        )  # fmt: skip
        # The slice first: if the process ends in between, the visited set is a level behind, and reads the
        # slice.  Otherwise it would have states that no ledger has, and they would never be found to be new
        # again.
        self._host.slices.write(about, visited.views([*runs, *gaps(runs, self._first, visited.used)]))
        visited.commit()
        return about


@contextmanager
def making_of(host: Host, visited: Visited, level: int, partition: int) -> Iterator[Making]:
    """A slice to be computed; `visited` has some earlier levels, and afterwards this one; it stays open."""
    caught_up = catch_up(host, visited, level, partition)
    with host.worker() as worker:
        yield Making(host, visited, worker, level, partition, caught_up)


def opened(host: Host, level: int, partition: int) -> Visited:
    """The visited set of a partition with some, or all, of the levels before this one."""
    place = host.cache(partition)
    try:
        visited = Visited(place, host.layout.words, host.kernel)
        # The ledger was resumed from an earlier level, so the table has states that are to be found again.
        if visited.levels > level:  # of a level that was undone
            # Renamed while this task has it: between `close` and its removal another attempt could open it.
            undone = place.rename(_beside(place))
            visited.close()
            shutil.rmtree(undone, ignore_errors=True)
            visited = Visited(place, host.layout.words, host.kernel)
    except Busy:  # a lost executor's worker, which may never end, still has it
        # A table of its own instead of waiting: the slice's rename decides which attempt counts.
        visited = Visited(_beside(place), host.layout.words, host.kernel)
    return visited


def _beside(place: Path) -> Path:
    return place.with_name(f"{place.name}-{uuid.uuid4().hex}")


def catch_up(host: Host, visited: Visited, level: int, partition: int) -> int:
    """Add to a visited set all levels before this one; returns how many of them it should have had."""
    first = visited.levels
    for missing in range(first, level):
        visited.begin()
        with host.slices.open(missing, partition) as opened:
            visited.add_known(opened.fill, opened.about.inside + opened.about.outside)
        visited.commit()
    # The levels that were handed over are in no table before its first slice.
    is_first = first == 0 and level == host.parcel.handed
    return 0 if is_first else level - first


def precede(
    parcel: Any, level: int, target: tuple[int, ...], partitions: Iterable[int]
) -> Iterator[tuple[int, ...]]:
    """The smallest state of a level, in some partitions, with the target as a successor, if any."""
    host = worker_host(parcel.value)
    best = preceding(host, level, partitions, target)
    if best is not None:
        yield best


def preceding(
    host: Host, level: int, partitions: Iterable[int], target: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The smallest state of some slices of a level that has the target as a successor."""
    states = []
    for partition in partitions:
        with host.worker() as worker, host.slices.open(level, partition) as opened:
            for data, count in opened.blocks():
                best = smallest_predecessor(host.kernel, worker, address_of(data), count, target)
                if best is not None:
                    states.append(best)
    return min(states, default=None)


def forget(parcel: Any, partitions: Iterable[int]) -> Iterator[int]:
    """Remove a run's tables from the machine; returns the number of partitions visited."""
    # Spark decides where tasks run, so each machine is likely to have one of them; leftovers end with this
    # boot.
    shutil.rmtree(worker_host(parcel.value).scratch, ignore_errors=True)
    yield len(list(partitions))
