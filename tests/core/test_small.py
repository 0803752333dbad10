"""The search of a small model: an answer if it has one, and bounded effort."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from spec_texts import instance_of, small_specs

from specchk.explore import small
from specchk.explore.small import PER_STATE, effort_of_state, small_search
from specchk.ir import nodes
from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.evaluate import Env, Evaluator
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search
from specchk.search.reference import search

COUNTER = """\
spec counter
var x : 0..{most} = 0
action up():
    require x < {most}
    x' = x + 1
deadlock ok
{more}
model m:
    expect holds
"""
LAMPS = """\
spec lamps
var on : set[0..19] = {}
action press(i: 0..19):
    on' = on union {i}
model m:
    expect holds
"""
PICK = """\
spec pick
sort R
var s : set[R] = {}
action add(r: R):
    s' = s union {r}
model m:
    R = 6
"""


class Counting(Evaluator):
    """Counts the evaluated nodes."""

    evaluations: list[int]

    def compile(self, expr: nodes.Expr) -> Callable[[Env], nodes.Value]:
        """The function of an expression, which counts its calls."""
        function, evaluations = super().compile(expr), self.evaluations

        def counted(e: Env) -> nodes.Value:
            evaluations[0] += 1
            return function(e)

        return counted


class CountingStepper(Stepper):
    """A stepper with the number of evaluations since it was set to 0."""

    def make_evaluator(self) -> Evaluator:
        """Return an evaluator that counts."""
        made = Counting(self.size, self.counts)
        made.evaluations = self.evaluations = [0]
        return made


def counter(most: int, more: str = "") -> Program:
    """A program of `most + 1` states in a row."""
    return instance_of(COUNTER.format(most=most, more=more)).program


def test_a_small_model_has_the_answer_of_the_reference_engine() -> None:
    """All of it but the time."""
    program = counter(20, "invariant small: x <= 20\nreachable far: x == 7")
    found, wanted = small_search(program, Options()), search(program)
    assert found is not None
    assert (found.engine, found.verdict, found.coverage) == ("reference", wanted.verdict, wanted.coverage)
    assert found.statistics.levels == wanted.statistics.levels == (1,) * 21
    assert found.witnesses == wanted.witnesses


@pytest.mark.parametrize(
    "more", ["invariant low: x < 7", "reachable never: x > 25", "liveness again: always eventually x == 3"]
)
def test_a_property_that_fails_is_left_to_the_other_engine(more: str) -> None:
    """Each engine has its own choice of counterexample, which must not depend on a model's size."""
    assert small_search(counter(20, more), Options(strict=True)) is None


def lines_of(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[float, int]:
    """The estimated number of lines that a search executes, and its states; whether or not it ends."""
    engines: list[small.SmallEngine] = []
    make = small.SmallEngine.__init__

    def noted(engine: small.SmallEngine, search: Search) -> None:
        make(engine, search)
        engines.append(engine)

    with monkeypatch.context() as patched:
        patched.setattr(small.SmallEngine, "__init__", noted)
        small_search(program, Options())
    return engines[0].lines, len(engines[0].parents)


def test_a_search_ends_once_it_has_executed_too_many_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no answer then, which is seen at the next state that is counted."""
    enough, _ = lines_of(counter(1000), monkeypatch)
    monkeypatch.setattr(small, "MOST_LINES", enough)
    assert small_search(counter(1000), Options()) is not None
    assert small_search(counter(1000 + 2 * small.SPARSELY), Options()) is None
    assert lines_of(counter(100_000), monkeypatch)[1] < 1000 + 2 * small.SPARSELY


def test_lines_are_counted_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answering engine does not depend on time: the estimate of a sample depends on the program alone."""
    counted = {lines_of(counter(most), monkeypatch)[0] for most in (500, 500)}
    assert len(counted) == 1
    assert lines_of(counter(1000), monkeypatch)[0] == pytest.approx(2 * counted.pop(), rel=0.05)


def test_a_state_that_executes_too_many_lines_is_left_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of it; the trace function is restored."""
    body = "require exists a in 0..39: exists b in 0..39: a * b + x < 0"
    program = instance_of(LOOP.format(params="", body=body)).program
    lines, states = lines_of(program, monkeypatch)
    assert lines > 1600 * states
    monkeypatch.setattr(small, "MOST_LINES", 100)
    before = sys.gettrace()
    with pytest.raises(small.EffortSpent), small.Lines(100) as counted:
        small.explore(small.SmallEngine(small.Search(program, Options())))
    assert counted.count == 101
    assert sys.gettrace() is before


def test_a_search_whose_levels_grow_is_given_up_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty lamps have a million states; a hundredth of the lines shows that they are many."""
    monkeypatch.setattr(small, "FIRST_LINES", small.MOST_LINES // 100)
    lines, states = lines_of(instance_of(LAMPS).program, monkeypatch)
    assert lines < small.MOST_LINES // 20
    assert states < 10_000


@pytest.mark.parametrize("start", [" in 0..100000", "\ninit: true"])
def test_many_initial_states_are_not_listed(monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    """More values of a variable than the effort permits, as choices or left open."""
    many = "spec many\nvar x : 0..100000{}\naction stay():\n    x' = x\nmodel m:\n    expect holds\n"
    program = instance_of(many.format(start)).program
    monkeypatch.delattr("specchk.search.engine.initial_states")
    assert small_search(program, Options()) is None


def test_a_limit_of_the_user_that_is_reached_is_reported_by_the_other_engine() -> None:
    """The limit is below the number of states of the model."""
    assert small_search(counter(20), Options(Budget(max_states=5))) is None


def test_renamings_are_a_part_of_the_effort() -> None:
    """A successor is compared under every permutation of six elements."""
    program = instance_of(PICK).program
    assert effort_of_state(program, 720) > effort_of_state(program) + 6 * 720


@pytest.mark.parametrize(
    ("variable", "require"),
    [
        ("0..9999 -> 0..1 = { k: 0 for k in 0..9999 }", "v[x] == 0"),
        ("0..9999 = 500", "v in x..9999 - x"),
        ("0..9999 = 500", "v in {VALUES}"),
    ],
    ids=["map", "range", "constant"],
)
def test_large_values_are_a_part_of_the_effort(variable: str, require: str) -> None:
    """They are copied, hashed or listed for each successor, whatever the number of evaluations."""
    text = (
        f"spec large\nvar x : 0..9 = 0\nvar v : {variable}\naction a():\n    require {require}\n"
        "    x' = 9 - x\nmodel m:\n    expect holds\n"
    )
    program = instance_of(text.replace("{VALUES}", f"{{ {', '.join(map(str, range(700)))} }}")).program
    assert effort_of_state(program) > PER_STATE + 150


LOOP = """\
spec loop
var x : 0..100000 = 0
var m : 0..39 -> 0..1 = {{ k: 0 for k in 0..39 }}
action act({params}):
    {body}
deadlock ok
model m:
    expect holds
"""


@pytest.mark.parametrize(
    ("params", "body"),
    [
        ("a: 0..39, b: 0..39", "require a * b + x < 0"),
        ("", "any a in 0..39:\n        any b in 0..39:\n            require a * b + x < 0"),
        ("", "require exists a in 0..39: exists b in 0..39: a * b + x < 0"),
        ("", "x' = sum(a * b for a in 0..39, b in 0..39 if a < b + x)"),
        ("", "m' = { k: sum(m[a] * k for a in 0..39) % 2 for k in 0..39 }"),
    ],
    ids=["parameters", "any", "exists", "sum", "map"],
)
def test_a_loop_counts_as_often_as_it_runs(params: str, body: str) -> None:
    """40 times 40 evaluations exceed the bound that would apply without the loops."""
    program = instance_of(LOOP.format(params=params, body=body)).program
    done = most_evaluations(program)
    assert 1600 < done <= effort_of_state(program) - PER_STATE


@given(small_specs())
def test_no_state_takes_more_evaluations_than_its_effort(text: str) -> None:
    """The nodes evaluated for the successors of a state are counted."""
    try:
        program = instance_of(text).program
    except SpecError:  # as where a variable is assigned twice
        return
    assert most_evaluations(program) <= effort_of_state(program) - PER_STATE


def most_evaluations(program: Program) -> int:
    """The largest number of nodes evaluated for the successors of one of the first states."""
    stepper = CountingStepper(program)
    states, most = initial_states(program), 0
    seen = set(states)
    while states and len(seen) < 30:
        state = states.pop()
        stepper.evaluations[0], following = 0, []
        with suppress(Faulty):
            following = [after for _, _, after in stepper.successors(state)]
        most = max(most, stepper.evaluations[0])
        states += [after for after in following if after not in seen]
        seen.update(following)
    return most


def test_the_claims_on_steps_are_evaluated_for_each_step() -> None:
    """A state of forty steps evaluates a step invariant forty times."""
    plain = LOOP.format(params="a: 0..39", body="x' = a")
    claim = "step invariant near: sum(m[k] for k in 0..39) >= 0\n"
    efforts = [effort_of_state(instance_of(text).program) for text in (plain, plain + claim)]
    assert efforts[1] > efforts[0] + 40 * 40
