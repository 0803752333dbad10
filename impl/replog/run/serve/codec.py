"""Kafka's messages as bytes: structs of fields, read and written by a table, never by trust.

    Struct("T", is_flexible=False, fields=(Field("name", "string"), Field("ids", "int32", is_array=True)))
    {"name": "t", "ids": (1, 2)}   <->   00 01 74  00 00 00 02  00 00 00 01  00 00 00 02

A message is a mapping from names to values; times are milliseconds, -1 where there is none.  What a mapping
to be written lacks has its default, and what a version lacks is left out, so that one mapping serves all
versions.

Reading is bounded by what has arrived: a count is compared with the bytes that are left before anything is
made of it, and all arrays of a message together have at most `MOST_ELEMENTS`, if the caller does not say
otherwise.  A frame of ten bytes can state four thousand million elements; kio 0.6.5's own reader reserves
memory for them and ends the process.

Not here: which structs there are (`layout`), headers and frames (`frames`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct as Packed
from types import MappingProxyType
from typing import Any

from replog.store.segments.records import encode_unsigned

MOST_ELEMENTS = 100_000
"""The elements of all arrays of a message, and its unknown tagged fields."""
LONGEST_VARINT = 5

Body = Mapping[str, Any]

NUMBERS = MappingProxyType(
    {
        "bool": Packed(">?"),
        "int8": Packed(">b"),
        "int16": Packed(">h"),
        "uint16": Packed(">H"),
        "int32": Packed(">i"),
        "int64": Packed(">q"),
        "float64": Packed(">d"),
        "error_code": Packed(">h"),
        "timedelta_i32": Packed(">i"),
        "timedelta_i64": Packed(">q"),
        "datetime_i64": Packed(">q"),
    }
)
INT16, INT32 = NUMBERS["int16"], NUMBERS["int32"]
UUID_BYTES = 16


class MalformedError(Exception):
    """Bytes that are not a message of the expected struct."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: a number, `string`, `bytes`, `records`, `uuid` or a struct, or an array of these.

    A field with a tag is written only where its value is not the default.
    """

    name: str
    kind: str | Struct
    is_array: bool = False
    is_nullable: bool = False
    tag: int = -1
    default: Any = 0


@dataclass(frozen=True, slots=True)
class Struct:
    """The fields of a message, or of a part of it, in their order on the wire."""

    name: str
    is_flexible: bool
    fields: tuple[Field, ...]


def read(layout: Struct, data: bytes, start: int = 0, most_elements: int = MOST_ELEMENTS) -> dict[str, Any]:
    """Read a message that fills `data` from `start` on; raises `MalformedError`."""
    reader = Reader(data, start, most_elements)
    body = reader.struct(layout)
    if reader.position != len(data):
        raise MalformedError(f"{len(data) - reader.position} bytes after the end of {layout.name}")
    return body


class Reader:
    """A cursor over the bytes of one message."""

    __slots__ = ("_data", "_elements_left", "position")

    def __init__(self, data: bytes, start: int = 0, most_elements: int = MOST_ELEMENTS) -> None:
        self._data = data
        self._elements_left = most_elements
        self.position = start

    def struct(self, layout: Struct) -> dict[str, Any]:
        """Read a struct."""
        flexible = layout.is_flexible
        body = {
            field.name: self._field(field, flexible, field.is_nullable)
            for field in layout.fields
            if field.tag < 0
        }
        if flexible:
            self._tagged(layout, body)
        return body

    def _field(self, field: Field, flexible: bool, nullable: bool) -> Any:
        if not field.is_array:
            return self._value(field.kind, flexible, nullable)
        count = self._count(flexible, INT32)
        if count < 0:
            return self._null(field.name, nullable)
        self._expect(count)
        return tuple(self._value(field.kind, flexible, False) for _ in range(count))

    def _value(self, kind: str | Struct, flexible: bool, nullable: bool) -> Any:
        if isinstance(kind, Struct):
            # KIP-893: a struct that may be absent has a byte before it.
            return None if nullable and self.number(NUMBERS["int8"]) < 0 else self.struct(kind)
        number = NUMBERS.get(kind)
        if number is not None:
            return self.number(number)
        if kind == "uuid":
            return self.take(UUID_BYTES)
        size = self._count(flexible, INT16 if kind == "string" else INT32)
        if size < 0:
            return self._null(kind, nullable)
        data = self.take(size)
        return decode_text(data) if kind == "string" else data

    def _null(self, name: str, nullable: bool) -> None:
        if not nullable:
            raise MalformedError(f"{name} is null")

    def _count(self, flexible: bool, legacy: Packed) -> int:
        """Read a size or count; -1 is null."""
        count: int = self.varint() - 1 if flexible else self.number(legacy)
        if count < -1:
            raise MalformedError(f"a count of {count}")
        return count

    def _expect(self, count: int) -> None:
        """Admit `count` elements, of at least one byte each."""
        self._elements_left -= count
        if count > len(self._data) - self.position or self._elements_left < 0:
            raise MalformedError(f"{count} elements in {len(self._data) - self.position} bytes")

    def _tagged(self, layout: Struct, body: dict[str, Any]) -> None:
        known = {field.tag: field for field in layout.fields if field.tag >= 0}
        body.update((field.name, field.default) for field in known.values())
        count = self.varint()
        self._expect(count)
        for _ in range(count):
            tag, size = self.varint(), self.varint()
            end = self.position + size
            field = known.get(tag)
            if field is None:
                self.take(size)
                continue
            body[field.name] = self._field(field, True, False)
            if self.position != end:
                raise MalformedError(f"a size of {size} for {field.name}")

    def number(self, packed: Packed) -> Any:
        """Read a number of fixed size."""
        position = self.position
        self.position = position + packed.size
        if self.position > len(self._data):
            raise MalformedError("the message ends within a number")
        return packed.unpack_from(self._data, position)[0]

    def varint(self) -> int:
        """Read an unsigned varint of 32 bits."""
        value = 0
        for place in range(LONGEST_VARINT):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value & 0xFFFFFFFF
        raise MalformedError("a varint of more than five bytes")

    def take(self, size: int) -> bytes:
        """Read `size` bytes."""
        end = self.position + size
        if end > len(self._data):
            raise MalformedError(f"{size} bytes where {len(self._data) - self.position} are left")
        data = self._data[self.position : end]
        self.position = end
        return data


def decode_text(data: bytes) -> str:
    """Decode a string."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedError(str(error)) from error


def write(layout: Struct, body: Body) -> bytes:
    """Write a message; a missing value is the field's default."""
    out: list[bytes] = []
    _write_struct(layout, body, out)
    return b"".join(out)


def _write_struct(layout: Struct, body: Body, out: list[bytes]) -> None:
    flexible = layout.is_flexible
    tagged: list[tuple[int, bytes]] = []
    for field in layout.fields:
        value = body.get(field.name, field.default)
        if field.tag < 0:
            _write_field(field, value, flexible, field.is_nullable, out)
        elif value != field.default:
            part: list[bytes] = []
            _write_field(field, value, True, False, part)
            tagged.append((field.tag, b"".join(part)))
    if flexible:
        out.append(encode_unsigned(len(tagged)))
        for tag, data in sorted(tagged):
            out += (encode_unsigned(tag), encode_unsigned(len(data)), data)


def _write_field(field: Field, value: Any, flexible: bool, nullable: bool, out: list[bytes]) -> None:
    if not field.is_array:
        _write_value(field.kind, value, flexible, nullable, out)
        return
    _write_count(-1 if value is None else len(value), flexible, INT32, out)
    for item in value or ():
        _write_value(field.kind, item, flexible, False, out)


def _write_value(kind: str | Struct, value: Any, flexible: bool, nullable: bool, out: list[bytes]) -> None:
    if isinstance(kind, Struct):
        if nullable:
            out.append(b"\xff" if value is None else b"\x01")
        if value is not None:
            _write_struct(kind, value, out)
        return
    number = NUMBERS.get(kind)
    if number is not None:
        out.append(number.pack(value))
        return
    data: bytes | None = value.encode() if isinstance(value, str) else value
    if kind != "uuid":
        _write_count(-1 if data is None else len(data), flexible, INT16 if kind == "string" else INT32, out)
    if data is not None:
        out.append(data)


def _write_count(count: int, flexible: bool, legacy: Packed, out: list[bytes]) -> None:
    out.append(encode_unsigned(count + 1) if flexible else legacy.pack(count))
