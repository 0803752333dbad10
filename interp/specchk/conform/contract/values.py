"""Values of a spec as plain Python objects, for authors of bindings, and back.

| type | plain |
|---|---|
| bool, int | the same |
| enum, sort | the name |
| T? | None, or the value (`Some` around it where T is an option too) |
| (A, B) | a tuple |
| record, K -> V | a mapping, by field name or by key |
| union | (variant's name, mapping of its fields); the name of an element of a sort |
| set, seq, bag | frozenset, tuple, ascending tuple |

`plain` and `raw` are exact inverses on the values of a type.  `raw` takes any mapping and any
iterable where it gives `Table` and tuples, and refuses what is not a value of the type.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AnySet
from functools import lru_cache
from typing import Any

from msgspec import Struct

from specchk.ir.nodes import Value
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.ir.types import show as show_type
from specchk.meaning.values import pairs_of, positions, show

MAPPINGS = (dict, Mapping)  # which is tried first
COLLECTIONS = (set, frozenset, AnySet, Sequence)
Reader = Callable[[Any], Value]
REMEMBERED = 4096  # values of a variable


class NotAValue(Exception):
    """A plain object that is not a value of the expected type; `path` is its place in the whole value.

    `is_beyond`: it is a number above the horizon of its type, so that a model with a larger one may have it.
    `is_name`: it is no member of a sort, or lacks one as a key.
    """

    def __init__(
        self, message: str, path: str = "", *, is_beyond: bool = False, is_name: bool = False
    ) -> None:
        self.message = message
        self.path = path
        self.is_beyond = is_beyond
        self.is_name = is_name
        super().__init__(f"{path}: {message}" if path else message)

    def inside(self, place: str) -> NotAValue:
        """The same error, with its path extended by the enclosing `place`."""
        return NotAValue(self.message, place + self.path, is_beyond=self.is_beyond, is_name=self.is_name)


class Some(Struct, frozen=True):
    """An option that is present, for options whose items are options."""

    value: Any


class Table(Mapping[Any, Any]):
    """A mapping that can be an element of a set; equal to any mapping with the same items."""

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


# Classes of immutable plain values: facts about an object remain true.
LASTING = frozenset({bool, int, float, str, type(None), frozenset, Table})


@lru_cache(maxsize=4096)
def _keys(kind: Type) -> tuple[tuple[Any, str], ...]:
    """The plain keys of a map in the order of its values, each with its text in a spec."""
    return tuple((plain(key, kind), show(key, kind)) for key in positions(kind))


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
        case Record(is_tuple=True):
            return tuple(plain(item, part) for (_, part), item in zip(kind.fields, value, strict=True))
        case Record():
            return _fields(value, kind)
        case Union():
            name, fields = kind.variants[value[0]]
            if fields.element is not None:
                return show(value, kind)
            return name, _fields(value[1], fields)
        case Map():
            pairs = zip(_keys(kind.key), value, strict=True)
            return Table((key, plain(item, kind.value)) for (key, _), item in pairs)
        case Set(keyed=True):
            key_kind, item_kind = kind.pair
            return Table((plain(key, key_kind), plain(item, item_kind)) for key, item in pairs_of(value))
        case Set():
            return frozenset(plain(item, kind.item) for item in value)
        case Seq() | Bag():
            return tuple(plain(item, kind.item) for item in value)


def _fields(value: Any, kind: Record) -> Table:
    return Table((name, plain(item, part)) for (name, part), item in zip(kind.fields, value, strict=True))


def words(given: Any) -> str:
    """A plain value as written in a spec, as far as possible without its type; set elements are sorted."""
    match given:
        case None:
            return "none"
        case bool():
            return "true" if given else "false"
        case Some(value):
            return f"some({words(value)})"
        case AnySet():
            # A text that came by hash would be another one in each process.
            is_numbers = all(isinstance(item, int) for item in given)
            items = map(words, sorted(given)) if is_numbers else sorted(map(words, given))
            return "{" + ", ".join(items) + "}"
        case Mapping():
            pairs = ", ".join(f"{words(key)}: {words(item)}" for key, item in given.items())
            return "{ " + pairs + " }" if pairs else "{}"
        case list():
            return "[" + ", ".join(map(words, given)) + "]"
        case tuple():
            return "(" + ", ".join(map(words, given)) + ")"
    return str(given)


def raw(given: Any, kind: Type) -> Value:
    """The value whose plain form is `found`; raises `NotAValue`."""
    return reader(kind)(given)


@lru_cache(maxsize=4096)
def reader(kind: Type) -> Reader:
    """`raw` for one type; the type is analysed only once, since a projection is read after every step."""
    match kind:
        case Bool() | Int() | Enum() | Sort():
            return _scalar(kind)
        case Option():
            return _option(kind)
        case Record(is_tuple=True):
            return _tuple(kind)
        case Record():
            return _mapping(kind, tuple((name, f".{name}", reader(part)) for name, part in kind.fields))
        case Union():
            return _union(kind)
        case Map():
            value = reader(kind.value)
            return _mapping(kind, tuple((key, f"[{shown}]", value) for key, shown in _keys(kind.key)))
        case Set(keyed=True):
            return _partial_map(kind)
        case Set():
            items = _items(kind.item, COLLECTIONS)
            # Raw values have an order and plain ones need not have one.
            return lambda given: tuple(sorted(set(items(given))))
        case Seq():
            return _limited(_items(kind.item, (Sequence,)), kind)
        case Bag():
            unordered = _items(kind.item, (Sequence,))
            return _limited(lambda given: tuple(sorted(unordered(given))), kind)


def _scalar(kind: Bool | Int | Enum | Sort) -> Reader:
    def truth(given: Any) -> Value:
        if isinstance(given, bool):
            return given
        raise _wrong(given, kind)

    def number(given: Any) -> Value:
        # Python's `True` is 1; a projection that mixes them up is a mistake to be shown.
        if not isinstance(given, int) or isinstance(given, bool):
            raise _wrong(given, kind)
        if low <= given <= high:
            return given
        raise _wrong(given, kind, is_beyond=has_horizon and given > high)

    def name(given: Any) -> Value:
        if given in members:
            return members.index(given)
        raise _wrong(given, kind)

    match kind:
        case Bool():
            return truth
        case Int():
            low, high, has_horizon = kind.low, kind.high, kind.horizon
            return number
        case Enum() | Sort():
            members = kind.members
            return name


def _option(kind: Option) -> Reader:
    item, is_nested = reader(kind.item), isinstance(kind.item, Option)

    def option(given: Any) -> Value:
        if given is None:
            return ()
        if not is_nested:
            return (item(given),)
        if not isinstance(given, Some):
            raise _wrong(given, kind)
        return (item(given.value),)

    return option


def _tuple(kind: Record) -> Reader:
    readers = [reader(part) for _, part in kind.fields]

    def parts(given: Any) -> Value:
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != len(readers):
            raise _wrong(given, kind)
        return tuple([read(item) for read, item in zip(readers, given, strict=True)])

    return parts


def _partial_map(kind: Set) -> Reader:
    key, value = map(reader, kind.pair)

    def partial_map(given: Any) -> Value:
        if not isinstance(given, MAPPINGS):
            raise _wrong(given, kind)
        pairs = []
        for at, item in given.items():
            try:
                pairs.append((key(at), value(item)))
            except NotAValue as error:
                raise error.inside(f"[{at}]") from None
        return tuple(sorted(pairs))

    return partial_map


def _mapping(kind: Record | Map, parts: tuple[tuple[Any, str, Reader], ...]) -> Reader:
    """A reader of mappings with exactly these keys; errors contain the place of each part."""

    def mapping(given: Any) -> Value:
        # The number first: one key too many would not be missed below.
        if not isinstance(given, MAPPINGS) or len(given) != len(parts):
            raise _wrong(given, kind)
        values = []
        for key, place, read in parts:
            if key not in given:
                raise _wrong(given, kind)
            try:
                values.append(read(given[key]))
            except NotAValue as error:
                # The path grows on the way out, so that it names the place from the outside.
                raise error.inside(place) from None
        return tuple(values)

    return mapping


def _union(kind: Union) -> Reader:
    tags = [name for name, _ in kind.variants]
    fields = [reader(record) for _, record in kind.variants]

    elements = {show((index, (at,)), kind): (index, (at,)) for index, (_, record) in enumerate(kind.variants)
                if isinstance(record.element, Sort) for at in range(len(record.element.members))}  # fmt: skip

    def union(given: Any) -> Value:
        if isinstance(given, str) and given in elements:
            return elements[given]
        if not isinstance(given, tuple) or len(given) != 2 or given[0] not in tags:
            raise _wrong(given, kind)
        tag = tags.index(given[0])
        return tag, fields[tag](given[1])

    return union


def _items(item: Type, wanted: tuple[Any, ...]) -> Callable[[Any], tuple[Value, ...]]:
    read = reader(item)

    def items(given: Any) -> tuple[Value, ...]:
        if not isinstance(given, wanted) or isinstance(given, str):
            raise NotAValue(f"{_shown(given)} is not a collection of {show_type(item)}")
        return tuple([read(value) for value in given])

    return items


def _limited(items: Callable[[Any], tuple[Value, ...]], kind: Seq | Bag) -> Reader:
    def limited(given: Any) -> Value:
        values = items(given)
        if len(values) > kind.limit:
            raise NotAValue(f"{len(values)} items exceed the limit of {show_type(kind)}")
        return values

    return limited


def _wrong(given: Any, kind: Type, *, is_beyond: bool = False) -> NotAValue:
    is_name = isinstance(kind.key if isinstance(kind, Map) else kind, Sort)
    message = f"{_shown(given)} is not a value of {show_type(kind)}"
    return NotAValue(message, is_beyond=is_beyond, is_name=is_name)


def _shown(given: Any) -> str:
    """The text of a given value: Python's, but the spec's for collections, which may contain sets."""
    return words(given) if isinstance(given, AnySet | Mapping | list | tuple) else repr(given)


def remembered(read: Reader) -> Reader:
    """A reader with a cache: most variables have few values, in however many states."""
    known: dict[bytes, Value] = {}

    def again(given: Any) -> Value:
        try:
            # Equal only for equal values of the same types.  Version 2 has no references, so that equal
            # values in other objects have the same bytes.
            packed = marshal.dumps(given, 2)
        except ValueError:
            return read(given)
        if packed not in known:
            if len(known) == REMEMBERED:
                known.clear()
            known[packed] = read(given)
        return known[packed]

    return again
