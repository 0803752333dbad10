"""Every expression means what the naive reading of its tree says, before and after simplification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grown import Watching, expressions, grown, plain, plain_state, states
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Naive
from naive_values import Nothing

from specchk.compile.simplify import simplify
from specchk.ir.nodes import Expr
from specchk.ir.program import Program, Property
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
    assert evaluated(body, locals_, state, Watching) == wanted
    assert evaluated(simplified(instance.program, body, locals_), locals_, state, Watching) == wanted


def simplified(program: Program, body: Expr, locals_: int) -> Expr:
    prop = Property("invariant", "grown", body, locals_, body.span)
    alone = replace(program, invariants=(prop,))
    return simplify(alone).invariants[0].body


@settings(max_examples=100)
@given(st.data())
def test_every_grown_truth_value_is_legal_before_and_after_simplification(data: st.DataObject) -> None:
    """verify() accepts what lowering and simplify make of any well-typed predicate."""
    checked, instance = grown()
    node, _ = check_expression(checked, instance.model, data.draw(expressions("bool")))
    body, locals_ = instance.lowering.expression(node)
    for form in (body, simplified(instance.program, body, locals_)):
        prop = Property("invariant", "grown", form, locals_, form.span)
        verify(replace(instance.program, invariants=(prop,)))
