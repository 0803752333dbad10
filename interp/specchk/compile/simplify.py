"""Simplification: everything that the model's constants determine is evaluated once.

A bottom-up rewrite that keeps the meaning exactly, definedness included: constant parts are folded
by the one meaning of operators, branches and conjuncts that constants decide disappear, numbers that
can only be one (`0..MaxCrashes` with no crashes) are that number.  Wider intervals decide nothing: a
guard that its operands' ranges make impossible is a mistake to report to the user, and a `nat upto`
is a limit of enumeration.  For the same reason nothing is folded that was computed from all values of
a type with a horizon.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from specchk.compile.ground import fold
from specchk.ir import nodes
from specchk.ir.ops import Op
from specchk.ir.program import Clause, Program, Property, Refinement
from specchk.ir.totality import is_total
from specchk.ir.types import BOOL, Int, Option, power

Known = Mapping[int, nodes.Const]  # locals that represent constants
N = TypeVar("N", bound=nodes.Node)
MAX_LISTED = 1024  # subsets or maps that are a constant


def simplify(program: Program) -> Program:
    """The program with all parts evaluated that its constants decide."""
    return replace(
        program,
        # Not the starts: initial values are evaluated rarely, and kept for the search to report their faults.
        actions=tuple(replace(a, body=_block(a.body, {})) for a in program.actions),
        inits=_properties(program.inits),
        invariants=_properties(program.invariants),
        step_invariants=_properties(program.step_invariants),
        witnesses=_properties(program.witnesses),
        constraints=_properties(program.constraints),
        deadlock_ok=_property(program.deadlock_ok) if program.deadlock_ok is not None else None,
        liveness=tuple(replace(p, clauses=tuple(map(_clause, p.clauses))) for p in program.liveness),
    )


def _clause(clause: Clause) -> Clause:
    trigger = _property(clause.trigger) if clause.trigger is not None else None
    return replace(clause, trigger=trigger, goal=_property(clause.goal))


def _properties(props: tuple[Property, ...]) -> tuple[Property, ...]:
    return tuple(_property(prop) for prop in props)


def _property(prop: Property) -> Property:
    if isinstance(prop, Refinement):
        prop = replace(prop, initial=_property(prop.initial))
    return replace(prop, body=_expr(prop.body, {}))


def _block(body: nodes.Block, known: Known) -> nodes.Block:
    out: list[nodes.Stmt] = []
    for stmt in body:
        known = _statement(stmt, known, out)
        if out and isinstance(out[-1], nodes.Guard) and _truth(out[-1].condition) is False:
            break  # what follows is never reached, and must not count: a `choose` in it distinguishes nothing
    return tuple(out)


def _statement(stmt: nodes.Stmt, known: Known, out: list[nodes.Stmt]) -> Known:
    """Add the rewritten statement to `out`; returns the locals known after it."""
    match stmt:
        case nodes.Guard():
            condition = _expr(stmt.condition, known)
            # One that always holds goes; one that never does stays, since it is how an action is seen to be
            # switched off by the constants.
            if _truth(condition) is not True:
                out.append(nodes.Guard(condition))
        case nodes.Bind():
            value = _expr(stmt.value, known)
            # A constant replaces the local wherever it is read: its consequences are evaluated once, here,
            # and not in each state.
            if isinstance(value, nodes.Const):
                return {**known, stmt.local.slot: value}
            out.append(replace(stmt, value=value))
        case nodes.Unwrap():
            return _unwrap(stmt, known, out)
        case nodes.Assign():
            path = tuple(replace(s, key=_expr(s.key, known) if s.key else None) for s in stmt.path)
            out.append(replace(stmt, path=path, value=_expr(stmt.value, known)))
        case nodes.Choice():
            domain = _expr(stmt.domain, known)
            out.append(replace(stmt, domain=domain, body=_block(stmt.body, known)))
        case nodes.Either():
            out.append(replace(stmt, branches=tuple(_block(b, known) for b in stmt.branches)))
        case nodes.When():
            _when(stmt, known, out)
    return known


def _unwrap(stmt: nodes.Unwrap, known: Known, out: list[nodes.Stmt]) -> Known:
    value = _expr(stmt.value, known)
    if isinstance(value, nodes.Const):
        assert isinstance(value.type, Option)
        assert isinstance(value.value, tuple)
        if value.value:
            return {**known, stmt.local.slot: nodes.Const(value.type.item, value.span, value.value[0])}
        # The guard shows that the constants switch the action off (`footprint.switched_off`).
        out.append(nodes.Guard(nodes.Const(BOOL, value.span, False)))
    else:
        out.append(replace(stmt, value=value))
    return known


def _when(stmt: nodes.When, known: Known, out: list[nodes.Stmt]) -> None:
    condition = _expr(stmt.condition, known)
    decided = _truth(condition)
    if decided is None:
        then, orelse = _block(stmt.then, known), _block(stmt.orelse, known)
        out.append(replace(stmt, condition=condition, then=then, orelse=orelse))
    else:
        # Into the block around it: slots are unique, so no name clashes, and a false guard ends the rest of
        # the path from either place.
        out.extend(_block(stmt.then if decided else stmt.orelse, known))


def _expr(expr: nodes.Expr, known: Known) -> nodes.Expr:
    go = partial(_expr, known=known)
    match expr:
        case nodes.Const():
            return expr
        case nodes.Var():
            return _only_value(expr)
        case nodes.Local():
            value = known.get(expr.slot)
            return expr if value is None else replace(value, span=expr.span)
        case nodes.Apply():
            return _apply(_with(expr, args=_each(go, expr.args)))
        case nodes.And() | nodes.Or():
            return _junction(expr, _each(go, expr.parts))
        case nodes.Implies():
            return _implies(expr, go(expr.left), go(expr.right))
        case nodes.If():
            return _if(expr, known)
        case nodes.Quantifier():
            return _quantifier(_with(expr, domain=go(expr.domain), body=go(expr.body)))
        case nodes.Choose():
            return _with(expr, domain=go(expr.domain), body=go(expr.body))
        case nodes.Collect():
            binders = tuple((local, go(domain)) for local, domain in expr.binders)
            condition = go(expr.condition) if expr.condition is not None else None
            return replace(expr, binders=binders, condition=condition, body=go(expr.body))
        case nodes.MapOf() | nodes.Cover():
            return _with(expr, body=go(expr.body))
        case nodes.Narrow():
            return _narrow(_with(expr, body=go(expr.body)))
        case nodes.Let():
            return _let(expr, known)
        case nodes.Case():
            return _case(expr, known)


def _with(node: N, **parts: Any) -> N:
    """A node with these parts; the node itself if they are its own."""
    # Most of a program stays unchanged: parts that are not copied need not be checked again (`verify`).
    if all(getattr(node, name) is part for name, part in parts.items()):
        return node
    return replace(node, **parts)


def _each(go: Callable[[nodes.Expr], nodes.Expr], parts: tuple[nodes.Expr, ...]) -> tuple[nodes.Expr, ...]:
    return _same(parts, tuple(map(go, parts)))


def _same(old: tuple[nodes.Expr, ...], new: tuple[nodes.Expr, ...]) -> tuple[nodes.Expr, ...]:
    """The new parts, or the old tuple if it has the same ones."""
    return old if len(old) == len(new) and all(map(operator.is_, old, new)) else new


def _apply(expr: nodes.Apply) -> nodes.Expr:
    if all(isinstance(arg, nodes.Const) and not arg.ends_at_horizon for arg in expr.args):
        # A long list of sets is made item by item where they are visited.
        value = fold(expr) if expr.op not in (Op.SUBSETS, Op.MAPS) or _listed(expr) <= MAX_LISTED else None
        if value is not None:
            return _const(expr, value)
    return _only_value(expr)


def _listed(expr: nodes.Apply) -> int:
    """The number of items of `subsets` or `maps` of constants."""
    constants = [arg.value for arg in expr.args if isinstance(arg, nodes.Const)]
    sizes = [len(items) for items in constants if isinstance(items, tuple)]
    return power(*reversed(sizes)) if expr.op is Op.MAPS else power(2, sizes[0])


def _narrow(expr: nodes.Narrow) -> nodes.Expr:
    if isinstance(expr.body, nodes.Const) and not expr.body.ends_at_horizon:
        value = fold(expr)
        if value is not None:
            return nodes.Const(expr.type, expr.span, value)
    return expr


def _if(expr: nodes.If, known: Known) -> nodes.Expr:
    condition = _expr(expr.condition, known)
    decided = _truth(condition)
    if decided is not None:
        return _expr(expr.then if decided else expr.orelse, known)
    then, orelse = _expr(expr.then, known), _expr(expr.orelse, known)
    return _with(expr, condition=condition, then=then, orelse=orelse)


def _let(expr: nodes.Let, known: Known) -> nodes.Expr:
    value = _expr(expr.value, known)
    if isinstance(value, nodes.Const):
        return _expr(expr.body, {**known, expr.local.slot: value})
    return _with(expr, value=value, body=_expr(expr.body, known))


def _case(expr: nodes.Case, known: Known) -> nodes.Expr:
    scrutinee = _expr(expr.scrutinee, known)
    if isinstance(scrutinee, nodes.Const) and not scrutinee.ends_at_horizon:
        value = scrutinee.value
        assert isinstance(value, tuple)
        tag = len(value) if isinstance(scrutinee.type, Option) else value[0]
        for index, local, body in expr.arms:
            if index == tag:
                payload = {local.slot: nodes.Const(local.type, expr.span, value[-1])} if local else {}
                return _expr(body, {**known, **payload})
        assert expr.default is not None
        return _expr(expr.default, known)
    arms = tuple((tag, local, _expr(body, known)) for tag, local, body in expr.arms)
    default = _expr(expr.default, known) if expr.default is not None else None
    return replace(expr, scrutinee=scrutinee, arms=arms, default=default)


def _only_value(expr: nodes.Var | nodes.Apply) -> nodes.Expr:
    """The only number of an expression's type, as a constant; otherwise the expression itself."""
    kind = expr.type
    # Sound for variables since no value outside their ranges is stored; and an expression that may be
    # undefined would lose its fault.
    if isinstance(kind, Int) and kind.low == kind.high and not kind.horizon and is_total(expr):
        return nodes.Const(kind, expr.span, kind.low)
    return expr


def _const(expr: nodes.Expr, value: nodes.Value) -> nodes.Const:
    kind = Int(value, value) if isinstance(expr.type, Int) and isinstance(value, int) else expr.type
    return nodes.Const(kind, expr.span, value)


def _truth(expr: nodes.Expr) -> bool | None:
    """The value of a decided condition; one at a coverage point is kept, since its evaluation is counted."""
    return bool(expr.value) if isinstance(expr, nodes.Const) and not expr.ends_at_horizon else None


def _junction(expr: nodes.And | nodes.Or, parts: tuple[nodes.Expr, ...]) -> nodes.Expr:
    """`and` / `or`: removes irrelevant parts, and all parts after a deciding one."""
    deciding = isinstance(expr, nodes.Or)
    kept: list[nodes.Expr] = []
    for part in parts:
        truth = _truth(part)
        if truth is None:
            kept.append(part)
        elif truth is deciding:
            # An earlier part that may be undefined must stay: it is evaluated first, and its fault is a
            # violation.
            if all(is_total(before) for before in kept):
                return nodes.Const(BOOL, part.span, deciding)
            kept.append(part)
            break
    if not kept:
        return nodes.Const(BOOL, expr.span, not deciding)
    return kept[0] if len(kept) == 1 else _with(expr, parts=_same(expr.parts, tuple(kept)))


def _implies(expr: nodes.Implies, left: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
    truth = _truth(left)
    if truth is not None:
        return right if truth else nodes.Const(BOOL, expr.span, True)
    return _with(expr, left=left, right=right)


def _quantifier(expr: nodes.Quantifier) -> nodes.Expr:
    if isinstance(expr.domain, nodes.Const) and expr.domain.value == () and not expr.domain.ends_at_horizon:
        return nodes.Const(BOOL, expr.span, expr.every)
    return expr
