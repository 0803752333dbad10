"""Data sent by tasks through Spark's shuffle: rows of bytes, which Python neither pickles nor collects.

    source, partition, checksum, 0 | states              a block
    source, TRAILER,   checksum, 0 | pickled `Trailer`   the end of what a task sends to another one

A task has a *lot* of partitions (`homes`), so a row names the partition, and source and target are tasks.
Spark ends a broken stream to a Python worker as if it were at its end, so a task cannot distinguish few
blocks from lost ones.  Therefore the data of a task end with a trailer for each task, and no slice is made
before all trailers are there, with everything that they promise.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator

from crc32c import crc32c
from msgspec import Struct

from specchk.spark.states.slices import BrokenSlice, SliceTally

_PLACE, _HEAD = struct.Struct("<2I"), struct.Struct("<4I")
_TARGET = struct.Struct(">q")  # as Spark's `PairwiseRDD` reads it
HEAD_BYTES = _HEAD.size  # a multiple of 8, so that the states behind it are aligned
_TRAILER = (1 << 32) - 1
Lot = tuple[int, ...]  # the partitions of a task


class Trailer(Struct, frozen=True):
    """The last row that a task gets from a source: the number of rows before it, and a tally."""

    blocks: int
    size: int
    tally: SliceTally


def target(task: int) -> bytes:
    """The number of the task that receives the next row."""
    return _TARGET.pack(task)


def block_row(source: int, partition: int, block: bytes) -> bytes:
    """A block of states for a partition."""
    place = _PLACE.pack(source, partition)
    # Spark's own checksums do not cover uncompressed data.
    return _HEAD.pack(source, partition, crc32c(block, crc32c(place)), 0) + block


def trailer_row(source: int, trailer: Trailer) -> bytes:
    """The end of the data that a source sends to a task."""
    return block_row(source, _TRAILER, pickle.dumps(trailer, protocol=5))


class Received:
    """Rows arriving from Spark's shuffle, with a check that all rows sent have arrived."""

    def __init__(self, sources: int, rows: Iterable[bytes]) -> None:
        self._rows = rows
        self._got = [[0, 0] for _ in range(sources)]
        self._trailers: dict[int, Trailer] = {}

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The partition and row of each block, whose states follow `HEAD_BYTES`.

        `BrokenSlice` at the end if anything is missing.
        """
        for row in self._rows:
            source, partition, content = _opened(row)
            if partition == _TRAILER:
                self._trailers[source] = pickle.loads(content)  # noqa: S301 - its checksum is right
            else:
                self._got[source][0] += 1
                self._got[source][1] += len(content)
                yield partition, row
        for source, (blocks, size) in enumerate(self._got):
            trailer = self._trailers.get(source)
            if trailer is None or (trailer.blocks, trailer.size) != (blocks, size):
                raise BrokenSlice(f"data sent from task {source} is incomplete")

    @property
    def tally(self) -> SliceTally:
        """The tally of the tasks that sent, once everything is read."""
        return sum((trailer.tally for trailer in self._trailers.values()), SliceTally())


def _opened(row: bytes) -> tuple[int, int, memoryview]:
    """The source, partition and content of a row; raises `BrokenSlice`."""
    if len(row) < HEAD_BYTES:
        raise BrokenSlice("data was damaged in transit")
    source, partition, check, _ = _HEAD.unpack_from(row)
    content = memoryview(row)[HEAD_BYTES:]
    if crc32c(content, crc32c(row[: _PLACE.size])) != check:
        raise BrokenSlice(f"data sent from task {source} was damaged in transit")
    return source, partition, content
