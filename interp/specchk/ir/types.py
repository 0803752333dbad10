"""Types of the core: every bound is a number, and every type is finite.

Integers carry the interval that their values can be shown to lie in, computed bottom-up by
`ir.ops`; a declared range is such an interval too.  `horizon` marks integers that come from a
`nat upto N`: their upper end is a limit of enumeration, not of the protocol, and the symbolic
engine ignores it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import comb, prod
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from specchk.identity import Described


class Bool(Described, frozen=True):
    """False, True."""


class Int(Described, frozen=True):
    """Integers from `low` to `high`, both included."""

    low: int
    high: int
    horizon: bool = False


class Enum(Described, frozen=True):
    """Values are indexes into `members`."""

    name: str
    members: tuple[str, ...]


class Sort(Described, frozen=True):
    """Values are indexes into `members`, which are interchangeable."""

    name: str
    members: tuple[str, ...]


class Option(Described, frozen=True):
    """`()` or `(x,)`."""

    item: Type


class Record(Described, frozen=True):
    """A tuple in the order of `fields`, which are sorted by name.

    Those of the language's tuples are numbers, as in `lang.check.types`.
    """

    fields: tuple[tuple[str, Type], ...]

    @property
    def is_tuple(self) -> bool:
        """Whether the parts have no names."""
        return self.fields[:1] != () and self.fields[0][0] == "1"

    @property
    def element(self) -> Type | None:
        """The type of the elements of a union variant that is a sort."""
        return self.fields[0][1] if self.fields[:1] != () and self.fields[0][0] == "" else None

    def index(self, name: str) -> int:
        """The position of a field."""
        return [field for field, _ in self.fields].index(name)


class Union(Described, frozen=True):
    """A pair of the variant's index and its record."""

    name: str
    variants: tuple[tuple[str, Record], ...]

    def index(self, tag: str) -> int:
        """The position of a variant."""
        return [name for name, _ in self.variants].index(tag)


class Map(Described, frozen=True):
    """A tuple with one value for each key, in the order of the key type's values."""

    key: Type
    value: Type


BITS_FOR_A_SLOT = 16  # an item of a set takes 9 to 16 bits in most specs, and single bits are faster


class Room(Struct, frozen=True, order=True):
    """The storage of packed sets: a bit per value if there are at most `dense` values, else `items` slots.

    No part of the meaning.  A search has one room for all of its sets; without slots a set over more
    values than `dense` has no packed form.
    """

    items: int = 0
    dense: int = 256

    @property
    def larger(self) -> Room:
        """The room to try after a set had more items; with more bits, too, if these were in proportion."""
        in_proportion = self.dense >= BITS_FOR_A_SLOT * self.items
        return Room(2 * self.items, max(self.dense, 2 * BITS_FOR_A_SLOT * self.items * in_proportion))

    @classmethod
    def of(cls, items: int) -> Room:
        """The room with this many slots, and with bits for as many values as take about the same space."""
        return cls(items, max(cls().dense, BITS_FOR_A_SLOT * items))


class Set(Described, frozen=True):
    """A strictly ascending tuple.

    `keyed`: a partial map, whose items are records of a `key` and a `value`, one for each key.  The code that
    builds such sets never creates two items with one key (`compile.nodes.partial_maps`), and the code that
    reads values from outside checks it.
    """

    item: Type
    room: Room = Room()
    keyed: bool = False

    @property
    def pair(self) -> tuple[Type, Type]:
        """The types of a partial map's keys and values."""
        (_, key), (_, value) = of_shape(self.item, Record).fields
        return key, value


class Seq(Described, frozen=True):
    """A tuple of at most `limit` items."""

    item: Type
    limit: int


class Bag(Described, frozen=True):
    """An ascending tuple of at most `limit` items, with repetitions."""

    item: Type
    limit: int


Type = Bool | Int | Enum | Sort | Option | Record | Union | Map | Set | Seq | Bag

BOOL = Bool()


def partial_map(key: Type, value: Type) -> Set:
    """The type of a partial map."""
    return Set(Record((("key", key), ("value", value))), keyed=True)


def is_empty(kind: Type) -> bool:
    """Whether a type is an interval without a number: the type of the items of an empty collection."""
    return isinstance(kind, Int) and kind.high < kind.low


K = TypeVar("K")
UNBOUNDED = 1 << 62  # the upper end of a range that has none
_UNCOUNTED_BITS = 4096
UNCOUNTED = 1 << _UNCOUNTED_BITS  # more than anything can be listed, stored or counted to
MAX_LISTED_BITS = 20  # a set of more than 2 ** 20 items is not listed


def cardinality(kind: Type) -> int:
    """The number of values of a type; `UNCOUNTED` if there are that many or more."""
    return min(_cardinality(kind), UNCOUNTED)


def _cardinality(kind: Type) -> int:
    match kind:
        case Bool():
            return 2
        case Int():
            return max(0, kind.high - kind.low + 1)
        case Enum() | Sort():
            return len(kind.members)
        case Option():
            return 1 + cardinality(kind.item)
        case Record():
            return prod(cardinality(item) for _, item in kind.fields)
        case Union():
            return sum(cardinality(record) for _, record in kind.variants)
        case Map():
            return power(cardinality(kind.value), cardinality(kind.key))
        case Set():
            return power(2, cardinality(kind.item))
        case Seq():
            size = cardinality(kind.item)
            # 1 + size + size ** 2 + ...
            return kind.limit + 1 if size == 1 else (size * power(size, kind.limit) - 1) // (size - 1)
        case Bag():
            return _choices(cardinality(kind.item) + kind.limit, kind.limit)


# Computed collections have larger limits than declared ones: `s ++ s` is longer than any variable.  So counts
# are exact as far as any search could count, and no number is built that exceeds memory.
def power(base: int, exponent: int) -> int:
    """`base ** exponent`; `UNCOUNTED` if it is that much or more."""
    if base > 1 and (base.bit_length() - 1) * exponent >= _UNCOUNTED_BITS:
        return UNCOUNTED
    return min(int(base**exponent), UNCOUNTED)


def _choices(count: int, chosen: int) -> int:
    """The number of ways to choose a number of items from a number of values."""
    few = min(chosen, count - chosen)
    # Each of these things is one of count // few at least that no other is.
    if few and ((count // few).bit_length() - 1) * few >= _UNCOUNTED_BITS:
        return UNCOUNTED
    return comb(count, few)


class DifferentKeys(Exception):
    """Two maps have different keys: no value of one type is a value of the other."""


def same_keys(a: Map, b: Map) -> bool:
    """Whether two map types have the same keys; a map without keys has no declared type yet."""
    known = cardinality(a.key) and cardinality(b.key)
    return not known or (fits(a.key, b.key) and fits(b.key, a.key))


def fits(found: Type, wanted: Type) -> bool:
    """Whether every value of `found` is a value of `wanted` (same shape, intervals within)."""
    # The items of an empty collection may go anywhere, whatever their shape.
    if found is wanted or is_empty(found):
        return True
    match found, wanted:
        case Int(), Int():
            return wanted.low <= found.low and found.high <= wanted.high
        case (Option(item=x), Option(item=y)) | (Set(item=x), Set(item=y)):
            return fits(x, y)
        case (Seq(x, limit), Seq(y, most)) | (Bag(x, limit), Bag(y, most)):
            return limit <= most and (limit == 0 or fits(x, y))
        case Map(), Map():
            return same_keys(found, wanted) and fits(found.value, wanted.value)
        case Record(), Record():
            return all(fits(a, b) for (_, a), (_, b) in zip(found.fields, wanted.fields, strict=True))
        case Union(), Union():
            return all(fits(a, b) for (_, a), (_, b) in zip(found.variants, wanted.variants, strict=True))
    return found == wanted


def of_shape(kind: Type, shape: type[K]) -> K:
    """A type with a known shape."""
    assert isinstance(kind, shape)
    return kind


def item_of(kind: Type) -> Type:
    """The type of the items of a set, sequence or bag, or of the content of an option."""
    assert isinstance(kind, Option | Set | Seq | Bag)
    return kind.item


def components(kind: Type) -> Iterator[Type]:
    """The type itself, and the types of all parts of its values except the keys of maps."""
    yield kind
    match kind:
        case Option() | Set() | Seq() | Bag():
            yield from components(kind.item)
        case Map():
            yield from components(kind.value)
        case Record():
            for _, part in kind.fields:
                yield from components(part)
        case Union():
            for _, record in kind.variants:
                yield from components(record)


def numbers(kind: Type) -> Iterator[Int]:
    """The types of the numbers in values of the type, including those in map keys."""
    for part in components(kind):
        if isinstance(part, Int):
            yield part
        elif isinstance(part, Map):
            yield from numbers(part.key)


def has_horizon(kind: Type) -> bool:
    """Whether values of the type contain numbers of a `nat upto` type."""
    return any(number.horizon for number in numbers(kind))


def has_horizon_keys(kind: Type) -> bool:
    """Whether values of the type contain maps whose keys contain numbers of a `nat upto` type."""
    return any(isinstance(part, Map) and has_horizon(part.key) for part in components(kind))


def hull(a: Type, b: Type) -> Type:
    """The smallest type of the common shape that contains the values of both; may raise `DifferentKeys`."""
    if is_empty(a) or is_empty(b):  # no value of one: all are the other's
        return b if is_empty(a) else a
    match a, b:
        case Int(), Int():
            return Int(min(a.low, b.low), max(a.high, b.high), a.horizon or b.horizon)
        case Option(), Option():
            return Option(hull(a.item, b.item))
        case Set(), Set():
            return Set(hull(a.item, b.item), max(a.room, b.room), a.keyed or b.keyed)
        case (Seq(x, n), Seq(y, m)) | (Bag(x, n), Bag(y, m)):
            if n and m:  # a collection of limit 0 has no items, whatever their type
                return replace(a, item=hull(x, y), limit=max(n, m))
            return replace(a, item=x if n else y, limit=max(n, m))
        case Map(), Map():
            if not same_keys(a, b):
                raise DifferentKeys(f"a map from {show(a.key)} is not a map from {show(b.key)}")
            return Map(a.key if cardinality(a.key) else b.key, hull(a.value, b.value))
        case Record(), Record():
            pairs = zip(a.fields, b.fields, strict=True)
            return Record(tuple((name, hull(x, y)) for (name, x), (_, y) in pairs))
        case Union(), Union():
            pairs_ = zip(a.variants, b.variants, strict=True)
            return Union(a.name, tuple((tag, of_shape(hull(x, y), Record)) for (tag, x), (_, y) in pairs_))
    return a


def same_shape(a: Type, b: Type) -> bool:
    """Whether two types differ at most in intervals and limits; a type without values has every shape."""
    if is_empty(b):
        return True
    match a, b:
        case Int(), Int():
            return True
        case Option() | Set() | Seq() | Bag(), Option() | Set() | Seq() | Bag():
            return type(a) is type(b) and same_shape(a.item, b.item)
        case Map(), Map():
            return same_keys(a, b) and same_shape(a.value, b.value)
        case Record(), Record():
            return _same_parts(a.fields, b.fields)
        case Union(), Union():
            return a.name == b.name and _same_parts(a.variants, b.variants)
    return a == b


def _same_parts(a: Sequence[tuple[str, Type]], b: Sequence[tuple[str, Type]]) -> bool:
    return len(a) == len(b) and all(x == y and same_shape(s, t) for (x, s), (y, t) in zip(a, b, strict=True))


def show(kind: Type) -> str:
    """The type as written in a spec."""
    match kind:
        case Bool():
            return "bool"
        case Int():
            return f"nat upto {kind.high}" if kind.horizon and kind.low == 0 else f"{kind.low}..{kind.high}"
        case Enum() | Sort() | Union():
            return kind.name
        case Option():
            return f"({show(kind.item)})?" if isinstance(kind.item, Map) else f"{show(kind.item)}?"
        case Record(is_tuple=True):
            return "(" + ", ".join(show(item) for _, item in kind.fields) + ")"
        case Record():
            return "{ " + ", ".join(f"{name}: {show(item)}" for name, item in kind.fields) + " }"
        case Map():
            key = f"({show(kind.key)})" if isinstance(kind.key, Map) else show(kind.key)
            return f"{key} -> {show(kind.value)}"
        case Set(keyed=True):
            return f"map[{show(kind.pair[0])}, {show(kind.pair[1])}]"
        case Set():
            return f"set[{show(kind.item)}]"
        case Seq():
            return f"seq[{show(kind.item)}] upto {kind.limit}"
        case Bag():
            return f"bag[{show(kind.item)}] upto {kind.limit}"
