"""Expressions that certainly have a value: passes may move them, the native engine may compute them early."""

from __future__ import annotations

from typing import get_args

import pytest

from laws.operators import DIGIT, DIGITS, SHELF, SIGNED, SOME, SPAN, Signature, may_be_undefined
from specchk.ir.nodes import (
    And,
    Apply,
    Case,
    Choose,
    Collect,
    Const,
    Cover,
    Expr,
    Gather,
    If,
    Implies,
    Let,
    Local,
    MapOf,
    Narrow,
    Or,
    Quantifier,
    Var,
)
from specchk.ir.ops import Op
from specchk.ir.totality import is_partial, is_total
from specchk.ir.types import BOOL, Int, Map, Seq, Set
from specchk.native.values.totality import ExpressionFacts

TWO = Const(Int(2, 2), SPAN, 2)
TABLE = Map(Int(0, 3), BOOL)


def some(low: int, high: int, *, horizon: bool = False) -> Local:
    return Local(Int(low, high, horizon), SPAN, 0, "x")


def quotient(divisor: Expr, op: Op = Op.DIV) -> Expr:
    return Apply(Int(-9, 9), SPAN, op, (TWO, divisor))


def looked_up(key: Expr) -> Expr:
    return Apply(BOOL, SPAN, Op.MAP_GET, (Var(TABLE, SPAN, 0, False), key))


@pytest.mark.parametrize(
    "expr", [quotient(TWO), quotient(some(1, 9), Op.MOD), quotient(some(-3, -1)), looked_up(some(0, 3)), TWO]
)
def test_what_always_has_a_value(expr: Expr) -> None:
    """A divisor that is never 0, a key that is always present."""
    assert is_total(expr)


@pytest.mark.parametrize(
    "expr",
    [
        quotient(some(0, 9)), quotient(some(-1, 1), Op.MOD), looked_up(some(0, 4)), looked_up(some(-1, 0)),
        looked_up(some(0, 3, horizon=True)),  # has no end where offsets are open
        Narrow(Int(0, 1), SPAN, some(0, 9)),
        Apply(BOOL, SPAN, Op.HEAD, (Var(Seq(BOOL, 2), SPAN, 0, False),)),
    ],
)  # fmt: skip
def test_what_may_have_none(expr: Expr) -> None:
    """Nor has anything that contains it, though it is not partial itself."""
    around = And(BOOL, SPAN, (Apply(BOOL, SPAN, Op.EQ, (expr, expr)),))
    assert is_partial(expr)
    assert not is_total(expr)
    assert not is_partial(around)
    assert not is_total(around)


X, Y, TRUTH = Local(DIGIT, SPAN, 0, "x"), Local(DIGIT, SPAN, 3, "y"), Local(BOOL, SPAN, 1, "t")
FULL, MAYBE = Local(DIGITS, SPAN, 2, "s"), Local(SOME, SPAN, 4, "o")
KINDS: Signature = (DIGIT, BOOL, DIGITS, DIGIT, SOME)
NODES: tuple[Expr, ...] = (
    TWO, X, And(BOOL, SPAN, (TRUTH, TRUTH)), Or(BOOL, SPAN, (TRUTH, TRUTH)),
    Implies(BOOL, SPAN, TRUTH, TRUTH), If(DIGIT, SPAN, TRUTH, X, Y),
    Quantifier(BOOL, SPAN, True, X, FULL, TRUTH),
    Choose(DIGIT, SPAN, X, FULL, TRUTH),
    *(Collect(Set(SIGNED) if how is Gather.SET else Int(-9, 9), SPAN, how, ((X, FULL),), TRUTH, X)
      for how in Gather),
    MapOf(SHELF, SPAN, X, TRUTH), Let(DIGIT, SPAN, Y, X, Y), Cover(DIGIT, SPAN, 0, X),
    Case(DIGIT, SPAN, MAYBE, ((0, None, X), (1, Y, Y)), None), Narrow(Int(1, 2), SPAN, X),
)  # fmt: skip


def test_every_node_is_tried_out() -> None:
    """All except variables, which are read like locals."""
    assert {type(node) for node in NODES} == set(get_args(Expr)) - {Apply, Var}


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_is_partial_exactly_where_its_meaning_has_no_value(node: Expr) -> None:
    """If its parts have values, all of them."""
    wanted = may_be_undefined(node, KINDS)
    assert is_partial(node) == wanted
    assert is_total(node) != wanted
    assert ExpressionFacts().plain(node) == (not wanted and not isinstance(node, Cover))
