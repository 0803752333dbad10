"""The sparse indexes of a segment: offset -> file position, and timestamp -> offset, in Kafka's formats.

    NNN.index       8 bytes an entry: last offset of a batch - base offset  i32, position of that batch  i32
    NNN.timeindex  12 bytes an entry: largest timestamp so far  i64, its batch's last offset - base offset i32

An index is a hint, derivable from its log: it lives in memory while its segment is written, reaches the
disk when the segment is sealed, and is rebuilt whenever the file is missing or does not have the checksum
that the manifest has for it. Entries strictly increase.

Not here: when an entry is due and how one is verified against the log (`segment.py`).
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from struct import Struct

INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")


@dataclass(slots=True)
class OffsetIndex:
    """Relative last offsets and the positions of their batches, as two parallel lists."""

    offsets: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)

    def add(self, relative_offset: int, position: int) -> None:
        """Append an entry; both fields must be larger than those of the last entry."""
        self.offsets.append(relative_offset)
        self.positions.append(position)

    def lookup(self, relative_offset: int) -> int:
        """Return the position of a batch at or before the one with the offset (0 without an entry)."""
        # At or before: a walk over headers goes forward only, and starts too early rather than too late.
        number = bisect_right(self.offsets, relative_offset)
        return self.positions[number - 1] if number else 0

    def encode(self) -> bytes:
        """Return the file's content."""
        return b"".join(map(OFFSET_ENTRY.pack, self.offsets, self.positions))

    @classmethod
    def decode(cls, data: bytes, log_bytes: int) -> "OffsetIndex | None":
        """Decode a file, or return None if it cannot be an index of a log of `log_bytes`."""
        columns = _columns(data, OFFSET_ENTRY)
        # An entry beyond the log would send a reader to a place where no batch begins.
        if columns is None or (columns[1] and columns[1][-1] >= log_bytes):
            return None
        return cls(*columns)


@dataclass(slots=True)
class TimeIndex:
    """Largest timestamps so far and the relative last offsets of their batches."""

    timestamps: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)

    def add(self, timestamp: int, relative_offset: int) -> None:
        """Append an entry unless the timestamp is missing (-1), or not larger than the last one."""
        # Timestamps are the producers' and may fall; the largest so far never does, which is what makes it
        # searchable.
        if timestamp > (self.timestamps[-1] if self.timestamps else -1):
            self.timestamps.append(timestamp)
            self.offsets.append(relative_offset)

    def lookup(self, timestamp: int) -> int:
        """Return a relative offset up to which no batch is as late as `timestamp`; 0 if none is known."""
        place = bisect_left(self.timestamps, timestamp)
        return self.offsets[place - 1] if place else 0

    def encode(self) -> bytes:
        """Return the file's content."""
        return b"".join(map(TIME_ENTRY.pack, self.timestamps, self.offsets))

    @classmethod
    def decode(cls, data: bytes) -> "TimeIndex | None":
        """Decode a file, or return None if its shape is not that of a time index."""
        columns = _columns(data, TIME_ENTRY)
        return None if columns is None else cls(*columns)


def could_be_index(data: bytes, suffix: str) -> bool:
    """Return whether a file with this suffix has the form of an index, of any log."""
    if suffix == INDEX_SUFFIX:
        return OffsetIndex.decode(data, 1 << 63) is not None
    return TimeIndex.decode(data) is not None


def _columns(data: bytes, entry: Struct) -> tuple[list[int], list[int]] | None:
    """Read the two columns of a file; return None if it has a partial entry or a column does not increase.

    Kafka's own preallocated indexes end in zeros; those are dropped.
    """
    if len(data) % entry.size:
        return None
    rows = list(entry.iter_unpack(data))
    end = next((number for number, row in enumerate(rows) if number and row == (0, 0)), len(rows))
    first, second = [row[0] for row in rows[:end]], [row[1] for row in rows[:end]]
    return (first, second) if _increasing(first) and _increasing(second) else None


def _increasing(numbers: list[int]) -> bool:
    return (not numbers or numbers[0] >= 0) and all(a < b for a, b in pairwise(numbers))
