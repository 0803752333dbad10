"""Values of the core with open parts: trees in the shape of their type.

| type | tree |
|---|---|
| bool | a truth value (`bools`) |
| int, enum, sort | a number (`numbers`) |
| record, K -> V | a tuple of trees |
| T? | `Opt`: whether there is one, and what it is then |
| union | `Tagged`: which variant, and the record of each |
| set | `SetOf`: items, each with a guard; `RangeOf`: all numbers between two ends |
| seq | `SeqOf`: a length and slots; those from the length on mean nothing |
| bag | `BagOf`: items, each with a guard, as often as they are listed |

`lift` makes a tree of a core value, `plain` is its inverse where everything is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import z3
from msgspec import Struct

from specchk.ir.nodes import Value
from specchk.ir.types import Bag, Bool, Map, Option, Record, Seq, Set, Type, Union
from specchk.symbolic.induction.encode.bools import Truth, both, conj, negation
from specchk.symbolic.induction.encode.numbers import Cases, Number, ways

Tree = Any
# A structure of a few parts with a few values each; beyond this, the list is longer than the term.
MAX_WAYS = 1024  # of a structure whose parts are listed


class CannotEncode(Exception):
    """A construct without an encoding; the evaluator adds its place."""


class Opt(Struct, frozen=True):
    """An option; `item` is None if `present` is decided to be False."""

    present: Truth
    item: Tree


class Tagged(Struct, frozen=True):
    """A union: one record for each variant; None for impossible variants."""

    tag: Number
    records: tuple[Tree, ...]


class SetOf(Struct, frozen=True):
    """A set: items and guards.  `listed`: all items are decided and distinct, ascending in core's order."""

    items: tuple[tuple[Tree, Truth], ...]
    listed: bool


class RangeOf(Struct, frozen=True):
    """All numbers from `low` to `high`, or without an upper end."""

    low: Number
    high: Number | None


class SeqOf(Struct, frozen=True):
    """A sequence: the first `length` of the slots."""

    length: Number
    slots: tuple[Tree, ...]


class BagOf(Struct, frozen=True):
    """A bag: the items whose guards hold, in no order."""

    items: tuple[tuple[Tree, Truth], ...]


Expanded = list[tuple[Value, Truth]]  # the possible values of a tree, with guards
Structure = Opt | Tagged | SetOf | RangeOf | SeqOf | BagOf


def lift(value: Value, kind: Type) -> Tree:
    """A core value as a tree."""
    match kind:
        case Bool():
            return bool(value)
        case Option():
            assert isinstance(value, tuple)
            return Opt(True, lift(value[0], kind.item)) if value else Opt(False, None)
        case Record():
            assert isinstance(value, tuple)
            return tuple([lift(v, part) for v, (_, part) in zip(value, kind.fields, strict=True)])
        case Union():
            assert isinstance(value, tuple)
            tag = value[0]
            assert isinstance(tag, int)
            return tagged(tag, lift(value[1], kind.variants[tag][1]), len(kind.variants))
        case Map():
            assert isinstance(value, tuple)
            return tuple([lift(v, kind.value) for v in value])
        case Set() | Seq() | Bag():
            assert isinstance(value, tuple)
            return collection([lift(v, kind.item) for v in value], kind)
    return value


def collection(items: Sequence[Tree], kind: Set | Seq | Bag) -> Tree:
    """The collection of some items, distinct and ascending in a set."""
    match kind:
        case Set():
            return SetOf(tuple([(item, True) for item in items]), listed=True)
        case Bag():
            return BagOf(tuple([(item, True) for item in items]))
        case Seq():
            return SeqOf(len(items), tuple(items))


def tagged(tag: int, record: Tree, variants: int) -> Tagged:
    """A union whose variant is decided."""
    return Tagged(tag, tuple([record if other == tag else None for other in range(variants)]))


def plain(tree: Tree) -> Value | None:
    """The core value of a tree without open parts, else None."""
    values = expanded(tree, 1)
    return values[0][0] if values is not None and len(values) == 1 else None


def expanded(tree: Tree, limit: int = MAX_WAYS) -> Expanded | None:
    """The possible core values of a tree, with guards; None if they are too many or cannot be listed."""
    match tree:
        case bool():
            return [(tree, True)]
        case int() | Cases():
            listed = ways(tree)
            return list(listed) if listed is not None and len(listed) <= limit else None
        case tuple():
            return _product([expanded(part, limit) for part in tree], limit)
        case Opt():
            return _expanded_option(tree, limit)
        case Tagged():
            return _by_way(tree.tag, limit, lambda tag: [[(tag, True)], expanded(tree.records[tag], limit)])
        case SeqOf():
            return _by_way(tree.length, limit, lambda n: [expanded(slot, limit) for slot in tree.slots[:n]])
        case SetOf() | BagOf():
            return _expanded_collection(tree, limit)
    return [(False, negation(tree)), (True, tree)] if is_truth(tree) and limit > 1 else None


def _product(parts: Sequence[Expanded | None], limit: int) -> Expanded | None:
    # Before anything is listed: the product of ten parts may have millions of rows.
    if prod(len(part) if part is not None else limit + 1 for part in parts) > limit:
        return None
    rows = product(*[part for part in parts if part is not None])
    return [(tuple([v for v, _ in row]), conj([g for _, g in row])) for row in rows]


def _expanded_option(tree: Opt, limit: int) -> Expanded | None:
    if tree.present is False:
        return [((), True)]
    items = expanded(tree.item, limit)
    # `none` is one more value, unless there certainly is an item.
    if items is None or len(items) + (tree.present is not True) > limit:
        return None
    rows: Expanded = [((v,), both(tree.present, g)) for v, g in items]
    return rows if tree.present is True else [((), negation(tree.present)), *rows]


def _by_way(
    number: Number, limit: int, parts_of: Callable[[int], Sequence[Expanded | None]]
) -> Expanded | None:
    """The values for each value of a tag or a length, which decides the parts."""
    listed = ways(number)
    if listed is None:  # a term has no list, which is not an empty one
        return None
    rows: Expanded = []
    for value, guard in listed:
        values = _product(parts_of(value), limit)
        if values is None:
            return None
        rows += [(one, both(guard, g)) for one, g in values]
    return rows if len(rows) <= limit else None


def _expanded_collection(tree: SetOf | BagOf, limit: int) -> Expanded | None:
    options = [_expanded_option(Opt(guard, item), limit) for item, guard in tree.items]
    rows = _product(options, limit)
    if rows is None:
        return None
    joined: Expanded = []
    for row, guard in rows:
        assert isinstance(row, tuple)
        items = [part[0] for part in row if part]  # type: ignore[index]
        # Rows of different choices may give the same value; callers take the disjunction of their guards.
        joined.append((tuple(sorted(set(items) if isinstance(tree, SetOf) else items)), guard))
    return joined


def decided(tree: Tree, value: Value) -> Tree:
    """The tree of a value returned by `expanded` for a tree."""
    match tree:
        case tuple():
            assert isinstance(value, tuple)
            return tuple([decided(part, v) for part, v in zip(tree, value, strict=True)])
        case Opt():
            return Opt(True, decided(tree.item, value[0])) if value else Opt(False, None)  # type: ignore[index]
        case Tagged():
            tag: int = value[0]  # type: ignore[index, assignment]
            return tagged(tag, decided(tree.records[tag], value[1]), len(tree.records))  # type: ignore[index]
        case SetOf() | BagOf() | SeqOf():
            raise CannotEncode("a set whose items are collections that are not decided")
    return value


def is_truth(a: Any) -> bool:
    """Whether a leaf is a truth value."""
    return isinstance(a, bool | z3.BoolRef)
