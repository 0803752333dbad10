"""The rules for sets, sequences and bags whose items or lengths may be open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from operator import add, sub

from specchk.ir.nodes import Apply
from specchk.ir.totality import is_partial
from specchk.ir.types import MAX_LISTED_BITS, has_horizon
from specchk.symbolic.induction.encode import numbers
from specchk.symbolic.induction.encode.bools import Truth, both, conj, disj, negation
from specchk.symbolic.induction.encode.merge import equal, merge, select, set_of
from specchk.symbolic.induction.encode.numbers import Number
from specchk.symbolic.induction.encode.scope import StepScope
from specchk.symbolic.induction.encode.trees import BagOf, CannotEncode, RangeOf, SeqOf, SetOf, Tree

MAX_LISTED = 10  # of a set whose subsets are listed; each doubles them
MAX_RANGE = 1024
MAX_MAPS = 1 << MAX_LISTED


def items_of(tree: Tree) -> SetOf:
    """A set as one whose items can be iterated."""
    if isinstance(tree, RangeOf):
        raise CannotEncode("a range of offsets without a bound cannot be listed")
    assert isinstance(tree, SetOf)
    return tree


def range_of(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The set `low..high`."""
    # No range between offsets is too large, since there is no greatest offset.
    if is_partial(expr) and not has_horizon(expr.type):
        size = numbers.combine(sub, args[1], args[0])
        scope.fail(numbers.at_most(1 << MAX_LISTED_BITS, size))
    low, high = numbers.ways(args[0]), numbers.ways(args[1])
    # With an open end, or too long to list: the two ends are kept, which is all that membership and choice
    # need.
    if low is None or high is None or high[-1][0] - low[0][0] > MAX_RANGE:
        return RangeOf(args[0], args[1])
    values = range(low[0][0], high[-1][0] + 1)
    rows = [(v, both(numbers.at_most(args[0], v), numbers.at_most(v, args[1]))) for v in values]
    return SetOf(tuple([(v, guard) for v, guard in rows if guard is not False]), listed=True)


def union(a: Tree, b: Tree) -> SetOf:
    """The items of either set."""
    return set_of([*items_of(a).items, *items_of(b).items])


def distinct(listing: SetOf) -> list[tuple[Tree, Truth]]:
    """The items without duplicates: an item counts if no earlier one is equal."""
    if listing.listed:
        return list(listing.items)
    rows: list[tuple[Tree, Truth]] = []
    for item, guard in listing.items:
        again = disj([both(g, equal(item, other)) for other, g in rows])
        rows.append((item, both(guard, negation(again))))
    return rows


def cardinality(a: Tree) -> Number:
    """The number of items."""
    if isinstance(a, RangeOf) and a.high is not None:
        size = numbers.combine(sub, numbers.combine(add, a.high, 1), a.low)
        return numbers.merge_by(numbers.less(size, 0), 0, size)
    return numbers.counted([guard for _, guard in distinct(items_of(a))])


def summed(rows: Sequence[tuple[Tree, Truth]]) -> Number:
    """The sum of the numbers whose guards hold."""
    result: Number = 0
    for item, guard in rows:
        result = numbers.combine(add, result, numbers.merge_by(guard, item, 0))
    return result


def first_by(
    before: Callable[[Number, Number], Truth], rows: Sequence[tuple[Number, Truth]]
) -> tuple[Truth, Number]:
    """Whether some guard holds, and the first such item in the order `before`."""
    exists: Truth = False
    first: Number = 0
    for item, guard in rows:
        if guard is False:
            continue
        better = both(guard, disj((negation(exists), before(item, first))))
        first = numbers.merge_by(better, item, first) if exists is not False else item
        exists = disj((exists, guard))
    return exists, first


def subsets(a: Tree) -> SetOf:
    """The set of all subsets."""
    base = items_of(a)
    # Subsets are listed as their set is: items decided, distinct and ascending.
    if not base.listed or len(base.items) > MAX_LISTED:
        raise CannotEncode(f"the subsets of a set with offsets or more than {MAX_LISTED} items")
    rows = [
        (
            SetOf(tuple([(item, True) for item, _ in chosen]), listed=True),
            conj([guard for _, guard in chosen]),
        )
        for size in range(len(base.items) + 1)
        for chosen in combinations(base.items, size)
    ]
    return set_of(rows)


def maps(keys: Tree, values: Tree) -> SetOf:
    """The set of all partial maps with just these keys."""
    domain, items = items_of(keys), items_of(values)
    if not domain.listed or (1 + len(items.items)) ** len(domain.items) > MAX_MAPS:
        raise CannotEncode(f"the maps from a set with offsets, or more than {MAX_MAPS} maps")
    rows: list[tuple[tuple[Tree, ...], Truth]] = [((), True)]
    for key, is_there in domain.items:
        entries: list[tuple[tuple[Tree, ...], Truth]] = [((), negation(is_there))]
        entries += [(((key, value),), both(is_there, guard)) for value, guard in items.items]
        rows = [((*made, *entry), both(a, b)) for made, a in rows for entry, b in entries if b is not False]
    made_of = [(tuple([(pair, True) for pair in pairs]), guard) for pairs, guard in rows]
    return set_of([(SetOf(pairs, listed=items.listed), guard) for pairs, guard in made_of])


def seq_of(*items: Tree) -> SeqOf:
    """The sequence of these items."""
    return SeqOf(len(items), tuple(items))


def _at(args: Sequence[Tree], scope: StepScope) -> list[Truth]:
    """For each slot, whether it is the indexed one; a fault outside the sequence."""
    seq, index = args[0], args[1]
    inside = both(numbers.at_most(0, index), numbers.less(index, seq.length))
    scope.fail(negation(inside))
    return [numbers.equal_numbers(index, k) for k in range(len(seq.slots))]


def seq_get(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """`seq[index]`."""
    return select(list(zip(_at(args, scope), args[0].slots, strict=True)))


def seq_set(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The sequence with one item replaced."""
    guards = _at(args, scope)
    slots = [merge(guard, args[2], old) for guard, old in zip(guards, args[0].slots, strict=True)]
    return SeqOf(args[0].length, tuple(slots))


def concat(a: SeqOf, b: SeqOf) -> SeqOf:
    """The concatenation of two sequences."""
    size = len(a.slots) + len(b.slots)
    slots = []
    for k in range(size):
        # Slot k of the result is one of the first sequence's, or slot j of the second one, if that begins at
        # k - j.
        rows = [(numbers.less(k, a.length), a.slots[k])] if k < len(a.slots) else []
        rows += [
            (numbers.equal_numbers(a.length, k - j), slot)
            for j, slot in enumerate(b.slots)
            if 0 <= k - j <= len(a.slots)
        ]
        slots.append(select(rows))
    return SeqOf(numbers.combine(add, a.length, b.length), tuple(slots))


def _cut_inside(seq: SeqOf, size: Number, scope: StepScope) -> None:
    inside = both(numbers.at_most(0, size), numbers.at_most(size, seq.length))
    scope.fail(negation(inside))


def prefix(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The first n items of a sequence."""
    seq, size = args
    _cut_inside(seq, size, scope)
    return SeqOf(size, seq.slots)


def suffix(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The items of a sequence from the n-th on."""
    seq, size = args
    _cut_inside(seq, size, scope)
    count_ = len(seq.slots)
    slots = [
        select([(numbers.equal_numbers(size, shift), seq.slots[k + shift]) for shift in range(count_ - k)])
        for k in range(count_)
    ]
    left = numbers.combine(sub, seq.length, size)
    return SeqOf(numbers.merge_by(numbers.less(left, 0), 0, left), tuple(slots))


def seq_items(seq: SeqOf) -> SetOf:
    """The set of a sequence's items."""
    slots = [(k, slot) for k, slot in enumerate(seq.slots) if slot is not None]
    return set_of([(slot, numbers.less(k, seq.length)) for k, slot in slots])


def bag_remove(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The bag without the first item that is equal to the given one."""
    bag, item = args
    gone: Truth = False
    rows = []
    for other, guard in bag.items:
        fits = both(guard, equal(other, item))
        rows.append((other, both(guard, negation(both(fits, negation(gone))))))
        # Only the first equal item is removed, though several may have equal values.
        gone = disj((gone, fits))
    scope.fail(negation(gone))
    return BagOf(tuple([(other, guard) for other, guard in rows if guard is not False]))
