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

from collections.abc import Iterable, Sequence
from typing import Any, assert_never

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


def arrow_type(kind: Type) -> pa.DataType:
    """The Arrow type of a column of such values."""
    match kind:
        case Bool():
            return pa.bool_()
        case Int():
            return _number(kind)
        case Enum() | Sort():
            return pa.string()
        case Option():
            item = arrow_type(kind.item)
            return pa.struct([("some", item)]) if _may_be_null(kind.item) else item
        case Record():
            return _struct(kind)
        case Union():
            return _union(kind)
        case Map():
            if _may_be_null(kind.key):
                return pa.list_(pa.struct([("key", arrow_type(kind.key)), ("value", arrow_type(kind.value))]))
            return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
        case Set(keyed=True):
            return arrow_type(Map(*kind.pair))
        case Set() | Seq() | Bag():
            return pa.list_(arrow_type(kind.item))
    assert_never(kind)


def _number(kind: Int) -> pa.DataType:
    fitting = (found for numbers, found in _NUMBERS if kind.low in numbers and kind.high in numbers)
    return next(fitting, pa.string())


def _struct(kind: Record) -> pa.DataType:
    if kind.element is not None:
        return arrow_type(kind.element)
    if not kind.fields:  # Parquet has no struct without fields
        return pa.bool_()
    parts = [arrow_type(part) for _, part in kind.fields]
    return pa.struct(list(zip(field_names(kind), parts, strict=True)))


def _union(kind: Union) -> pa.DataType:
    parts = zip(_variant_columns(kind), kind.variants, strict=True)
    columns = [(name, _struct(record)) for name, (_, record) in parts if name is not None]
    return pa.struct([(TAG, pa.string()), *columns]) if columns else pa.string()


def field_names(kind: Record) -> list[str]:
    """The names of a struct's fields; for a tuple as in Spark, `_1`, `_2`."""
    return distinct(f"_{name}" if kind.is_tuple else name for name, _ in kind.fields)


def _variant_columns(kind: Union) -> list[str | None]:
    """The column of each variant, None for one without fields."""
    names = distinct((name for name, _ in kind.variants), [TAG])
    return [name if record.fields else None for name, (_, record) in zip(names, kind.variants, strict=True)]


def _may_be_null(kind: Type) -> bool:
    return isinstance(kind, Option)


def plain(kind: Type, value: Any) -> Any:
    """A value in the form that `pyarrow.array` accepts for the type's column."""
    match kind:
        case Bool():
            return bool(value)
        case Int():
            return str(value) if pa.types.is_string(_number(kind)) else int(value)
        case Enum() | Sort():
            return kind.members[value]
        case Option():
            if not value:
                return None
            item = plain(kind.item, value[0])
            return {"some": item} if _may_be_null(kind.item) else item
        case Record():
            return _plain_record(kind, value)
        case Union():
            return _plain_union(kind, value)
        case Map():
            return _plain_pairs(kind, zip(positions(kind.key), value, strict=True))
        case Set(keyed=True):
            return _plain_pairs(Map(*kind.pair), value)
        case Set() | Seq() | Bag():
            return [plain(kind.item, item) for item in value]
    assert_never(kind)


def _plain_pairs(kind: Map, given: Iterable[tuple[Any, Any]]) -> Any:
    pairs = [(plain(kind.key, key), plain(kind.value, item)) for key, item in given]
    return [{"key": k, "value": v} for k, v in pairs] if _may_be_null(kind.key) else pairs


def _plain_record(kind: Record, value: Any) -> Any:
    if kind.element is not None:
        return plain(kind.element, value[0])
    if not kind.fields:
        return True
    parts = zip(field_names(kind), kind.fields, value, strict=True)
    return {name: plain(part, item) for name, (_, part), item in parts}


def _plain_union(kind: Union, value: Any) -> Any:
    tag, record = value
    name, fields = kind.variants[tag]
    columns = _variant_columns(kind)
    if not any(columns):
        return name
    column = columns[tag]
    return {TAG: name} | ({} if column is None else {column: _plain_record(fields, record)})


def values_of(states: Sequence[Any], kinds: Sequence[Type]) -> list[pa.Array]:
    """The columns of states given as values."""
    return [
        pa.array([plain(kind, state[slot]) for state in states], arrow_type(kind))
        for slot, kind in enumerate(kinds)
    ]
