"""Kafka's messages, read and written by the schemas inside Kafka's own jars.

A jar of kafka-clients has a JSON file for each request and response (`common/message/FetchRequest.json`),
one of kafka-metadata for each record of the metadata log (`common/metadata/PartitionRecord.json`).  They
name every field with its type and the versions that have it, and so a release is read with its own words,
and nothing of Kafka is copied here.  Fields are dicts with Kafka's names; a field that a caller leaves out
has the schema's default.

The encoding is Kafka's: fixed sizes in the versions before `flexibleVersions`; from there on lengths as
unsigned varints plus one, and tagged fields at the end of each struct.

Not here: headers and connections (wire), batches of records (batches).
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from msgspec import Struct

Fields = dict[str, Any]
_Fixed = struct.Struct

MESSAGES = "common/message/"
METADATA = "common/metadata/"

_FIXED = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}


class Malformed(Exception):
    """Bytes that are no message of this schema."""


class Versions(Struct, frozen=True):
    """A range of versions, as schemas write it: `3+`, `0-5`, `7`, `none`."""

    low: int
    high: int

    @staticmethod
    def parse(text: str | None) -> Versions:
        """The range that a schema has as text."""
        if text is None or text == "none":
            return Versions(1, 0)
        low, dash, high = text.partition("-")
        if low.endswith("+"):
            return Versions(int(low[:-1]), 1 << 15)
        return Versions(int(low), int(high) if dash else int(low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high


class Field(Struct, frozen=True):
    """A field of a struct: where it is, and how it is written."""

    name: str
    kind: str  # a primitive, `[]kind`, or the name of a struct
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    default: Any
    fields: tuple[Field, ...]  # of a struct, or of an array of them

    def empty(self) -> Any:
        """The value of the field where it is left out."""
        if self.kind.startswith("[]"):
            return None if self.default == "null" else []
        if self.default == "null":
            return None
        if self.kind == "bool":
            return str(self.default).lower() == "true"
        if self.kind in _FIXED:
            return int(str(self.default or 0), 0)
        if self.kind == "uuid":
            return uuid.UUID(int=0)
        if self.kind in ("bytes", "records"):
            return b""
        if self.kind == "string":
            return str(self.default or "")
        return {}


class Message(Struct, frozen=True):
    """A schema: a request, a response, or a record of the metadata log."""

    name: str
    key: int
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]

    def decode(self, data: bytes, version: int, at: int = 0) -> tuple[Fields, int]:
        """The fields of a message that begins at `at`, and where it ends."""
        reader = _Reader(data, at, version, version in self.flexible)
        try:
            return reader.struct(self.fields), reader.at
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise Malformed(f"{self.name} version {version}: {error}") from None

    def encode(self, fields: Mapping[str, Any], version: int) -> bytes:
        """A message with these fields, and the schema's defaults for others."""
        if version not in self.versions:
            raise Malformed(f"{self.name} has no version {version}")
        writer = _Writer(version, version in self.flexible)
        writer.struct(self.fields, fields)
        return bytes(writer.out)


class Schemas:
    """All schemas of a folder of a jar, each parsed when it is first needed."""

    def __init__(self, jar: Path, folder: str = MESSAGES) -> None:
        with ZipFile(jar) as archive:
            names = [
                name for name in archive.namelist() if name.startswith(folder) and name.endswith(".json")
            ]
            texts = [archive.read(name).decode() for name in names]
        self._definitions = [_definition(text) for text in texts]

    @cached_property
    def requests(self) -> Mapping[int, Message]:
        """The requests by API key."""
        return self._of("request")

    @cached_property
    def responses(self) -> Mapping[int, Message]:
        """The responses by API key."""
        return self._of("response")

    @cached_property
    def records(self) -> Mapping[int, Message]:
        """The records of the metadata log by their key."""
        return self._of("metadata")

    def _of(self, kind: str) -> Mapping[int, Message]:
        chosen = [definition for definition in self._definitions if definition["type"] == kind]
        return {definition["apiKey"]: _message(definition) for definition in chosen}


def _definition(text: str) -> Fields:
    uncommented = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
    # The first object of a file is all that Kafka's own generator reads; 2.8 has a file with a brace too
    # many.
    definition, _ = json.JSONDecoder().raw_decode(uncommented.lstrip())
    return dict(definition)


def _message(definition: Fields) -> Message:
    flexible = Versions.parse(definition.get("flexibleVersions"))
    common = {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}
    return Message(
        name=definition["name"],
        key=definition["apiKey"],
        versions=Versions.parse(definition["validVersions"]),
        flexible=flexible,
        fields=_fields(definition.get("fields", ()), common),
    )


def _fields(definitions: Iterable[Fields], common: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(
        Field(
            name=each["name"],
            kind=each["type"],
            versions=Versions.parse(each["versions"]),
            nullable=Versions.parse(each.get("nullableVersions")),
            tagged=Versions.parse(each.get("taggedVersions")),
            tag=int(each.get("tag", -1)),  # some schemas write it as text
            default=each.get("default"),
            fields=_fields(each.get("fields") or common.get(each["type"].removeprefix("[]"), ()), common),
        )
        for each in definitions
    )


def read_uvarint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def uvarint(value: int) -> bytes:
    """A number as an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Reader:
    def __init__(self, data: bytes, at: int, version: int, flexible: bool) -> None:
        self.data, self.at, self.version, self.flexible = data, at, version, flexible

    def struct(self, fields: Sequence[Field]) -> Fields:
        present = [field for field in fields if self.version in field.versions]
        values = {
            field.name: field.empty() if self.version in field.tagged else self.value(field, field.kind)
            for field in present
        }
        if self.flexible:
            tagged = {field.tag: field for field in present if self.version in field.tagged}
            for _ in range(self.uvarint()):
                tag, size = self.uvarint(), self.uvarint()
                end = self.at + size
                if tag in tagged:
                    values[tagged[tag].name] = self.value(tagged[tag], tagged[tag].kind)
                self.at = end
        return values

    def value(self, field: Field, kind: str) -> Any:
        if kind.startswith("[]"):
            size = self.size("array")
            return None if size is None else [self.value(field, kind[2:]) for _ in range(size)]
        if kind in _FIXED:
            return self.fixed(_FIXED[kind])
        if kind == "uuid":
            return uuid.UUID(bytes=self.bytes(16))
        if kind in ("string", "bytes", "records"):
            size = self.size(kind)
            data = None if size is None else self.bytes(size)
            return data.decode() if kind == "string" and data is not None else data
        # A struct that may be absent begins with a byte that says so.
        if (
            self.version in field.nullable
            and not field.kind.startswith("[]")
            and self.fixed(_FIXED["int8"]) < 0
        ):
            return None
        return self.struct(field.fields)

    def size(self, kind: str) -> int | None:
        if self.flexible:
            size = self.uvarint() - 1
        else:
            size = self.fixed(_FIXED["int16" if kind == "string" else "int32"])
        return None if size < 0 else size

    def fixed(self, form: _Fixed) -> Any:
        (value,) = form.unpack_from(self.data, self.at)
        self.at += form.size
        return value

    def bytes(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise IndexError("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def uvarint(self) -> int:
        value, self.at = read_uvarint(self.data, self.at)
        return value


class _Writer:
    def __init__(self, version: int, flexible: bool) -> None:
        self.out, self.version, self.flexible = bytearray(), version, flexible

    def struct(self, fields: Sequence[Field], values: Mapping[str, Any]) -> None:
        unknown = values.keys() - {field.name for field in fields}
        if unknown:
            raise Malformed(f"no field is named {', '.join(sorted(unknown))}")
        present = [field for field in fields if self.version in field.versions]
        for field in present:
            if self.version not in field.tagged:
                self.value(field, field.kind, values.get(field.name, field.empty()))
        if self.flexible:
            # Kafka reads an absent tag as the field's default.
            tagged = [
                f for f in present if self.version in f.tagged and values.get(f.name, f.empty()) != f.empty()
            ]
            self.out += uvarint(len(tagged))
            for field in sorted(tagged, key=lambda field: field.tag):
                inner = _Writer(self.version, self.flexible)
                inner.value(field, field.kind, values[field.name])
                self.out += uvarint(field.tag) + uvarint(len(inner.out)) + inner.out

    def value(self, field: Field, kind: str, value: Any) -> None:
        if kind.startswith("[]"):
            self.size("array", None if value is None else len(value))
            for item in value or ():
                self.value(field, kind[2:], item)
        elif kind in _FIXED:
            self.out += _FIXED[kind].pack(value)
        elif kind == "uuid":
            self.out += value.bytes
        elif kind in ("string", "bytes", "records"):
            data = value.encode() if isinstance(value, str) else value
            self.size(kind, None if data is None else len(data))
            self.out += data or b""
        else:
            if self.version in field.nullable and not field.kind.startswith("[]"):
                self.out += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.struct(field.fields, value)

    def size(self, kind: str, size: int | None) -> None:
        if self.flexible:
            self.out += uvarint(0 if size is None else size + 1)
        else:
            self.out += _FIXED["int16" if kind == "string" else "int32"].pack(-1 if size is None else size)
