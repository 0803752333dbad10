"""One segment: a file of batches from `base_offset` on, with its two sparse indexes.

    00000000000000000120.log        batches, back to back
    00000000000000000120.index      every `index_interval_bytes`, where a batch lies
    00000000000000000120.timeindex

Invariants: `contents` are whole batches, contiguous from `base_offset` to `next_offset`; the indexes have no
entries beyond them. A segment that a start adopted without reading it is read, and compared with its
mark, before the first use of any of its bytes; one that differs is never used. A method that raises `OSError`
leaves the object unusable: its owner goes offline.

Not here: the choice of a segment, durability order between files (`partition.py`), a start's handling of each
(`survey.py`).
"""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from struct import Struct

from crc32c import crc32c

from replog.store.checkpoints.manifest import Mark, Removal, Sums
from replog.store.files.errors import CorruptBatchError
from replog.store.files.fs import File, Fs, read_file
from replog.store.segments.batch import (
    HEADER_BYTES,
    LENGTH_START,
    BatchHeader,
    Buffer,
    check_crc,
    peek_header,
)
from replog.store.segments.contents import Contents, has_chain
from replog.store.segments.index import INDEX_SUFFIX, TIME_INDEX_SUFFIX, OffsetIndex, TimeIndex

LOG_SUFFIX = ".log"
INDEX_SUFFIXES = INDEX_SUFFIX, TIME_INDEX_SUFFIX
REPAIR_HINT = "stop the broker, and see `replog repair`"
MAX_RELATIVE = (1 << 31) - 1
SCAN_BYTES = 1 << 20

EXTENT = Struct(">qi11xi")  # base offset, length, last offset delta: all that walking needs
EXTENT_BYTES = EXTENT.size

Check = Callable[[Buffer, BatchHeader, int], None]


def segment_name(base_offset: int, suffix: str = LOG_SUFFIX) -> str:
    """Return the name of one of a segment's files."""
    return f"{base_offset:020d}{suffix}"


def parse_base(name: str, suffix: str = LOG_SUFFIX) -> int | None:
    """Return the base offset in a segment file's name, None if it does not have the form of one."""
    # Exactly the form that `segment_name` gives: another spelling of the same number would be a second file
    # for one segment.
    stem = name.removesuffix(suffix)
    is_number = len(stem) == 20 and stem.isascii() and stem.isdecimal()
    return int(stem) if is_number and int(stem) < 1 << 63 else None


def is_removed_file(fs: Fs, directory: str, removal: Removal) -> bool:
    """Return whether a file of this size is the one that was dropped."""
    with closing(fs.open(f"{directory}/{segment_name(removal.base_offset)}")) as file:
        return has_chain(file, removal.size, removal.chain)


def unchecked(data: Buffer, header: BatchHeader, start: int) -> None:
    """Accept any content: the check for a scan that needs only headers."""


def scan_batches(file: File, size: int, position: int, check: Check) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch from `position` on, each after a call of `check`.

    Reads in large pieces. Raises `CorruptBatchError` at the first bytes that are no batch within `size`.
    """
    while position < size:
        piece = memoryview(file.pread(SCAN_BYTES, position))
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
        # Not one whole batch in the piece: it is larger than a piece, or torn.
        if start == 0:
            header, batch = _read_large(file, size, position)
            check(batch, header, 0)
            yield position, header
            position += header.size_bytes


def _read_large(file: File, size: int, position: int) -> tuple[BatchHeader, bytes]:
    """Read one batch that does not fit a piece (or the torn tail, which raises)."""
    start = file.pread(HEADER_BYTES, position)
    header = peek_header(start, 0, size - position if len(start) == HEADER_BYTES else len(start))
    piece = file.pread(header.size_bytes, position)
    if len(piece) < header.size_bytes:
        raise CorruptBatchError("the file ends inside a batch")
    return header, piece


class Segment:
    """An open segment, empty until it is filled by appending, by a scan, or by `take_over`."""

    __slots__ = (
        "_directory", "_fault", "_file", "_fs", "_index_interval", "_is_checked", "_sums", "_tail",
        "base_offset", "contents", "mark",
    )  # fmt: skip

    def __init__(self, fs: Fs, directory: str, base_offset: int, file: File, index_interval: int) -> None:
        self._fs = fs
        self._directory = directory
        self._file = file
        self._index_interval = index_interval
        self._is_checked = True
        self._fault = ""
        self._sums: Sums | None = None
        self._tail = (base_offset, 0)
        self.base_offset = base_offset
        self.contents = Contents(base_offset, index_interval)
        self.mark: Mark | None = None

    @classmethod
    def create(cls, fs: Fs, directory: str, base_offset: int, index_interval: int) -> "Segment":
        """Create an empty segment, replacing any file of its name."""
        file = fs.create(f"{directory}/{segment_name(base_offset)}")
        return cls(fs, directory, base_offset, file, index_interval)

    @classmethod
    def open(cls, fs: Fs, directory: str, base_offset: int, index_interval: int) -> "Segment":
        """Open an existing file; the caller fills in its contents."""
        file = fs.open(f"{directory}/{segment_name(base_offset)}")
        return cls(fs, directory, base_offset, file, index_interval)

    @property
    def file(self) -> File:
        """The log file, for scans."""
        return self._file

    @property
    def name(self) -> str:
        """The log file's name."""
        return segment_name(self.base_offset)

    @property
    def size(self) -> int:
        """Bytes of the file that are whole batches."""
        return self.contents.size

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""
        return self.contents.next_offset

    @property
    def is_sealed(self) -> bool:
        """Whether the index files have been written, and no batch since then."""
        return self._sums is not None

    def fits(self, header: BatchHeader, segment_bytes: int) -> bool:
        """Return whether the batch fits here, by size and by the offsets that an index entry can hold."""
        size = self.contents.size
        if not size:
            return True
        if size + header.size_bytes > segment_bytes:
            return False
        return header.last_offset - self.base_offset <= MAX_RELATIVE

    def append(self, header: BatchHeader, *parts: Buffer) -> None:
        """Write one stamped batch, whole or in parts, at the end of a verified segment."""
        assert self._is_checked, "nothing follows bytes that were not read"
        assert header.base_offset == self.contents.next_offset, "a segment has no holes"
        self._file.append(*parts)
        self.contents.note(self.contents.size, header)
        self._sums = None

    def take_over(self, mark: Mark) -> bool:
        """Adopt the segment of a manifest, unread until first use; False unless the index files fit it."""
        indexes = None if mark.sums is None else self._load_indexes(mark.sums)
        if indexes is None:
            return False
        self.contents.take_over(mark, *indexes)
        self.mark, self._sums, self._is_checked = mark, mark.sums, False
        return True

    def _load_indexes(self, sums: Sums) -> tuple[OffsetIndex, TimeIndex] | None:
        try:
            data = [read_file(self._fs, self._path(suffix)) for suffix in INDEX_SUFFIXES]
        except FileNotFoundError:
            return None
        if tuple(map(crc32c, data)) != sums:
            return None
        index, time_index = OffsetIndex.decode(data[0], self._file.size()), TimeIndex.decode(data[1])
        return None if index is None or time_index is None else (index, time_index)

    def verify(self, check: Check = check_crc) -> None:
        """Read all of an adopted segment, once, before anything of it is used; `check` sees each batch.

        Raises `CorruptBatchError`, now and at every later use, unless it is unchanged.
        """
        if self._is_checked:
            return
        if not self._fault:
            self._fault = self._compare(check)
        if self._fault:
            raise CorruptBatchError(f"{self._directory}/{self.name}: {self._fault} ({REPAIR_HINT})")
        self._is_checked = True

    def _compare(self, check: Check) -> str:
        """Scan the batches; return how they differ from the expected contents, if they do."""
        actual = Contents(self.base_offset, self._index_interval)
        try:
            self.scan(actual, self.contents.size, check)
        except CorruptBatchError as error:
            return f"damaged at byte {actual.size}: {error}"
        if (actual.next_offset, actual.chain) != (self.contents.next_offset, self.contents.chain):
            return "its batches are not those written, although their CRCs are correct"
        return ""

    def scan(self, into: Contents, size: int, check: Check) -> None:
        """Add the batches from the end of `into` to byte `size`; a corrupt one raises `CorruptBatchError`."""
        for position, header in scan_batches(self._file, size, into.size, check):
            # The CRC does not cover the base offset. A whole batch of another place, or of another log, is
            # detected here.
            if header.base_offset != into.next_offset:
                raise CorruptBatchError(f"a batch of offset {header.base_offset} follows {into.next_offset}")
            into.note(position, header)

    def synced_mark(self) -> Mark:
        """Return the mark of everything present, for the caller who has synced it, and store it as `mark`."""
        contents = self.contents
        self.mark = Mark(self.base_offset, contents.size, contents.next_offset, contents.chain, self._sums)
        return self.mark

    def read(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches from the one that contains `offset` up to `max_bytes`, but at least one.

        No batch that reaches `end_offset` is returned. Raises `CorruptBatchError` if the file changed under
        us.
        """
        position = self.locate(offset)
        # One read for the usual case: the headers are walked in memory, without knowing in advance where the
        # limit falls between batches.
        data = self._file.pread(max(min(max_bytes, self.size - position), 0), position)
        end, next_offset = _whole_batches(data, end_offset)
        if end == 0:
            _, size, last_offset = self._extent(position)
            data = self._file.pread(size, position)
            if last_offset >= end_offset:
                # Nothing to return, because the batch reaches `end_offset`, unless its header lies: damage
                # must not look like the end of the log.
                check_crc(data, peek_header(data))
                return b""
            end, next_offset = size, last_offset + 1
        self._tail = (next_offset, position + end)
        return data if end == len(data) else data[:end]

    def locate(self, offset: int) -> int:
        """Return the position of the batch that contains `offset`, which must lie in the segment."""
        self.verify()
        position = self.contents.index.lookup(offset - self.base_offset)
        if self._tail[0] <= offset:
            position = max(position, self._tail[1])
        while True:
            base, size, last_offset = self._extent(position)
            # The index is a hint: a wrong one must end here and not in records of another offset.
            if not self.base_offset <= base <= offset:
                raise CorruptBatchError(
                    f"offset {offset} is not where segment {self.base_offset} should have it"
                )
            if offset <= last_offset:
                return position
            position += size

    def boundary(self, offset: int) -> tuple[int, int]:
        """Return (position, base offset) of the batch that contains `offset`, where a truncation cuts."""
        position = self.locate(offset)
        return position, self._extent(position)[0]

    def _extent(self, position: int) -> tuple[int, int, int]:
        """Return (base offset, bytes, last offset) of the batch at `position`."""
        data = self._file.pread(EXTENT_BYTES, position)
        if len(data) < EXTENT_BYTES:
            raise CorruptBatchError(f"segment {self.base_offset} is shorter than it was")
        base, length, delta = EXTENT.unpack(data)
        is_possible = length >= HEADER_BYTES - LENGTH_START and delta >= 0
        # Against the segment's recorded end, so that a damaged length cannot lead a walk out of it.
        is_inside = position + LENGTH_START + length <= self.size and base + delta < self.next_offset
        if not is_possible or not is_inside:
            raise CorruptBatchError(f"no batch at position {position} of segment {self.base_offset}")
        return base, LENGTH_START + length, base + delta

    def headers(self, offset: int) -> Iterator[BatchHeader]:
        """Yield the headers from the batch that contains `offset`."""
        if not self._is_checked:
            # A start takes the headers of all segments, each of which it has to read whole for that.
            met: list[BatchHeader] = []

            def check(data: Buffer, header: BatchHeader, start: int) -> None:
                check_crc(data, header, start)
                met.append(header)

            self.verify(check)
            yield from (header for header in met if header.last_offset >= offset)
            return
        for _, header in scan_batches(self._file, self.size, self.locate(offset), unchecked):
            yield header

    def contents_before(self, position: int) -> Contents:
        """Return the segment's contents as if the file were cut at `position`, a batch boundary."""
        self.verify()
        contents = Contents(self.base_offset, self._index_interval)
        self.scan(contents, position, unchecked)
        return contents

    def truncate(self, contents: Contents) -> None:
        """Cut the file to these contents, durably, and delete its index files."""
        assert contents.size <= self.contents.size, "a cut does not grow a file"
        # Durable at once, not with the next flush: after a power loss the cut records would be back, and
        # count again.
        self._file.truncate(contents.size)
        self._file.fsync()
        # They point at batches that are cut. A missing index is rebuilt; a wrong one would first have
        # to be detected.
        for suffix in INDEX_SUFFIXES:
            self._unlink(suffix)
        self._sums = None
        self.contents = contents
        self._tail = (self.base_offset, 0)

    def seal(self) -> None:
        """Write the index files, unless they are up to date: the segment has had its last batch, for now."""
        if self.is_sealed:
            return
        contents = self.contents
        if contents.size:
            # The largest timestamp must be in the index: a start that adopts the segment reads it from
            # there.
            contents.time_index.add(contents.max_timestamp, contents.max_at)
        data = contents.index.encode(), contents.time_index.encode()
        for suffix, content in zip(INDEX_SUFFIXES, data, strict=True):
            with closing(self._fs.create(self._path(suffix))) as file:
                file.append(content)
                # Before the manifest has their checksums: it vouches only for data on the disk.
                file.fsync()
        self._sums = crc32c(data[0]), crc32c(data[1])

    def rewrite(self) -> None:
        """Rewrite everything after the mark, unchanged.

        For bytes of a process that no longer runs: if its sync failed, they are in the page cache, are
        not on the disk, and no sync brings them there.
        """
        position = 0 if self.mark is None else self.mark.size
        while position < self.size:
            piece = self._file.pread(min(SCAN_BYTES, self.size - position), position)
            self._file.pwrite(piece, position)
            position += len(piece)

    def flush(self) -> None:
        """Make the log file's content durable (its name is the owner's business)."""
        self._file.fsync()

    def close(self) -> None:
        """Release the log file."""
        self._file.close()

    def delete(self) -> None:
        """Close and remove the segment's files, the indexes first."""
        self._file.close()
        # The log last. A crash in between leaves a log without indexes, which is whole, and no index without
        # a log.
        for suffix in (*INDEX_SUFFIXES, LOG_SUFFIX):
            self._unlink(suffix)

    def _path(self, suffix: str) -> str:
        return f"{self._directory}/{segment_name(self.base_offset, suffix)}"

    def _unlink(self, suffix: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.unlink(self._path(suffix))


def _whole_batches(data: bytes, end_offset: int) -> tuple[int, int]:
    """Return the number of leading bytes that are whole batches below `end_offset`, and the next offset."""
    end = next_offset = 0
    while end + EXTENT_BYTES <= len(data):
        base, length, delta = EXTENT.unpack_from(data, end)
        after = end + LENGTH_START + length
        if after > len(data) or base + delta >= end_offset or length < 0 or (end and base != next_offset):
            break
        end, next_offset = after, base + delta + 1
    return end, next_offset
