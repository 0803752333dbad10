"""Values of a spec as plain Python, for authors of bindings, and back.

| type | plain |
|---|---|
| bool, int | the same |
| enum, sort | the name |
| T? | None, or the value (`Some` around it where T is an option too) |
| record, K -> V | a mapping, by field name or by key |
| union | (variant's name, mapping of its fields) |
| set, seq, bag | frozenset, tuple, ascending tuple |

`plain` and `raw` are exact inverses on the values of a type.  `raw` takes any mapping and any
iterable where it gives `Table` and tuples, and refuses what is not a value of the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from specchk.ir.nodes import Value
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.ir.types import show as show_type
from specchk.meaning.values import show, universe


class NotAValue(Exception):
    """A plain object that is not a value of the expected type; `path` is its place in the whole."""

    def __init__(self, message: str, path: str = "") -> None:
        self.message = message
        self.path = path
        super().__init__(f"{path}: {message}" if path else message)

    def inside(self, place: str) -> NotAValue:
        """The same, seen from around `place`."""
        return NotAValue(self.message, place + self.path)


@dataclass(frozen=True, slots=True)
class Some:
    """An option that is there, where its item is an option too."""

    value: Any


class Table(Mapping[Any, Any]):
    """A mapping that can be in a set; equal to any mapping with the same items."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[Any, Any]]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        # Without order, since mappings are equal without it.
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


@lru_cache(maxsize=4096)
def _keys(kind: Type) -> tuple[tuple[Any, str], ...]:
    """The plain keys of a map in the order of its values, each with how a spec writes it."""
    return tuple((plain(key, kind), show(key, kind)) for key in sorted(universe(kind)))


def plain(value: Any, kind: Type) -> Any:
    """The plain form of a value."""
    match kind:
        case Bool():
            return bool(value)
        case Int():
            return value
        case Enum() | Sort():
            return kind.members[value]
        case Option():
            if not value:
                return None
            # `None` is taken by "no value"; where the item is an option itself, `Some` keeps the two levels
            # apart.
            item = plain(value[0], kind.item)
            return Some(item) if isinstance(kind.item, Option) else item
        case Record():
            return _fields(value, kind)
        case Union():
            name, fields = kind.variants[value[0]]
            return name, _fields(value[1], fields)
        case Map():
            pairs = zip(_keys(kind.key), value, strict=True)
            return Table((key, plain(item, kind.value)) for (key, _), item in pairs)
        case Set():
            return frozenset(plain(item, kind.item) for item in value)
        case Seq() | Bag():
            return tuple(plain(item, kind.item) for item in value)


def _fields(value: Any, kind: Record) -> Table:
    return Table((name, plain(item, part)) for (name, part), item in zip(kind.fields, value, strict=True))


def raw(found: Any, kind: Type) -> Value:
    """The value whose plain form is `found`; raises `NotAValue`."""
    match kind:
        case Bool() | Int() | Enum() | Sort():
            return _raw_scalar(found, kind)
        case Option():
            return _raw_option(found, kind)
        case Record():
            return _raw_fields(found, kind)
        case Union():
            return _raw_union(found, kind)
        case Map():
            return _raw_map(found, kind)
        case Set():
            # Raw values have an order and plain ones need not.
            return tuple(sorted(set(_raw_items(found, kind.item, AnySet | Sequence))))
        case Seq():
            return _limited(_raw_items(found, kind.item, Sequence), kind)
        case Bag():
            return _limited(tuple(sorted(_raw_items(found, kind.item, Sequence))), kind)


def _raw_scalar(found: Any, kind: Bool | Int | Enum | Sort) -> Value:
    match kind:
        case Bool() if isinstance(found, bool):
            return found
        # Python's `True` is 1; a projection that mixes them up is a mistake to be shown.
        case Int() if isinstance(found, int) and not isinstance(found, bool):
            if kind.low <= found <= kind.high:
                return found
        case Enum() | Sort() if found in kind.members:
            return kind.members.index(found)
    raise _wrong(found, kind)


def _raw_option(found: Any, kind: Option) -> Value:
    if found is None:
        return ()
    if not isinstance(kind.item, Option):
        return (raw(found, kind.item),)
    if not isinstance(found, Some):
        raise _wrong(found, kind)
    return (raw(found.value, kind.item),)


def _raw_fields(found: Any, kind: Record) -> Value:
    # As many fields, so that one too many is a mistake too, and not silently dropped.
    if not isinstance(found, Mapping) or len(found) != len(kind.fields):
        raise _wrong(found, kind)
    values = []
    for name, part in kind.fields:
        if name not in found:
            raise _wrong(found, kind)
        try:
            values.append(raw(found[name], part))
        except NotAValue as error:
            # The path grows on the way out, so that it names the place from the outside.
            raise error.inside(f".{name}") from None
    return tuple(values)


def _raw_union(found: Any, kind: Union) -> Value:
    tags = [name for name, _ in kind.variants]
    if not isinstance(found, tuple) or len(found) != 2 or found[0] not in tags:
        raise _wrong(found, kind)
    tag = tags.index(found[0])
    return tag, _raw_fields(found[1], kind.variants[tag][1])


def _raw_map(found: Any, kind: Map) -> Value:
    keys = _keys(kind.key)
    # The number first: one key too many would not be missed below.
    if not isinstance(found, Mapping) or len(found) != len(keys):
        raise _wrong(found, kind)
    values = []
    for key, shown in keys:
        if key not in found:
            raise _wrong(found, kind)
        try:
            values.append(raw(found[key], kind.value))
        except NotAValue as error:
            raise error.inside(f"[{shown}]") from None
    return tuple(values)


def _raw_items(found: Any, item: Type, wanted: Any) -> tuple[Value, ...]:
    if not isinstance(found, wanted) or isinstance(found, str):
        raise NotAValue(f"{found!r} is not a collection of {show_type(item)}")
    return tuple(raw(one, item) for one in found)


def _limited(items: tuple[Value, ...], kind: Seq | Bag) -> Value:
    if len(items) > kind.limit:
        raise NotAValue(f"{len(items)} items exceed the limit of {show_type(kind)}")
    return items


def _wrong(found: Any, kind: Type) -> NotAValue:
    return NotAValue(f"{found!r} is not a value of {show_type(kind)}")
