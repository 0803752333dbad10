"""The state graph of a program as suites need it: shortest ways to states, and edges with their classes.

Breadth first in the stepper's order, so the same everywhere.  Every state keeps the step by which it
was first reached; every class keeps a few of the first edges, or refusals, that have it.  What lies
beyond a constraint is reached but not gone on from.

Not here: which of them a suite takes (`cover`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from specchk.conform.covers.classes import Classifier
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.tracing import Looked, Tracer
from specchk.meaning.values import State

# Enough for `cover` to choose among; all of them would be the graph once more.
CANDIDATES = 16  # examples kept of each class


class ClassifiedEdge(NamedTuple):
    """A step between two states, by their numbers.

    `choice` is the position of the state after it among the instance's successors, ascending.
    """

    source: int
    action: int
    args: tuple[Any, ...]
    choice: int
    target: int


class Refusal(NamedTuple):
    """A disabled instance in a state."""

    state: int
    action: int
    args: tuple[Any, ...]


@dataclass(slots=True)
class Kinds:
    """Numbers for classes in the order in which they are first seen, each with its first examples."""

    keys: list[Any] = field(default_factory=list)
    examples: list[list[Any]] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)

    def note(self, key: Hashable, example: ClassifiedEdge | Refusal) -> int:
        """The number of a class, of which this is an example."""
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.examples.append([])
        # States come by distance, so the first examples are the nearest.
        if len(self.examples[number]) < CANDIDATES:
            self.examples[number].append(example)
        return number


Around = tuple[
    dict[ClassifiedEdge, tuple[int, ...]], dict[int, Refusal]
]  # of a state: its edges, its refusals


@dataclass(slots=True)
class ClassGraph:
    """States, shortest ways to them, and classes; `complete` unless a limit ended it."""

    program: Program
    classifier: Classifier
    states: list[State] = field(default_factory=list)
    number: dict[State, int] = field(default_factory=dict)
    first: list[ClassifiedEdge | None] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    classes: Kinds = field(default_factory=Kinds)
    refusals: Kinds = field(default_factory=Kinds)
    out: list[dict[ClassifiedEdge, tuple[int, ...]]] = field(default_factory=list)
    """Of each state the edges, each with its classes; kept where they are asked for, else empty."""
    expanded: set[int] = field(default_factory=set)
    edges: int = 0
    complete: bool = True
    _looked: dict[int, Around] = field(default_factory=dict)  # what was asked for again

    def way_to(self, state: int) -> list[ClassifiedEdge]:
        """The shortest path to a state from where it starts."""
        path: list[ClassifiedEdge] = []
        step = self.first[state]
        while step is not None:
            path.append(step)
            step = self.first[step.source]
        return path[::-1]

    def edges_of(self, state: int) -> dict[ClassifiedEdge, tuple[int, ...]]:
        """The edges of an expanded state, each with its classes."""
        return self.out[state] or self._around(state)[0]

    def refused_in(self, state: int) -> dict[int, Refusal]:
        """The classes of the refusals in an expanded state, each with an example."""
        return self._around(state)[1]

    def _around(self, state: int) -> Around:
        """The surroundings of a state; empty where a limit or a constraint has ended the search."""
        if state not in self.expanded:
            return {}, {}
        if state not in self._looked:
            self._looked[state] = self._look(state)
        return self._looked[state]

    def add(self, state: State, by: ClassifiedEdge | None, depth: int) -> None:
        """A state that is reached for the first time."""
        self.number[state] = len(self.states)
        self.states.append(state)
        self.first.append(by)
        self.depth.append(depth)
        self.out.append({})

    def expand(self, source: int, *, keep: bool) -> Iterator[int]:
        """Expand a state; the numbers of those that are reached from it first."""
        known = len(self.states)
        self.expanded.add(source)
        edges, _ = self._look(source)
        self.edges += len(edges)
        if keep:
            self.out[source] = edges
        yield from range(known, len(self.states))

    def _look(self, source: int) -> Around:
        edges: dict[ClassifiedEdge, tuple[int, ...]] = {}
        refused: dict[int, Refusal] = {}
        state = self.states[source]
        for looked in self.classifier.tracer.look(state):
            if looked.reached:
                self._edges(source, looked, edges)
            # Beyond a horizon the spec does not say whether the step is refused.
            elif not looked.beyond:
                refusal = Refusal(source, looked.index, looked.args)
                number = self.refusals.note((looked.index, looked.dead_ends), refusal)
                refused.setdefault(number, refusal)
        return edges, refused

    def _edges(self, source: int, looked: Looked, edges: dict[ClassifiedEdge, tuple[int, ...]]) -> None:
        after = sorted({reached.after for reached in looked.reached})
        for reached in looked.reached:
            choice = after.index(reached.after)
            if reached.after not in self.number:
                by = ClassifiedEdge(source, looked.index, looked.args, choice, len(self.states))
                self.add(reached.after, by, self.depth[source] + 1)
            edge = ClassifiedEdge(source, looked.index, looked.args, choice, self.number[reached.after])
            key = self.classifier.edge(self.states[source], looked, reached.after, reached.marks)
            number = self.classes.note(key, edge)
            # One edge may be reached by several ways through the action, each with a class.
            edges[edge] = tuple(dict.fromkeys((*edges.get(edge, ()), number)))


def explore(program: Program, max_states: int | None = None, *, keep_edges: bool = False) -> ClassGraph:
    """The graph of a program; with a limit, the part seen from as many states."""
    tracer = Tracer(program)
    graph = ClassGraph(program, Classifier(tracer))
    properties = Properties(program, tracer)

    def inside(numbers: Iterable[int]) -> list[int]:
        return [new for new in numbers if properties.inside(properties.environment(graph.states[new]))]

    for state in initial_states(program):
        graph.add(state, None, 0)
    queue = inside(range(len(graph.states)))
    for done, source in enumerate(queue):  # grows while it is walked
        if done == max_states:
            graph.complete = False
            break
        queue.extend(inside(graph.expand(source, keep=keep_edges)))
    return graph
