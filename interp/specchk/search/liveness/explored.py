"""The step graph of a program, by the reference stepper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.initial import initial_states
from specchk.meaning.values import State
from specchk.search.liveness.graph import EVERY, StepGraph

Look = Callable[[int, int, int], None]  # states, steps, states not expanded


class Lister(Protocol):
    """Lists the steps of a program; the graph, and the states of its numbers."""

    graph: StepGraph

    def run(self, look: Look) -> None:
        """List everything; `look` is called with numbers, and raises to end it."""

    def state(self, number: int) -> State:
        """A state by its number."""


class Explored:
    """States and steps, found breadth first."""

    def __init__(self, fair: FairSteps) -> None:
        self.fair = fair
        self.graph = StepGraph()
        self.states: list[State] = []
        self._numbers: dict[State, int] = {}
        for state in initial_states(fair.program):
            if fair.is_inside(state):
                self._number(state, -1)
        self.graph.initial = len(self.states)

    def run(self, look: Look) -> None:
        """Explore everything."""
        graph = self.graph
        for number, state in enumerate(self.states):  # grows while it is walked
            if number % EVERY == 0:
                look(number, len(graph.target), len(self.states) - number)
            out = self.fair.outgoing(state)
            steps = ((self._number(after, number), mask) for after, mask in out.steps)
            graph.expand(steps, out.enabled, out.cut)

    def state(self, number: int) -> State:
        """A state by its number."""
        return self.states[number]

    def _number(self, state: State, parent: int) -> int:
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = self.graph.add(parent)
            self.states.append(state)
        return number
