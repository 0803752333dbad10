"""Bugs planted in the computation and storage of a suite: its cache, its horizons, its kept steps.

A suite that loses a case, or takes a step past a horizon for a forbidden one, would pass on anything or
fail on everything, and no suite would show it.  Three laws would: each holds, and fails under its bugs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from specchk import kept
from specchk.compile.instantiate import Instance, instantiate
from specchk.conform.contract.binding import Accepted, Answer, Binding, action
from specchk.conform.covers import cache
from specchk.conform.covers.by_location import ByLocation, _Numbered
from specchk.conform.covers.cache import cached_suite
from specchk.conform.covers.cases import Suite
from specchk.conform.covers.cover import build_suite
from specchk.conform.covers.graph import explore
from specchk.conform.covers.instances import Instances, InstanceSteps
from specchk.conform.covers.locations import Locations, Touched
from specchk.conform.replay.spec_side import SpecSide
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.meaning.tracing import Tracer
from specchk.meaning.values import State, universe
from specchk.search.verdict import Step

# Boxes are filled to a horizon, by one or by two; a closed one refuses; what is moved depends on two boxes.
SPEC = """spec boxes
sort Box
const Most : int = 2
var size : Box -> nat upto Most = { b: 0 for b in Box }
var open : Box -> bool = { b: true for b in Box }

action fill(b: Box):
    require open[b]
    either:
        size'[b] = size[b] + 1
    or:
        size'[b] = size[b] + 2
action double(b: Box):
    require open[b] and size[b] > 0
    size'[b] = 2 * size[b]
action move(a: Box, b: Box):
    require a != b and size[a] > 0
    size'[a] = size[a] - 1
    size'[b] = size[b] + 1
action shut(b: Box):
    require size[b] == Most
    open'[b] = false
invariant counted: forall b in Box: size[b] >= 0
model small:
    Box = 2
    expect holds
"""
CHECKED = check("boxes.spec", SPEC)
Bug = Callable[[pytest.MonkeyPatch], None]
Law = Callable[[], None]


class BoxBinding(Binding[None]):
    """Names the actions; nothing is run."""

    @action("fill")
    def fill(self, system: None, box: str) -> Answer:
        return Accepted()

    @action("double")
    def double(self, system: None, box: str) -> Answer:
        return Accepted()

    @action("move")
    def move(self, system: None, box: str, other: str) -> Answer:
        return Accepted()

    @action("shut")
    def shut(self, system: None, box: str) -> Answer:
        return Accepted()


def instance_of(most: str) -> Instance:
    return instantiate(CHECKED, "small", {"Most": most})


def program_of(most: str) -> Program:
    return instance_of(most).program


def states_of(program: Program) -> tuple[set[State], int]:
    """The states of a program and the number of its edges, by the stepper alone."""
    stepper = Stepper(program)
    states, edges = set(initial_states(program)), 0
    left = list(states)
    while left:
        successors = set(stepper.successors(left.pop()))
        edges += len(successors)
        new = {after for _, _, after in successors} - states
        states |= new
        left += new
    return states, edges


def options_by_instance(program: Program, state: State) -> Iterator[tuple[Step, frozenset[State] | None]]:
    """For each instance its successors; none that lead beyond a horizon, None if these are all."""
    for index, declared in enumerate(program.actions):
        for args in product(*(universe(param.type) for param in declared.params)):
            stepper = Stepper(program)
            after = frozenset(after for _, _, after in stepper.of_action(state, index, args))
            yield Step.of(program, index, args, ()), after if after or not stepper.horizon_cuts else None


def kept_suites_are_computed_ones() -> None:
    """Check suites after any other was kept: of another model, kind or budget, repeatedly."""
    wanted = [
        (instance_of(most), kind, (("Most", most),), *limits)
        for most in ("1", "2") for kind in ("classes", "edges", "lassos")
        for limits in ((None, 0, 2), (None, 40, 2), (3, 0, 3))
    ]  # fmt: skip
    computed = [build_suite(instance.program, *about) for instance, *about in wanted]
    for _ in range(2):
        assert [cached_suite(*one) for one in wanted] == computed


def graphs_are_the_stepper_s() -> None:
    """Check all states and edges, and the refusals: instances without a step, also none beyond a horizon."""
    program = program_of("2")
    graph = explore(program, keep_edges=True)
    states, edges = states_of(program)
    assert ({graph.state(number) for number in range(len(graph.states))}, graph.edges) == (states, edges)
    for number in range(len(graph.states)):
        options = dict(options_by_instance(program, graph.state(number)))
        refused = {Step.of(program, one.action, one.args, ()) for one in graph.refused_in(number).values()}
        assert all(options[step] == frozenset() for step in refused)
        assert bool(refused) == (frozenset() in options.values())
        taken: dict[Step, set[State]] = {}
        for edge in graph.edges_of(number):
            after = graph.state(edge.target)
            taken.setdefault(Step.of(program, edge.action, edge.args, ()), set()).add(after)
        assert taken == {step: set(after) for step, after in options.items() if after}


def options_are_the_stepper_s() -> None:
    """Check every state, in any order: instances enabled, forbidden, and, past a horizon, neither."""
    program = program_of("2")
    side = SpecSide(BoxBinding(program))
    for state in sorted(states_of(program)[0]):
        enabled, disabled = side.options(state)
        found: dict[Step, frozenset[State]] = {call.label: frozenset(after) for call, after in enabled}
        assert all(len(after) == len(set(after)) for _, after in enabled)
        found |= {call.label: frozenset() for call in disabled}
        wanted = options_by_instance(program, state)
        assert found == {step: after for step, after in wanted if after is not None}


def key_without(*left_out: str) -> Bug:
    """Planted: the name of a kept suite lacks a part that determines it."""

    def named(instance: Instance, kind: str, bounds: Any, limits: Any) -> str:
        model = instance.model.name, instance.model.bindings
        about = {"model": model, "kind": kind, "bounds": bounds, "limits": limits}
        return kept.name_of([value for name, value in about.items() if name not in left_out])

    return lambda patch: patch.setattr(cache, "suite_key", named)


def read_as(change: Callable[[Suite], Suite]) -> Bug:
    """Planted: another suite is read than was written."""
    read = cache.from_json
    return lambda patch: patch.setattr(cache, "from_json", lambda text: change(read(text)))


def any_file_will_do(patch: pytest.MonkeyPatch) -> None:
    """Planted: a file is read without checking the name under which it is sealed."""
    read = kept.read

    def first(path: Path | None) -> bytes | None:
        assert path is not None
        return next((data for one in sorted(path.parent.glob("*")) if (data := read(one))), None)

    patch.setattr(cache.kept, "read", first)


def wrapped(cls: type[Any], name: str, change: Callable[[Any, Any], Any]) -> Bug:
    """Planted: a method returns another value: `change` of its object and its result."""
    method = getattr(cls, name)

    def changed(self: Any, *given: Any, **named: Any) -> Any:
        return change(self, method(self, *given, **named))

    return lambda patch: patch.setattr(cls, name, changed)


def lacks_touched(locations: Locations, _: None) -> None:
    """Planted: the last location of each instance is left out."""
    locations.of = [
        [Touched(one.all[:-1], tuple([at for at in one.read if at in one.all[:-1]])) for one in all_]
        for all_ in locations.of
    ]


def lacks_read(locations: Locations, _: None) -> None:
    """Planted: the first read locations of instances count as only written."""
    locations.of = [[Touched(one.all, one.read[1:]) for one in all_] for all_ in locations.of]


def a_change_is_lost(_: Instances, behaviour: InstanceSteps) -> InstanceSteps:
    return replace(behaviour, edges=tuple(one._replace(changes=one.changes[1:]) for one in behaviour.edges))


def ways_are(change: Callable[[Any], Any]) -> Bug:
    """Planted: the successors of an instance are changed."""
    return wrapped(SpecSide, "_ways", lambda _, ways: lambda numbers: change(ways(numbers)))


BUGS: dict[str, tuple[Law, Bug]] = {
    "a name without constants": (kept_suites_are_computed_ones, key_without("model", "bounds")),
    "a name without the kind": (kept_suites_are_computed_ones, key_without("kind")),
    "a name without the budget": (kept_suites_are_computed_ones, key_without("limits")),
    "any file of the folder": (kept_suites_are_computed_ones, any_file_will_do),
    "a case is lost": (kept_suites_are_computed_ones, read_as(lambda s: replace(s, cases=s.cases[:-1]))),
    "probes are lost": (kept_suites_are_computed_ones, read_as(lambda s: replace(s, probes=()))),
    "a cut graph is whole": (kept_suites_are_computed_ones, read_as(lambda s: replace(s, complete=True))),
    "a cover is forgotten": (kept_suites_are_computed_ones, read_as(lambda s: replace(s, order=0, rounds=0))),
    "a cut step is a refusal": (graphs_are_the_stepper_s, wrapped(
        Tracer, "instance", lambda _, looked: looked and looked._replace(beyond=False))),
    "a refusal is a cut step": (graphs_are_the_stepper_s, wrapped(
        Tracer, "instance", lambda _, looked: looked and looked._replace(beyond=True))),
    "behaviours kept for too few values": (graphs_are_the_stepper_s, wrapped(
        Locations, "__init__", lacks_touched)),
    "ways kept for too few values": (graphs_are_the_stepper_s, wrapped(Locations, "__init__", lacks_read)),
    "values share a number": (graphs_are_the_stepper_s, wrapped(
        _Numbered, "number", lambda _, number: min(number, 1))),
    "a change is lost": (graphs_are_the_stepper_s, wrapped(Instances, "_drawn", a_change_is_lost)),
    "an instance that a change touches is as before": (graphs_are_the_stepper_s, wrapped(
        ByLocation, "_touching_any", lambda _, positions: positions[1:])),
    "an instance that another state changes is as before": (options_are_the_stepper_s, wrapped(
        ByLocation, "_touching_any", lambda _, positions: positions[1:])),
    "a step past a horizon is forbidden": (options_are_the_stepper_s, ways_are(lambda ways: ways or ())),
    "what is forbidden is past a horizon": (options_are_the_stepper_s, ways_are(lambda ways: ways or None)),
    "steps kept for too few values": (options_are_the_stepper_s, wrapped(
        Locations, "__init__", lacks_read)),
    "one successor of several": (options_are_the_stepper_s, ways_are(lambda ways: ways and ways[:1])),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.parametrize("law", dict.fromkeys(law for law, _ in BUGS.values()), ids=lambda law: law.__name__)
def test_a_law_of_suites_holds(law: Law) -> None:
    """Kept, drawn and offered steps are those of the stepper."""
    law()


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_of_suites_breaks_its_law(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each law can fail, and does; steps with missing values fail by themselves."""
    law, bug = BUGS[name]
    bug(monkeypatch)
    with pytest.raises((AssertionError, TypeError)):
        law()
