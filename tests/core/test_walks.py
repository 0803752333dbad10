"""Simulation, scenarios and expectations: every kind of success and failure."""

from __future__ import annotations

from itertools import pairwise

import pytest
from spec_texts import first, instance_of, outcome_of, timeless

from hang import HANG_S
from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import ScenarioFailure, run_scenario
from specchk.explore.simulate import Walks, simulate
from specchk.explore.walk import Walker
from specchk.lang.frontend import check
from specchk.meaning.step import Stepper
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.expect import unmet
from specchk.search.reference import search
from specchk.search.verdict import Inconclusive, Violated

WALK = """\
spec walk
sort R
var x : 0..3 = 0
var p : R? = none
action up(n: 1..2):
    require x + n <= 3
    x' = x + n
action give(a: R):
    require x > 0
    p' = some(a)
action any_x():
    x' in 0..3
action broken():
    require p != none and x == 3
    x' = x + 1
invariant small: x < 3
step invariant kept: p != none implies p' == p
reachable given: p != none
model two:
    R = 2
"""


def simulated(walks: Walks, text: str = WALK) -> tuple[object, ...]:
    return timeless(simulate(instance_of(text).program, walks))


def test_no_witness_is_reached_outside_a_constraint() -> None:
    """As in a search, for random walks and for the explorer's path to a witness."""
    text = "var x : 0..9 = 0\naction up():\n    x' = x + 1\nconstraint low: x < 3\ndeadlock ok\n"
    text += "reachable edge: x == 3\nreachable near: x == 2\nmodel m:\n    expect holds\n"
    instance = instance_of(text)
    walked = simulate(instance.program, Walks(1, 3, 9))
    assert list(dict(walked.witnesses)) == list(dict(search(instance.program).witnesses)) == ["near"]
    way = Walker(instance).find("near", HANG_S)
    assert way is not None
    assert len(way.steps) == 2
    assert Walker(instance).find("edge", HANG_S) is None


def test_the_same_seed_walks_the_same_and_another_another_way() -> None:
    """Verdict, counts and trace depend only on the seed."""
    calm = WALK.replace("x < 3", "x < 4").replace("p' == p", "true").replace("x == 3", "x == 9")
    assert simulated(Walks(7, 5, 20), calm) == simulated(Walks(7, 5, 20), calm)
    assert simulated(Walks(7, 5, 20), calm) != simulated(Walks(8, 5, 20), calm)


def test_finding_nothing_is_inconclusive() -> None:
    """Random walks that find nothing prove nothing; the outcome is a budget's."""
    outcome = simulate(instance_of(WALK.replace("x < 3", "x < 4").replace("p' == p", "true")
                                   .replace("x == 3", "x == 9")).program, Walks(1, 3, 10))  # fmt: skip
    assert isinstance(outcome.verdict, Inconclusive)
    assert outcome.verdict.budget
    assert outcome.seed == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_violation_of_a_walk_is_a_walk_of_real_steps(seed: int) -> None:
    """Each step of the trace is among the successors of the state before it."""
    instance = instance_of(WALK)
    violation = first(simulate(instance.program, Walks(seed)))
    stepper = Stepper(instance.program)
    assert violation.trace is not None
    states = violation.trace.states
    for before, after in pairwise(states):
        assert after in [successor for _, _, successor in stepper.successors(before)]


@pytest.mark.parametrize(
    ("line", "kind", "name"),
    [
        ("invariant no: 1 // (1 - x) > -9", "undefined", "no"),
        ("reachable no: 1 // (1 - x) > 9", "undefined", "no"),
        ("constraint no: 1 // (1 - x) > -9", "undefined", "no"),
        ("var z : 0..3 = 4", "undefined", "init"),
        ("action no():\n    x' = 4", "undefined", "no"),
    ],
)
def test_a_walk_reports_what_is_undefined(line: str, kind: str, name: str) -> None:
    """Invariants, witnesses, constraints, initial values and actions without a value end the walk."""
    calm = WALK.replace("invariant small: x < 3", line).replace("p' == p", "true").replace("x == 3", "x == 9")
    violation = first(simulate(instance_of(calm).program, Walks(3)))
    assert (violation.kind, violation.name) == (kind, name)


def test_a_budget_ends_a_walk() -> None:
    """A long walk checks the clock, not only its number of steps."""
    calm = WALK.replace("x < 3", "x < 4").replace("p' == p", "true").replace("x == 3", "x == 9")
    outcome = simulate(instance_of(calm).program, Walks(1, 1, 10**9, Budget(max_seconds=0.05)))
    assert isinstance(outcome.verdict, Inconclusive)
    assert "--max-seconds" in outcome.verdict.reason


def walked(*lines: str, text: str = WALK) -> ScenarioFailure | None:
    scenario = "scenario s on two:\n" + "".join(f"    {line}\n" for line in lines)
    checked = check("walk.spec", text + scenario)
    return run_scenario(instantiate(checked), checked.spec.scenarios["s"]).failure


@pytest.mark.parametrize(
    "lines",
    [
        ("up(1)", "assert x == 1", "give(r2)", "assert p == some(r2)"),
        ("refused give(r1)", "up(2)", "refused up(2)"),
        ("any_x()", "assert x >= 0", "up(1) where x == 3", "assert x == 3"),
        ("any_x() where x == 2", "assert x == 2 and small"),
        ("any_x() where x > 1", "any_x()", "assert x in 0..3"),
        ("up(1); up(1); assert x == 2",),
        ("refused up(7)",),
    ],
)
def test_a_scenario_that_goes_as_written_passes(lines: tuple[str, ...]) -> None:
    """Steps, refusals, choices with and without `where`, invariants by name."""
    assert walked(*lines) is None


@pytest.mark.parametrize(
    ("lines", "message", "at"),
    [
        (("give(r1)",), "`give(r1)` is not enabled here", "give(r1)"),
        (("up(7)",), "`up(7)` is not enabled here", "up(7)"),
        (("refused up(1)",), "`up(1)` is enabled, but should be refused", "refused up(1)"),
        (("up(1)", "assert x == 2"), "the assertion is false", "assert x == 2"),
        (("any_x()", "assert x == 2"), "the assertion is false", "assert x == 2"),
        (("any_x() where x == 9",), "no outcome of the step satisfies `where`", "any_x() where x == 9"),
        (("assert 1 // x > 0",), "undefined: division by zero", "assert 1 // x > 0"),
        (("any_x() where x == 3", "give(r1)", "broken()"), "undefined: 4 is outside 0..3", "broken()"),
    ],
)  # fmt: skip
def test_a_scenario_fails_at_the_line_that_does_not_go_as_written(
    lines: tuple[str, ...], message: str, at: str
) -> None:
    """The failure has the line's span, a reason, and a trace to it."""
    failure = walked(*lines)
    assert failure is not None
    assert failure.message == message
    assert failure.span.text == at
    assert failure.trace is not None


def test_an_assertion_after_an_open_choice_holds_in_every_outcome() -> None:
    """The failing outcome is shown."""
    failure = walked("any_x()", "assert x != 2")
    assert failure is not None
    assert failure.trace is not None
    assert failure.trace.last[0] == 2


@pytest.mark.parametrize("start", ["var z : 0..3 = 4", "var z : 0..3 = 1 // 0", "init: x == 2"])
def test_a_scenario_without_an_initial_state_fails(start: str) -> None:
    """An undefined or impossible start is the scenario's failure, not a traceback."""
    failure = walked("up(1)", text=WALK.replace("sort R\n", f"sort R\n{start}\n"))
    assert failure is not None
    assert failure.trace is None


def test_a_scenario_cannot_take_an_action_that_its_model_leaves_out() -> None:
    """`actions` of the model apply in its scenarios."""
    failure = walked("up(1)", text=f"{WALK}    actions give\n")
    assert failure is not None
    assert failure.message == "the model omits action `up`"


def expectation(expect: str, keep_going: bool = False, more: str = "") -> list[str]:
    """The unmet expectations of the walk."""
    instance = instance_of(f"{WALK.replace('model two:', more + 'model two:')}    expect {expect}\n")
    return unmet(
        search(instance.program, Options(symmetry=False, keep_going=keep_going)), instance.model.expects
    )


@pytest.mark.parametrize(
    ("expect", "keep_going", "more"),
    [
        ("violates small in 1 steps", False, ""),
        ("violates small", False, ""),
        ("violates small in 1 steps, violates kept in 3 steps, undefined in 2 steps", True, ""),
        ("violates small, states 4", False, ""),
        ("violates small, depth 2, transitions 7", False, ""),
        ("violates small, violates kept, undefined", True, "reachable gone: x == 9\n"),
    ],
)
def test_an_expectation_that_is_met_leaves_nothing_to_say(expect: str, keep_going: bool, more: str) -> None:
    """Violations by name and length, counts, undefinedness and unreachable witnesses."""
    assert expectation(expect, keep_going, more) == []


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("holds", "expected to hold"),
        ("violates small in 2 steps", "expected small to fail in 2 steps, it fails in 1"),
        ("violates kept", "expected: violates kept, which did not happen"),
        ("deadlock", "expected: deadlock, which did not happen"),
        ("undefined", "expected: undefined, which did not happen"),
        ("unreachable given", "expected: unreachable given, which did not happen"),
        ("violates small, states 5", "expected states 5, found 4"),
        ("violates small, depth 3", "expected depth 3, found 2"),
        ("violates small, transitions 1", "expected transitions 1, found 7"),
    ],
)
def test_an_expectation_that_is_not_met_says_what_was_found(expect: str, problem: str) -> None:
    """One line for each, with both figures."""
    assert problem in expectation(expect)


def test_a_witness_is_not_unreached_behind_an_undefined_step() -> None:
    """The states behind the step are missing, and the witness may be one of them."""
    problems = expectation("violates small, undefined, unreachable gone", True, "reachable gone: x == 9\n")
    assert any("expected: unreachable gone, which did not happen" in problem for problem in problems)


def test_what_is_not_expected_must_not_happen() -> None:
    """A model that expects one violation does not accept another."""
    assert any("unexpected: step invariant kept" in line for line in expectation("violates small", True))


def test_an_undefined_invariant_is_not_the_violation_that_was_expected() -> None:
    """`expect violates p` requires p to be false; having no value is different."""
    text = WALK.replace("invariant small: x < 3", "invariant small: 6 // (1 - x) > -9")
    instance = instance_of(f"{text}    expect violates small\n")
    assert len(unmet(search(instance.program), instance.model.expects)) == 2


def test_a_search_that_a_budget_ended_is_not_as_expected() -> None:
    """Inconclusive meets no expectation, not even `holds`."""
    instance = instance_of(f"{WALK.replace('x < 3', 'x < 9')}    expect holds\n")
    outcome = search(instance.program, Options(Budget(max_states=1)))
    assert "inconclusive" in unmet(outcome, instance.model.expects)[0]


def test_a_model_without_expectations_expects_no_violation() -> None:
    """The default is `holds`."""
    outcome = outcome_of(WALK)
    assert isinstance(outcome.verdict, Violated)
    assert any("unexpected: invariant small" in line for line in unmet(outcome, ()))
