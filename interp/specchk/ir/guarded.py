"""Expressions that may be undefined in spite of the conditions around them.

`is_total` is about an expression anywhere; `m[k]` is not total, but defined in `k in m implies m[k] > 0`.
Two conditions are understood: that a partial map has a key, and that an option is not `none`.
"""

from __future__ import annotations

from collections.abc import Iterable

from specchk.ir.nodes import (
    And,
    Apply,
    Assign,
    Bind,
    Block,
    Choice,
    Choose,
    Collect,
    Const,
    Cover,
    Either,
    Expr,
    Gather,
    Guard,
    If,
    Implies,
    Let,
    Local,
    Or,
    Quantifier,
    Unwrap,
    Var,
    When,
)
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.totality import is_partial
from specchk.ir.verify import judged, parts
from specchk.ir.walk import roots_of

# That a table (by its number) has a key, or (without a key) that an option has a content.
Facts = frozenset[tuple[int, int | None]]
NOTHING: Facts = frozenset()


def unguarded(program: Program) -> list[Expr]:
    """The expressions of a program's steps and properties that may be undefined where they are evaluated."""
    visits = [_GuardedVisit() for _ in program.actions]
    for visit, action in zip(visits, program.actions, strict=True):
        visit.block(action.body, NOTHING)
    for prop in judged(program):
        visits.append(_GuardedVisit())
        visits[-1].expr(prop.body, NOTHING)
    return [expr for visit in visits for expr in visit.partial]


class _GuardedVisit:
    """A visit of one action or property, in which each local has one value."""

    def __init__(self) -> None:
        self.partial: list[Expr] = []
        self._numbers: dict[object, int] = {}  # expressions with one number have one value
        self._bound: dict[int, int] = {}  # the numbers of values that are bound to locals

    def block(self, body: Block, facts: Facts) -> None:
        """Visit statements; what a guard shows is known until the end of its block."""
        for stmt in body:
            if not isinstance(stmt, Bind):
                for root in roots_of(stmt):
                    self.expr(root, facts)
            match stmt:
                case Guard():
                    facts |= self._shown(stmt.condition, truth=True)
                case Bind():
                    self._bind(stmt.local, stmt.value, facts)
                case Unwrap():
                    facts |= {(self._number(stmt.value), None)}
                case Assign():
                    pass
                case Choice():
                    self.block(stmt.body, facts | self._member(stmt.local, stmt.domain))
                case Either():
                    for branch in stmt.branches:
                        self.block(branch, facts)
                case When():
                    self.block(stmt.then, facts | self._shown(stmt.condition, truth=True))
                    self.block(stmt.orelse, facts | self._shown(stmt.condition, truth=False))

    def expr(self, expr: Expr, facts: Facts) -> None:
        """Visit an expression where these facts hold."""
        match expr:
            case And():
                self._in_turn(expr.parts, facts, truth=True)
            case Or():
                self._in_turn(expr.parts, facts, truth=False)
            case Implies():
                self._in_turn((expr.left, expr.right), facts, truth=True)
            case If():
                self._in_turn((expr.condition, expr.then), facts, truth=True)
                self.expr(expr.orelse, facts | self._shown(expr.condition, truth=False))
            case Let():
                self._bind(expr.local, expr.value, facts)
                self.expr(expr.body, facts)
            case Quantifier() | Choose():
                self.expr(expr.domain, facts)
                self.expr(expr.body, facts | self._member(expr.local, expr.domain))
            case Collect():
                for local, domain in expr.binders:
                    self.expr(domain, facts)
                    facts |= self._member(local, domain)
                self._in_turn(parts(expr)[len(expr.binders) :], facts, truth=True)
            case _:
                for part in parts(expr):
                    self.expr(part, facts)
        if is_partial(expr) and not self._is_given(expr, facts):
            self.partial.append(expr)

    def _in_turn(self, exprs: Iterable[Expr], facts: Facts, *, truth: bool) -> None:
        """Visit expressions, each evaluated only if those before it have the truth value."""
        for expr in exprs:
            self.expr(expr, facts)
            facts |= self._shown(expr, truth=truth)

    def _bind(self, local: Local, value: Expr, facts: Facts) -> None:
        self.expr(value, facts)
        self._bound[local.slot] = self._number(value)

    def _is_given(self, expr: Expr, facts: Facts) -> bool:
        """Whether a partial expression has a value where these facts hold."""
        match expr:
            case Choose(unique=True, domain=table, body=Apply(op=Op.EQ, args=(_, key))):
                return (self._number(table), self._number(key)) in facts
            case Apply(op=Op.GET, args=(option,)):
                return (self._number(option), None) in facts
        return False

    def _shown(self, condition: Expr, *, truth: bool) -> Facts:
        """What a condition shows by being true, or by being false."""
        match condition:
            case And() | Or() if isinstance(condition, And) is truth:
                return NOTHING.union(*[self._shown(part, truth=truth) for part in condition.parts])
            case Implies() if not truth:
                return self._shown(condition.left, truth=True) | self._shown(condition.right, truth=False)
            case Apply(op=Op.NOT, args=(negated,)):
                return self._shown(negated, truth=not truth)
            case Let(body=body) | Cover(body=body):
                return self._shown(body, truth=truth)
            case Apply(op=Op.EQ | Op.NE as op, args=(a, b)) if (op is Op.NE) is truth:
                compared = ((a, b), (b, a))
                return frozenset((self._number(x), None) for x, y in compared if _is_none(y))
            case Apply(op=Op.IN_SET, args=(item, domain)) if truth:
                return self._member(item, domain)
            case Quantifier(every=False, domain=table, local=pair, body=Apply(op=Op.EQ, args=(own, key))):
                return frozenset(
                    {(self._number(table), self._number(key))} if truth and _is_key(own, pair) else ()
                )
        return NOTHING

    def _member(self, item: Expr, domain: Expr) -> Facts:
        """What is known about an item of a set: that a partial map has it, if the set is that of its keys."""
        match domain:
            case Collect(gather=Gather.SET, binders=((pair, table),), condition=None, body=body):
                if _is_key(body, pair):
                    return frozenset({(self._number(table), self._number(item))})
        return NOTHING

    def _number(self, expr: Expr) -> int:
        """A number that only expressions with the same value have."""
        key: object
        match expr:
            case Local() if expr.slot in self._bound:
                return self._bound[expr.slot]
            case Const() | Var() | Local():
                key = expr
            case Apply():
                key = (expr.op, expr.data, *map(self._number, expr.args))
            case _:
                key = id(expr)
        return self._numbers.setdefault(key, len(self._numbers))


def _is_key(expr: Expr, pair: Local) -> bool:
    """Whether an expression is the key of a pair of a partial map."""
    match expr:
        case Apply(op=Op.FIELD, args=(Local(slot=slot),), data=0):
            return slot == pair.slot
    return False


def _is_none(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == ()
