"""The records inside a batch: encoded for producers and tests, decoded for consumers and `dump`.

    record = length, attributes i8, timestamp delta, offset delta, key, value, headers
    length, deltas and sizes are zigzag varints; a size of -1 is null

The broker's path never comes here (a batch is stored as it was sent), so this is written for clarity.
Codecs: none and gzip, the one in the standard library; a batch in snappy, lz4 or zstd is stored and served
like any other but its records cannot be decoded.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from crc32c import crc32c

from replog.store.files.errors import CorruptBatchError, InvalidRecordError
from replog.store.segments.batch import (
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_START,
    MAGIC,
    BatchHeader,
    Buffer,
    check_crc,
    peek_header,
)

CODEC_MASK = 0x07
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LOG_APPEND_TIME = 0x08
GZIP = 16 + zlib.MAX_WBITS
MAX_UNPACKED_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """One record; `offset` and `timestamp` (ms) are absolute."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = 0
    offset: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerFields:
    """The idempotent producer's fields: id, epoch, sequence of the batch's first record; -1 is none."""

    producer_id: int = -1
    epoch: int = -1
    base_sequence: int = -1


NO_PRODUCER = ProducerFields()


def encode_batch(
    records: Sequence[Record],
    producer: ProducerFields = NO_PRODUCER,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Encode records as one uncompressed batch whose offsets are `base_offset + 0, 1, ...`.

    The records' own `offset` is ignored. Raises `InvalidRecordError` without a record.
    """
    if not records:
        raise InvalidRecordError("a batch holds at least one record")
    base_timestamp = records[0].timestamp
    body = b"".join(encode_record(r, delta, base_timestamp) for delta, r in enumerate(records))
    header = BatchHeader(
        base_offset, HEADER_BYTES - LENGTH_START + len(body), leader_epoch, MAGIC, 0, 0, len(records) - 1,
        base_timestamp, max(r.timestamp for r in records), producer.producer_id, producer.epoch,
        producer.base_sequence, len(records),
    )  # fmt: skip
    batch = bytearray(HEADER.pack(*header) + body)
    batch[CRC_START - 4 : CRC_START] = crc32c(memoryview(batch)[CRC_START:]).to_bytes(4, "big")
    return bytes(batch)


def encode_record(record: Record, offset_delta: int, base_timestamp: int) -> bytes:
    """Encode one record with its length in front."""
    fields = b"".join(
        (
            b"\0",
            encode_varint(record.timestamp - base_timestamp),
            encode_varint(offset_delta),
            encode_sized(record.key),
            encode_sized(record.value),
            encode_varint(len(record.headers)),
            *(encode_sized(key.encode()) + encode_sized(value) for key, value in record.headers),
        )
    )
    return encode_varint(len(fields)) + fields


def encode_sized(data: bytes | None) -> bytes:
    """Encode nullable bytes after their size."""
    return b"\x01" if data is None else encode_varint(len(data)) + data


def encode_varint(number: int) -> bytes:
    """Zigzag, then seven bits a byte, least significant first: 0 -> 00, -1 -> 01, 1 -> 02, 64 -> 80 01."""
    return encode_unsigned((number << 1) ^ (number >> 63))


def encode_unsigned(number: int) -> bytes:
    """Seven bits a byte, least significant first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def decode_batch(batch: Buffer) -> tuple[Record, ...]:
    """Decode the records of one whole batch, after checking its CRC.

    Raises `CorruptBatchError` for bytes that do not decode, `InvalidRecordError` for a codec that cannot be
    read.
    """
    header = peek_header(batch)
    reader = _open(batch, header)
    log_append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
    records = tuple(_decode_record(reader, header, log_append_time) for _ in range(header.record_count))
    if reader.position != len(reader.data):
        raise CorruptBatchError(f"{len(reader.data) - reader.position} bytes after the last record")
    return records


def first_value(batch: Buffer, header: BatchHeader) -> bytes | None:
    """Decode the value of the first record of a whole batch, and nothing after it."""
    reader = _open(batch, header)
    # Length, attributes, timestamp, offset and key.
    reader.varint()
    reader.take(1)
    reader.varint()
    reader.varint()
    reader.sized()
    return reader.sized()


def _open(batch: Buffer, header: BatchHeader) -> "_Reader":
    """Return a cursor at the first record of a batch whose CRC is right."""
    check_crc(batch, header)
    body = bytes(batch[HEADER_BYTES : header.size_bytes])
    return _Reader(_decompress(body, header.attributes & CODEC_MASK))


def _decompress(body: bytes, codec: int) -> bytes:
    if codec == 0:
        return body
    if codec != 1:
        name = CODECS[codec] if codec < len(CODECS) else str(codec)
        raise InvalidRecordError(f"records compressed with {name} cannot be read here")
    unpacker = zlib.decompressobj(wbits=GZIP)
    try:
        # Bounded: a few kilobytes of gzip can expand to gigabytes.
        unpacked = unpacker.decompress(body, MAX_UNPACKED_BYTES)
    except zlib.error as error:
        raise CorruptBatchError(f"gzip: {error}") from error
    if unpacker.unconsumed_tail:
        raise InvalidRecordError(f"records of more than {MAX_UNPACKED_BYTES} bytes when unpacked")
    if not unpacker.eof:
        raise CorruptBatchError("gzip: the data ends too early")
    return unpacked


class _Reader:
    """A cursor over a batch's body that raises `CorruptBatchError` for every overrun."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def varint(self) -> int:
        shift = number = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)
            shift += 7
            if shift > 63:
                raise CorruptBatchError("varint of more than ten bytes")

    def take(self, size: int) -> bytes:
        end = self.position + size
        if size < 0 or end > len(self.data):
            raise CorruptBatchError(
                f"{size} bytes needed, {len(self.data) - self.position} left in the batch"
            )
        data = self.data[self.position : end]
        self.position = end
        return data

    def sized(self) -> bytes | None:
        size = self.varint()
        return None if size == -1 else self.take(size)


def _decode_record(reader: _Reader, header: BatchHeader, log_append_time: int | None) -> Record:
    end = reader.varint() + reader.position
    reader.take(1)
    timestamp = header.base_timestamp + reader.varint()
    offset = header.base_offset + reader.varint()
    key, value = reader.sized(), reader.sized()
    headers = tuple((_decode_text(reader.sized()), reader.sized()) for _ in range(_count(reader)))
    # The length is redundant, and the only check of a record's inner structure.
    if reader.position != end:
        raise CorruptBatchError("a record's length and its content differ")
    return Record(value, key, timestamp if log_append_time is None else log_append_time, offset, headers)


def _count(reader: _Reader) -> int:
    count = reader.varint()
    # Each header takes at least a byte, so a larger count is damage, found before a tuple of that size is
    # made.
    if not 0 <= count <= len(reader.data):
        raise CorruptBatchError(f"{count} headers in one record")
    return count


def _decode_text(data: bytes | None) -> str:
    if data is None:
        raise CorruptBatchError("a record header without a key")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise CorruptBatchError(f"record header key: {error}") from error
