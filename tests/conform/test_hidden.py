"""The default cover of small and larger graphs, and bugs in state that the projection does not show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agreement.both import of_seed
from laws.sources import ROOT
from seeded import few_of
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Accepted, Answer, Binding, Refused, action, project
from specchk.conform.covers.cases import Suite
from specchk.conform.covers.cover import build_suite
from specchk.conform.covers.graph import ClassGraph, ClassifiedEdge, explore
from specchk.conform.covers.suffixes import FEWEST_STEPS, LONGEST_SUFFIX, SHARE
from specchk.conform.covers.tours import MOST_SEQUENCES, Unfolding, tours, unfold
from specchk.conform.covers.tours import Path as GraphPath
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import run_suite
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Faulty

RING = str(ROOT / "docs" / "ring_buffer" / "ring_buffer.spec")
LOCKS = str(ROOT / "docs" / "lock_service" / "lock_service.spec")


def program(path: str, model: str, **bounds: str) -> Program:
    return instantiate(check(path), model, bounds).program


@dataclass
class Ring:
    """A ring buffer; `pops` is a count that is not projected."""

    size: int
    slots: list[int] = field(default_factory=lambda: [0] * 20)
    head: int = 0
    count: int = 0
    pops: int = 0
    last: str = ""


class RingBinding(Binding[Ring]):
    """Items in order; their positions are hidden."""

    spec = "ring_buffer.spec"

    def start(self) -> Ring:
        return Ring(self.constants["Size"])

    @action("push")
    def push(self, ring: Ring, item: int) -> Answer:
        if ring.count == ring.size:
            return Refused("full")
        ring.slots[self.at(ring, ring.count)] = item
        ring.count += 1
        ring.last = "push"
        return Accepted()

    @action("pop")
    def pop(self, ring: Ring) -> Answer:
        if ring.count == 0:
            return Refused("empty")
        ring.head = self.next(ring)
        ring.count -= 1
        ring.pops += 1
        ring.last = "pop"
        return Accepted()

    def at(self, ring: Ring, place: int) -> int:
        return (ring.head + place) % ring.size

    def next(self, ring: Ring) -> int:
        return (ring.head + 1) % ring.size

    @project
    def state(self, ring: Ring) -> dict[str, Any]:
        return {"items": tuple(ring.slots[self.at(ring, place)] for place in range(ring.count))}


class WrapsLate(RingBinding):
    """Wrong only once the head has gone around, with two items or more."""

    def at(self, ring: Ring, place: int) -> int:
        return min((ring.head + place) % ring.size, ring.size - 1 - (ring.pops >= ring.size and place > 0))


class FullAfterWrapping(RingBinding):
    """One item fewer fits if the head is not at the beginning."""

    @action("push")
    def push(self, ring: Ring, item: int) -> Answer:
        if ring.head and ring.count == ring.size - 1:
            return Refused("full, it seems")
        return super().push(ring, item)


class PopsTwice(RingBinding):
    """The second consecutive pop corrupts the order."""

    @action("pop")
    def pop(self, ring: Ring) -> Answer:
        was = ring.last
        answer = super().pop(ring)
        if was == "pop" and ring.count > 0:
            ring.slots[self.at(ring, 0)] ^= 1
        return answer


HIDDEN = (WrapsLate, FullAfterWrapping, PopsTwice)


def classes_alone(of: Program) -> Suite:
    """The suite before it had sequences and suffixes."""
    suite = build_suite(of, sequences=0)
    assert suite.cover == "classes alone"
    return suite


@pytest.mark.parametrize(("size", "broken"), [*(("3", one) for one in HIDDEN), ("9", PopsTwice)])
def test_bugs_in_hidden_state_are_found_by_the_default_cover(broken: Any, size: str):
    """By sequences of edges on a small graph, by suffixes on a larger one; classes alone pass."""
    of = program(RING, "small", Size=size)
    suite = build_suite(of)
    assert (suite.order > 0, suite.suffixes > 0) == (size == "3", size != "3")
    assert run_suite(Replayer(RingBinding(of)), suite).divergence is None
    assert run_suite(Replayer(broken(of)), suite).divergence is not None
    old = run_suite(Replayer(broken(of)), classes_alone(of))
    assert old.divergence is None
    assert old.coverage is not None
    assert old.coverage.missed == ()


def windows(graph: ClassGraph, order: int) -> set[tuple[ClassifiedEdge, ...]]:
    """All paths of this many edges in the reached part of the graph, computed naively."""
    found = {(edge,) for state in range(len(graph.states)) for edge in graph.edges_of(state)}
    for _ in range(order - 1):
        found = {(*path, edge) for path in found for edge in graph.edges_of(path[-1].target)}
    return found


def windows_on(paths: Iterator[GraphPath], order: int) -> set[tuple[ClassifiedEdge, ...]]:
    return {edges[at : at + order] for _, edges in paths for at in range(len(edges) - order + 1)}


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_tours_have_every_sequence(order: int):
    """For the ring: all sequences found by naive enumeration."""
    graph = explore(program(RING, "small"))
    assert windows_on(tours(Unfolding.of(graph, order)), order) == windows(graph, order)


@pytest.mark.parametrize("seed", few_of(range(30), 8))
def test_tours_of_random_specs_have_every_sequence(seed: int, tmp_path: Path):
    """Of the greatest order that is small enough, which is reported; paths are paths of the graph."""
    of = of_seed(seed, tmp_path)
    if of is None:
        return
    try:
        graph = explore(of, 300)
    except (Faulty, NoAnswer):
        return
    unfolding = unfold(graph)
    if unfolding is None:
        assert graph.edges > MOST_SEQUENCES or not graph.complete
        return
    paths = list(tours(unfolding))
    assert windows_on(iter(paths), unfolding.order) == windows(graph, unfolding.order)
    for start, path in paths:
        assert [edge.source for edge in path] == [start, *(edge.target for edge in path[:-1])]
    assert sum(map(len, unfolding.steps)) == unfolding.sequences <= MOST_SEQUENCES


def test_suffixes_are_few_and_go_on_behind_classes():
    """All cases of the class cover are kept; each other case starts with one of them; the bound holds."""
    of = program(LOCKS, "three")
    suite, old = build_suite(of), classes_alone(of)
    ways = {case.steps for case in old.cases}
    more = [case.steps for case in suite.cases if case.steps not in ways]
    assert ways <= {case.steps for case in suite.cases}
    assert len(more) == suite.suffixes > 20
    steps = 0
    for path in more:
        base = max((one for one in ways if path[: len(one)] == one), key=len)
        assert len(path) - len(base) <= LONGEST_SUFFIX
        steps += len(path) - len(base)
    tree = {path[: end + 1] for path in ways for end in range(len(path))}
    assert steps <= max(FEWEST_STEPS, len(tree) // SHARE)


def test_suffixes_do_not_depend_on_numbers(tmp_path: Path):
    """An action that is never enabled, before all others, changes no path."""
    text = Path(LOCKS).read_text(encoding="utf-8")
    path = tmp_path / "lock_service.spec"
    path.write_text(
        text.replace("action acquire", "action never():\n    require token < 0\n\naction acquire", 1)
    )
    cases = [{case.id for case in build_suite(program(one, "three")).cases} for one in (LOCKS, str(path))]
    assert cases[0] == cases[1]


def test_a_graph_that_was_cut_has_classes_alone():
    """The rest is unknown."""
    assert build_suite(program(LOCKS, "three"), max_states=50).cover == "classes alone"
