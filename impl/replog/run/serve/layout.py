"""The structs of Kafka's messages, from kio's classes: the one module that imports kio.

kio has a class for each message in each version, generated from Kafka's own definitions, with the names and
defaults of the fields.  Only these are used: see `codec` for the reason.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin

from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema

from replog.run.serve.codec import NUMBERS, UUID_BYTES, Field, Struct


class KioLayouts:
    """Structs by API key and version, made when they are first needed."""

    def __init__(self) -> None:
        self._structs: dict[tuple[Any, int, int], tuple[Struct, bool]] = {}

    def request(self, key: int, version: int) -> tuple[Struct, bool]:
        """Return the struct of a request, and whether its header has tagged fields.

        Raises `LookupError` where kio has no such version.
        """
        return self._struct_of(load_request_schema, key, version)

    def response(self, key: int, version: int) -> tuple[Struct, bool]:
        """Return the struct of a response, like `request`."""
        return self._struct_of(load_response_schema, key, version)

    def _struct_of(self, load: Any, key: int, version: int) -> tuple[Struct, bool]:
        place = load, key, version
        if place not in self._structs:
            try:
                schema = load(key, version)
            except (UnknownAPIKey, UnknownEntity) as error:
                raise LookupError(f"kio has no API {key} of version {version}") from error
            self._structs[place] = struct_of(schema), bool(schema.__header_schema__.__flexible__)
        return self._structs[place]


def struct_of(entity: Any) -> Struct:
    """Return the struct of one of kio's classes."""
    return Struct(entity.__name__, bool(entity.__flexible__), tuple(map(_field_of, fields(entity))))


def _field_of(field: Any) -> Field:
    inner, nullable = _without_none(field.type)
    is_array = get_origin(inner) is tuple
    if is_array:
        inner, _ = _without_none(get_args(inner)[0])
    kind = struct_of(inner) if is_dataclass(inner) else str(field.metadata["kafka_type"])
    # A null uuid or time is written as zero bytes, or as -1.
    nullable = nullable and (is_array or isinstance(kind, Struct) or kind in ("string", "bytes", "records"))
    tag = int(field.metadata.get("tag", -1))
    return Field(field.name, kind, is_array, nullable, tag, _default_of(field, kind, is_array, nullable))


def _without_none(kind: Any) -> tuple[Any, bool]:
    parts = get_args(kind)
    if NoneType not in parts:
        return kind, False
    return next(part for part in parts if part is not NoneType), True


def _default_of(field: Any, kind: str | Struct, is_array: bool, nullable: bool) -> Any:
    default = field.default
    if is_array:
        return None if default is None else ()
    if isinstance(kind, Struct):
        return None if nullable else {each.name: each.default for each in kind.fields}
    if kind == "string":
        return default if isinstance(default, str) else None if nullable else ""
    if kind in NUMBERS:
        # A subclass of int, or a time that is absent.
        return -1 if default is None else int(default) if isinstance(default, int) else 0
    if kind == "uuid":
        return bytes(UUID_BYTES)
    return None if default is None or (nullable and default is MISSING) else b""
