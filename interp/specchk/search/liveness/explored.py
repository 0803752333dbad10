"""The step graph of a program, by the reference stepper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specchk.ir.program import Property
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.initial import initial_states
from specchk.meaning.values import State
from specchk.search.liveness.graph import EVERY, StepGraph

Look = Callable[[int, int, int], None]  # states, steps, states not expanded


Truths = Callable[[int], bool | None]


class StepSource(Protocol):
    """Explores a program; the step graph and the states of its numbers."""

    graph: StepGraph

    def run(self, look: Look) -> None:
        """Explore everything; `look` is called with numbers, and raises to end it."""

    def state(self, number: int) -> State:
        """A state by its number."""

    def truths(self, prop: Property) -> Truths:
        """Whether a predicate is true in states, where that is known already."""


class Explored:
    """States and steps, found breadth first."""

    def __init__(self, fair: FairSteps) -> None:
        self.fair = fair
        self.graph = StepGraph()
        self.states: list[State] = []
        self._numbers: dict[State, int] = {}
        self._labels: dict[int, int] = {}
        for state in initial_states(fair.program):
            if fair.is_inside(state):
                self._number(state, -1, 0)
        self.graph.initial = len(self.states)

    def run(self, look: Look) -> None:
        """Explore everything."""
        graph = self.graph
        for number, state in enumerate(self.states):  # grows while it is walked
            if number % EVERY == 0:
                look(number, len(graph.target), len(self.states) - number)
            out = self.fair.outgoing(state)
            for after, mask in out.steps:
                graph.target.append(self._number(after, number, graph.level[number] + 1))
                graph.label.append(self._label(mask))
            graph.start.append(len(graph.target))
            graph.enabled.append(out.enabled)
            graph.cut.append(out.cut)

    def state(self, number: int) -> State:
        """A state by its number."""
        return self.states[number]

    def truths(self, prop: Property) -> Truths:
        """Nothing is known beforehand."""
        return lambda _: None

    def _number(self, state: State, parent: int, level: int) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self.states)
            self.states.append(state)
            self.graph.parent.append(parent)
            self.graph.level.append(level)
        return found

    def _label(self, mask: int) -> int:
        if mask not in self._labels:
            self._labels[mask] = len(self.graph.masks)
            self.graph.masks.append(mask)
        return self._labels[mask]
