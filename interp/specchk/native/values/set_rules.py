"""The operators on sets as instructions: masks with one bit for each value of the item type."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.types import BOOL, Int, Set, Type, hull, of_shape
from specchk.ir.typing import result_type
from specchk.native.machine.asm import I64, Val
from specchk.native.machine.layout import is_sparse, mask, set_size
from specchk.native.values.codes import register
from specchk.native.values.rules import Emitter, Rule, args_of
from specchk.native.values.sparse import ItemsListing
from specchk.native.values.sparse_rules import SPARSE_RULES, in_sparse


def _set(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Set)
    out: Val = 0
    for arg in expr.args:
        out = e.asm.bor(out, singleton(e, kind, e.of_type(arg, kind.item)))
    return out


def singleton(e: Emitter, kind: Set, item: Val) -> Val:
    """The set of one item."""
    set_size(kind)
    shape = register(kind)
    return e.asm.shl(1, e.asm.resize(e.codes.rank(kind.item, item), shape), shape)


def _range(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Set)
    assert isinstance(kind.item, Int)
    low, high = args_of(e, expr)
    shape, full = register(kind), mask(set_size(kind))
    if isinstance(low, int) and isinstance(high, int):
        return sum(1 << n - kind.item.low for n in range(low, high + 1))
    # A shift can exceed the width only if the range is empty.  It is poison then, but a select does not
    # propagate that from the side that it does not choose.
    above = e.asm.shl(full, e.asm.resize(e.asm.sub(low, kind.item.low), shape), shape)
    below = e.asm.shr(full, e.asm.resize(e.asm.sub(kind.item.high, high), shape), shape)
    return e.asm.select(e.asm.cmp("<=", low, high), e.asm.band(above, below), 0, shape)


def _in_set(e: Emitter, expr: Apply) -> Val:
    item, domain = expr.args
    if isinstance(domain, Apply) and domain.op is Op.RANGE:
        value, low, high = e.value(item), *(e.value(arg) for arg in domain.args)
        return e.asm.both(e.asm.cmp("<=", low, value), e.asm.cmp("<=", value, high))
    if isinstance(domain, Apply) and domain.op is Op.SUBSETS:
        values = [e.value(item), e.value(domain.args[0])]
        e.domains.enumerated.check_subsets(of_shape(domain.args[0].type, Set), values[1])
        return e.by_rule(Apply(BOOL, expr.span, Op.SUBSET, (item, domain.args[0])), values)
    assert isinstance(domain.type, Set)
    if is_sparse(domain.type):
        return in_sparse(e, item, domain)
    value, members, kind = e.value(item), e.value(domain), domain.type
    fitting = e.codes.within(value, item.type, kind.item)
    if fitting is False:
        return False
    rank = e.codes.rank(kind.item, e.codes.convert(value, item.type, kind.item))
    # The rank of a value that does not fit may exceed the width, and such a shift is poison: 0 replaces it.
    if not isinstance(fitting, int):
        rank = e.asm.select(fitting, rank, 0)
    hit = e.asm.cmp("!=", e.asm.bits(members, rank, 1, register(kind)), 0)
    return e.asm.both(fitting, hit)


def _algebra(combine: Callable[[Emitter, Val, Val, int], Val]) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        common = of_shape(hull(expr.args[0].type, expr.args[1].type), Set)
        set_size(common)
        a, b = (e.of_type(arg, common) for arg in expr.args)
        return e.codes.convert(combine(e, a, b, mask(register(common).width)), common, expr.type)

    return rule


def _card(e: Emitter, expr: Apply) -> Val:
    value = e.value(expr.args[0])
    if isinstance(value, int):
        return value.bit_count()
    return e.asm.resize(e.asm.intrinsic("ctpop", value), I64)


def _subsets(e: Emitter, expr: Apply) -> Val:
    return _enumerated(e, expr, of_shape(result_type(expr.op, expr.args), Set))


def _maps(e: Emitter, expr: Apply) -> Val:
    given = of_shape(result_type(expr.op, expr.args), Set)
    return e.codes.convert(_enumerated(e, expr, given), given, expr.type)


def _enumerated(e: Emitter, expr: Apply, kind: Set) -> Val:
    if is_sparse(kind):
        listing = ItemsListing(e.codes.sparse, kind)
        e.domains.each(expr, lambda item: listing.append(e.asm.resize(item, I64)))
        return listing.packed()
    out = e.asm.cell(register(kind))

    def add(item: Val) -> None:
        new = e.asm.bor(e.asm.b.load(out), singleton(e, kind, item))
        e.asm.b.store(e.asm.val(new, register(kind)), out)

    e.domains.each(expr, add)
    return e.asm.b.load(out)


def _subject(expr: Apply) -> Type:
    """The set on which an operator works: its result, its arguments' common type, or its argument."""
    if expr.op in (Op.SET, Op.RANGE):
        return expr.type
    if expr.op in (Op.UNION, Op.INTERSECT, Op.DIFFERENCE):
        return hull(expr.args[0].type, expr.args[1].type)
    return expr.args[0].type


def _either(dense: Rule, sparse: Rule) -> Rule:
    """A rule that chooses between one for bit sets and one for sets that list their items."""

    def rule(e: Emitter, expr: Apply) -> Val:
        kind = of_shape(_subject(expr), Set)
        return (sparse if is_sparse(kind) else dense)(e, expr)

    return rule


_DENSE: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.SET: _set, Op.RANGE: _range, Op.IN_SET: _in_set, Op.CARD: _card,
        Op.UNION: _algebra(lambda e, a, b, _: e.asm.bor(a, b)),
        # Shortcuts: by their rules kraft takes 1.19 times as long to compile, and 1.18 times to search.
        Op.INTERSECT: _algebra(lambda e, a, b, _: e.asm.band(a, b)),
        Op.DIFFERENCE: _algebra(lambda e, a, b, full: e.asm.band(a, e.asm.xor(b, full))),
        Op.SUBSETS: _subsets, Op.MAPS: _maps,
    }
)  # fmt: skip
SET_RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {op: _either(rule, SPARSE_RULES[op]) if op in SPARSE_RULES else rule for op, rule in _DENSE.items()}
)
