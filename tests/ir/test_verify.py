"""The legality check: what each rule forbids is found, wherever a pass might have put it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from grown import grown

from specchk.ir.nodes import And, Apply, Choose, Const, Expr, If, Let, Local, Narrow, Op, Quantifier, Var
from specchk.ir.program import Property
from specchk.ir.types import BOOL, Int, Set, Type
from specchk.ir.verify import IllegalProgram, verify
from specchk.lang.source import Source, Span

SPAN = Span(Source("here", "here"), 0, 4)
YES = Const(BOOL, SPAN, True)
ONE, FIVE = Const(Int(1, 1), SPAN, 1), Const(Int(5, 5), SPAN, 5)
SETS = Const(Set(Int(1, 5)), SPAN, (1, 5))


def local(kind: Type, slot: int = 0) -> Local:
    return Local(kind, SPAN, slot, "x")


def checked(body: Expr, kind: str = "invariant") -> None:
    program = replace(grown()[1].program, invariants=(), step_invariants=())
    prop = Property(kind, "made", body, 9, SPAN)
    field = {"step_invariants": (prop,)} if kind == "step invariant" else {"invariants": (prop,)}
    verify(replace(program, **field))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        ONE,
        local(BOOL),
        Var(BOOL, SPAN, 99, False),
        Var(BOOL, SPAN, 0, False),
        Var(BOOL, SPAN, 2, True),
        And(BOOL, SPAN, (YES, ONE)),
        If(BOOL, SPAN, ONE, YES, YES),
        If(BOOL, SPAN, YES, YES, ONE),
        Quantifier(BOOL, SPAN, True, local(Int(1, 1)), ONE, YES),
        Quantifier(BOOL, SPAN, True, local(Int(1, 5)), SETS, ONE),
        Quantifier(BOOL, SPAN, True, local(Set(Int(1, 5))), local(Set(Int(1, 5))), YES),
        Let(BOOL, SPAN, local(BOOL), local(BOOL), YES),
        Apply(BOOL, SPAN, Op.EQ, (Choose(Int(1, 5), SPAN, local(Int(1, 5)), SETS, ONE), ONE)),
        Apply(BOOL, SPAN, Op.LE, (Apply(Int(0, 5), SPAN, Op.ADD, (ONE, FIVE)), ONE)),
        Apply(BOOL, SPAN, Op.LE, (If(Int(1, 1), SPAN, YES, ONE, FIVE), ONE)),
        Apply(BOOL, SPAN, Op.LE, (Narrow(Int(1, 1), SPAN, YES), ONE)),
    ],
)
def test_what_breaks_a_rule_is_found(body: Expr) -> None:
    """Types, names out of scope, primes in an invariant, results wider than their node."""
    with pytest.raises(IllegalProgram):
        checked(body)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (YES, "invariant"),
        (Var(BOOL, SPAN, 2, True), "step invariant"),
        (
            Quantifier(BOOL, SPAN, True, local(BOOL), Const(Set(BOOL), SPAN, (False,)), local(BOOL)),
            "invariant",
        ),
        (If(BOOL, SPAN, YES, YES, Let(BOOL, SPAN, local(BOOL), YES, local(BOOL))), "invariant"),
        (Apply(BOOL, SPAN, Op.LE, (If(Int(0, 9), SPAN, YES, ONE, FIVE), ONE)), "invariant"),
    ],
)
def test_what_keeps_the_rules_passes(body: Expr, kind: str) -> None:
    """Narrower parts than a node says are legal; so are primes in step invariants."""
    checked(body, kind)
