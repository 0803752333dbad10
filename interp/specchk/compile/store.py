"""Storing: a value is checked against the ranges of the variable to which it is assigned.

`stored(expr, kind)` is `expr` as a value of `kind`: unchanged where the intervals already show
that it fits, otherwise with `Narrow` nodes as deep inside as the expression's form allows, so that
a violation points at the field or branch that left its range.
"""

from __future__ import annotations

from msgspec.structs import replace

from specchk.compile.ground import different_keys
from specchk.ir.nodes import Apply, Case, Collect, Cover, Expr, If, Let, MapOf, Narrow
from specchk.ir.ops import Op
from specchk.ir.types import DifferentKeys, Map, Record, Set, Type, fits, hull, of_shape


def stored(expr: Expr, kind: Type) -> Expr:
    """`expr`, checked to be a value of `kind`; raises `SpecError` if their shapes differ."""
    if fits(expr.type, kind):
        return expr
    try:
        hull(expr.type, kind)
    except DifferentKeys as difference:
        raise different_keys(difference, expr.span) from None
    match expr:
        case If():
            then, orelse = stored(expr.then, kind), stored(expr.orelse, kind)
            return If(kind, expr.span, expr.condition, then, orelse)
        case Let():
            return Let(kind, expr.span, expr.local, expr.value, stored(expr.body, kind))
        case Cover():
            return Cover(kind, expr.span, expr.point, stored(expr.body, kind))
        case Case():
            arms = tuple((tag, local, stored(body, kind)) for tag, local, body in expr.arms)
            default = stored(expr.default, kind) if expr.default is not None else None
            return Case(kind, expr.span, expr.scrutinee, arms, default)
        case MapOf() if isinstance(kind, Map):
            return MapOf(kind, expr.span, expr.local, stored(expr.body, kind.value))
        case Collect() if isinstance(kind, Set):
            return replace(expr, type=kind, body=stored(expr.body, kind.item))
        case Apply():
            return _stored_applied(expr, kind)
    return Narrow(kind, expr.span, expr)


def _stored_applied(expr: Apply, kind: Type) -> Expr:
    match expr.op, kind:
        case Op.MAP_SET, Map():
            base, key, value = expr.args
            # The whole base must fit: all of its values except one stay, and which one is not known here.
            if fits(base.type, kind):
                return replace(expr, type=kind, args=(base, key, stored(value, kind.value)))
        case Op.WITH_FIELD, Record():
            base, value = expr.args
            if fits(base.type, _with(kind, expr.data, base.type)):
                return replace(expr, type=kind, args=(base, stored(value, kind.fields[expr.data][1])))
    rule = expr.op.card.part_types
    parts = rule(kind, expr.data, len(expr.args)) if rule is not None else []
    # A sequence or bag has fewer parts than arguments where there is no room for all of them.
    if rule is None or len(parts) < len(expr.args):
        return Narrow(kind, expr.span, expr)
    args = tuple(stored(arg, part) for arg, part in zip(expr.args, parts, strict=True))
    return replace(expr, type=kind, args=args)


def _with(kind: Record, index: int, base: Type) -> Record:
    """`kind` with the replaced field as wide as before."""
    fields = list(kind.fields)
    fields[index] = of_shape(base, Record).fields[index]
    return Record(tuple(fields))
