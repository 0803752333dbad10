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
from specchk.ir.types import Map, Record, Type, fits, has_horizon
from specchk.ir.typing import within

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
    match expr, kind:
        case nodes.Narrow(), _:
            return expr
        case nodes.Apply(op=Op.MAP_SET, args=(base, key, value)), Map():
            return replace(expr, args=(_stored(base, kind), key, _stored(value, kind.value)))
        case nodes.Apply(op=Op.WITH_FIELD, args=(base, value), data=field), Record():
            return replace(expr, args=(_stored(base, kind), _stored(value, kind.fields[field][1])))
    inner = within(expr, kind, _stored)
    if inner is not None:
        return inner
    if not has_horizon(expr.type) or (_is_read(expr) and fits(*map(without_horizons, (expr.type, kind)))):
        return expr
    return nodes.Narrow(kind, expr.span, expr)


def _is_read(expr: nodes.Expr) -> bool:
    """Whether a value is part of the state, in which all values have their types, apart from horizons."""
    while isinstance(expr, nodes.Apply) and expr.op.card.is_part and expr.args:
        expr = expr.args[0]
    return isinstance(expr, nodes.Var)
