"""The clearest counterexample, compared with all shortest ones, listed naively."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchk.compile.instantiate import Instance, instantiate
from specchk.explore.optimal import acting_lane, optimal, values_of
from specchk.explore.view import Lanes, Viewer
from specchk.explore.walk import Walker
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.values import show
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.verdict import Step, Trace, Violated, Violation

ROOT = Path(__file__).parents[2]
SPEC = """\
spec shop
sort Clerk
const Goal : 0..20
const Gap : 0..3
var have : Clerk -> 0..9 = {{ c: 0 for c in Clerk }}
var total : 0..20 = 0
action add(c: Clerk, n: 1..2):
    require have[c] + n < 9
    have'[c] = have[c] + n
    total' = if total + n < 20 then total + n else 20
action swap(a: Clerk, b: Clerk):
    require a != b and have[a] > have[b]
    have'[a] = have[b]
    have'[b] = have[a]
invariant below: total < Goal or (exists c in Clerk: have[c] < Gap)
step invariant small_steps: total' < Goal or total' - total < 2
invariant lasting: total < Goal
deadlock ok
model m:
    Clerk = {clerks}, Goal = {goal}, Gap = {gap}
    properties {prop}
"""


def switches(program: Program, sort: Lanes | None, trace: Trace) -> int:
    """The number of steps taken by another lane than the step before."""
    lanes = [acting_lane(program, sort, a, s) for a, s in zip(trace.states, trace.steps, strict=False)]
    return sum(a != b for a, b in pairwise(lanes))


def distinct_values(program: Program, trace: Trace) -> int:
    """The number of values that a reader of a trace sees."""
    met = [values_of(program, a, s) for a, s in zip(trace.states, trace.steps, strict=False)]
    return len(frozenset().union(*met))


def listed(instance: Instance, violation: Violation) -> Iterator[Trace]:
    """All traces of the violation's length that end in it."""
    program, walker, stepper = instance.program, Walker(instance), Stepper(instance.program)
    assert violation.trace is not None
    length = len(violation.trace.steps)

    def longer(trace: Trace) -> Iterator[Trace]:
        if len(trace.steps) == length:
            if walker.violation(trace, violation.name) is not None:
                yield trace
            return
        found = {}
        for index, args, after in stepper.successors(trace.last):
            action = program.actions[index]
            shown = tuple(show(arg, param.type) for arg, param in zip(args, action.params, strict=True))
            found[Step(action.name, shown, after)] = None
        for step in found:
            yield from longer(Trace(trace.initial, (*trace.steps, step)))

    for state in initial_states(program):
        yield from longer(Trace(state, ()))


def violated(instance: Instance) -> Violation:
    verdict = search(instance.program, Options()).verdict
    assert isinstance(verdict, Violated)
    return verdict.violations[0]


def agrees(instance: Instance) -> None:
    violation, sort = violated(instance), Viewer(instance).sort
    every = list(listed(instance, violation))
    program = instance.program
    best = optimal(program, violation, sort)
    assert best.note == ""
    costs = [(switches(program, sort, trace), distinct_values(program, trace)) for trace in every]
    found = best.traces[0]
    assert found in every
    assert (switches(program, sort, found), distinct_values(program, found)) == min(costs)
    several = optimal(program, violation, sort, wanted=5).traces
    assert several[0] == found
    assert len(several) == min(5, len({trace.states for trace in every}))
    assert len({trace.states for trace in several}) == len(several)
    assert all(trace in every for trace in several)
    assert [switches(program, sort, t) for t in several[1:]] == sorted(
        switches(program, sort, t) for t in several[1:]
    )


@settings(max_examples=15)
@given(
    clerks=st.integers(2, 3),
    goal=st.integers(2, 6),
    gap=st.integers(0, 2),
    prop=st.sampled_from(["below", "small_steps", "lasting"]),
)
def test_the_clearest_is_the_least_of_all_shortest(clerks: int, goal: int, gap: int, prop: str):
    """Fewest switches, then fewest values, for invariants and step invariants; the rest follow in order."""
    text = SPEC.format(clerks=clerks, goal=goal, gap=gap, prop=prop)
    agrees(instantiate(check("shop.spec", text)))


def test_a_puzzle_has_the_clearest_solution():
    """A spec without lanes: only the values decide."""
    agrees(instantiate(check(str(ROOT / "spec/examples/die_hard.spec"))))


def test_a_deadlock_has_a_clearest_way_too():
    """The end is a state without steps."""
    text = """\
spec stuck
sort Clerk
var have : Clerk -> 0..1 = { c: 0 for c in Clerk }
action take(c: Clerk):
    require have[c] == 0
    have'[c] = 1
model m:
    Clerk = 2
"""
    agrees(instantiate(check("stuck.spec", text)))


@pytest.mark.parametrize(
    "prop", ["invariant bad: x != 2", "step invariant up: x != 1 or x' != 2", "invariant low_too: x < 3", ""]
)
def test_the_clearest_passes_no_state_outside_a_constraint(prop: str):
    """Neither at its start nor, for a deadlock, at its end, though fewer values would occur there."""
    text = f"""\
spec edge
var x : 0..9 in {{0, 8}}
var y : 0..9 = 0
action far():
    require x == 8
    x' = 1
action near():
    require x == 0
    x' = 1
    y' = 7
action on():
    require x == 1
    x' = 2
action out():
    require x == 1
    x' = 9
    y' = 7
constraint low: x < 3
{prop}
model m:
    expect holds
"""
    instance = instantiate(check("edge.spec", text))
    violation = violated(instance)
    best = optimal(instance.program, violation, None, wanted=9)
    assert violation.trace in best.traces
    assert len(best.traces) == 1


def test_too_large_a_graph_keeps_the_trace_and_says_so():
    """Bounded work: the found trace is shown, with a note."""
    instance = instantiate(check(str(ROOT / "spec/kafka/truncate_to_hw.spec")))
    violation = violated(instance)
    best = optimal(instance.program, violation, Viewer(instance).sort, max_states=50)
    assert best.traces == (violation.trace,)
    assert "more than 50 states" in best.note


@pytest.mark.parametrize("model", ["loss", "divergence"])
def test_it_is_no_worse_than_what_was_found(model: str):
    """On a real spec the best trace has no more switches, and the same length."""
    instance = instantiate(check(str(ROOT / "spec/kafka/truncate_to_hw.spec")), model)
    violation, sort = violated(instance), Viewer(instance).sort
    best = optimal(instance.program, violation, sort).traces[0]
    assert violation.trace is not None
    assert len(best.steps) == len(violation.trace.steps)
    was, now = (switches(instance.program, sort, trace) for trace in (violation.trace, best))
    assert now <= was
    assert Walker(instance).violation(best, violation.name) is not None
