"""Types and values of specs as columns: Arrow types, and the plain values that fill them.

| type | column |
|---|---|
| bool | boolean |
| int | int32, or int64, decimal(38) or text where the range needs it |
| enum, sort | the member's name |
| T? | T, null for `none`; an option of an option is a struct with the field `some` |
| record | struct |
| union | struct of `tag` and of a nullable struct for each variant with fields; without fields the name |
| K -> V | map; a list of `key` and `value` where K may be null |
| set, seq, bag | list |

Readers of Parquet do not distinguish upper and lower case in names, so of names that differ only in case, all
but the first get a `_` appended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, assert_never

import pyarrow as pa

from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.values import positions

# The first that contains a range; only the reference engine has numbers beyond 64 bits.
_NUMBERS = (
    (range(-(1 << 31), 1 << 31), pa.int32()), (range(-(1 << 63), 1 << 63), pa.int64()),
    (range(1 - 10**38, 10**38), pa.decimal128(38)),
)  # fmt: skip
TAG = "tag"


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """The names, changed if one equals an earlier or a taken one, at most in case."""
    seen = {name.lower() for name in taken}
    different = []
    for name in names:
        while name.lower() in seen:
            name += "_"
        seen.add(name.lower())
        different.append(name)
    return different


class Column(NamedTuple):
    """The Arrow type of a column, and the function that gives its values the form `pyarrow.array` accepts."""

    type: pa.DataType
    plain: Callable[[Any], Any]


def column_of(kind: Type) -> Column:
    """The column for values of a type."""
    match kind:
        case Bool():
            return Column(pa.bool_(), bool)
        case Int():
            fitting = (column for numbers, column in _NUMBERS if kind.low in numbers and kind.high in numbers)
            number = next(fitting, pa.string())
            return Column(number, str if pa.types.is_string(number) else int)
        case Enum() | Sort():
            return Column(pa.string(), kind.members.__getitem__)
        case Option():
            return _option(column_of(kind.item), is_struct=isinstance(kind.item, Option))
        case Record():
            return _record(kind)
        case Union():
            return _union(kind)
        case Map():
            key, pairs = kind.key, _pairs(kind.key, kind.value)
            return Column(pairs.type, lambda value: pairs.plain(zip(positions(key), value, strict=True)))
        case Set(keyed=True):
            return _pairs(*kind.pair)
        case Set() | Seq() | Bag():
            item = column_of(kind.item)
            return Column(pa.list_(item.type), lambda value: [item.plain(part) for part in value])
    assert_never(kind)


def _option(item: Column, *, is_struct: bool) -> Column:
    if is_struct:
        some = pa.struct([("some", item.type)])
        return Column(some, lambda value: {"some": item.plain(value[0])} if value else None)
    return Column(item.type, lambda value: item.plain(value[0]) if value else None)


def _record(kind: Record) -> Column:
    if kind.element is not None:
        element = column_of(kind.element)
        return Column(element.type, lambda value: element.plain(value[0]))
    if not kind.fields:  # Parquet has no struct without fields
        return Column(pa.bool_(), lambda _: True)
    parts = [(name, column_of(part)) for name, (_, part) in zip(field_names(kind), kind.fields, strict=True)]

    def plain(value: Any) -> dict[str, Any]:
        return {name: part.plain(item) for (name, part), item in zip(parts, value, strict=True)}

    return Column(pa.struct([(name, part.type) for name, part in parts]), plain)


def field_names(kind: Record) -> list[str]:
    """The names of a struct's fields; for a tuple as in Spark, `_1`, `_2`."""
    return distinct(f"_{name}" if kind.is_tuple else name for name, _ in kind.fields)


def variant_names(kind: Union) -> dict[int, str]:
    """The names of a union's columns, by the position of the variant: of those that have fields."""
    names = distinct((name for name, _ in kind.variants), [TAG])
    return {tag: name for tag, name in enumerate(names) if kind.variants[tag][1].fields}


def _union(kind: Union) -> Column:
    wide = {tag: (name, _record(kind.variants[tag][1])) for tag, name in variant_names(kind).items()}
    if not wide:
        return Column(pa.string(), lambda value: kind.variants[value[0]][0])

    def plain(value: Any) -> dict[str, Any]:
        tag, record = value
        tagged: dict[str, Any] = {TAG: kind.variants[tag][0]}
        if tag in wide:
            name, part = wide[tag]
            tagged[name] = part.plain(record)
        return tagged

    return Column(
        pa.struct([(TAG, pa.string()), *((name, part.type) for name, part in wide.values())]), plain
    )


def _pairs(key: Type, value: Type) -> Column:
    """The column of keys with their values; the keys of an Arrow map cannot be null."""
    keys, values = column_of(key), column_of(value)

    def plain(given: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        return [(keys.plain(key), values.plain(value)) for key, value in given]

    if isinstance(key, Option):
        pair = pa.struct([("key", keys.type), ("value", values.type)])
        return Column(pa.list_(pair), lambda given: [{"key": k, "value": v} for k, v in plain(given)])
    return Column(pa.map_(keys.type, values.type), plain)


def values_of(states: Sequence[Any], kinds: Sequence[Type]) -> list[pa.Array]:
    """The columns of states given as values."""
    columns = [column_of(kind) for kind in kinds]
    return [
        pa.array([column.plain(state[slot]) for state in states], column.type)
        for slot, column in enumerate(columns)
    ]
