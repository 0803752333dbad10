"""Every expression has the value of the naive interpretation of its tree, before and after simplification."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from grown import Watching, expressions, grown, plain, plain_state, states
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from naive import Naive
from naive_values import Nothing

from laws.operators import SPAN, Apart, outcome
from specchk.compile.simplify import simplify
from specchk.ir.nodes import And, Apply, Expr, If, Implies, Narrow, Or, Var
from specchk.ir.ops import Op
from specchk.ir.program import Program, Property
from specchk.ir.types import BOOL, Int
from specchk.ir.verify import verify
from specchk.lang.frontend import check_expression
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Undefined

UNDEFINED = "undefined"


def evaluated(
    body: Expr, locals_: int, state: tuple[Any, ...], evaluator: type[Evaluator] = Evaluator
) -> Any:
    env = [*state, *state, *([0] * (locals_ + 1))]
    try:
        return plain(evaluator(len(state)).compile(body)(env), body.type)
    except Undefined:
        return UNDEFINED


@settings(max_examples=300)
@given(st.data())
def test_every_expression_has_the_value_that_the_naive_reading_gives_it(data: st.DataObject) -> None:
    """evaluate(lower(e)) == naive(e), undefined where and only where that is; all values are canonical."""
    checked, instance = grown()
    text = data.draw(expressions(), label="expression")
    state = data.draw(states(instance), label="state")
    node, _ = check_expression(checked, instance.model, text)
    body, locals_ = instance.lowering.expression(node)
    try:
        wanted = Naive(checked, instance.model).value(node, plain_state(instance, state), {})
    except Nothing:
        wanted = UNDEFINED
    for form in (body, simplified(instance.program, body, locals_)):
        # With a function for each node, and with one for many.
        assert evaluated(form, locals_, state, Watching) == wanted
        assert evaluated(form, locals_, state, Evaluator) == wanted


@settings(max_examples=150)
@given(st.data())
def test_an_expression_is_one_function_with_the_meaning_of_many(data: st.DataObject) -> None:
    """Joined into one text or separate: the same value, or the same reason and place of its absence."""
    checked, instance = grown()
    node, _ = check_expression(checked, instance.model, data.draw(expressions(depth=4), label="expression"))
    body, locals_ = instance.lowering.expression(node)
    state = data.draw(states(instance), label="state")
    if isinstance(body.type, Int):
        # As where it is stored: below is undefined, above is undefined or beyond a horizon.
        kind = Int(0, data.draw(st.integers(0, 3)), horizon=data.draw(st.booleans()))
        body = Narrow(kind, body.span, body)
    for form in (body, simplified(instance.program, body, locals_)):
        env = [*state, *state, *([0] * (locals_ + 1))]
        joined, apart = (outcome(kind(len(state)), form, list(env)) for kind in (Evaluator, Apart))
        assert joined == apart


Form = Callable[[Expr, Expr, Expr], Expr]
FORMS: tuple[Form, ...] = (
    lambda a, b, c: And(BOOL, SPAN, (a, b, c)),
    lambda a, b, c: Or(BOOL, SPAN, (a, b, c)),
    lambda a, b, c: Implies(BOOL, SPAN, a, b),
    lambda a, b, c: If(BOOL, SPAN, a, b, c),
    lambda a, b, c: Apply(BOOL, SPAN, Op.NOT, (a,), 0),
    lambda a, b, c: Apply(BOOL, SPAN, Op.EQ, (a, b), 0),
    lambda a, b, c: Apply(BOOL, SPAN, Op.LT, (b, c), 0),
)


@pytest.mark.parametrize("inner", FORMS)
@pytest.mark.parametrize("outer", FORMS)
def test_a_form_has_one_meaning_in_each_place_of_another(outer: Form, inner: Form) -> None:
    """For all truth values: a text's effect does not extend beyond it, wherever it is inserted."""
    a, b, c, *others = (Var(BOOL, SPAN, slot, primed=False) for slot in range(5))
    part = inner(a, b, c)
    for whole in (outer(part, *others), outer(others[0], part, others[1]), outer(*others, part)):
        joined, apart = Evaluator(5).compile(whole), Apart(5).compile(whole)
        for values in product((False, True), repeat=5):
            assert joined([*values, *values]) is apart([*values, *values])


def test_an_expression_may_nest_deeper_than_a_text_of_python() -> None:
    """Python refuses two hundred nested parentheses; a text ends before that, in a call."""
    expr: Expr = Var(Int(0, 1), SPAN, 0, primed=False)
    for depth in range(250):
        expr = Apply(Int(0, depth + 2), SPAN, Op.ADD, (Var(Int(0, 1), SPAN, 0, primed=False), expr), 0)
    assert Evaluator(1).compile(expr)([1, 1]) == 251


def simplified(program: Program, body: Expr, locals_: int) -> Expr:
    prop = Property("invariant", "grown", body, locals_, body.span)
    alone = replace(program, invariants=(prop,))
    return simplify(alone).invariants[0].body


@settings(max_examples=100)
@given(st.data())
def test_every_grown_truth_value_is_legal_before_and_after_simplification(data: st.DataObject) -> None:
    """verify() accepts the results of lowering and simplify for any well-typed predicate."""
    checked, instance = grown()
    node, _ = check_expression(checked, instance.model, data.draw(expressions("bool")))
    body, locals_ = instance.lowering.expression(node)
    for form in (body, simplified(instance.program, body, locals_)):
        prop = Property("invariant", "grown", form, locals_, form.span)
        verify(replace(instance.program, invariants=(prop,)))
