"""The shapes of trees: the decided parts of a state in which only the offsets are open.

`opened`: a value with None in place of offsets as a tree, with a number for each.  `outlines`: the values
that a tree may have, again with None for its offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from math import prod
from typing import Any

import z3
from msgspec import Struct
from msgspec.structs import replace

from specchk.ir import types
from specchk.ir.types import Type, cardinality, has_horizon
from specchk.symbolic.induction.encode.bools import Truth, disj, negation
from specchk.symbolic.induction.encode.numbers import Number, equal_numbers, ways
from specchk.symbolic.induction.encode.trees import CannotEncode, Opt, Tree, collection, expanded, tagged

MAX_OUTLINES = 64  # of a tree


class NotOfType(Exception):
    """A value does not have its type."""


class Undecided(Exception):
    """A tree may have too many values, apart from offsets."""


class Outline(Struct, frozen=True):
    """A possible value of a tree, with None for its offsets; `numbers` are these, under the guards."""

    guards: tuple[Truth, ...]
    value: Any
    numbers: tuple[Number, ...]


def outlines(tree: Tree, kind: Type) -> list[Outline]:
    """All values that a tree may have, apart from offsets; raises `Undecided` if they are too many.

    In each state, one of them is that of the tree, and its guards hold.
    """
    match kind:
        case types.Int() if kind.horizon:
            return [Outline((), None, (tree,))]
        case types.Option() if tree is not None:
            some = [] if tree.present is False else joined([outlines(tree.item, kind.item)])
            none = [] if tree.present is True else [Outline((negation(tree.present),), (), ())]
            return [*none, *[_under(tree.present, one) for one in some]]
        case types.Record() if tree is not None:
            return joined([outlines(part, k) for part, (_, k) in zip(tree, kind.fields, strict=True)])
        case types.Map() if tree is not None:
            return joined([outlines(part, kind.value) for part in tree])
        case types.Union() if tree is not None:
            return [
                _under(guard, replace(one, value=(tag, one.value)))
                for tag, guard in _ways(tree.tag)
                for one in outlines(tree.records[tag], kind.variants[tag][1])
            ]
        case types.Seq() if tree is not None:
            return [
                _under(guard, one)
                for size, guard in _ways(tree.length)
                for one in joined([outlines(slot, kind.item) for slot in tree.slots[:size]])
            ]
    if has_horizon(kind) or tree is None:
        raise Undecided
    rows = expanded(tree, MAX_OUTLINES) or _of_term(tree, kind)
    return [_under(guard, Outline((), value, ())) for value, guard in rows]


def _ways(number: Number) -> Sequence[tuple[int, Truth]]:
    listed = ways(number)
    if listed is None:  # too many, not none: values that are left out here would not be checked
        raise Undecided
    return listed


def _of_term(tree: Tree, kind: Type) -> list[tuple[Any, Truth]]:
    """The values of a term without cases, and None for all values beyond its type."""
    if not isinstance(kind, types.Int | types.Enum | types.Sort) or cardinality(kind) > MAX_OUTLINES:
        raise Undecided
    first = kind.low if isinstance(kind, types.Int) else 0
    rows = [(value, equal_numbers(tree, value)) for value in range(first, first + cardinality(kind))]
    return [*rows, (None, negation(disj([guard for _, guard in rows])))]


def joined(parts: Sequence[Sequence[Outline]]) -> list[Outline]:
    """The values of a tuple of parts; raises `Undecided` if they are too many."""
    if prod(map(len, parts)) > MAX_OUTLINES:
        raise Undecided
    return [
        Outline(
            tuple([guard for one in row for guard in one.guards]),
            tuple([one.value for one in row]),
            tuple([number for one in row for number in one.numbers]),
        )
        for row in product(*parts)
    ]


def _under(guard: Truth, one: Outline) -> Outline:
    return one if guard is True else replace(one, guards=(guard, *one.guards))


def opened(value: Any, kind: Type, names: list[str], name: str) -> Tree:
    """A value with None for offsets as a tree with new numbers, whose names are added to a list.

    Raises `NotOfType` if the value does not have the type.
    """
    match kind:
        case types.Int() if kind.horizon:
            if value is None:
                names.append(f"{name}.{len(names) + 1}")
                return z3.Int(names[-1])
        case types.Bool() if isinstance(value, int) and value in (0, 1):
            return bool(value)
        case types.Int() if _is_number(value) and kind.low <= value <= kind.high:
            return value
        case types.Enum() | types.Sort() if _is_number(value) and 0 <= value < len(kind.members):
            return value
        case types.Union() if _is_pair(value) and 0 <= value[0] < len(kind.variants):
            record = opened(value[1], kind.variants[value[0]][1], names, name)
            return tagged(value[0], record, len(kind.variants))
        case types.Set() | types.Bag() if has_horizon(kind):
            raise CannotEncode("offsets are kept in a set or a bag")
    kinds = _kinds(value, kind) if isinstance(value, tuple) else None
    if kinds is None or len(kinds) != len(value):
        raise NotOfType
    trees = tuple([opened(part, inner, names, name) for part, inner in zip(value, kinds, strict=True)])
    match kind:
        case types.Option():
            return Opt(True, trees[0]) if trees else Opt(False, None)
        case types.Set() | types.Bag() | types.Seq():
            return collection(trees, kind)
    return trees


def _kinds(value: tuple[Any, ...], kind: Type) -> Sequence[Type] | None:
    """The types of the parts of a value, if their number is possible."""
    match kind:
        case types.Record():
            return [part for _, part in kind.fields]
        case types.Map():
            return [kind.value] * cardinality(kind.key)
        case types.Option():
            return [kind.item] * min(len(value), 1)
        case types.Seq() | types.Bag():
            return [kind.item] * min(len(value), kind.limit)
        case types.Set() if all(a < b for a, b in pairwise(value)):
            return [kind.item] * len(value)
    return None


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and _is_number(value[0])


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
