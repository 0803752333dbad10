"""Types with the ranges of their numbers changed."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from specchk.ir.types import UNBOUNDED, Bag, Int, Map, Option, Record, Seq, Set, Type, Union, of_shape


def without_horizons(kind: Type) -> Type:
    """The type with horizons replaced by no upper end."""
    return _mapped(kind, lambda one: Int(one.low, UNBOUNDED, one.horizon) if one.horizon else one)


def with_ends(kind: Type) -> Type:
    """The type with horizons replaced by hard bounds: a number above one is out of range."""
    return _mapped(kind, lambda one: replace(one, horizon=False))


def narrowest(kind: Type) -> Type:
    """The narrowest type of the same shape: the element type of an empty collection."""
    return _mapped(kind, lambda _: Int(0, -1), empty=True)


def _mapped(kind: Type, change: Callable[[Int], Int], *, empty: bool = False) -> Type:
    """The type with each numeric range changed, except in map keys, and its collections `empty`."""
    match kind:
        case Int():
            return change(kind)
        case Option() | Set():
            return replace(kind, item=_mapped(kind.item, change, empty=empty))
        case Seq() | Bag():
            limit = 0 if empty else kind.limit
            return replace(kind, item=_mapped(kind.item, change, empty=empty), limit=limit)
        case Map():
            return Map(kind.key, _mapped(kind.value, change, empty=empty))
        case Record():
            return Record(tuple((name, _mapped(part, change, empty=empty)) for name, part in kind.fields))
        case Union():
            parts = ((name, _mapped(fields, change, empty=empty)) for name, fields in kind.variants)
            return Union(kind.name, tuple((name, of_shape(part, Record)) for name, part in parts))
    return kind
