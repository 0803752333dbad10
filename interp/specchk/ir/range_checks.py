"""Range checks that lowering omits if an interval ends at a horizon.

`c' = card(s)` with `c : 0..3` needs no check while three offsets are all there are.  Without the
horizon, or with a higher one, there may be more.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from specchk.ir import nodes
from specchk.ir.footprint import stored_type
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.ranges import without_horizons
from specchk.ir.types import Map, Record, Set, Type, fits, has_horizon

T = TypeVar("T")


def with_checks(program: Program) -> Program:
    """The program with a check of each value that fits its place only because of a horizon."""
    actions = [replace(action, body=checked(program, action.body)) for action in program.actions]
    return replace(program, actions=tuple(actions))


def checked(program: Program, found: T) -> T:
    """Statements of a program, or parts of them, with the values of their assignments checked."""
    go = partial(checked, program)
    changed: Any = found
    if isinstance(found, tuple):
        changed = tuple([go(part) for part in found])
    elif isinstance(found, nodes.Assign):
        changed = replace(found, value=_stored(found.value, stored_type(program, found)))
    elif isinstance(found, nodes.Choice):
        changed = replace(found, body=go(found.body))
    elif isinstance(found, nodes.Either):
        changed = replace(found, branches=go(found.branches))
    elif isinstance(found, nodes.When):
        changed = replace(found, then=go(found.then), orelse=go(found.orelse))
    result: T = changed
    return result


def _stored(expr: nodes.Expr, kind: Type) -> nodes.Expr:
    """`expr` with checks at the expressions computed from offsets: in its branches, fields and items."""
    match expr:
        case nodes.Narrow():
            return expr
        case nodes.If():
            return replace(expr, then=_stored(expr.then, kind), orelse=_stored(expr.orelse, kind))
        case nodes.Let() | nodes.Cover():
            return replace(expr, body=_stored(expr.body, kind))
        case nodes.Case():
            arms = tuple([(tag, local, _stored(body, kind)) for tag, local, body in expr.arms])
            default = _stored(expr.default, kind) if expr.default is not None else None
            return replace(expr, arms=arms, default=default)
        case nodes.MapOf() if isinstance(kind, Map):
            return replace(expr, body=_stored(expr.body, kind.value))
        case nodes.Collect() if isinstance(kind, Set):
            return replace(expr, body=_stored(expr.body, kind.item))
        case nodes.Apply():
            parts = _parts(expr, kind)
            if parts is not None:
                pairs = zip(expr.args, parts, strict=True)
                return replace(expr, args=tuple([_stored(a, k) if k is not None else a for a, k in pairs]))
    if not has_horizon(expr.type) or (_is_read(expr) and fits(*map(without_horizons, (expr.type, kind)))):
        return expr
    return nodes.Narrow(kind, expr.span, expr)


def _parts(expr: nodes.Apply, kind: Type) -> list[Type | None] | None:
    """The places of an operator's arguments within the place of its result (None if not a part of it)."""
    if expr.op is Op.MAP_SET and isinstance(kind, Map):
        return [kind, None, kind.value]
    if expr.op is Op.WITH_FIELD and isinstance(kind, Record):
        return [kind, kind.fields[expr.data][1]]
    rule = expr.op.card.part_types
    parts = list(rule(kind, expr.data, len(expr.args))) if rule is not None else []
    return [*parts] if rule is not None and len(parts) == len(expr.args) else None


def _is_read(expr: nodes.Expr) -> bool:
    """Whether a value is part of the state, in which all values have their types, apart from horizons."""
    while isinstance(expr, nodes.Apply) and expr.op.card.is_part and expr.args:
        expr = expr.args[0]
    return isinstance(expr, nodes.Var)
