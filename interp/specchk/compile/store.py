"""Storing: a value is checked against the ranges of the variable to which it is assigned.

`stored(expr, kind)` is `expr` as a value of `kind`: unchanged where the intervals already show
that it fits, otherwise with `Narrow` nodes as deep inside as the expression's form allows, so that
a violation points at the field or branch that left its range.
"""

from __future__ import annotations

from msgspec.structs import replace

from specchk.compile.ground import different_keys
from specchk.ir.nodes import Apply, Expr, Narrow
from specchk.ir.ops import Op
from specchk.ir.types import DifferentKeys, Map, Record, Type, fits, hull, of_shape
from specchk.ir.typing import within


def stored(expr: Expr, kind: Type) -> Expr:
    """`expr`, checked to be a value of `kind`; raises `SpecError` if their shapes differ."""
    if fits(expr.type, kind):
        return expr
    try:
        hull(expr.type, kind)
    except DifferentKeys as difference:
        raise different_keys(difference, expr.span) from None
    match expr, kind:
        case Apply(op=Op.MAP_SET, args=(base, key, value)), Map():
            # The whole base must fit: all of its values except one stay, and which one is not known here.
            if fits(base.type, kind):
                return replace(expr, type=kind, args=(base, key, stored(value, kind.value)))
        case Apply(op=Op.WITH_FIELD, args=(base, value), data=field), Record():
            if fits(base.type, _with(kind, field, base.type)):
                return replace(expr, type=kind, args=(base, stored(value, kind.fields[field][1])))
    inner = within(expr, kind, stored)
    return Narrow(kind, expr.span, expr) if inner is None else replace(inner, type=kind)


def _with(kind: Record, index: int, base: Type) -> Record:
    """`kind` with the replaced field as wide as before."""
    fields = list(kind.fields)
    fields[index] = of_shape(base, Record).fields[index]
    return Record(tuple(fields))
