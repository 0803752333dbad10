"""The tracer takes the stepper's steps, and its marks tell why."""

from __future__ import annotations

from specchk.core.initial import initial_states
from specchk.core.instantiate import instantiate
from specchk.core.step import Stepper
from specchk.core.tracing import Looked, Tracer
from specchk.ir.program import Program
from specchk.lang.frontend import check

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
    return [one for one in tracer.look(state) if names[one.index] == action]


def signs(tracer: Tracer, marks: frozenset) -> dict[str, int]:
    return {tracer.places[mark.where].text: mark.how for mark in marks if mark.kind == "sign"}


def test_the_tracer_finds_the_steppers_successors():
    """In every state the same successors of the same instances, in the same order."""
    stepper, tracer = Stepper(program()), Tracer(program())
    states = list(initial_states(program()))
    for state in states:
        found = stepper.successors(state)
        assert [
            (one.index, one.args, reached.after) for one in tracer.look(state) for reached in one.reached
        ] == found
        states += [after for _, _, after in found if after not in states]
    assert len(states) > 5


def test_each_way_has_its_own_marks():
    """What one branch compares leaves no mark on the steps of another."""
    tracer = Tracer(program())
    (way,) = looked(tracer, (1, 2, False, 0), "way")
    first, second = (signs(tracer, reached.marks) for reached in way.reached)
    assert first == {"a < b": -1}
    assert second == {"a == b": -1, "max(a, b - 1)": 0}
    branches = [{mark.where for mark in reached.marks if mark.kind == "branch"} for reached in way.reached]
    assert not branches[0] & branches[1]
    assert (len(branches[0]), len(branches[1])) == (1, 2)


def test_each_choice_has_its_own_marks():
    """Nor does what one item of `any` leaves."""
    tracer = Tracer(program())
    first, second = looked(tracer, (1, 2, False, 0), "pick")
    assert [signs(tracer, reached.marks)["m != b"] for reached in first.reached] == [1]
    assert len(first.dead_ends) == 1  # m == b
    assert [signs(tracer, reached.marks)["m != b"] for reached in second.reached] == [1]
    assert not second.dead_ends


def test_a_refusal_is_known_by_all_that_forbids_it():
    """Every part of every guard that is false has its mark, also behind the first."""
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
    """`3 // a` is never asked for where `a != 0` is false, as in the step itself."""
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
