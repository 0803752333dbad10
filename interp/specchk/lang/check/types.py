"""Types as used by the checker: shapes, with bounds that are still constant expressions.

All integers are of one kind in expressions; a range restricts *stored* values and is checked
by the engines where a variable is assigned.  Records and maps are structural; enums, sorts and
unions are identified by name.  `ir.types` has the same shapes after a model has fixed every bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from specchk.identity import Identified
from specchk.lang.syntax import tree


class Bool(Struct, frozen=True):
    """`bool`."""


class Int(Identified, frozen=True):
    """`int` (no bounds), `a..b`, or `nat upto N` (`horizon`)."""

    incidental: ClassVar = frozenset({"low", "high", "horizon"})
    low: tree.Expr | None = None
    high: tree.Expr | None = None
    horizon: bool = False


class Enum(Struct, frozen=True):
    """`enum {a, b}`; `name` is the declared type's."""

    name: str
    members: tuple[str, ...]


class Sort(Struct, frozen=True):
    """A `sort`: scalars that can only be compared for equality."""

    name: str


class Option(Struct, frozen=True):
    """`T?`."""

    item: Type


class Record(Struct, frozen=True):
    """`{ a: A, b: B }`; two records with the same fields are the same type in any order.

    A tuple `(A, B)` is a record whose fields are numbers, which are not names: no other type has such fields.
    """

    fields: tuple[tuple[str, Type], ...]

    @property
    def is_tuple(self) -> bool:
        """Whether the record is a tuple."""
        return self.fields[:1] != () and self.fields[0][0] == "1"

    @property
    def element(self) -> Type | None:
        """The type of the elements of a variant that is a sort; its field has no name."""
        return self.fields[0][1] if self.fields[:1] != () and self.fields[0][0] == "" else None

    def get(self, name: str) -> Type | None:
        """The type of the field with this name, or None."""
        return dict(self.fields).get(name)


class Union(Struct, frozen=True):
    """`Fetch(offset: Offset) | Ping`; each variant has a record; a variant that is a sort has an element."""

    name: str
    variants: tuple[tuple[str, Record], ...]

    def get(self, tag: str) -> Record | None:
        """The fields of the variant with this name, or None."""
        return dict(self.variants).get(tag)


class Map(Struct, frozen=True):
    """`K -> V`, total over `K`."""

    key: Type
    value: Type


class Set(Struct, frozen=True):
    """`set[T]`."""

    item: Type


class Seq(Identified, frozen=True):
    """`seq[T] upto N`; a computed sequence has no limit yet."""

    incidental: ClassVar = frozenset({"limit"})
    item: Type
    limit: tree.Expr | None = None


class Bag(Identified, frozen=True):
    """`bag[T] upto N`; a computed bag has no limit yet."""

    incidental: ClassVar = frozenset({"limit"})
    item: Type
    limit: tree.Expr | None = None


class PartialMap(Struct, frozen=True):
    """`map[K, V]`: some keys have a value."""

    key: Type
    value: Type


class Unknown(Struct, frozen=True):
    """A type not (yet) known: of the item of `{}` or `none`, or of an expression with a reported error."""


Type = Bool | Int | Enum | Sort | Option | Record | Union | Map | Set | Seq | Bag | PartialMap | Unknown

BOOL = Bool()
INT = Int()
MAX_TUPLE = 9  # parts: their numbers are in order as texts, which fields of records are sorted by


def tuple_of(items: Sequence[Type]) -> Record:
    """The type of tuples with these parts."""
    return Record(tuple((str(number), item) for number, item in enumerate(items, 1)))


UNKNOWN = Unknown()


def show(kind: Type) -> str:
    """The type as a spec would write it, without bounds."""
    match kind:
        case Bool():
            return "bool"
        case Int():
            return "int"
        case Enum() | Sort() | Union():
            return kind.name
        case Option(item=Unknown()):
            return "none"
        case Option():
            return f"{_operand(kind.item)}?"
        case Record(is_tuple=True):
            return "(" + ", ".join(show(item) for _, item in kind.fields) + ")"
        case Record():
            return "{ " + ", ".join(f"{name}: {show(item)}" for name, item in kind.fields) + " }"
        case Map():
            return f"{_operand(kind.key)} -> {show(kind.value)}"
        case Set() | Seq() | Bag():
            return f"{type(kind).__name__.lower()}[{show(kind.item)}]"
        case PartialMap():
            return f"map[{show(kind.key)}, {show(kind.value)}]"
        case Unknown():
            return "?"


def _operand(kind: Type) -> str:
    """A type before `?` or `->`."""
    return f"({show(kind)})" if isinstance(kind, Map) else show(kind)


def lifts(found: Type, wanted: Type) -> bool:
    """Whether a value is lifted to a union of sorts: an element, or a set of elements, of one of them."""
    match found, wanted:
        case Sort(), Union():
            return any(record.element == found for _, record in wanted.variants)
        case Set(), Set():
            return lifts(found.item, wanted.item)
    return False


def join(a: Type, b: Type) -> Type | None:
    """The common type of both sides, unknown parts taken from the other side; None if there is none.

    `join(Option(Unknown), Option(Int))` is `Option(Int)`; ranges join to plain `int`.
    """
    if a is b:  # in most joins: declared types are resolved once
        return a
    match a, b:
        case Unknown(), _:
            return b
        case _, Unknown():
            return a
        # Which range is larger depends on the model, so only one and the same declaration keeps its bounds.
        case Int(), Int():
            return a if a.low is b.low and a.high is b.high else INT
        case Seq(), Seq():
            item = join(a.item, b.item)
            return None if item is None else Seq(item, a.limit or b.limit)
        case (Option(item=x), Option(item=y)) | (Set(item=x), Set(item=y)) | (Bag(item=x), Bag(item=y)):
            item = join(x, y)
            return None if item is None else replace(a, item=item)
        # `{}` is also how an empty bag or partial map is written.
        case Bag() | PartialMap(), Set(Unknown()):
            return a
        case Set(Unknown()), Bag() | PartialMap():
            return b
        case (Map(k, v), Map(l, w)) | (PartialMap(k, v), PartialMap(l, w)):
            key, value = join(k, l), join(v, w)
            return None if key is None or value is None else replace(a, key=key, value=value)
        case Record(), Record():
            return _join_records(a, b)
    return a if a == b else None


def _join_records(a: Record, b: Record) -> Type | None:
    if dict(a.fields).keys() != dict(b.fields).keys():
        return None
    fields = []
    for name, item in b.fields:
        joined = join(dict(a.fields)[name], item)
        if joined is None:
            return None
        fields.append((name, joined))
    return Record(tuple(fields))


def parts(kind: Type) -> tuple[Type, ...]:
    """The types of which a type is composed, one level down."""
    match kind:
        case Option() | Set() | Seq() | Bag():
            return (kind.item,)
        case Map() | PartialMap():
            return kind.key, kind.value
        case Record():
            return tuple(item for _, item in kind.fields)
        case Union():
            return tuple(record for _, record in kind.variants)
    return ()


def has_partial_map(kind: Type) -> bool:
    """Whether values of the type contain a partial map."""
    return isinstance(kind, PartialMap) or any(map(has_partial_map, parts(kind)))


def is_complete(kind: Type) -> bool:
    """Whether no part of the type is unknown."""
    return kind != UNKNOWN and all(map(is_complete, parts(kind)))


def unbounded_part(kind: Type) -> str | None:
    """The part that makes the type infinite (`int`, `seq` without limit), or None for a finite type."""
    match kind:
        case Int(high=None):
            return "int"
        case Seq(limit=None) | Bag(limit=None):
            return show(kind)
    return next(filter(None, map(unbounded_part, parts(kind))), None)


def enumerable(kind: Type) -> bool:
    """Whether the values of a type can be listed once a model fixes the bounds."""
    return unbounded_part(kind) is None and not has_partial_map(kind)
