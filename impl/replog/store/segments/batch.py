"""Record batches, format v2: peek at the header, check, stamp. Never re-encode.

    offset  field                  in the CRC
    0       base offset      i64   no    stamped by the leader
    8       length           i32   no    bytes after this field
    12      leader epoch     i32   no    stamped by the leader
    16      magic = 2        i8    no
    17      CRC-32C          u32   no    of bytes 21..end
    21      attributes       i16   yes   bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control
    23      last offset delta, base and max timestamp, producer id, epoch and base sequence, record count
    61      records

The two stamped fields are outside the CRC, so a leader gives a batch its place without changing what the
producer signed, and followers store it byte for byte (Kafka protocol guide, "Record Batch"; KIP-98). The part
that the CRC does not cover is covered by position: a batch must start at the offset where the previous one
ended.

Not here: the records inside (`records.py`), files (`segment.py`).
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from replog.store.files.errors import BatchTooLargeError, CorruptBatchError, InvalidRecordError

Buffer = bytes | bytearray | memoryview

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
STAMP = Struct(">qii")
STAMP_BYTES = STAMP.size
CRC_START = 21
LENGTH_START = 12
LEAST_LENGTH = HEADER_BYTES - LENGTH_START
MAGIC = 2
MAX_OFFSET = (1 << 63) - 1


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, in wire order (a tuple: recovery creates one per batch)."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole batch."""
        return LENGTH_START + self.length

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1


def peek_header(data: Buffer, start: int = 0, end: int | None = None) -> BatchHeader:
    """Read the header at `start` and check that its shape is possible and that the batch ends by `end`.

    Raises `CorruptBatchError`. The CRC is not checked here (`check_crc`).
    """
    available = (len(data) if end is None else end) - start
    if available < HEADER_BYTES:
        raise CorruptBatchError(f"{available} bytes are not a batch header ({HEADER_BYTES} bytes)")
    # NamedTuple's own constructor copies field by field; a recovery makes one header for each batch.
    header = tuple.__new__(BatchHeader, HEADER.unpack_from(data, start))
    fault = shape_fault(header)
    if fault is not None:
        raise CorruptBatchError(fault)
    if header.length + LENGTH_START > available:
        raise CorruptBatchError(f"a batch of {header.size_bytes} bytes in {available} bytes")
    return header


def shape_fault(header: BatchHeader) -> str | None:
    """Return the reason why a header is invalid, or None."""
    base, length, _, magic, _, _, delta = header[:7]
    # One comparison for the good case, which is nearly all of them; the reasons are worked out only on
    # failure.
    least = min(base, delta, header.record_count)
    if magic == MAGIC and length >= LEAST_LENGTH and least >= 0 and base < MAX_OFFSET - delta:
        return None
    if magic != MAGIC:
        return f"batch format {magic} is not supported (only {MAGIC})"
    if length < LEAST_LENGTH:
        return f"batch length {length} is below the header's own"
    if least < 0:
        return "negative offset, delta or count in the batch header"
    return "batch offsets overflow"


def checksum(data: Buffer) -> int:
    """Return the CRC-32C of bytes."""
    return int(crc32c(data))


def check_crc(data: Buffer, header: BatchHeader, start: int = 0) -> None:
    """Raise `CorruptBatchError` unless the batch at `start` contains the CRC-32C of its own bytes."""
    # A slice of bytes would copy the batch only to compute its checksum.
    view = data if type(data) is memoryview else memoryview(data)
    actual = checksum(view[start + CRC_START : start + LENGTH_START + header.length])
    if actual != header.crc:
        raise CorruptBatchError(f"CRC {header.crc:#010x} stored, {actual:#010x} computed")


def iterate_headers(data: Buffer, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of the batches that fill `data` exactly; raises `CorruptBatchError`."""
    while start < len(data):
        header = peek_header(data, start)
        yield start, header
        start += LENGTH_START + header.length


def check_produced(batch: Buffer) -> BatchHeader:
    """Check one batch with a broker's checks of a producer's: one batch, base offset 0, count and CRC right.

    Raises `InvalidRecordError` for a broken rule and `CorruptBatchError` for broken bytes.
    """
    header = peek_header_of_client(batch)
    if header.length + LENGTH_START != len(batch):
        raise InvalidRecordError("a produce request holds exactly one batch per partition")
    # A broker stamps the offset outside the CRC. Any other value is a batch copied from a log.
    if header.base_offset != 0:
        raise InvalidRecordError(f"the base offset of a produced batch is 0, not {header.base_offset}")
    # A compacted batch may have fewer records than offsets, a produced one may not: its offsets are counted
    # from here on without opening it.
    if header.record_count == 0 or header.record_count != header.last_offset_delta + 1:
        raise InvalidRecordError(f"{header.record_count} records for {header.last_offset_delta + 1} offsets")
    # Last, because it is the only check whose cost grows with the batch.
    check_crc(batch, header)
    return header


def check_replicated(batches: Buffer, start: int, limit: int) -> list[tuple[BatchHeader, memoryview]]:
    """Check stamped batches that must start at offset `start`; return each with its header.

    Raises `InvalidRecordError` for a hole or a falling epoch, `BatchTooLargeError` for a batch of more than
    `limit` bytes, `CorruptBatchError` for broken bytes.
    """
    view = memoryview(batches)
    checked: list[tuple[BatchHeader, memoryview]] = []
    expected, epoch = start, 0
    for position, header in iterate_headers(batches):
        if header.base_offset != expected:
            raise InvalidRecordError(f"a batch at offset {header.base_offset} where {expected} comes next")
        if header.leader_epoch < epoch:
            raise InvalidRecordError(f"epoch {header.leader_epoch} follows epoch {epoch}")
        check_size(header.size_bytes, limit)
        check_crc(batches, header, position)
        # Checked as a whole before the first is written: half a reply in the log would be a LEO that no
        # leader sent.
        checked.append((header, view[position : position + header.size_bytes]))
        expected, epoch = header.next_offset, header.leader_epoch
    return checked


def check_size(size: int, limit: int) -> None:
    """Raise `BatchTooLargeError` for a batch of more than `limit` bytes."""
    if size > limit:
        raise BatchTooLargeError(f"a batch of {size} bytes is larger than {limit}")


def peek_header_of_client(batch: Buffer) -> BatchHeader:
    """Peek, distinguishing an older message format (a violated rule) from noise (corrupt bytes)."""
    if len(batch) > LENGTH_START + 4 and batch[LENGTH_START + 4] in (0, 1):
        raise InvalidRecordError(
            f"message format {batch[LENGTH_START + 4]} is too old: only v2 batches are accepted"
        )
    return peek_header(batch)


def stamped_parts(batch: Buffer, base_offset: int, leader_epoch: int) -> tuple[bytes, memoryview]:
    """Return the parts of the stamped batch: a new beginning, and the producer's own bytes, uncopied."""
    prefix = STAMP.pack(base_offset, len(batch) - LENGTH_START, leader_epoch)
    return prefix, memoryview(batch)[STAMP_BYTES:]
