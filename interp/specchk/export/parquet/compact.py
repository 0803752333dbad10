"""Thrift's compact protocol, as needed for Parquet metadata: writing, and the fields of a struct.

A value is its type and its bytes, so that larger ones are made of smaller ones.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum

Coded = tuple[int, bytes]  # of a type, and its bytes


class Kind(IntEnum):
    """Types of values."""

    TRUE = 1
    FALSE = 2
    I8 = 3
    I16 = 4
    I32 = 5
    I64 = 6
    DOUBLE = 7
    BINARY = 8
    LIST = 9
    SET = 10
    MAP = 11
    STRUCT = 12


def varint(number: int) -> bytes:
    """A non-negative number, seven bits per byte, the lowest first."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _signed(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def i16(number: int) -> Coded:
    """A 16-bit number."""
    return Kind.I16, _signed(number)


def i32(number: int) -> Coded:
    """A 32-bit number."""
    return Kind.I32, _signed(number)


def i64(number: int) -> Coded:
    """A 64-bit number."""
    return Kind.I64, _signed(number)


def binary(data: bytes) -> Coded:
    """Bytes, or a text in UTF-8."""
    return Kind.BINARY, varint(len(data)) + data


def listed(kind: Kind, items: Iterable[Coded]) -> Coded:
    """A list of values of one type."""
    every = [data for _, data in items]
    head = bytes([len(every) << 4 | kind]) if len(every) < 15 else bytes([0xF0 | kind]) + varint(len(every))
    return Kind.LIST, head + b"".join(every)


def struct(fields: Mapping[int, Coded]) -> Coded:
    """Fields by their numbers."""
    out, last = [], 0
    for number, (kind, data) in sorted(fields.items()):
        step = number - last
        out.append(bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _signed(number))
        out.append(data)
        last = number
    return Kind.STRUCT, b"".join(out) + b"\0"


def fields_of(data: bytes) -> dict[int, Coded]:
    """The fields of a struct at the start of the data, each in encoded form."""
    return {number: (kind, data[at:end]) for number, kind, at, end in _fields_at(data, 0)}


def _fields_at(data: bytes, at: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a struct at a position: the number of each, its type, where its value begins and ends."""
    number = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            number += step
        else:
            zigzag, at = _varint_at(data, at)
            number = zigzag >> 1 ^ -(zigzag & 1)
        end = _end_of(data, at, kind)
        yield number, kind, at, end
        at = end


def _varint_at(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and its end."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at


def _end_of(data: bytes, at: int, kind: int, *, is_item: bool = False) -> int:
    """The end of the value of a type that begins at a position."""
    match kind:
        case Kind.TRUE | Kind.FALSE:
            return at + is_item  # in a field, its type is the value
        case Kind.I8:
            return at + 1
        case Kind.I16 | Kind.I32 | Kind.I64:
            return _varint_at(data, at)[1]
        case Kind.DOUBLE:
            return at + 8
        case Kind.BINARY:
            size, at = _varint_at(data, at)
            return at + size
        case Kind.LIST | Kind.SET:
            count, item = data[at] >> 4, data[at] & 15
            at += 1
            if count == 15:
                count, at = _varint_at(data, at)
            for _ in range(count):
                at = _end_of(data, at, item, is_item=True)
            return at
        case Kind.STRUCT:
            for _, _, _, end in _fields_at(data, at):
                at = end
            return at + 1
    raise AssertionError(kind)
