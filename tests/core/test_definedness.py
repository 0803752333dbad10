"""Where an expression has no value, and which parts are not evaluated and need none."""

from __future__ import annotations

import pytest
from grown import grown

from specchk.lang.frontend import check_expression
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import show


def answer(text: str) -> str:
    """The value of an expression in the initial state, or `undefined` with the text that is blamed."""
    checked, instance = grown()
    node, _ = check_expression(checked, instance.model, text)
    body, locals_ = instance.lowering.expression(node)
    state = (0, 0, False, 0, 0, (), (), (), (), (), (0, False), (1, ()), (0, 0), (False, False, False),
             ((0, True), (0, True)))  # fmt: skip
    try:
        return show(Evaluator(len(state)).compile(body)([*state, *state, *([0] * (locals_ + 1))]), body.type)
    except Undefined as undefined:
        return f"undefined {undefined.span.text}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("5 in 0..2 and k[5]", "false"),
        ("not (5 in 0..2) or k[5]", "true"),
        ("5 in 0..2 implies k[5]", "true"),
        ("if 5 in 0..2 then k[5] else true", "true"),
        ("exists x in {1, 7}: x == 1 or k[x]", "true"),
        ("forall x in {1, 7}: x == 7 or k[x]", "false"),
        ("match o { some x: k[x + 9], none: false }", "false"),
        ("{ k[x] for x in {1, 9} if x < 3 }", "{false}"),
        ("choose x in {0, 9}: not k[x]", "0"),
    ],
)
def test_what_is_not_needed_is_not_evaluated(text: str, wanted: str) -> None:
    """and, or, implies, if, match, quantifiers, choose and conditions stop when the value is decided."""
    assert answer(text) == wanted


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        ("k[5] and false", "k[5]"),
        ("(let x = 1 // 0: 2)", "1 // 0"),
        ("twice(1 // 0)", "1 // 0"),
        ("{1, head(q)}", "head(q)"),
        ("get(o, head(q))", "head(q)"),
        ("min({})", "min({})"),
        ("q[0]", "q[0]"),
        ("get(o)", "get(o)"),
        ("remove(g, 1)", "remove(g, 1)"),
        ("min(x for x in s)", "min(x for x in s)"),
        ("choose x in s: true", "choose x in s: true"),
        ("forall x in {1, 7}: k[x] or true", "k[x]"),
        ("{ q with [0]: 1 }", "[0]"),
        ("never(3)", "a // 0"),
    ],
)
def test_what_has_no_value_is_blamed_where_it_stands(text: str, blamed: str) -> None:
    """The span of an undefined expression is that of the innermost part without a value."""
    assert answer(text) == f"undefined {blamed}"


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "//", "%"])
def test_operands_are_evaluated_left_to_right(op: str) -> None:
    """When both operands are undefined, the left one is blamed, whatever the operator."""
    assert answer(f"head(q) {op} last(q)") == "undefined head(q)"
