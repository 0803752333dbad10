"""Which expressions certainly have a value: what passes may move and the native engine may compute early."""

from __future__ import annotations

import pytest

from specchk.ir.nodes import And, Apply, Const, Expr, Local, Narrow, Op, Var
from specchk.ir.totality import is_partial, is_total
from specchk.ir.types import BOOL, Int, Map, Seq
from specchk.lang.source import Source, Span

SPAN = Span(Source("here", "here"), 0, 4)
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
    """A divisor that is never 0, a key that is always there."""
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
    """Nor has anything that contains it, though that is not partial itself."""
    around = And(BOOL, SPAN, (Apply(BOOL, SPAN, Op.EQ, (expr, expr)),))
    assert is_partial(expr)
    assert not is_total(expr)
    assert not is_partial(around)
    assert not is_total(around)
