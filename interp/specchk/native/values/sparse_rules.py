"""The operators on sparse sets as instructions: for operators with a sparse argument or result."""

from __future__ import annotations

from types import MappingProxyType

from specchk.ir.nodes import Apply, Const, Expr
from specchk.ir.ops import Op
from specchk.ir.types import Set, Type, cardinality, of_shape
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


def _by_rule(e: Emitter, expr: Apply) -> Val:
    return e.by_rule(expr, [e.value(arg) for arg in expr.args])


def _union(e: Emitter, expr: Apply) -> Val:
    kind, (left, right), sparse = of_shape(expr.type, Set), expr.args, e.codes.sparse
    items = e.of_type(left, kind)
    # Most sets change by the items of a literal: `sent union { m }`.
    if not isinstance(right, Apply) or right.op is not Op.SET:
        return sparse.united(kind, items, e.of_type(right, kind))
    for code in [item_code(e, kind, item) for item in right.args]:
        items = sparse.added(kind, items, code)
    return items


SPARSE_RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.SET: _set, Op.RANGE: _range, Op.UNION: _union,
        Op.INTERSECT: _by_rule, Op.DIFFERENCE: _by_rule,
        Op.CARD: lambda e, x: e.codes.sparse.size(of_shape(x.args[0].type, Set), e.value(x.args[0])),
    }
)  # fmt: skip
