"""Variables with the same value in every state, found by induction and without a search.

If the constants disable a rule, a variable that serves only this rule never changes, but no range
shows that.  So each variable with one initial value, also for all keys of a map, is assumed to keep it; an
assumption is dropped if a step may give the variable another value, as far as the other assumptions decide;
and so on until none is dropped.  The rest is inductive: it holds initially, and every step from a state where
all of it holds leads to one (the optimistic fixpoint of Wegman and Zadeck, 1991, on state variables).  Sizes
and horizons do not matter to it.

Invariants: `known` is the value of an expression wherever it has one, or None; an assumption is dropped for
anything that is not understood.
Not here: parts that only the constants determine (`compile.simplify`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from specchk.ir import nodes
from specchk.ir.nodes import Expr, Value
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.types import Map
from specchk.ir.walk import inside
from specchk.meaning.initial import initial_states

Values = Mapping[int, Value]  # by slot: of variables, or of locals
_NO_LOCALS: Final[Values] = MappingProxyType({})


def fixed(program: Program) -> dict[int, Value]:
    """The variables with one value in every reachable state; for a map, a value common to all keys."""
    supposed = _initial(program)
    while True:
        changed = {
            stmt.slot
            for action in program.actions
            for stmt, values in _taken(action.body, supposed, _NO_LOCALS)
            if stmt.slot in supposed and not _keeps(stmt, supposed, values)
        }
        if not changed:
            return supposed
        supposed = {slot: value for slot, value in supposed.items() if slot not in changed}


def _initial(program: Program) -> dict[int, Value]:
    found: dict[int, set[Value]] = {slot: set() for slot in range(len(program.variables))}
    for state in initial_states(program):
        for slot, value in enumerate(state):
            is_map = isinstance(program.variables[slot].type, Map)
            found[slot].update(value if is_map and isinstance(value, tuple) else [value])
    return {slot: values.pop() for slot, values in found.items() if len(values) == 1}


def _keeps(stmt: nodes.Assign, supposed: Values, values: Values) -> bool:
    """Whether an assignment to a variable assumed fixed leaves its value unchanged."""
    # Of a map one key at a time; anything else that is assigned in part is not understood.
    is_key = len(stmt.path) == 1 and isinstance(stmt.path[0].container, Map)
    return (is_key or (not stmt.path and not isinstance(stmt.value.type, Map))) and (
        known(stmt.value, supposed, values) == supposed[stmt.slot]
    )


def _taken(block: nodes.Block, supposed: Values, values: Values) -> Iterator[tuple[nodes.Assign, Values]]:
    """The assignments that a path through a block may reach, with the locals known there."""
    for stmt in block:
        match stmt:
            case nodes.Assign():
                yield stmt, values
            case nodes.Guard(condition):
                if known(condition, supposed, values) is False:
                    return
            case nodes.Bind(local, value):
                values = _bound(values, local, known(value, supposed, values))
            case nodes.Choice(body=body):
                yield from _taken(body, supposed, values)
            case nodes.Either(branches):
                for branch in branches:
                    yield from _taken(branch, supposed, values)
            case nodes.When(condition, then, orelse):
                truth = known(condition, supposed, values)
                for branch, never in ((then, False), (orelse, True)):
                    if truth is not never:
                        yield from _taken(branch, supposed, values)


def _bound(values: Values, local: nodes.Local, value: Value | None) -> Values:
    return values if value is None else {**values, local.slot: value}


def is_never_true(condition: Expr, supposed: Values) -> bool:
    """Whether a condition is false or undefined whenever the variables have these values."""
    return known(condition, supposed) is False


def read_of(expr: Expr, supposed: Values) -> list[int]:
    """The variables assumed fixed that an expression reads."""
    read = {node.slot for node in inside(expr) if isinstance(node, nodes.Var)}
    return sorted(read & supposed.keys())


def known(expr: Expr, supposed: Values, values: Values = _NO_LOCALS) -> Value | None:
    """The value of an expression wherever it has one; None if it is not known.

    A conjunction with a false part is never true, whatever its other parts, so its value is false.
    """
    match expr:
        case nodes.Const(value=value, ends_at_horizon=False):
            return value
        case nodes.Local():
            return values.get(expr.slot)
        case nodes.Var(primed=False) if not isinstance(expr.type, Map):
            return supposed.get(expr.slot)
        case nodes.Apply(op=Op.MAP_GET, args=(nodes.Var(primed=False) as base, _)):
            return supposed.get(base.slot)
        case nodes.Apply(op=Op.NOT, args=(body,)):
            truth = known(body, supposed, values)
            return None if truth is None else not truth
        case nodes.And(parts=parts) | nodes.Or(parts=parts):
            truths = [known(part, supposed, values) for part in parts]
            decides = isinstance(expr, nodes.Or)
            return decides if decides in truths else None if None in truths else not decides
        case nodes.Quantifier(every=every, body=body):
            # Over no items `forall` is true and `exists` false, as over items that all are.
            return every if known(body, supposed, values) is every else None
        case nodes.Let(local=local, value=value, body=body):
            return known(body, supposed, _bound(values, local, known(value, supposed, values)))
        case nodes.Cover(body=body):
            return known(body, supposed, values)
        case nodes.If(condition=condition, then=then, orelse=orelse):
            truth = known(condition, supposed, values)
            ways = [way for way, never in ((then, False), (orelse, True)) if truth is not never]
            return _agreed([known(way, supposed, values) for way in ways])
        case nodes.Case(arms=arms, default=default):
            bodies = [body for _, _, body in arms] + ([default] if default is not None else [])
            return _agreed([known(body, supposed, values) for body in bodies])
    return None


def _agreed(values: list[Value | None]) -> Value | None:
    """The value on which all alternatives agree; None if they differ or one is not known."""
    return values[0] if all(value == values[0] for value in values) else None
