"""The state graph of a program as needed by suites: shortest paths to states, and edges with classes.

Breadth first in the stepper's order, so the same everywhere.  Every state keeps the step by which it
was first reached; every class keeps a few of the first edges, or refusals, that have it.  States
beyond a constraint are reached but not expanded.

The effect of an instance in a state, and its classes, are in `instances`.
Not here: the ones that a suite takes (`cover`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from specchk.conform.covers.by_location import Numbers, changed
from specchk.conform.covers.classes import Classifier
from specchk.conform.covers.instances import AllSteps, Changes, Drawn, Instances, InstanceSteps, Kinds
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.tracing import Tracer
from specchk.meaning.values import State


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


Around = tuple[
    dict[ClassifiedEdge, tuple[int, ...]], dict[int, Refusal]
]  # of a state: its edges, its refusals


@dataclass(slots=True)
class ClassGraph:
    """States, shortest paths to them, and classes; `complete` unless a limit ended the exploration."""

    program: Program
    classifier: Classifier
    states: list[Numbers] = field(default_factory=list)
    """Of each state the numbers of its locations' values."""
    number: dict[Numbers, int] = field(default_factory=dict)
    first: list[ClassifiedEdge | None] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    out: list[dict[ClassifiedEdge, tuple[int, ...]]] = field(default_factory=list)
    """Of each state the edges, each with its classes; kept where they are asked for, else empty."""
    expanded: set[int] = field(default_factory=set)
    edges: int = 0
    complete: bool = True
    _waiting: dict[int, tuple[AllSteps, Changes]] = field(default_factory=dict)
    """Of each state that is not expanded the steps before the first edge to it, and what that changes."""
    _looked: dict[int, Around] = field(default_factory=dict)  # requested again
    _instances: Instances = field(init=False)

    def __post_init__(self) -> None:
        self._instances = Instances(self.classifier)

    @property
    def classes(self) -> Kinds:
        """The classes of the edges found so far."""
        return self._instances.classes

    @property
    def refusals(self) -> Kinds:
        """The classes of the refusals found so far."""
        return self._instances.refusals

    def numbers_of(self, state: State) -> Numbers:
        """The numbers that represent a state."""
        return self._instances.numbers_of(state)

    def state(self, number: int) -> State:
        """The values of a state, from its numbers."""
        return self._instances.state(self.states[number])

    def way_to(self, state: int) -> list[ClassifiedEdge]:
        """The shortest path to a state from an initial state."""
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
        """The surroundings of a state; empty if a limit or a constraint ended the search there."""
        if state not in self.expanded:
            return {}, {}
        if state not in self._looked:
            self._looked[state] = self._look(state)
        return self._looked[state]

    def add(self, numbers: Numbers, by: ClassifiedEdge | None, depth: int) -> None:
        """Add a state reached for the first time."""
        self.number[numbers] = len(self.states)
        self.states.append(numbers)
        self.first.append(by)
        self.depth.append(depth)
        self.out.append({})

    def expand(self, source: int, *, keep: bool) -> Iterator[int]:
        """Expand a state; returns the numbers of the states first reached from it."""
        known = len(self.states)
        self.expanded.add(source)
        all_steps = self._steps_in(source)
        for steps in all_steps:
            if steps is None or not (steps.edges or steps.is_open):
                continue  # as it is for most instances in most states
            edges = [self._edge(source, steps, drawn, all_steps) for drawn in steps.edges]
            self.edges += len(edges)
            if steps.is_open:
                steps.is_open = self._note(source, steps, edges)
            if keep:
                pairs = zip(edges, steps.edges, strict=True)
                self.out[source].update((edge, drawn.classes) for edge, drawn in pairs)
        yield from range(known, len(self.states))

    def _edge(self, source: int, steps: InstanceSteps, drawn: Drawn, before: AllSteps) -> ClassifiedEdge:
        """An edge of a state with these steps; its target may be new."""
        numbers = changed(self.states[source], drawn.changes)
        target = self.number.get(numbers, len(self.states))
        edge = ClassifiedEdge(source, steps.action, steps.args, drawn.choice, target)
        if target == len(self.states):
            self.add(numbers, edge, self.depth[source] + 1)
            self._waiting[target] = before, drawn.changes
        return edge

    def _steps_in(self, source: int) -> AllSteps:
        """The steps in a state: those before the edge to it, except where the edge changes something."""
        numbers, edge = self.states[source], self._waiting.pop(source, None)
        return self._instances.steps(numbers) if edge is None else self._instances.steps_after(*edge, numbers)

    def _note(self, source: int, steps: InstanceSteps, edges: list[ClassifiedEdge]) -> bool:
        """Keep examples of the classes of steps; returns whether some classes need more."""
        is_open = False
        for number, at in steps.ways:
            is_open |= self.classes.note(number, edges[at])
        if steps.refusal is not None:
            is_open |= self.refusals.note(steps.refusal, Refusal(source, steps.action, steps.args))
        return is_open

    def _look(self, source: int) -> Around:
        edges: dict[ClassifiedEdge, tuple[int, ...]] = {}
        refused: dict[int, Refusal] = {}
        all_steps = self._steps_in(source)
        for steps in all_steps:
            if steps is None:
                continue
            edges |= {self._edge(source, steps, drawn, all_steps): drawn.classes for drawn in steps.edges}
            if steps.refusal is not None:
                refused.setdefault(steps.refusal, Refusal(source, steps.action, steps.args))
        return edges, refused


def explore(program: Program, max_states: int | None = None, *, keep_edges: bool = False) -> ClassGraph:
    """The graph of a program; with a limit, only the part seen from that many states."""
    tracer = Tracer(program)
    graph = ClassGraph(program, Classifier(tracer))
    properties = Properties(program, tracer)

    def inside(numbers: Iterable[int]) -> Iterable[int]:
        if not program.constraints:
            return numbers
        return [new for new in numbers if properties.inside(properties.environment(graph.state(new)))]

    for state in initial_states(program):
        graph.add(graph.numbers_of(state), None, 0)
    queue = [*inside(range(len(graph.states)))]
    for done, source in enumerate(queue):  # grows while it is walked
        if done == max_states:
            graph.complete = False
            break
        queue.extend(inside(graph.expand(source, keep=keep_edges)))
    return graph
