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
        self.most = most  # first: the base class numbers the initial states
        super().__init__(fair)

    def run(self, look: Look) -> None:
        """List the steps of the first states."""
        for number, state in enumerate(self.states):  # grows while it is walked
            look(0, 0, 0)  # they count towards no limit of states: an engine with symmetry found fewer
            out = self.fair.outgoing(state)
            steps = [(self._number(after, number), mask) for after, mask in out.steps]
            self.graph.expand([step for step in steps if step[0] >= 0], out.enabled, out.cut)

    def _number(self, state: State, parent: int) -> int:
        """As for all states, up to the last of the first ones; -1 for others."""
        is_full = len(self.states) == self.most
        return self._numbers.get(state, -1) if is_full else super()._number(state, parent)
