"""The state graph of a program as suites need it: shortest ways to states, and edges with their classes.

Breadth first in the stepper's order, so the same everywhere.  Every state keeps the step by which it
was first reached; every class keeps a few of the first edges, or refusals, that have it.  What lies
beyond a constraint is reached but not gone on from.

A state is kept as numbers, one for the value of each variable.  What an action does depends on the
variables that it touches, so it is computed once for the numbers of these (`_Behaviour`); of a state only
the edges are left to be drawn.  Hashing whole values for each state and action took longer than the steps.

Not here: which of them a suite takes (`cover`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

from specchk.conform.covers.classes import Classifier
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.tracing import Tracer
from specchk.meaning.values import State

# Enough for `cover` to choose among; all of them would be the graph once more.
CANDIDATES = 16  # examples kept of each class
KEPT = 1 << 14  # behaviours of each action: states come by distance, so near ones agree in most variables


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

    def number(self, key: Hashable) -> int:
        """The number of a class."""
        number = self._numbers.setdefault(key, len(self.keys))
        if number == len(self.keys):
            self.keys.append(key)
            self.examples.append([])
        return number

    def note(self, number: int, example: ClassifiedEdge | Refusal) -> bool:
        """Keep an example, if the class has few; whether it would keep another one."""
        # States come by distance, so the first examples are the nearest.
        if len(self.examples[number]) < CANDIDATES:
            self.examples[number].append(example)
        return len(self.examples[number]) < CANDIDATES


class _Drawn(NamedTuple):
    """An edge of a behaviour: the numbers of the variables that change, and its classes."""

    args: tuple[Any, ...]
    choice: int
    changes: tuple[tuple[int, int], ...]
    classes: tuple[int, ...]


@dataclass(slots=True)
class _Behaviour:
    """What an action does where its variables have some values, in all of its instances.

    `ways` has the class of each way to an edge, with the edge's position, and `refusals` that of each
    refusal, with its arguments; `is_open` while some class of them keeps more examples.
    """

    edges: tuple[_Drawn, ...]
    ways: tuple[tuple[int, int], ...]
    refusals: tuple[tuple[int, tuple[Any, ...]], ...]
    is_open: bool = True


class Numbered:
    """Numbers for the values of one variable, in the order in which they are first seen."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, value: Any) -> int:
        """The number of a value."""
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


Around = tuple[
    dict[ClassifiedEdge, tuple[int, ...]], dict[int, Refusal]
]  # of a state: its edges, its refusals


@dataclass(slots=True)
class ClassGraph:
    """States, shortest ways to them, and classes; `complete` unless a limit ended it."""

    program: Program
    classifier: Classifier
    states: list[tuple[int, ...]] = field(default_factory=list)
    """Of each state the numbers of its values."""
    number: dict[tuple[int, ...], int] = field(default_factory=dict)
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
    _values: list[Numbered] = field(default_factory=list)  # of each variable
    _actions: list[Callable[[tuple[int, ...]], _Behaviour]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._values = [Numbered() for _ in self.program.variables]
        for index, footprint in enumerate(self.classifier.tracer.footprints):
            known = lru_cache(KEPT)(partial(self._behaviour, index))
            self._actions.append(_chained(_picked(footprint), known))

    def numbers_of(self, state: State) -> tuple[int, ...]:
        """A state as it is kept."""
        return tuple([known.number(value) for known, value in zip(self._values, state, strict=True)])

    def state(self, number: int) -> State:
        """The values of a state."""
        pairs = zip(self._values, self.states[number], strict=True)
        return tuple([known.values[value] for known, value in pairs])

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

    def add(self, numbers: tuple[int, ...], by: ClassifiedEdge | None, depth: int) -> None:
        """A state that is reached for the first time."""
        self.number[numbers] = len(self.states)
        self.states.append(numbers)
        self.first.append(by)
        self.depth.append(depth)
        self.out.append({})

    def expand(self, source: int, *, keep: bool) -> Iterator[int]:
        """Expand a state; the numbers of those that are reached from it first."""
        known = len(self.states)
        self.expanded.add(source)
        numbers = self.states[source]
        for index, behaviour_in in enumerate(self._actions):
            behaviour = behaviour_in(numbers)
            if not behaviour.edges and not behaviour.is_open:
                continue  # as it is for most actions in most states
            self.edges += len(behaviour.edges)
            edges = [self._edge(source, index, drawn) for drawn in behaviour.edges]
            if behaviour.is_open:
                behaviour.is_open = self._note(source, index, behaviour, edges)
            if keep:
                pairs = zip(edges, behaviour.edges, strict=True)
                self.out[source].update((edge, drawn.classes) for edge, drawn in pairs)
        yield from range(known, len(self.states))

    def _edge(self, source: int, index: int, drawn: _Drawn) -> ClassifiedEdge:
        """An edge of a state; where it leads may be new."""
        after = list(self.states[source])
        for slot, value in drawn.changes:
            after[slot] = value
        numbers = tuple(after)
        target = self.number.get(numbers, len(self.states))
        edge = ClassifiedEdge(source, index, drawn.args, drawn.choice, target)
        if target == len(self.states):
            self.add(numbers, edge, self.depth[source] + 1)
        return edge

    def _note(self, source: int, index: int, behaviour: _Behaviour, edges: list[ClassifiedEdge]) -> bool:
        """Keep examples of a behaviour's classes; whether some of them keep more."""
        is_open = False
        for number, at in behaviour.ways:
            is_open |= self.classes.note(number, edges[at])
        for number, args in behaviour.refusals:
            is_open |= self.refusals.note(number, Refusal(source, index, args))
        return is_open

    def _look(self, source: int) -> Around:
        edges: dict[ClassifiedEdge, tuple[int, ...]] = {}
        refused: dict[int, Refusal] = {}
        for index, behaviour_in in enumerate(self._actions):
            behaviour = behaviour_in(self.states[source])
            edges |= {self._edge(source, index, drawn): drawn.classes for drawn in behaviour.edges}
            for number, args in behaviour.refusals:
                refused.setdefault(number, Refusal(source, index, args))
        return edges, refused

    def _behaviour(self, index: int, numbers: tuple[int, ...]) -> _Behaviour:
        """What an action does where its variables have the values of these numbers."""
        tracer = self.classifier.tracer
        pairs = zip(tracer.footprints[index], numbers, strict=True)
        before = tracer.narrow(index, [self._values[slot].values[number] for slot, number in pairs])
        edges: dict[tuple[tuple[Any, ...], State], int] = {}
        drawn: list[_Drawn] = []
        ways: list[tuple[int, int]] = []
        refusals: list[tuple[int, tuple[Any, ...]]] = []
        for looked in tracer.instances(index, before):
            if not looked.reached:
                # Beyond a horizon the spec does not say whether the step is refused.
                if not looked.beyond:
                    refusals.append((self.refusals.number((index, looked.dead_ends)), looked.args))
                continue
            choices = sorted({reached.after for reached in looked.reached})
            for after, marks in looked.reached:
                number = self.classes.number(self.classifier.edge(before, looked, after, marks))
                # One edge may be reached by several ways through the action, each with a class.
                at = edges.setdefault((looked.args, after), len(drawn))
                if at == len(drawn):
                    changes = self._changes(before, after)
                    drawn.append(_Drawn(looked.args, choices.index(after), changes, (number,)))
                elif number not in drawn[at].classes:
                    drawn[at] = drawn[at]._replace(classes=(*drawn[at].classes, number))
                ways.append((number, at))
        return _Behaviour(tuple(drawn), tuple(ways), tuple(refusals))

    def _changes(self, before: State, after: State) -> tuple[tuple[int, int], ...]:
        pairs = enumerate(zip(before, after, strict=True))
        return tuple([(slot, self._values[slot].number(new)) for slot, (old, new) in pairs if old != new])


def _picked(footprint: tuple[int, ...]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """The numbers at some positions."""
    # Made for each state and action, and an itemgetter is the fastest; of a single position it has no tuple.
    if len(footprint) > 1:
        return itemgetter(*footprint)
    return lambda numbers: tuple([numbers[slot] for slot in footprint])


def _chained(
    pick: Callable[[tuple[int, ...]], tuple[int, ...]], known: Callable[[tuple[int, ...]], _Behaviour]
) -> Callable[[tuple[int, ...]], _Behaviour]:
    return lambda numbers: known(pick(numbers))


def explore(program: Program, max_states: int | None = None, *, keep_edges: bool = False) -> ClassGraph:
    """The graph of a program; with a limit, the part seen from as many states."""
    tracer = Tracer(program)
    graph = ClassGraph(program, Classifier(tracer))
    properties = Properties(program, tracer)

    def inside(numbers: Iterable[int]) -> list[int]:
        return [new for new in numbers if properties.inside(properties.environment(graph.state(new)))]

    for state in initial_states(program):
        graph.add(graph.numbers_of(state), None, 0)
    queue = inside(range(len(graph.states)))
    for done, source in enumerate(queue):  # grows while it is walked
        if done == max_states:
            graph.complete = False
            break
        queue.extend(inside(graph.expand(source, keep=keep_edges)))
    return graph
