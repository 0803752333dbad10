"""Structs that are compared by some of their fields, and structs whose text is kept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, ClassVar

from msgspec import Struct


class Described(Struct, frozen=True):
    """A small struct that occurs in many places; its text is kept."""

    def __repr__(self) -> str:
        return _text(self)


class Identified(Struct, frozen=True, eq=False):
    """A struct whose `incidental` fields count in neither equality, nor hash, nor text.

    By default, its place in a source: copies of an inlined definition are equal, and a comment more in a
    spec changes no name of a kept file, which is made of texts (`kept.name_of`).
    """

    incidental: ClassVar[frozenset[str]] = frozenset({"span"})

    def __eq__(self, other: object) -> bool:
        if self is other or type(self) is not type(other):
            return self is other
        identity = _identity(type(self))
        return bool(identity(self) == identity(other))

    def __ne__(self, other: object) -> bool:
        # Python derives this from `__eq__` only where no base has it, and `Struct` has it: by identity.
        return not self == other

    def __hash__(self) -> int:
        return hash(_identity(type(self))(self))

    def __repr__(self) -> str:
        form, values = _form(type(self))
        text: str = form % values(self)
        return text


@lru_cache(maxsize=1 << 12)
def _text(part: Described) -> str:
    return Struct.__repr__(part)


@cache
def compared(kind: type[Identified]) -> tuple[str, ...]:
    """The fields by which values of a class are compared, in their order."""
    return tuple(name for name in kind.__struct_fields__ if name not in kind.incidental)


@cache
def _form(kind: type[Identified]) -> tuple[str, Callable[[object], Any]]:
    """The text of values of a class, as a format of their fields."""
    shown = ", ".join(f"{name}=%r" for name in compared(kind))
    identity = _identity(kind)
    # The format of a single value that is a tuple would be that of its items.
    values = identity if len(compared(kind)) != 1 else lambda part: (identity(part),)
    return f"{kind.__name__}({shown})", values


@cache
def _identity(kind: type[Identified]) -> Callable[[object], Any]:
    names = compared(kind)
    return attrgetter(*names) if names else lambda _: ()
