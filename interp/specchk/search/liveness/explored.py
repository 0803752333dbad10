"""The step graph of a program, listed by the reference stepper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.initial import initial_states
from specchk.meaning.values import State
from specchk.search.liveness.graph import EVERY, StepGraph

Look = Callable[[int, int, int], None]  # states, steps, states not expanded


class Lister(Protocol):
    """Lists the steps of a program: its graph, and the states by their numbers."""

    graph: StepGraph

    def run(self, look: Look) -> None:
        """List all steps; `look` is called with progress counts, and raises an exception to end it."""

    def state(self, number: int) -> State:
        """A state by its number."""


class Explored:
    """The states and steps of a program, found breadth first."""

    def __init__(self, fair: FairSteps) -> None:
        self.fair = fair
        self.graph = StepGraph()
        self.states: list[State] = []
        self._numbers: dict[State, int] = {}
        for state in initial_states(fair.program):
            if fair.properties.keeps(state):
                self._number(state, -1)
        self.graph.initial = len(self.states)

    def run(self, look: Look) -> None:
        """Explore all states."""
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


class FirstStates(Explored):
    """Only the first states, with the steps between them; their fair behaviours are also the program's.

    The conditions enabled in a state do not depend on the other states, so a rest here is one, and a loop
    that keeps every condition here keeps it in the whole graph.
    """

    def __init__(self, fair: FairSteps, most: int) -> None:
        super().__init__(fair)
        self.most = most

    def run(self, look: Look) -> None:
        """List the steps of the first states."""
        found, expanded = self.graph, []
        for number, state in enumerate(self.states):  # grows while it is walked
            if number == self.most:
                break
            look(0, 0, 0)  # they count towards no limit of states: an engine with symmetry found fewer
            expanded.append(self.fair.outgoing(state))
            for after, _ in expanded[-1].steps:
                self._number(after, number)
        self.graph = graph = StepGraph(initial=min(found.initial, len(expanded)))
        for parent in found.parent[: len(expanded)]:
            graph.add(parent)
        for out in expanded:
            steps = ((self._numbers[after], mask) for after, mask in out.steps)
            graph.expand((step for step in steps if step[0] < len(expanded)), out.enabled, out.cut)
