"""The tracer takes the stepper's steps, and its marks give the reasons."""

from __future__ import annotations

import pytest

from specchk.compile.instantiate import instantiate
from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.walk import expressions
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.tracing import Looked, Tracer

SPEC = """spec marks
var a : 0..3 = 1
var b : 0..3 = 2
var open : bool = false
type Light = enum { red, amber, green }
var light : Light = red
action both():
    require a > 1
    require b > 2 and open
    a' = 0
action way():
    either:
        require a < b
        a' = b
    or:
        when a == b:
            a' = 0
        else:
            b' = max(a, b - 1)
action pick(n: 1..2):
    any m in { x for x in 0..3 if x > n }:
        require m != b
        a' = m
action change():
    light' = if light == green then red else green
action quotient():
    require a != 0 and 3 // a > 1
    b' = 3 // a
invariant small: a <= 3
"""


def program() -> Program:
    return instantiate(check("marks.spec", SPEC)).program


def looked(tracer: Tracer, state: tuple[int, ...], action: str) -> list[Looked]:
    names = [one.name for one in tracer.program.actions]
    return [one for one in tracer.look(state) if names[one.action] == action]


def signs(tracer: Tracer, marks: frozenset) -> dict[str, set[int]]:
    """All outcomes of each comparison."""
    found: dict[str, set[int]] = {}
    for mark in marks:
        if mark.kind == "sign":
            found.setdefault(tracer.places[mark.where].text, set()).add(mark.how)
    return found


def test_the_tracer_finds_the_steppers_successors():
    """In every state the same successors of the same instances, in the same order."""
    stepper, tracer = Stepper(program()), Tracer(program())
    states = list(initial_states(program()))
    for state in states:
        found = stepper.successors(state)
        assert [
            (one.action, one.args, reached.after) for one in tracer.look(state) for reached in one.reached
        ] == found
        states += [after for _, _, after in found if after not in states]
    assert len(states) > 5


def test_each_way_has_its_own_marks():
    """A comparison in one branch leaves no mark on the steps of another."""
    tracer = Tracer(program())
    (way,) = looked(tracer, (1, 2, False, 0), "way")
    first, second = (signs(tracer, reached.marks) for reached in way.reached)
    assert first == {"a < b": {-1}}
    assert second == {"a == b": {-1}, "max(a, b - 1)": {0}}
    branches = [{mark.where for mark in reached.marks if mark.kind == "branch"} for reached in way.reached]
    assert not branches[0] & branches[1]
    assert (len(branches[0]), len(branches[1])) == (1, 2)


def test_each_choice_has_its_own_marks():
    """Nor does a comparison for one item of `any`."""
    tracer = Tracer(program())
    first, second = looked(tracer, (1, 2, False, 0), "pick")
    # Item 2, which is equal, comes before item 3, whose step must not have its mark.
    assert [signs(tracer, reached.marks)["m != b"] for reached in first.reached] == [{1}]
    assert len(first.dead_ends) == 1  # m == b
    assert [signs(tracer, reached.marks)["m != b"] for reached in second.reached] == [{1}]
    assert not second.dead_ends


def test_a_refusal_is_known_by_all_that_forbids_it():
    """Every false part of every guard has its mark, also after the first."""
    tracer = Tracer(program())

    def fails(state: tuple[int, ...]) -> set[str]:
        (refused,) = looked(tracer, state, "both")
        (end,) = refused.dead_ends
        return {tracer.places[mark.where].text for mark in end if mark.kind == "end"}

    assert fails((1, 2, False, 0)) == {"a > 1", "b > 2", "open"}
    assert fails((2, 3, False, 0)) == {"open"}
    assert fails((1, 3, True, 0)) == {"a > 1"}
    assert not looked(tracer, (2, 3, True, 0), "both")[0].dead_ends


def test_what_has_no_value_behind_a_false_guard_is_passed_over():
    """`3 // a` is never evaluated if `a != 0` is false, as in the step itself."""
    tracer = Tracer(program())
    (refused,) = looked(tracer, (0, 2, False, 0), "quotient")
    (end,) = refused.dead_ends
    assert {tracer.places[mark.where].text for mark in end if mark.kind == "end"} == {"a != 0"}


def test_names_are_told_apart_where_they_are_compared():
    """Red and amber are both not green; a step that reads them has a mark for each."""
    tracer = Tracer(program())
    found = set()
    for light in range(3):
        (change,) = looked(tracer, (1, 2, False, light), "change")
        found.add(frozenset(mark for mark in change.reached[0].marks if mark.kind == "enum"))
    assert len(found) == 3


DECIDING = """spec deciding
type Light = enum { red, green }
type Rec = { on: bool, n: 0..1 }
type Msg = Ping | Fetch(on: bool)
var n : 0..1 = 0
var b : bool = false
var light : Light = red
var some_n : Digit? = none
var some_b : Flag? = none
var msg : Msg = Ping
var set_n : set[0..1] = {}
var row : seq[bool] upto 2 = [false, false]
var rec : Rec = { on: false, n: 0 }
var flags : 0..1 -> bool = { k: false for k in 0..1 }
var heap : bag[0..1] upto 2 = {}
type Digit = 0..1
type Flag = bool
action ask():
    n' = if %s then 1 else 0
"""
CALM = (0, False, 0, (), (False,), (0, ()), (), (False, False), (0, False), (False, False), ())
OTHER = (1, True, 1, (1,), (True,), (1, (True,)), (1,), (True, True), (1, True), (True, True), (1,))


@pytest.mark.parametrize(
    "text",
    [
        "n == 1", "n != 1", "n < 1", "n <= 0", "min(n, 1 - n) == n", "max(n, 1 - n) == n",
        "not b", "b", "light == red",
        "(match some_n { some k: true, none: false })", "(match msg { Fetch f: f.on, Ping: false })",
        "get(some_b)", "get(some_b, false)", "msg is Fetch", "1 in set_n", "{1} subset set_n", "row[0]",
        "head(row)", "last(row)", "true in row", "rec.on", "flags[0]", "1 in heap",
        "(let k = flags[1]: k)", "(exists k in {true}: k and b)",
    ],
)  # fmt: skip
def test_whatever_decides_leaves_a_mark(text: str):
    """For each operator and node that gives a truth value: two steps with different values differ."""
    tracer = Tracer(instantiate(check("deciding.spec", DECIDING % text)).program)
    marks = []
    for state in (CALM, OTHER):
        (looked_,) = tracer.look(state)
        (reached,) = looked_.reached
        marks.append(reached.marks)
    assert marks[0] != marks[1]


def test_every_operator_that_gives_a_truth_value_is_asked_above():
    """No deciding operator is missing in the list, so that none can be missing in the tracer's."""
    (asked,) = (m for m in test_whatever_decides_leaves_a_mark.pytestmark if m.name == "parametrize")
    found = {
        node.op
        for text in asked.args[1]
        for node in expressions(instantiate(check("deciding.spec", DECIDING % text)).program)
        if isinstance(node, Apply)
    }
    assert found >= {op for op in Op if op.card.marks}
