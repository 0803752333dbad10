"""The layouts of Kafka's messages, from the schemas inside Kafka's own jars.

A jar of kafka-clients has a JSON file for each request and response (`common/message/FetchRequest.json`),
one of kafka-metadata for each record of the metadata log (`common/metadata/PartitionRecord.json`).  They
name every field with its type and the versions that have it, and so a release is read with its own words,
and nothing of Kafka is copied here.  Fields are dicts with Kafka's names; a field that a caller leaves out
has the schema's default.

Not here: layouts as bytes (replog's codec), headers and connections (wire), batches of records (batches).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from replog.run.serve.codec import NUMBERS, UUID_BYTES, Field, Struct, read, write

Fields = dict[str, Any]
_Common = Mapping[str, list[Fields]]  # the structs that several fields of a message share

MESSAGES = "common/message/"
METADATA = "common/metadata/"

_EMPTY = {"string": "", "bytes": b"", "records": b"", "uuid": bytes(UUID_BYTES)}


class Schemas:
    """All schemas of a folder of a jar; each version of one is a layout when it is first needed.

    What asks for a key or a version that the release does not have raises LookupError.
    """

    def __init__(self, jar: Path, folder: str = MESSAGES) -> None:
        with ZipFile(jar) as archive:
            names = [
                name for name in archive.namelist() if name.startswith(folder) and name.endswith(".json")
            ]
            definitions = [_definition(archive.read(name).decode()) for name in names]
        self._definitions = {(each["type"], each["apiKey"]): each for each in definitions if "apiKey" in each}
        self._layouts: dict[tuple[str, int, int], Struct] = {}

    def request(self, key: int, version: int) -> Struct:
        """The layout of a request."""
        return self._layout("request", key, version)

    def response(self, key: int, version: int) -> Struct:
        """The layout of a response."""
        return self._layout("response", key, version)

    def record(self, key: int, version: int) -> Struct:
        """The layout of a record of the metadata log."""
        return self._layout("metadata", key, version)

    def encode_request(self, key: int, version: int, fields: Mapping[str, Any]) -> bytes:
        """A request with these fields; LookupError for a name that the schema has in no version."""
        layout, definition = self.request(key, version), self._definitions["request", key]
        _check_names(definition["fields"], _common(definition), fields)
        return write(layout, fields)

    def _layout(self, kind: str, key: int, version: int) -> Struct:
        if (kind, key, version) not in self._layouts:
            definition = self._definitions[kind, key]
            if not has_version(definition["validVersions"], version):
                raise LookupError(f"{definition['name']} has no version {version}")
            flexible = has_version(definition.get("flexibleVersions"), version)
            layout = _struct(definition["name"], definition["fields"], _common(definition), version, flexible)
            self._layouts[kind, key, version] = layout
        return self._layouts[kind, key, version]


def decode(layout: Struct, data: bytes, start: int) -> Fields:
    """The fields of a message from `start` on; MalformedError if it does not end where `data` does."""
    return read(layout, data, start, most_elements=len(data))  # a large cluster has many, and is trusted


def has_version(versions: str | None, version: int) -> bool:
    """Whether a version is one of those that a schema names as `3+`, `0-5`, `7` or `none`."""
    if versions is None or versions == "none":
        return False
    low, _, high = versions.partition("-")
    if low.endswith("+"):
        return version >= int(low[:-1])
    return int(low) <= version <= int(high or low)


def _definition(text: str) -> Fields:
    uncommented = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
    # The first object of a file is all that Kafka's own generator reads; 2.8 has a file with a brace too
    # many.
    definition, _ = json.JSONDecoder().raw_decode(uncommented.lstrip())
    return dict(definition)


def _common(definition: Fields) -> _Common:
    return {each["name"]: each["fields"] for each in definition.get("commonStructs", ())}


def _parts(definition: Fields, common: _Common) -> list[Fields]:
    """The fields of the struct that a field has, or has an array of."""
    return definition.get("fields") or common.get(definition["type"].removeprefix("[]"), [])


def _check_names(definitions: Iterable[Fields], common: _Common, fields: Mapping[str, Any]) -> None:
    parts = {each["name"]: _parts(each, common) for each in definitions}
    if unknown := fields.keys() - parts.keys():
        raise LookupError(f"no field is named {', '.join(sorted(unknown))}")
    for name, value in fields.items():
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, Mapping):
                _check_names(parts[name], common, each)


def _struct(
    name: str, definitions: Iterable[Fields], common: _Common, version: int, flexible: bool
) -> Struct:
    present = (each for each in definitions if has_version(each["versions"], version))
    return Struct(name, flexible, tuple(_field(each, common, version, flexible) for each in present))


def _field(definition: Fields, common: _Common, version: int, flexible: bool) -> Field:
    base = definition["type"].removeprefix("[]")
    is_array = base != definition["type"]
    is_plain = base in NUMBERS or base in _EMPTY
    kind = base if is_plain else _struct(base, _parts(definition, common), common, version, flexible)
    nullable = has_version(definition.get("nullableVersions"), version)
    tagged = has_version(definition.get("taggedVersions"), version)
    tag = int(definition["tag"]) if tagged else -1  # some schemas write it as text
    default = _default(definition.get("default"), kind, is_array)
    return Field(definition["name"], kind, is_array, nullable, tag, default)


def _default(text: Any, kind: str | Struct, is_array: bool) -> Any:
    if text == "null":
        return None
    if is_array:
        return ()
    if isinstance(kind, Struct):
        return {each.name: each.default for each in kind.fields}
    if kind == "bool":
        return str(text).lower() == "true"
    if kind in NUMBERS:
        return int(str(text or 0), 0)
    return text or _EMPTY[kind]
