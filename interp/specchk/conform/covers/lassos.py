"""Lassos: a path to a loop of the state graph, and several rounds of the loop.

The spec is in the same states in every round, and so should be the implementation, for as long as the loop
lasts.  What grows with each round (a queue that is not emptied, a number that is used up, a session that is
not closed) is in no state of the spec, and no path without a repetition shows it.

For each class of steps on some loop there is a lasso whose loop contains it: of the edges nearest to the
start the first, with the shortest path back.  A loop with several such classes serves for all of them.

Invariants: a function of the graph alone; a lasso is a path of the graph.  Not here: taking it (`runner`),
and loops that violate a temporal property (`search.liveness`).
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Sequence

from msgspec import Struct

from specchk.conform.covers.graph import ClassGraph, ClassifiedEdge
from specchk.conform.covers.tours import Path
from specchk.search.liveness.components import components

ROUNDS = 3  # the second repeats the first; a third follows a round that was already a repetition


class Lasso(Struct, frozen=True):
    """A loop, the shortest path to its first state, and the initial state of that path."""

    start: int
    stem: tuple[ClassifiedEdge, ...]
    loop: tuple[ClassifiedEdge, ...]

    def path(self, rounds: int) -> Path:
        """The whole lasso as a path."""
        return self.start, (*self.stem, *self.loop * rounds)


def lassos(graph: ClassGraph) -> list[Lasso]:
    """The lassos of a graph with kept edges, such that each class on a loop is on one of the lassos."""
    component = _components(graph)
    found: dict[Lasso, None] = {}
    covered: set[int] = set()
    # States come by distance, so the first edge of a class is one of the nearest.
    for state in range(len(graph.states)):
        for edge, classes in graph.edges_of(state).items():
            if component[state] == component[edge.target] and not covered.issuperset(classes):
                lasso = _lasso(graph, edge, component)
                found[lasso] = None
                covered.update(_classes(graph, lasso))
    return list(found)


def classes_of(graph: ClassGraph, chosen: Sequence[Lasso]) -> list[int]:
    """The classes of the steps in the loops, by their numbers, ascending."""
    return sorted({number for lasso in chosen for number in _classes(graph, lasso)})


def _classes(graph: ClassGraph, lasso: Lasso) -> Iterator[int]:
    for edge in lasso.loop:
        yield from graph.edges_of(edge.source)[edge]


def _components(graph: ClassGraph) -> list[int]:
    """The number of the strongly connected component of each state."""
    start, target = array("Q", [0]), array("I")
    for state in range(len(graph.states)):
        target.extend(edge.target for edge in graph.edges_of(state))
        start.append(len(target))
    of = [0] * len(graph.states)
    for number, members in enumerate(components(start, target, range(len(of)), lambda: None)):
        for state in members:
            of[state] = number
    return of


def _lasso(graph: ClassGraph, edge: ClassifiedEdge, component: list[int]) -> Lasso:
    """The lasso whose loop begins with an edge; both its ends are in one component, so the loop closes."""
    before: dict[int, ClassifiedEdge] = {}
    queue = deque([edge.target])
    while edge.source != edge.target and edge.source not in before:
        state = queue.popleft()
        for step in graph.edges_of(state):
            if step.target not in before and component[step.target] == component[state]:
                before[step.target] = step
                queue.append(step.target)
    back: list[ClassifiedEdge] = []
    at = edge.source
    while at != edge.target:
        back.append(before[at])
        at = before[at].source
    stem = tuple(graph.way_to(edge.source))
    return Lasso(stem[0].source if stem else edge.source, stem, (edge, *reversed(back)))
