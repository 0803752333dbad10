"""The operators on sparse sets as instructions: for operators with a sparse argument or result."""

from __future__ import annotations

from types import MappingProxyType

from specchk.ir.nodes import Apply, Const, Expr
from specchk.ir.ops import Op
from specchk.ir.types import Set, Type, cardinality, hull, of_shape
from specchk.native.machine.asm import I64, Val
from specchk.native.values.rules import Emitter, Rule
from specchk.native.values.sparse import ItemsListing


def item_code(e: Emitter, kind: Set, item: Expr) -> Val:
    """An expression's value as an item of a set."""
    return e.asm.resize(e.codes.code(kind.item, e.of_type(item, kind.item)), I64)


def _set(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Set)
    # All values first: an argument without one ends the evaluation, before the listing is begun.
    codes = [item_code(e, kind, arg) for arg in expr.args]
    listing = ItemsListing(e.codes.sparse, kind)
    for code in codes:
        listing.add(code)
    return listing.packed()


def _range(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Set)
    low, high = (e.value(arg) for arg in expr.args)
    listing = ItemsListing(e.codes.sparse, kind)
    e.asm.loop(low, high, lambda number: listing.append(e.codes.code(kind.item, number)))
    return listing.packed()


def in_sparse(e: Emitter, item: Expr, domain: Expr) -> Val:
    """Whether an item is in a sparse set, which may be a constant of any size."""
    kind = of_shape(domain.type, Set)
    value = e.value(item)
    if isinstance(domain, Const):
        return _in_table(e, value, item.type, domain)
    members = e.value(domain)
    fitting = e.codes.within(value, item.type, kind.item)
    if fitting is False:
        return False
    code = e.codes.code(kind.item, e.codes.convert(value, item.type, kind.item))
    return e.asm.both(fitting, e.codes.sparse.contains(kind, members, e.asm.resize(code, I64)))


def _in_table(e: Emitter, value: Val, given: Type, domain: Const) -> Val:
    kind = of_shape(domain.type, Set)
    fitting = e.codes.within(value, given, kind.item)
    table, count = e.domains.table(domain)
    if count == cardinality(kind.item) or fitting is False:
        return fitting
    code = e.asm.resize(e.codes.code(kind.item, e.codes.convert(value, given, kind.item)), I64)
    return e.asm.both(fitting, e.codes.sparse.listed(kind, table, count, code))


def _algebra(name: str) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        left, right = expr.args
        common, sparse = of_shape(hull(left.type, right.type), Set), e.codes.sparse
        a = e.of_type(left, common)
        # Most sets change by the items of a literal: `sent union { m }`.
        if expr.op is not Op.INTERSECT and isinstance(right, Apply) and right.op is Op.SET:
            change = "added" if expr.op is Op.UNION else "removed"
            for code in [item_code(e, common, item) for item in right.args]:
                a = sparse.changed(common, change, a, code)
        else:
            a = sparse.merged(common, name, a, e.of_type(right, common))
        return e.codes.convert(a, common, expr.type)

    return rule


def _extreme(*, least: bool) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        kind, sparse = of_shape(expr.args[0].type, Set), e.codes.sparse
        array, count = sparse.unpacked(kind, e.value(expr.args[0]))
        e.asm.leave_if(e.asm.cmp("==", count, 0), e.undefined)
        return e.codes.held(kind.item, e.asm.load(array, 0 if least else e.asm.sub(count, 1)))

    return rule


SPARSE_RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.SET: _set, Op.RANGE: _range,
        Op.UNION: _algebra("united"), Op.INTERSECT: _algebra("common"), Op.DIFFERENCE: _algebra("without"),
        Op.CARD: lambda e, x: e.codes.sparse.size(of_shape(x.args[0].type, Set), e.value(x.args[0])),
        Op.SET_MIN: _extreme(least=True), Op.SET_MAX: _extreme(least=False),
    }
)  # fmt: skip
