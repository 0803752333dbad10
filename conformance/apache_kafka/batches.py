"""Batches of records: written for clients, read from segments, responses and the metadata log.

Format 2, since 0.11: a batch has 61 bytes before its records, with the leader epoch in which it was written.
Format 1, of 0.10: each message is alone, without an epoch; a compressed one counts as one record, at the
offset of the last that it has.  Compressed records are counted, and not read.

    base offset 8 | length 4 | epoch 4 | format 1 | CRC-32C 4 | attributes 2 | last delta 4 | ...
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from mmap import mmap

import crc32c
from msgspec import Struct

from replog.store.segments.records import encode_varint

_HEAD = struct.Struct(">qiibIhiqqqhii")
_OLD = struct.Struct(">qiIbbq")
_PREFIX = 12  # base offset and length, which the length does not count
_CRC_FROM = 21
_FORMAT_AT = 16
_CODEC, _CONTROL = 7, 32
NO_PRODUCER = -1


class Producer(Struct, frozen=True):
    """What makes a batch recognizable when it is sent again (A2)."""

    id: int = NO_PRODUCER
    epoch: int = -1
    sequence: int = -1


class Record(Struct, frozen=True):
    """A record: its offset, its key and its value."""

    offset: int
    key: bytes | None
    value: bytes | None


class Batch(Struct, frozen=True):
    """A batch as it lies in a log, at `position`."""

    position: int
    data: bytes
    base: int
    last: int
    epoch: int | None  # None in format 1
    format: int
    control: bool
    codec: int
    count: int
    producer: Producer
    valid: bool  # its CRC is right

    def records(self) -> Iterator[Record]:
        """The records of an uncompressed batch."""
        if self.codec:
            return
        if self.format < 2:
            yield _old_record(self)
            return
        at = _HEAD.size
        for _ in range(self.count):
            size, at = _varint(self.data, at)
            end = at + size
            _, at = _varint(self.data, at + 1)
            delta, at = _varint(self.data, at)
            key, at = _sized(self.data, at)
            value, at = _sized(self.data, at)
            yield Record(self.base + delta, key, value)
            at = end


def parse_batches(data: bytes | mmap) -> Iterator[Batch]:
    """The batches at the beginning of `data`, up to the first that is not complete."""
    at = 0
    while at + _FORMAT_AT < len(data):
        size = _PREFIX + int.from_bytes(data[at + 8 : at + _PREFIX])
        if size <= _FORMAT_AT or at + size > len(data):
            return
        piece = data[at : at + size]
        if piece[_FORMAT_AT] > 2 or (piece[_FORMAT_AT] == 2 and size < _HEAD.size):
            return
        yield _batch(at, piece) if piece[_FORMAT_AT] == 2 else _old_message(at, piece)
        at += size


def _batch(at: int, data: bytes) -> Batch:
    base, _, epoch, form, crc, attributes, delta, _, _, *producer, count = _HEAD.unpack_from(data)
    valid = crc32c.crc32c(data[_CRC_FROM:]) == crc
    control, codec = bool(attributes & _CONTROL), attributes & _CODEC
    return Batch(at, data, base, base + delta, epoch, form, control, codec, count, Producer(*producer), valid)


def _old_message(at: int, data: bytes) -> Batch:
    offset, _, crc, form, attributes, *_ = _OLD.unpack_from(data)
    valid = zlib.crc32(data[_FORMAT_AT:]) == crc
    return Batch(at, data, offset, offset, None, form, False, attributes & _CODEC, 1, Producer(), valid)


def _old_record(batch: Batch) -> Record:
    at = _OLD.size - (0 if batch.format else 8)  # format 0 has no timestamp
    parts: list[bytes | None] = []
    for _ in range(2):
        (size,) = struct.unpack_from(">i", batch.data, at)
        at += 4
        parts.append(None if size < 0 else batch.data[at : at + size])
        at += max(size, 0)
    return Record(batch.base, parts[0], parts[1])


def batch_of(values: Sequence[bytes], producer: Producer, created_ms: int) -> bytes:
    """A batch of format 2, as a producer sends it."""
    body = b"".join(_record(delta, value) for delta, value in enumerate(values))
    last = len(values) - 1
    tail = struct.pack(">hiqqqhii", 0, last, created_ms, created_ms, *_numbers(producer), len(values)) + body
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc32c.crc32c(tail)) + tail


def old_message_of(value: bytes, created_ms: int) -> bytes:
    """A message of format 1, as a producer of 0.10 sends it."""
    tail = struct.pack(">bbqii", 1, 0, created_ms, -1, len(value)) + value
    return struct.pack(">qiI", 0, len(tail) + 4, zlib.crc32(tail)) + tail


def _numbers(producer: Producer) -> tuple[int, int, int]:
    return producer.id, producer.epoch, producer.sequence


def _record(delta: int, value: bytes) -> bytes:
    body = b"\x00\x00" + b"".join(map(encode_varint, (delta, -1, len(value)))) + value + b"\x00"
    return encode_varint(len(body)) + body


def read_uvarint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_uvarint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _sized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)
