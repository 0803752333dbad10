"""One text for each value that a run may note, the same in every process and Python version.

    17   true   none   active   b'm1'   (1, 2)   {1, 2}   {1: 2}   Batch(base_offset=0, count=1)

Members of enumerations are written by their names in small letters, maps and sets in order of their texts,
and records by the names of their fields: their order in a class is no behaviour.  A text with a blank is a
sentence, and stands between two marks (`SENTENCE`), which `plain` removes.

Not here: comparing (`comparison`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from specchk.conform.contract.behaviours import Observation, ObservedStep


class NoText(Exception):
    """A value of a kind without a text, since no text would be the same everywhere."""


class Texts:
    """The texts of values; those of immutable records are cached."""

    __slots__ = ("_kept", "_names")

    def __init__(self) -> None:
        self._names: dict[type, tuple[str, ...]] = {}
        # By identity, with the value, which keeps its identity from being used again.
        self._kept: dict[int, tuple[Any, str]] = {}

    def of(self, value: Any) -> str:
        """Return the text of a value; raises `NoText`."""
        kind = type(value)
        if kind is int:
            return repr(value)
        write = WRITERS.get(kind)
        if write is not None:
            return write(self, value)
        if isinstance(value, Enum):
            return value.name.lower()
        if is_dataclass(value):
            return self._record(value)
        if isinstance(value, tuple):
            return self._all(value, "()")
        raise NoText(f"{value!r}: a {kind.__name__} has no text")

    def _record(self, value: Any) -> str:
        known = self._kept.get(id(value))
        if known is not None:
            return known[1]
        kind = type(value)
        names = self._names.get(kind)
        if names is None:
            names = self._names[kind] = tuple(sorted(field.name for field in fields(value)))
        text = f"{kind.__name__}({', '.join([f'{name}={self.of(getattr(value, name))}' for name in names])})"
        if kind.__dataclass_params__.frozen:
            self._kept[id(value)] = value, text
        return text

    def _all(self, values: Any, brackets: str) -> str:
        return f"{brackets[0]}{', '.join([self.of(value) for value in values])}{brackets[1]}"

    def _set(self, values: Any) -> str:
        return f"{{{', '.join(sorted(map(self.of, values)))}}}"

    def _map(self, values: Any) -> str:
        pairs = sorted((self.of(key), self.of(value)) for key, value in values.items())
        return f"{{{', '.join(f'{key}: {value}' for key, value in pairs)}}}"


WRITERS: Mapping[type, Callable[[Texts, Any], str]] = MappingProxyType(
    {
        bool: lambda texts, value: "true" if value else "false",
        type(None): lambda texts, value: "none",
        str: lambda texts, value: f"\x0e{value}\x0f" if " " in value else value,
        bytes: lambda texts, value: repr(value),
        tuple: lambda texts, value: texts._all(value, "()"),
        list: lambda texts, value: texts._all(value, "()"),
        set: Texts._set,
        frozenset: Texts._set,
        dict: Texts._map,
    }
)
SENTENCE = re.compile("\x0e([^\x0e\x0f]*)\x0f")
Written = tuple[tuple[str, ...], ...]
"""A step: of each observation its place and kind, then its fields, each as `name=value`."""


def plain(text: str) -> str:
    """A written text as a person reads it."""
    return text.replace("\x0e", "").replace("\x0f", "")


def written(step: ObservedStep, texts: Texts) -> Written:
    """Return the texts of a step."""
    return tuple([_observation(seen, texts) for seen in step.seen])


def _observation(seen: Observation, texts: Texts) -> tuple[str, ...]:
    of = texts.of
    return (f"{seen.at}: {seen.kind}", *[f"{name}={of(value)}" for name, value in seen.fields.items()])
