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
from specchk.symbolic.induction.encode.merge import equal, has, merge, select, set_of
from specchk.symbolic.induction.encode.numbers import Number
from specchk.symbolic.induction.encode.scope import StepScope
from specchk.symbolic.induction.encode.trees import BagOf, CannotEncode, RangeOf, SeqOf, SetOf, Tree

MAX_LISTED = 10  # of a set whose subsets are listed; each doubles them
MAX_RANGE = 1024
MAX_MAPS = 1 << MAX_LISTED

Rule = Callable[[Apply, Sequence[Tree], StepScope], Tree]


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
        scope.fail(numbers.at_most(1 << MAX_LISTED_BITS, size), expr.span, "this range is too large to list")
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


def intersection(a: Tree, b: Tree) -> SetOf:
    """The items of both sets."""
    return set_of([(item, both(guard, has(b, item))) for item, guard in items_of(a).items])


def difference(a: Tree, b: Tree) -> SetOf:
    """The items of the first set that are not in the second."""
    return set_of([(item, both(guard, negation(has(b, item)))) for item, guard in items_of(a).items])


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


def total(a: Tree) -> Number:
    """The sum of the items."""
    return summed(distinct(items_of(a)))


def summed(rows: Sequence[tuple[Tree, Truth]]) -> Number:
    """The sum of the numbers whose guards hold."""
    result: Number = 0
    for item, guard in rows:
        result = numbers.combine(add, result, numbers.merge_by(guard, item, 0))
    return result


def extreme(before: Callable[[Number, Number], Truth], name: str) -> Rule:
    """The `min` or `max` of a set of numbers."""

    def rule(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
        if isinstance(args[0], RangeOf):
            raise CannotEncode(f"`{name}` of a range without a bound")
        exists, first = first_by(before, args[0].items)
        scope.fail(negation(exists), expr.span, f"`{name}` of an empty collection")
        return first

    return rule


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


def _at(expr: Apply, args: Sequence[Tree], scope: StepScope) -> list[Truth]:
    """For each slot, whether it is the indexed one; a fault outside the sequence."""
    seq, index = args[0], args[1]
    inside = both(numbers.at_most(0, index), numbers.less(index, seq.length))
    scope.fail(negation(inside), expr.span, "this index is outside the sequence")
    return [numbers.equal_numbers(index, k) for k in range(len(seq.slots))]


def seq_get(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """`seq[index]`."""
    return select(list(zip(_at(expr, args, scope), args[0].slots, strict=True)))


def seq_set(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The sequence with one item replaced."""
    guards = _at(expr, args, scope)
    slots = [merge(guard, args[2], old) for guard, old in zip(guards, args[0].slots, strict=True)]
    return SeqOf(args[0].length, tuple(slots))


def _not_empty(expr: Apply, seq: SeqOf, scope: StepScope, name: str) -> None:
    scope.fail(numbers.equal_numbers(seq.length, 0), expr.span, f"`{name}` of an empty collection")


def head(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The first item."""
    _not_empty(expr, args[0], scope, "head")
    return args[0].slots[0] if args[0].slots else None


def last(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The last item."""
    _not_empty(expr, args[0], scope, "last")
    slots = args[0].slots
    return select([(numbers.equal_numbers(args[0].length, k + 1), slot) for k, slot in enumerate(slots)])


def tail(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """All but the first item."""
    _not_empty(expr, args[0], scope, "tail")
    size = numbers.combine(sub, args[0].length, 1)
    return SeqOf(numbers.merge_by(numbers.less(size, 0), 0, size), args[0].slots[1:])


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


def _cut_inside(expr: Apply, args: Sequence[Tree], scope: StepScope, name: str) -> None:
    seq, size = args
    inside = both(numbers.at_most(0, size), numbers.at_most(size, seq.length))
    scope.fail(negation(inside), expr.span, f"`{name}` outside the sequence")


def prefix(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The first n items of a sequence."""
    _cut_inside(expr, args, scope, "prefix")
    return SeqOf(args[1], args[0].slots)


def suffix(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    """The items of a sequence from the n-th on."""
    _cut_inside(expr, args, scope, "suffix")
    seq, size = args
    count_ = len(seq.slots)
    slots = [
        select([(numbers.equal_numbers(size, shift), seq.slots[k + shift]) for shift in range(count_ - k)])
        for k in range(count_)
    ]
    return SeqOf(numbers.combine(sub, seq.length, size), tuple(slots))


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
    scope.fail(negation(gone), expr.span, "`remove` of an item that is not in the bag")
    return BagOf(tuple([(other, guard) for other, guard in rows if guard is not False]))
