"""Values: canonical, immutable, totally ordered.

Every value is an int or a nested tuple of ints, so equality, hashing and order are Python's own
and the same everywhere:

| type | value |
|---|---|
| bool, int, enum, sort | the int; for enums and sorts the position of the name |
| T? | `()` for none, `(x,)` for some(x) |
| record | its fields in the order of their names |
| union | (variant's position, record) |
| K -> V | one value for each key, in key order |
| set | the items, strictly ascending |
| seq | the items |
| bag | the items, ascending, equal ones repeated |

A state is the tuple of its variables' values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations, combinations_with_replacement, product
from typing import Any

from specchk.ir import types
from specchk.ir.nodes import Value
from specchk.ir.types import Type, components

State = tuple[Value, ...]


class Values:
    """The universe of every type, each listed once; `offsets` as in `universe`."""

    def __init__(self, offsets: Sequence[int] | None = None) -> None:
        self.offsets = offsets
        self._known: dict[Type, tuple[Value, ...]] = {}

    def values(self, kind: Type) -> tuple[Value, ...]:
        """All values of a type, ascending."""
        if kind not in self._known:
            has_maps = any(isinstance(part, types.Set) and part.keyed for part in components(kind))
            every = universe(kind, self.offsets)
            found = [value for value in every if not has_maps or _has_functions(value, kind)]
            self._known[kind] = tuple(sorted(found))
        return self._known[kind]


def universe(kind: Type, offsets: Sequence[int] | None = None) -> list[Value]:
    """All values of a type; the caller has checked that they are not too many.

    For a partial map all sets of pairs, since engines number these: `Values` omits those that are not maps.
    With `offsets` only values whose numbers of types with a horizon are among these.
    """
    match kind:
        case types.Bool():
            return [False, True]
        case types.Int(horizon=True) if offsets is not None:
            return [number for number in offsets if kind.low <= number <= kind.high]
        case types.Int():
            return list(range(kind.low, kind.high + 1))
        case types.Enum() | types.Sort():
            return list(range(len(kind.members)))
        case types.Option():
            return [(), *((item,) for item in universe(kind.item, offsets))]
        case types.Record():
            return list(product(*(universe(item, offsets) for _, item in kind.fields)))
        case types.Union():
            records = enumerate(kind.variants)
            return [(tag, rec) for tag, (_, record) in records for rec in universe(record, offsets)]
        case types.Map():
            return list(product(universe(kind.value, offsets), repeat=len(universe(kind.key))))
        case types.Set():
            # `combinations` of an ascending list are ascending; sorted nevertheless, since a universe need
            # not be.
            return [tuple(sorted(items)) for items in _subsets(universe(kind.item, offsets))]
        case types.Seq():
            items = _items(kind, offsets)
            return [seq for size in range(kind.limit + 1) for seq in product(items, repeat=size)]
        case types.Bag():
            # With repetition and in order: each multiset once.
            items = sorted(_items(kind, offsets))
            sizes = range(kind.limit + 1)
            return [bag for size in sizes for bag in combinations_with_replacement(items, size)]


def _items(kind: types.Seq | types.Bag, offsets: Sequence[int] | None) -> list[Value]:
    # A collection of no items has one value, and items that may be far too many to list.
    return universe(kind.item, offsets) if kind.limit else []


def pairs_of(value: Value) -> list[tuple[Value, Value]]:
    """The keys of a partial map, with their values."""
    assert isinstance(value, tuple)
    return [(key, item) for key, item in value]  # type: ignore[misc]


def _has_functions(value: Any, kind: Type) -> bool:
    """Whether no partial map in a value has two values for one key."""
    match kind:
        case types.Set(keyed=True) if len({key for key, _ in value}) < len(value):
            return False
        case types.Option() | types.Set() | types.Seq() | types.Bag():
            return all(_has_functions(item, kind.item) for item in value)
        case types.Map():
            return all(_has_functions(item, kind.value) for item in value)
        case types.Record():
            return all(_has_functions(v, part) for v, (_, part) in zip(value, kind.fields, strict=True))
        case types.Union():
            return _has_functions(value[1], kind.variants[value[0]][1])
    return True


def _subsets(items: list[Value]) -> chain[tuple[Value, ...]]:
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


@lru_cache(maxsize=4096)
def positions(kind: Type) -> dict[Value, int]:
    """Each value of a map's key type with its position in the map's tuple."""
    # Kept for all programs: types are values, and most specs have the same few.
    return {value: index for index, value in enumerate(sorted(universe(kind)))}


def show(value: Value, kind: Type) -> str:
    """A value as the spec language writes it."""
    match kind:
        case types.Bool():
            return "true" if value else "false"
        case types.Int():
            return str(value)
        case types.Enum() | types.Sort():
            return kind.members[int_of(value)]
    assert isinstance(value, tuple)
    match kind:
        case types.Option():
            return f"some({show(value[0], kind.item)})" if value else "none"
        case types.Record(is_tuple=True):
            parts = zip(kind.fields, value, strict=True)
            return "(" + ", ".join(show(v, part) for (_, part), v in parts) + ")"
        case types.Record():
            return "{ " + _show_fields(value, kind) + " }"
        case types.Union():
            tag, record = value
            name, fields = kind.variants[int_of(tag)]
            if fields.element is not None:
                assert isinstance(record, tuple)
                return show(record[0], fields.element)
            return f"{name}({_show_fields(record, fields)})" if fields.fields else name
        case types.Map():
            keys = sorted(universe(kind.key))
            pairs = zip(keys, value, strict=True)
            return "{ " + ", ".join(f"{show(k, kind.key)}: {show(v, kind.value)}" for k, v in pairs) + " }"
        case types.Set(keyed=True):
            return "{ " + ", ".join(_show_pair(item, kind) for item in value) + " }" if value else "{}"
        case types.Set() | types.Bag():
            return "{" + ", ".join(show(item, kind.item) for item in value) + "}"
        case types.Seq():
            return "[" + ", ".join(show(item, kind.item) for item in value) + "]"


def _show_pair(pair: Value, kind: types.Set) -> str:
    assert isinstance(pair, tuple)
    return ": ".join(show(part, part_kind) for part, part_kind in zip(pair, kind.pair, strict=True))


def _show_fields(value: Value, kind: types.Record) -> str:
    assert isinstance(value, tuple)
    return ", ".join(
        f"{name}: {show(item, part)}" for (name, part), item in zip(kind.fields, value, strict=True)
    )


def int_of(value: Value) -> int:
    """A value known to be a number."""
    assert isinstance(value, int)
    return value
