"""Copies of programs, and of parts of them, in which some parts are others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


class Copies:
    """Copies of what belongs to one program; parts that nothing changes stay the same objects.

    `other` is called with a part and these copies: what takes its place, or None where it is to be copied
    field by field.  What is copied has to outlive this object.
    """

    def __init__(self, other: Callable[[Any, Copies], Any]) -> None:
        self._other = other
        # A type is in many nodes: 80 000 parts of `replication.spec` are 15 000 objects.  By identity, since
        # hashing a node walks it.
        self._copies: dict[int, Any] = {}

    def copy(self, part: T) -> T:
        """The copy of a program, or of a part of it."""
        if isinstance(part, str | int | None):
            return part
        result: T | None = self._copies.get(id(part))
        if result is None:
            result = self._copies[id(part)] = self._new_copy(part)
        return result

    def _new_copy(self, part: Any) -> Any:
        other = self._other(part, self)
        if other is not None:
            return other
        if isinstance(part, tuple):
            items = tuple([self.copy(item) for item in part])
            return items if any(a is not b for a, b in zip(items, part, strict=True)) else part
        kind: type = type(part)
        parts = {name: getattr(part, name) for name in names_of(kind)}
        changed = {name: copy for name, inner in parts.items() if (copy := self.copy(inner)) is not inner}
        return replace(part, **changed) if changed else part


@cache
def names_of(kind: type) -> tuple[str, ...]:
    """The fields of a class of a program's parts; of any other class none."""
    # Any node of the core, by its fields: a new kind of node needs no line here.
    if not is_dataclass(kind) or not kind.__module__.startswith("specchk.ir"):
        return ()
    return tuple([field.name for field in fields(kind)])
