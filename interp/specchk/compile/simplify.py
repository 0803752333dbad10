"""Simplification: what the model's constants decide is decided once.

A bottom-up rewrite that keeps the meaning exactly, definedness included: constant parts are folded
(by the `fold` that the caller passes in: the meaning of operators is `core`'s), branches and
conjuncts that constants decide disappear, numbers that can only be one (`0..MaxCrashes` with no
crashes) are that number.  Wider intervals decide nothing: a guard that its operands' ranges make
impossible is a mistake that the user is to hear of, and a `nat upto` is a limit of enumeration.
For the same reason nothing is folded that was computed from all values of a type with a horizon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from specchk.ir.nodes import (
    And,
    Apply,
    Assign,
    Bind,
    Block,
    Case,
    Choice,
    Choose,
    Collect,
    Const,
    Cover,
    Either,
    Expr,
    Guard,
    If,
    Implies,
    Let,
    Local,
    MapOf,
    Narrow,
    Or,
    Quantifier,
    Stmt,
    Unwrap,
    Value,
    Var,
    When,
)
from specchk.ir.program import Program, Property
from specchk.ir.totality import is_total
from specchk.ir.types import BOOL, Int, Option
from specchk.lang.text.source import Span

Fold = Callable[[Expr], Value | None]  # the value of a constant expression; None where undefined
Known = Mapping[int, Const]  # locals that stand for constants


def simplify(program: Program, fold: Fold) -> Program:
    """The program with everything decided that its constants decide."""
    rewrite = _Rewrite(fold)
    return replace(
        program,
        actions=tuple(replace(a, body=rewrite.block(a.body, {})) for a in program.actions),
        inits=rewrite.properties(program.inits),
        invariants=rewrite.properties(program.invariants),
        step_invariants=rewrite.properties(program.step_invariants),
        witnesses=rewrite.properties(program.witnesses),
        constraints=rewrite.properties(program.constraints),
        deadlock_ok=rewrite.property(program.deadlock_ok) if program.deadlock_ok is not None else None,
    )


class _Rewrite:
    def __init__(self, fold: Fold) -> None:
        self.fold = fold

    def properties(self, props: tuple[Property, ...]) -> tuple[Property, ...]:
        return tuple(self.property(prop) for prop in props)

    def property(self, prop: Property) -> Property:
        return replace(prop, body=self.expr(prop.body, {}))

    # ------------------------------------------------------------ statements

    def block(self, body: Block, known: Known) -> Block:
        out: list[Stmt] = []
        for stmt in body:
            known = self._statement(stmt, known, out)
        return tuple(out)

    def _statement(self, stmt: Stmt, known: Known, out: list[Stmt]) -> Known:
        """Add the rewritten statement to `out`; the locals known after it."""
        match stmt:
            case Guard():
                condition = self.expr(stmt.condition, known)
                if _truth(condition) is not True:
                    out.append(Guard(condition))
            case Bind():
                value = self.expr(stmt.value, known)
                if isinstance(value, Const):
                    return {**known, stmt.local.slot: value}
                out.append(replace(stmt, value=value))
            case Unwrap():
                return self._unwrap(stmt, known, out)
            case Assign():
                path = tuple(replace(s, key=self.expr(s.key, known) if s.key else None) for s in stmt.path)
                out.append(replace(stmt, path=path, value=self.expr(stmt.value, known)))
            case Choice():
                domain = self.expr(stmt.domain, known)
                out.append(replace(stmt, domain=domain, body=self.block(stmt.body, known)))
            case Either():
                out.append(replace(stmt, branches=tuple(self.block(b, known) for b in stmt.branches)))
            case When():
                self._when(stmt, known, out)
        return known

    def _unwrap(self, stmt: Unwrap, known: Known, out: list[Stmt]) -> Known:
        value = self.expr(stmt.value, known)
        if isinstance(value, Const):
            assert isinstance(value.type, Option)
            assert isinstance(value.value, tuple)
            if value.value:
                return {**known, stmt.local.slot: Const(value.type.item, value.span, value.value[0])}
            out.append(Guard(_bool(found=False, span=value.span)))
        out.append(replace(stmt, value=value))
        return known

    def _when(self, stmt: When, known: Known, out: list[Stmt]) -> None:
        condition = self.expr(stmt.condition, known)
        decided = _truth(condition)
        if decided is None:
            then, orelse = self.block(stmt.then, known), self.block(stmt.orelse, known)
            out.append(replace(stmt, condition=condition, then=then, orelse=orelse))
        else:
            out.extend(self.block(stmt.then if decided else stmt.orelse, known))

    # ------------------------------------------------------------ expressions

    def expr(self, expr: Expr, known: Known) -> Expr:
        go = partial(self.expr, known=known)
        match expr:
            case Const():
                return expr
            case Var():
                return _only_value(expr)
            case Local():
                found = known.get(expr.slot)
                return expr if found is None else replace(found, span=expr.span)
            case Apply():
                return self._apply(replace(expr, args=tuple(map(go, expr.args))))
            case And() | Or():
                return _junction(expr, tuple(map(go, expr.parts)))
            case Implies():
                return _implies(expr, go(expr.left), go(expr.right))
            case If():
                return self._if(expr, known)
            case Quantifier():
                return _quantifier(replace(expr, domain=go(expr.domain), body=go(expr.body)))
            case Choose():
                return replace(expr, domain=go(expr.domain), body=go(expr.body))
            case Collect():
                binders = tuple((local, go(domain)) for local, domain in expr.binders)
                condition = go(expr.condition) if expr.condition is not None else None
                return replace(expr, binders=binders, condition=condition, body=go(expr.body))
            case MapOf() | Cover():
                return replace(expr, body=go(expr.body))
            case Narrow():
                return self._narrow(replace(expr, body=go(expr.body)))
            case Let():
                return self._let(expr, known)
            case Case():
                return self._case(expr, known)

    def _apply(self, expr: Apply) -> Expr:
        if all(isinstance(arg, Const) and not arg.ends_at_horizon for arg in expr.args):
            value = self.fold(expr)
            if value is not None:
                return _const(expr, value)
        return _only_value(expr)

    def _narrow(self, expr: Narrow) -> Expr:
        if isinstance(expr.body, Const) and not expr.body.ends_at_horizon:
            value = self.fold(expr)
            if value is not None:
                return Const(expr.type, expr.span, value)
        return expr

    def _if(self, expr: If, known: Known) -> Expr:
        condition = self.expr(expr.condition, known)
        decided = _truth(condition)
        if decided is not None:
            return self.expr(expr.then if decided else expr.orelse, known)
        then, orelse = self.expr(expr.then, known), self.expr(expr.orelse, known)
        return replace(expr, condition=condition, then=then, orelse=orelse)

    def _let(self, expr: Let, known: Known) -> Expr:
        value = self.expr(expr.value, known)
        if isinstance(value, Const):
            return self.expr(expr.body, {**known, expr.local.slot: value})
        return replace(expr, value=value, body=self.expr(expr.body, known))

    def _case(self, expr: Case, known: Known) -> Expr:
        scrutinee = self.expr(expr.scrutinee, known)
        if isinstance(scrutinee, Const) and isinstance(scrutinee.value, tuple):
            value = scrutinee.value
            tag = len(value) if isinstance(scrutinee.type, Option) else value[0]
            for index, local, body in expr.arms:
                if index == tag:
                    payload = {local.slot: Const(local.type, expr.span, value[-1])} if local else {}
                    return self.expr(body, {**known, **payload})
            assert expr.default is not None
            return self.expr(expr.default, known)
        arms = tuple((tag, local, self.expr(body, known)) for tag, local, body in expr.arms)
        default = self.expr(expr.default, known) if expr.default is not None else None
        return replace(expr, scrutinee=scrutinee, arms=arms, default=default)


def _only_value(expr: Var | Apply) -> Expr:
    """The number that an expression is where its type leaves no other."""
    kind = expr.type
    if isinstance(kind, Int) and kind.low == kind.high and not kind.horizon and is_total(expr):
        return Const(kind, expr.span, kind.low)
    return expr


def _const(expr: Expr, value: Value) -> Const:
    kind = Int(value, value) if isinstance(expr.type, Int) and isinstance(value, int) else expr.type
    return Const(kind, expr.span, value)


def _bool(*, found: bool, span: Span) -> Const:
    return Const(BOOL, span, found)


def _truth(expr: Expr) -> bool | None:
    """The decided value of a condition, looking through coverage points, which then never count."""
    return bool(expr.value) if isinstance(expr, Const) else None


def _junction(expr: And | Or, found: tuple[Expr, ...]) -> Expr:
    """`and` / `or`: parts that do not matter go; what comes after the deciding part goes too."""
    deciding = isinstance(expr, Or)
    kept: list[Expr] = []
    for part in found:
        truth = _truth(part)
        if truth is None:
            kept.append(part)
        elif truth is deciding:
            if all(is_total(before) for before in kept):
                return _bool(found=deciding, span=part.span)
            kept.append(part)
            break
    if not kept:
        return _bool(found=not deciding, span=expr.span)
    return kept[0] if len(kept) == 1 else replace(expr, parts=tuple(kept))


def _implies(expr: Implies, left: Expr, right: Expr) -> Expr:
    truth = _truth(left)
    if truth is not None:
        return right if truth else _bool(found=True, span=expr.span)
    return replace(expr, left=left, right=right)


def _quantifier(expr: Quantifier) -> Expr:
    if isinstance(expr.domain, Const) and expr.domain.value == ():
        return _bool(found=expr.every, span=expr.span)
    return expr
