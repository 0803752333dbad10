"""Covers contain every class, or every edge, of a state graph, by paths that the spec allows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from bank import bank

from agreement.both import of_seed, program_of
from laws.sources import ROOT
from seeded import few_of
from specchk.compile.instantiate import instantiate
from specchk.conform.covers.cases import Suite, SuiteCase, as_json, from_json
from specchk.conform.covers.classes import Classifier
from specchk.conform.covers.cover import NoSuchSuite, build_suite
from specchk.conform.gate.tiers import sample
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer
from specchk.meaning.tracing import Tracer
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State
from specchk.search.graph import state_graph
from specchk.search.verdict import Step

SMALL = (("MaxOffset", "1"), ("MaxCrashes", "0"))


@cache
def program_named(name: str) -> Program:
    """`bank`, or `replication`: the main spec at the smallest useful size."""
    if name == "bank":
        return bank().program
    checked = check(str(ROOT / "spec" / "replication.spec"))
    return instantiate(checked, "two_brokers", dict(SMALL)).program


@cache
def suite_named(name: str, kind: str) -> Suite:
    return build_suite(program_named(name), kind)


def along(program: Program, tracer: Tracer, case: SuiteCase) -> Iterator[tuple[State, Step, State]]:
    """The steps of a case as the spec takes them; an assertion fails if it does not."""
    state = initial_states(program)[case.start]
    for step in case.steps:
        (index,) = (index for index, action in enumerate(program.actions) if action.name == step.action)
        found = {
            Step.of(program, index, looked.args, state).args: sorted({way.after for way in looked.reached})
            for looked in tracer.instances(index, state)
        }
        after = found[step.args][step.choice]
        yield state, Step(step.action, step.args, after), after
        state = after


@cache
def everything(name: str) -> tuple[set[str], set[str], int]:
    """The ids of all classes of steps and of refusals, and the number of states, computed naively."""
    program = program_named(name)
    tracer = Tracer(program)
    classifier = Classifier(tracer)
    steps, refusals = set(), set()
    states = list(initial_states(program))
    known = set(states)
    for state in states:
        for looked in tracer.look(state):
            for way in looked.reached:
                effect = classifier.effect(looked.action, looked.args, state, way.after)
                steps.add(classifier.described((looked.action, way.marks, effect)).id)
                if way.after not in known:
                    known.add(way.after)
                    states.append(way.after)
            if not looked.reached and not looked.beyond:
                refusals.add(classifier.described_refusal((looked.action, looked.dead_ends)).id)
    return steps, refusals, len(states)


def taken(suite: Suite) -> set[str]:
    return {suite.classes[number].id for case in suite.cases for of in case.classes for number in of}


@pytest.mark.parametrize("name", ["bank", "replication"])
@pytest.mark.parametrize("kind", ["classes", "edges"])
def test_every_class_is_on_some_path(name, kind):
    """The classes of the cases are those of all edges of the graph, and each refusal has a probe."""
    suite = suite_named(name, kind)
    steps, refusals, states = everything(name)
    assert suite.complete
    assert suite.states == states
    assert taken(suite) == {one.id for one in suite.classes} == steps
    assert {suite.probe_classes[probe.of].id for probe in suite.probes} == refusals


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bank", "classes"), ("bank", "edges"), ("replication", "classes"),
        pytest.param("replication", "edges", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_every_case_is_a_path_of_the_spec(name, kind):
    """From an initial state, each step enabled; and each probe is of something disabled."""
    program, suite = program_named(name), suite_named(name, kind)
    tracer = Tracer(program)
    reached = {}
    for number, case in enumerate(suite.cases):
        states = [
            initial_states(program)[case.start],
            *(after for _, _, after in along(program, tracer, case)),
        ]
        reached[number] = states
        assert len(states) == len(case.steps) + 1
    for probe in suite.probes:
        state = reached[probe.case][probe.step]
        found = {
            (label.action, label.args)
            for looked in tracer.look(state)
            if looked.reached
            for label in [Step.of(program, looked.action, looked.args, state)]
        }
        assert (probe.action, probe.args) not in found


def test_an_edge_cover_has_every_edge():
    """Each edge of the state graph is a step of some case."""
    program, suite = program_named("bank"), suite_named("bank", "edges")
    graph = state_graph(program, 1000)
    number = {state: at for at, state in enumerate(graph.states)}
    tracer = Tracer(program)
    found = {
        (number[before], str(step), number[after])
        for case in suite.cases
        for before, step, after in along(program, tracer, case)
    }
    assert found == {(edge.source, edge.label, edge.target) for edge in graph.edges}
    assert suite.edges == len(graph.edges)


@pytest.mark.parametrize("seed", few_of(range(40), 8))
def test_covers_of_random_specs_have_every_class(seed: int, tmp_path: Path):
    """For any spec: all classes of all edges, on paths that it allows."""
    program = of_seed(seed, tmp_path)
    if program is None:
        return
    try:
        suite = build_suite(program, "classes", max_states=60)
    except (Faulty, NoAnswer):
        return
    assert taken(suite) == {one.id for one in suite.classes}
    tracer = Tracer(program)
    for case in suite.cases:
        assert len(list(along(program, tracer, case))) == len(case.steps)


@pytest.mark.parametrize("name", ["bank", pytest.param("replication", marks=pytest.mark.slow)])
def test_a_suite_is_a_function_of_the_spec(name):
    """The same ids at every computation; a bound has ids of its own; and JSON keeps all of it."""
    program = program_named(name)
    first, again = (build_suite(program, "classes", SMALL) for _ in range(2))
    assert first == again == from_json(as_json(first))
    assert len({case.id for case in first.cases}) == len(first.cases)
    assert len({one.id for one in first.classes}) == len(first.classes)
    other = build_suite(program, "classes", SMALL[:1])
    assert not {case.id for case in first.cases} & {case.id for case in other.cases}


def test_ids_are_the_same_on_every_machine():
    """An id depends only on the model, its bounds and the path."""
    suite = build_suite(program_named("bank"), "classes", (("Most", "2"),))
    shortest = min(suite.cases, key=lambda case: (len(case.steps), case.id))
    assert (shortest.id, str(shortest)) == ("2184704b3a", "sleep()")


@pytest.mark.parametrize("kind", ["classes", "edges"])
@pytest.mark.parametrize("limit", [1, 7, 30])
def test_a_budget_is_told(kind, limit):
    """A suite of a part of the graph is not complete, and contains the explored part."""
    suite = build_suite(program_named("replication"), kind, max_states=limit)
    assert not suite.complete
    assert taken(suite) == {one.id for one in suite.classes}
    assert {probe.of for probe in suite.probes} == set(range(len(suite.probe_classes)))


def test_there_are_two_kinds_of_suites_made_of_cases():
    with pytest.raises(NoSuchSuite):
        build_suite(program_named("bank"), "product")


@pytest.mark.slow
def test_a_sample_prefers_cases_with_many_classes():
    """Within its steps a sample has at least as many classes as the same number of cases from the front."""
    suite = suite_named("replication", "classes")
    few = sample(suite, 40)
    assert 0 < len(few) < len(suite.cases)
    assert sample(suite, 10_000) == suite.cases

    def classes(cases: tuple[SuiteCase, ...]) -> int:
        return len({number for case in cases for of in case.classes for number in of})

    assert classes(few) >= classes(suite.cases[: len(few)])


def test_no_case_begins_outside_a_constraint(tmp_path: Path):
    """An initial state there is checked and not expanded, as in a search."""
    text = "spec two\nvar n : 0..3 in {0, 2}\naction up():\n    require n < 3\n    n' = n + 1\n"
    text += "constraint low: n < 2\n"
    program = program_of(text, tmp_path)
    assert program is not None
    suite = build_suite(program, "edges")
    assert [(case.start, [step.action for step in case.steps]) for case in suite.cases] == [(0, ["up", "up"])]
