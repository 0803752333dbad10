"""The state graph of a small program, for drawing."""

from __future__ import annotations

from msgspec import Struct

from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State
from specchk.search.verdict import Step


class Edge(Struct, frozen=True):
    """A step between two states, by their numbers; `label` is the action with its arguments."""

    source: int
    action: int
    label: str
    target: int


class StateGraph(Struct, frozen=True):
    """States in breadth-first order with their level, and all steps between them."""

    program: Program
    states: tuple[State, ...]
    levels: tuple[int, ...]
    edges: tuple[Edge, ...]


class TooManyStates(Exception):
    """The program has more states than a drawing can show."""


def state_graph(program: Program, limit: int) -> StateGraph:
    """The states that a search counts, with the steps between them; raises `TooManyStates` beyond `limit`.

    An undefined part has no picture, and is raised unchanged: `Undefined`, `Faulty`, `NoAnswer`.
    """
    stepper = Stepper(program)
    properties = Properties(program, stepper)
    number: dict[State, int] = {}
    levels: list[int] = []
    edges: list[Edge] = []
    for state in initial_states(program):
        if properties.inside(properties.environment(state)):
            _add(state, 0, number, levels, limit)
    queue = list(number)
    for source, state in enumerate(queue):  # grows while it is walked
        for action, args, after in stepper.successors(state):
            if not properties.inside(properties.environment(after)):
                continue
            if after not in number:
                queue.append(after)
            target = _add(after, levels[source] + 1, number, levels, limit)
            edges.append(Edge(source, action, str(Step.of(program, action, args, after)), target))
    return StateGraph(program, tuple(number), tuple(levels), tuple(dict.fromkeys(edges)))


def enabling(graph: StateGraph) -> dict[tuple[int, int], int]:
    """How often a step of one action enables another: disabled before the step, enabled after it."""
    enabled: list[set[int]] = [set() for _ in graph.states]
    for edge in graph.edges:
        enabled[edge.source].add(edge.action)
    found: dict[tuple[int, int], int] = {}
    for edge in graph.edges:
        for other in enabled[edge.target] - enabled[edge.source]:
            found[edge.action, other] = found.get((edge.action, other), 0) + 1
    return dict(sorted(found.items()))


def _add(state: State, level: int, number: dict[State, int], levels: list[int], limit: int) -> int:
    if state not in number:
        if len(number) >= limit:
            raise TooManyStates
        number[state] = len(number)
        levels.append(level)
    return number[state]
