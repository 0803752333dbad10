"""Tasks of executors: expand a slice, absorb successors from others, find a predecessor.

    expand: slice of level L, one partition -> (partition, block), ..., (partition, trailer)
    absorb: all blocks for one partition    -> its slice of level L + 1

A level is one job of these two, with Spark's shuffle between them; several small levels are one job.
On one machine tasks may do without the shuffle (`one_machine`).
Spark ends a broken stream to a Python worker as if it were at its end, so a task cannot tell few
blocks from lost ones: every expand task therefore ends with a trailer for each partition, and absorb
makes no slice before it has all trailers and all that they promise.

The functions that Spark calls (`expand`, `absorb`, `move_on`, `precede`, `forget`) get a broadcast of the
packed parcel first.

Memory of a task: its buckets, one block, and the pages of its partition's table that it touches, which
is a file but in `one_machine`.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from crc32c import crc32c

from specchk.meaning.deadlock import Ends
from specchk.native.exchange import Buckets, address_of, address_of_bytes, smallest_predecessor
from specchk.native.machine.frames import DEADLOCK, Thread
from specchk.native.resting import resting, smallest_deadlock
from specchk.native.store import NotedState, Run, Worker
from specchk.native.visited import Busy, Visited, VisitedSet
from specchk.search.findings import Findings
from specchk.spark.ledger import gaps
from specchk.spark.parcel import Host, worker_host
from specchk.spark.slices import BrokenSlice, Slice, SliceTally


@dataclass(frozen=True, slots=True)
class Trailer:
    """The last item that a partition gets from a source: the count of rows before it, and a tally."""

    source: int
    blocks: int
    size: int
    tally: SliceTally


# Source, checksum, states.  Spark's own checksums do not cover what is not compressed.
Block = tuple[int, int, bytes]
Row = tuple[int, Block | Trailer]


def tally_from(worker: Worker) -> SliceTally:
    """The counts and records of a worker."""
    return SliceTally(worker[Thread.GENERATED], worker[Thread.CUTS], worker.counts, tuple(worker.found()))


def expand(parcel: Any, level: int, partitions: Iterable[int]) -> Iterator[Row]:
    """Blocks and trailers of some partitions' slices of a level."""
    host = worker_host(parcel.value)
    for partition in partitions:
        yield from expanded(host, level, partition)


def expanded(host: Host, level: int, partition: int) -> Iterator[Row]:
    """The successors of a slice, to the partitions that own them."""
    sent = [[0, 0] for _ in range(host.parcel.partitions)]
    with host.worker() as worker:
        for target, block in successors(host, worker, level, partition):
            sent[target][0] += 1
            sent[target][1] += len(block)
            yield target, (partition, crc32c(block), block)
        for target, (blocks, size) in enumerate(sent):
            # The tally to one partition alone, or it would be counted once for each.
            tally = tally_from(worker) if target == 0 else SliceTally()
            # Also to partitions that got no block: that nothing comes must be distinguishable from a lost
            # stream.
            yield target, Trailer(partition, blocks, size, tally)


def successors(host: Host, worker: Worker, level: int, partition: int) -> Iterator[tuple[int, bytes]]:
    """The successors of a slice: (partition, packed states), each partition several times."""
    buckets = Buckets(host.parcel.program, host.layout, host.kernel, host.parcel.partitions)
    try:
        with host.slices.open(level, partition) as opened:
            for data, count in opened.blocks():
                yield from buckets.expand(worker, address_of(data), count)
        yield from buckets.drain()
    finally:
        buckets.release()


def move_on(parcel: Any, level: int, partition: int, rows: Iterator[Row]) -> Iterator[Row]:
    """Blocks and trailers of a slice that is made here: an inner level of a job of several."""
    for made in absorb(parcel, level, partition, rows):
        yield from expanded(worker_host(parcel.value), made, partition)


def absorb(parcel: Any, level: int, partition: int, rows: Iterator[Row]) -> Iterator[int]:
    """Make a slice of a level from successors sent to it; the level, when the slice is kept for good."""
    host = worker_host(parcel.value)
    # Another attempt made it: whatever `rows` would bring, the slice in the ledger is the one that counts.
    if host.slices.done(level, partition) is None:
        with closing(opened(host, level, partition)) as visited:
            catch_up(host, visited, level, partition)
            absorbed(host, visited, level, partition, Received(host.parcel.partitions, rows))
    yield level


class Incoming(Protocol):
    """The successors sent to a partition from a level's slices."""

    size: int  # bytes of what was read so far
    tally: SliceTally  # of the tasks that sent, when all is read

    def blocks(self) -> Iterator[bytes]:
        """All of it; `BrokenSlice` in the end where something is missing."""


def absorbed(host: Host, visited: VisitedSet, level: int, partition: int, incoming: Incoming) -> None:
    """Keep what is new as a slice; `visited` has all levels before this one, and then this one, too."""
    with host.worker() as worker:
        visited.begin()
        first = visited.used
        runs: list[Run] = []
        for block in incoming.blocks():
            # Absorbed as it comes, although a trailer may show in the end that something is missing: then
            # no slice is written, and the visited set is thrown back to the level before.
            runs += visited.absorb(worker, address_of_bytes(block), len(block) // host.state_bytes)
        runs += worker.end_run()
        inside = sum(count for _, count in runs)
        about = Slice(
            level, partition, inside, visited.used - first - inside, incoming.size,
            incoming.tally + tally_from(worker),
        )  # fmt: skip
        # The slice first: if the process ends in between, the visited set is a level behind, and reads the
        # slice.  The other way round it would have states that no ledger has, and they would never be found
        # new again.
        host.slices.write(about, visited.views([*runs, *gaps(runs, first, visited.used)]))
        visited.commit()


class Received:
    """Rows arriving from Spark's shuffle, and whether all rows sent have arrived."""

    def __init__(self, sources: int, rows: Iterable[Row]) -> None:
        self._rows = rows
        self._got = [[0, 0] for _ in range(sources)]
        self._trailers: dict[int, Trailer] = {}
        self.size = 0
        self.tally = SliceTally()

    def blocks(self) -> Iterator[bytes]:
        """The blocks of the rows; `BrokenSlice` in the end where anything is missing."""
        for _, row in self._rows:
            if isinstance(row, Trailer):
                self._trailers[row.source] = row
                self.tally += row.tally
            else:
                source, check, block = row
                if crc32c(block) != check:
                    raise BrokenSlice(f"data sent from partition {source} was damaged in transit")
                self._got[source][0] += 1
                self._got[source][1] += len(block)
                self.size += len(block)
                yield block
        for source, (blocks, size) in enumerate(self._got):
            trailer = self._trailers.get(source)
            if trailer is None or (trailer.blocks, trailer.size) != (blocks, size):
                raise BrokenSlice(f"data sent from partition {source} is incomplete")


def opened(host: Host, level: int, partition: int) -> Visited:
    """The visited set of a partition with some of the levels before this one, maybe all."""
    place = host.cache(partition)
    try:
        visited = Visited(place, host.layout.words, host.kernel)
        # The ledger was resumed from an earlier level, so the table has states that are to be found again.
        if visited.levels > level:  # of a level that was undone
            visited.close()
            shutil.rmtree(place)
            visited = Visited(place, host.layout.words, host.kernel)
    except Busy:  # a lost executor's worker, which may never end, still has it
        # A table of its own instead of waiting: the slice's rename decides which attempt counts.
        visited = Visited(place.with_name(f"{place.name}-{uuid.uuid4().hex}"), host.layout.words, host.kernel)
    return visited


def catch_up(host: Host, visited: VisitedSet, level: int, partition: int) -> None:
    """Give a visited set all levels before this one, from the ledger."""
    for missing in range(visited.levels, level):
        visited.begin()
        with host.slices.open(missing, partition) as opened:
            visited.add_known(opened, opened.about.inside + opened.about.outside)
        visited.commit()


def precede(
    parcel: Any, level: int, target: tuple[int, ...], partitions: Iterable[int]
) -> Iterator[tuple[int, ...]]:
    """Of each partition the smallest state of a level with the target as a successor, if there is one."""
    host = worker_host(parcel.value)
    for partition in partitions:
        best = preceding(host, level, partition, target)
        if best is not None:
            yield best


def preceding(host: Host, level: int, partition: int, target: tuple[int, ...]) -> tuple[int, ...] | None:
    """The smallest state of a slice that has the target as a successor."""
    states = []
    with host.worker() as worker, host.slices.open(level, partition) as opened:
        for data, count in opened.blocks():
            best = smallest_predecessor(host.kernel, worker, address_of(data), count, target)
            if best is not None:
                states.append(best)
    return min(states, default=None)


def confirmed(
    host: Host, level: int, noted: Iterable[NotedState], ends: Ends, findings: Findings
) -> Iterator[NotedState]:
    """The records of the states of a level; of deadlocks the smallest real one.  For the driver."""
    for noted_state in noted:
        if noted_state.record != DEADLOCK or not ends.lists_horizon:
            yield noted_state
            continue
        partitions = range(host.parcel.partitions)
        states = chain.from_iterable(_resting(host, level, partition) for partition in partitions)
        state = smallest_deadlock(ends, findings, host.layout, states)
        if state is not None:
            yield NotedState(DEADLOCK, state, state)


def _resting(host: Host, level: int, partition: int) -> Iterator[tuple[int, ...]]:
    with host.worker() as worker, host.slices.open(level, partition) as opened:
        for data, count in opened.blocks():
            thread, words = worker.block.address, host.layout.words
            yield from resting(host.kernel, thread, words, address_of(data), count)


def forget(parcel: Any, partitions: Iterable[int]) -> Iterator[int]:
    """Remove a run's tables from the machine; the number of partitions visited."""
    # Tasks run where Spark wants, so each machine is likely to be met by one of them; what is left is of
    # this boot.
    shutil.rmtree(worker_host(parcel.value).scratch, ignore_errors=True)
    yield len(list(partitions))
