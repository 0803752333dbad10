"""One segment: a file of batches from `base_offset` on, with its two sparse indexes.

    00000000000000000120.log        batches, back to back
    00000000000000000120.index      every `index_interval_bytes`, where a batch lies
    00000000000000000120.timeindex

Invariants: `size` bytes of the file are whole batches, contiguous from `base_offset` to `next_offset`; the
indexes speak of nothing beyond them. A method that raises `OSError` leaves the object unusable: its owner
goes offline.

Not here: which segment to use, durability order between files (`partition.py`), checking CRCs
(`recovery.py`).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from struct import Struct

from replog.store.batch import HEADER_BYTES, LENGTH_START, BatchHeader, Buffer, peek_header
from replog.store.errors import CorruptBatchError
from replog.store.fs import File, Fs, read_file
from replog.store.index import OffsetIndex, TimeIndex

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
MAX_RELATIVE = (1 << 31) - 1
SCAN_BYTES = 1 << 20
NO_TIMESTAMP = -1

EXTENT = Struct(">qi11xi")  # base offset, length, last offset delta: all that walking needs
EXTENT_BYTES = EXTENT.size

Check = Callable[[Buffer, BatchHeader, int], None]


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    """Return the path of one of a segment's files."""
    return f"{directory}/{base_offset:020d}{suffix}"


def unchecked(data: Buffer, header: BatchHeader, start: int) -> None:
    """Accept any content: the check of a scan that only wants headers."""


def scan_batches(file: File, size: int, position: int, check: Check) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch from `position` on, each passed through `check` first.

    Reads in large pieces. Raises `CorruptBatchError` at the first bytes that are no batch within `size`.
    """
    while position < size:
        piece = file.pread(SCAN_BYTES, position)
        piece_end = min(len(piece), size - position)
        start = 0
        while piece_end - start >= HEADER_BYTES:
            header = peek_header(piece, start, start + size - position)
            end = start + LENGTH_START + header.length
            if end > piece_end:
                break
            check(piece, header, start)
            yield position, header
            position += end - start
            start = end
        if start == 0:
            header, piece = _read_large(file, size, position)
            check(piece, header, 0)
            yield position, header
            position += header.size_bytes


def _read_large(file: File, size: int, position: int) -> tuple[BatchHeader, bytes]:
    """Read one batch that does not fit a piece (or the torn tail, which raises)."""
    header = peek_header(file.pread(HEADER_BYTES, position), 0, size - position)
    piece = file.pread(header.size_bytes, position)
    if len(piece) < header.size_bytes:
        raise CorruptBatchError("the file ends inside a batch")
    return header, piece


class Segment:
    """An open segment. `max_timestamp` is -1 while it is empty."""

    __slots__ = (
        "_directory", "_file", "_fs", "_index_interval", "_since_index", "_tail",
        "base_offset", "index", "last_epoch", "max_timestamp", "next_offset", "size", "time_index",
    )  # fmt: skip

    def __init__(self, fs: Fs, directory: str, base_offset: int, file: File, index_interval: int) -> None:
        self._fs = fs
        self._directory = directory
        self._file = file
        self._index_interval = index_interval
        self.base_offset = base_offset
        self.reset()

    def reset(self) -> None:
        """Forget the content (not the file's): the state of an empty segment."""
        self.size = 0
        self.next_offset = self.base_offset
        self.max_timestamp = NO_TIMESTAMP
        self.last_epoch = -1
        self.index = OffsetIndex()
        self.time_index = TimeIndex()
        self._since_index = 0
        self._tail = (self.base_offset, 0)

    @classmethod
    def create(cls, fs: Fs, directory: str, base_offset: int, index_interval: int) -> "Segment":
        """Create an empty segment, replacing whatever has its name."""
        file = fs.create(segment_path(directory, base_offset, LOG_SUFFIX))
        return cls(fs, directory, base_offset, file, index_interval)

    @classmethod
    def open(cls, fs: Fs, directory: str, base_offset: int, index_interval: int) -> "Segment":
        """Open an existing file; the caller loads its content (`load`, or a scan into `note`)."""
        file = fs.open(segment_path(directory, base_offset, LOG_SUFFIX))
        return cls(fs, directory, base_offset, file, index_interval)

    @property
    def file(self) -> File:
        """The log file, for scans."""
        return self._file

    def fits(self, header: BatchHeader, segment_bytes: int) -> bool:
        """Tell whether the batch may go here: size, and offsets that an index entry can hold."""
        if not self.size:
            return True
        if self.size + header.size_bytes > segment_bytes:
            return False
        return header.last_offset - self.base_offset <= MAX_RELATIVE

    def append(self, header: BatchHeader, *parts: Buffer) -> None:
        """Write one stamped batch, whole or in parts, at the end."""
        self._file.append(*parts)
        self.note(self.size, header)

    def note(self, position: int, header: BatchHeader) -> None:
        """Account for the batch at `position`, the end so far: written just now, or met by a scan."""
        relative = header.last_offset - self.base_offset
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp = header.max_timestamp
        if self._since_index > self._index_interval:
            self.index.add(relative, position)
            self.time_index.add(self.max_timestamp, relative)
            self._since_index = 0
        self._since_index += header.size_bytes
        self.size = position + header.size_bytes
        self.next_offset = header.next_offset
        self.last_epoch = header.leader_epoch

    def end_at(self, offset: int) -> None:
        """Declare where a damaged segment ends; reading what is missing raises `CorruptBatchError`."""
        self.size = self._file.size()
        self.next_offset = offset

    def load(self) -> bool:
        """Take over a sealed segment without reading all of it; False if its files do not fit together.

        The last index entry is checked against the log, and the batches behind it are walked to the end.
        """
        indexes = self._load_indexes()
        if indexes is None:
            return False
        self.index, self.time_index = indexes
        if self.time_index.timestamps:
            self.max_timestamp = self.time_index.timestamps[-1]
        try:
            return self._walk_tail()
        except CorruptBatchError:
            return False

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex] | None:
        try:
            index_bytes = read_file(self._fs, self._path(INDEX_SUFFIX))
            time_bytes = read_file(self._fs, self._path(TIME_INDEX_SUFFIX))
        except FileNotFoundError:
            return None
        index = OffsetIndex.decode(index_bytes, self._file.size())
        time_index = TimeIndex.decode(time_bytes)
        return None if index is None or time_index is None else (index, time_index)

    def _walk_tail(self) -> bool:
        """Walk from the last index entry's batch to the end of the file, setting size and next offset."""
        positions = self.index.positions
        start = positions[-1] if positions else 0
        for position, header in scan_batches(self._file, self._file.size(), start, unchecked):
            if position == start and positions:
                follows = header.last_offset - self.base_offset == self.index.offsets[-1]
            else:
                follows = header.base_offset == self.next_offset
            if not follows:
                return False
            self.size, self.next_offset = position + header.size_bytes, header.next_offset
            self.last_epoch = header.leader_epoch
            self.max_timestamp = max(self.max_timestamp, header.max_timestamp)
            self._since_index += header.size_bytes
        return (
            not self.time_index.offsets or self.time_index.offsets[-1] < self.next_offset - self.base_offset
        )

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches from the one holding `offset` up to `max_bytes`, but at least one.

        No batch that reaches `end_offset` is returned. Raises `CorruptBatchError` if the file changed under
        us.
        """
        position = self.locate(offset)
        data = self._file.pread(min(max_bytes, self.size - position), position)
        end, next_offset = _whole_batches(data, end_offset)
        if end == 0:
            _, size, last_offset = self._extent(position)
            if last_offset >= end_offset:
                return b""
            data = self._file.pread(size, position)
            end, next_offset = size, last_offset + 1
        self._tail = (next_offset, position + end)
        return data if end == len(data) else data[:end]

    def locate(self, offset: int) -> int:
        """Return the position of the batch that holds `offset`, which must lie in the segment."""
        position = self.index.lookup(offset - self.base_offset)
        if self._tail[0] <= offset:
            position = max(position, self._tail[1])
        while True:
            base, size, last_offset = self._extent(position)
            if not self.base_offset <= base <= offset:
                raise CorruptBatchError(
                    f"offset {offset} is not where segment {self.base_offset} should have it"
                )
            if offset <= last_offset:
                return position
            position += size

    def boundary(self, offset: int) -> tuple[int, int]:
        """Return (position, base offset) of the batch that holds `offset`: where a truncation cuts."""
        position = self.locate(offset)
        return position, self._extent(position)[0]

    def _extent(self, position: int) -> tuple[int, int, int]:
        """Return (base offset, bytes, last offset) of the batch at `position`."""
        data = self._file.pread(EXTENT_BYTES, position)
        if len(data) < EXTENT_BYTES:
            raise CorruptBatchError(f"segment {self.base_offset} is shorter than it was")
        base, length, delta = EXTENT.unpack(data)
        is_possible = length >= HEADER_BYTES - LENGTH_START and delta >= 0
        if not is_possible or position + LENGTH_START + length > self.size:
            raise CorruptBatchError(f"no batch at position {position} of segment {self.base_offset}")
        return base, LENGTH_START + length, base + delta

    def headers(self, offset: int) -> Iterator[BatchHeader]:
        """Walk the headers from the batch holding `offset`."""
        for _, header in scan_batches(self._file, self.size, self.locate(offset), unchecked):
            yield header

    def batch_at_time(self, timestamp: int) -> BatchHeader | None:
        """Return the first batch whose largest timestamp reaches `timestamp`, or None."""
        if self.max_timestamp < timestamp or not self.size:
            return None
        start = self.base_offset + self.time_index.lookup(timestamp)
        if start >= self.next_offset:
            return None
        return next((header for header in self.headers(start) if header.max_timestamp >= timestamp), None)

    def truncate(self, position: int) -> None:
        """Cut the file at `position`, a batch boundary, durably, and account for what is left."""
        self._file.truncate(position)
        self._file.fsync()
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            self._unlink(suffix)
        self.rescan(position)

    def rescan(self, size: int) -> None:
        """Rebuild offsets, timestamps and indexes from the headers of the first `size` bytes."""
        self.reset()
        for position, header in scan_batches(self._file, size, 0, unchecked):
            if header.base_offset != self.next_offset:
                raise CorruptBatchError(f"offset {header.base_offset} follows {self.next_offset}")
            self.note(position, header)

    def seal(self) -> None:
        """Write the index files: the segment has had its last batch, for now."""
        if self.size:
            self.time_index.add(self.max_timestamp, self.next_offset - 1 - self.base_offset)
        for suffix, data in (
            (INDEX_SUFFIX, self.index.encode()),
            (TIME_INDEX_SUFFIX, self.time_index.encode()),
        ):
            file = self._fs.create(self._path(suffix))
            try:
                file.append(data)
                file.fsync()
            finally:
                file.close()

    def flush(self) -> None:
        """Make the log file's content durable (its name is the owner's business)."""
        self._file.fsync()

    def close(self) -> None:
        """Release the log file."""
        self._file.close()

    def delete(self) -> None:
        """Close and remove the segment's files, the indexes first."""
        self._file.close()
        for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, LOG_SUFFIX):
            self._unlink(suffix)

    def _path(self, suffix: str) -> str:
        return segment_path(self._directory, self.base_offset, suffix)

    def _unlink(self, suffix: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.unlink(self._path(suffix))


def _whole_batches(data: bytes, end_offset: int) -> tuple[int, int]:
    """Return how many leading bytes are whole batches below `end_offset`, and the offset after them."""
    end = next_offset = 0
    while end + EXTENT_BYTES <= len(data):
        base, length, delta = EXTENT.unpack_from(data, end)
        after = end + LENGTH_START + length
        if after > len(data) or base + delta >= end_offset or length < 0:
            break
        end, next_offset = after, base + delta + 1
    return end, next_offset
