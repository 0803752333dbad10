"""Storing: a check exactly where the intervals cannot show that a value fits, as deep inside as possible."""

from __future__ import annotations

from pathlib import Path

import pytest
from grown import expressions, grown, is_value, states
from hypothesis import given, settings
from hypothesis import strategies as st

from specchk.compile.instantiate import instantiate
from specchk.compile.store import stored
from specchk.ir.nodes import Expr, Narrow
from specchk.ir.types import Type, fits
from specchk.ir.verify import verify
from specchk.ir.walk import inside
from specchk.lang.frontend import CheckedSpec, check, check_expression
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import BeyondHorizon, Undefined

SPECS = sorted((Path(__file__).parents[2] / "spec").rglob("*.spec"))
KINDS = {
    "int": "i",
    "set": "s",
    "seq": "q",
    "bag": "g",
    "opt": "o",
    "rec": "c",
    "msg": "u",
    "map": "m",
    "recs": "d",
}


def lowered(text: str) -> tuple[Expr, int]:
    checked, instance = grown()
    node, _ = check_expression(checked, instance.model, text)
    return instance.lowering.expression(node)


def variable(name: str) -> Type:
    return next(v.type for v in grown()[1].program.variables if v.name == name)


def checks(expr: Expr) -> list[str]:
    return [node.span.text for node in inside(expr) if isinstance(node, Narrow)]


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("i", "i", []),
        ("i", "3", []),
        ("i", "i + 1", ["i + 1"]),
        ("i", "min(i + 1, 4)", []),
        ("i", "if b then i else i + 1", ["i + 1"]),
        ("i", "(let w = i + 1: w * 2)", ["w * 2"]),
        ("i", "match o { some x: x, none: i - 1 }", ["i - 1"]),
        ("c", "{ x: i, y: b }", ["i"]),
        ("c", "{ c with x: 2 }", []),
        ("c", "{ c with x: i }", ["i"]),
        ("c", "{ c with y: b }", []),
        ("o", "some(i + 1)", ["i + 1"]),
        ("u", "Fetch(o: i, r: r)", ["i"]),
        ("m", "{ z: m[z] + 1 for z in R }", ["m[z] + 1"]),
        ("m", "{ m with [r]: i }", ["i"]),
        ("s", "{ w + 1 for w in s }", ["w + 1"]),
        ("s", "s union {4}", ["s union {4}"]),
        ("q", "append(q, 1)", ["append(q, 1)"]),
        ("q", "tail(q)", []),
        ("q", "[1, i]", ["i"]),
        ("g", "remove(g, 1)", []),
        ("k", "{ k with [1]: b }", []),
    ],
)
def test_a_check_stands_where_it_is_needed_and_nowhere_else(name: str, text: str, wanted: list[str]) -> None:
    """A value that fits is stored unchanged; one that may not is checked at the part that may not."""
    assert checks(stored(lowered(text)[0], variable(name))) == wanted


@settings(max_examples=150)
@given(st.data())
def test_what_is_stored_fits_or_is_refused(data: st.DataObject) -> None:
    """A stored expression keeps its value, if that is one of the type; otherwise it has no value at all."""
    _, instance = grown()
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    wanted = variable(KINDS[kind])
    body, locals_ = lowered(data.draw(expressions(kind)))
    state = data.draw(states(instance))
    made = stored(body, wanted)
    assert fits(made.type, wanted)
    env = [*state, *state, *([0] * (locals_ + 1))]
    try:
        plain = Evaluator(len(state)).compile(body)(list(env))
    except Undefined:
        with pytest.raises((Undefined, BeyondHorizon)):
            Evaluator(len(state)).compile(made)(list(env))
        return
    if is_value(plain, wanted):
        assert Evaluator(len(state)).compile(made)(list(env)) == plain
    else:
        with pytest.raises(Undefined):
            Evaluator(len(state)).compile(made)(list(env))


def refusals(checked: CheckedSpec, model: str) -> set[str]:
    """The codes with which a model is refused; a program that is not legal is an error."""
    try:
        verify(instantiate(checked, model).program)
    except SpecError as error:
        return {diagnostic.code for diagnostic in error.diagnostics}
    return set()


@pytest.mark.system
@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_every_spec_lowers_to_a_legal_program(path: Path) -> None:
    """verify() accepts its first model; refusals are diagnostics."""
    checked = check(str(path))
    for model in list(checked.spec.models)[:1]:
        assert refusals(checked, model) <= {"S601", "S602", "S603"}  # what no engine checks yet
