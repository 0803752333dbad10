"""Operations common to all types of trees: `merge`, `equal`, and the rules of sets.

`merge` puts the condition into the leaves, so that the parts in which two trees agree stay unchanged; a step
changes little of a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import itemgetter
from typing import Any

from specchk.ir.nodes import Value
from specchk.symbolic.induction.encode import numbers, trees
from specchk.symbolic.induction.encode.bools import Truth, both, choice, conj, disj, iff, implies, negation
from specchk.symbolic.induction.encode.numbers import Number, equal_numbers, merge_by
from specchk.symbolic.induction.encode.trees import CannotEncode, Tree, decided, expanded, is_truth, plain


def set_of(items: Iterable[tuple[Tree, Truth]]) -> trees.SetOf:
    """A set of items with guards: listed if all values of the items can be listed, else unchanged."""
    kept = [(item, guard) for item, guard in items if guard is not False]
    table: dict[Value, list[Truth]] = {}
    lifted: dict[Value, Tree] = {}
    for item, guard in kept:
        values = expanded(item)
        # Offsets among the items stay unchanged, and may be equal to one another.
        if values is None:
            return trees.SetOf(tuple(kept), listed=False)
        for value, when in values:
            table.setdefault(value, []).append(both(guard, when))
            lifted.setdefault(value, item if len(values) == 1 else decided(item, value))
    rows = [(lifted[value], disj(table[value])) for value in sorted(table)]
    return trees.SetOf(tuple([(item, guard) for item, guard in rows if guard is not False]), listed=True)


def has(among: trees.SetOf | trees.RangeOf, item: Tree) -> Truth:
    """Whether a set contains an item."""
    if isinstance(among, trees.RangeOf):
        above = numbers.at_most(among.low, item)
        return above if among.high is None else both(above, numbers.at_most(item, among.high))
    return disj([both(guard, equal(item, other)) for other, guard in among.items if guard is not False])


def same(a: Tree, b: Tree) -> bool:
    """Whether two trees are syntactically equal."""
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, trees.Opt) and isinstance(b, trees.Opt):
        # The hidden item of a `none` does not matter.
        return same(a.present, b.present) and (a.present is False or same(a.item, b.item))
    # By identity only, which is enough for parts that a step does not change.
    if any(isinstance(one, bool | tuple | trees.Structure | None) for one in (a, b)):
        return False
    return numbers.same_number(a, b)


def merge(condition: Truth, a: Tree, b: Tree) -> Tree:
    """`a` if the condition holds, else `b`; None is an irrelevant part."""
    if isinstance(condition, bool):
        return a if condition else b
    if a is None or b is None:
        return b if a is None else a
    if same(a, b):
        return a
    match a:
        case tuple():
            return tuple([merge(condition, x, y) for x, y in zip(a, b, strict=True)])
        case trees.Opt():
            return trees.Opt(choice(condition, a.present, b.present), merge(condition, a.item, b.item))
        case trees.Tagged():
            records = [merge(condition, x, y) for x, y in zip(a.records, b.records, strict=True)]
            return trees.Tagged(merge_by(condition, a.tag, b.tag), tuple(records))
        case trees.SetOf() if isinstance(b, trees.SetOf):
            return _merge_sets(condition, a, b)
        case trees.BagOf():
            # Both bags side by side, each under its condition: bags have no slots that would have to agree.
            return trees.BagOf((*_guarded(condition, a.items), *_guarded(negation(condition), b.items)))
        case trees.SeqOf():
            return _merge_seqs(condition, a, b)
        case trees.SetOf() | trees.RangeOf():
            raise CannotEncode("one of two sets, of which one is a range without a bound")
    return choice(condition, a, b) if is_truth(a) else merge_by(condition, a, b)


def _guarded(condition: Truth, items: Iterable[tuple[Tree, Truth]]) -> list[tuple[Tree, Truth]]:
    return [(item, both(condition, guard)) for item, guard in items]


def _merge_sets(condition: Truth, a: trees.SetOf, b: trees.SetOf) -> trees.SetOf:
    if not (a.listed and b.listed):
        return set_of([*_guarded(condition, a.items), *_guarded(negation(condition), b.items)])
    tables: list[dict[Any, tuple[Tree, Truth]]]
    tables = [{plain(item): (item, guard) for item, guard in each.items} for each in (a, b)]
    rows = []
    for value, (item, _) in sorted((tables[0] | tables[1]).items(), key=itemgetter(0)):
        guards = [table[value][1] if value in table else False for table in tables]
        rows.append((item, choice(condition, *guards)))
    return trees.SetOf(tuple(rows), listed=True)


def _merge_seqs(condition: Truth, a: trees.SeqOf, b: trees.SeqOf) -> trees.SeqOf:
    size = max(len(a.slots), len(b.slots))
    x, y = ([*s.slots, *([None] * (size - len(s.slots)))] for s in (a, b))
    slots = tuple([merge(condition, p, q) for p, q in zip(x, y, strict=True)])
    return trees.SeqOf(merge_by(condition, a.length, b.length), slots)


def select(rows: Sequence[tuple[Truth, Tree]]) -> Tree:
    """The tree whose guard holds; one guard does, wherever the result is used."""
    open_ = [(guard, tree) for guard, tree in rows if guard is not False]
    if not open_:
        return None
    # The last tree needs no guard: some guard holds, so it is the last one if no other does.
    return reduce(lambda rest, row: merge(row[0], row[1], rest), reversed(open_[:-1]), open_[-1][1])


def equal(a: Tree, b: Tree) -> Truth:
    """`a == b`; irrelevant parts (None) are equal to everything."""
    if a is None or b is None or same(a, b):
        return True
    match a:
        case tuple():
            return conj([equal(x, y) for x, y in zip(a, b, strict=True)])
        case trees.Opt():
            if a.present is False or b.present is False:
                return iff(a.present, b.present)
            # Items are compared only if both are present: the hidden item of a `none` is free, and would
            # differ.
            return both(iff(a.present, b.present), implies(both(a.present, b.present), equal(a.item, b.item)))
        case trees.Tagged():
            pairs = zip(a.records, b.records, strict=True)
            tags = [equal_numbers(a.tag, index) for index in range(len(a.records))]
            # Only the records of the common variant: those of other variants are meaningless leftovers.
            inside = [implies(tag, equal(x, y)) for tag, (x, y) in zip(tags, pairs, strict=True)]
            return conj([equal_numbers(a.tag, b.tag), *inside])
        case trees.SetOf() | trees.RangeOf():
            return both(subset(a, b), subset(b, a))
        case trees.SeqOf():
            inside = [
                implies(numbers.less(k, a.length), equal(x, y))
                # Up to the shorter one: if the lengths are equal, nothing follows its slots.
                for k, (x, y) in enumerate(zip(a.slots, b.slots, strict=False))
            ]
            return conj([equal_numbers(a.length, b.length), *inside])
        case trees.BagOf():
            # Equal if every item of either occurs equally often in both; the order does not matter.
            items = [item for item, _ in (*a.items, *b.items)]
            return conj([equal_numbers(count(a, item), count(b, item)) for item in items])
    return iff(a, b) if is_truth(a) else equal_numbers(a, b)


def subset(a: trees.SetOf | trees.RangeOf, b: trees.SetOf | trees.RangeOf) -> Truth:
    """Whether every item of one set is in the other."""
    if isinstance(a, trees.RangeOf):
        raise CannotEncode("a range without a bound as a set of items")
    return conj([implies(guard, has(b, item)) for item, guard in a.items])


def count(bag: trees.BagOf, item: Tree) -> Number:
    """The number of occurrences of an item in a bag."""
    return numbers.counted([both(guard, equal(item, other)) for other, guard in bag.items])


def tag_is(tree: trees.Tagged, tag: int) -> Truth:
    """Whether a union value has a given variant."""
    return equal_numbers(tree.tag, tag)
