"""The steps of a search's states as a listed graph, numbered as the reference engine numbers them."""

from __future__ import annotations

from array import array

from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.initial import initial_states
from specchk.meaning.values import State
from specchk.native.lanes import Lanes
from specchk.native.machine.frames import Lane
from specchk.native.machine.runs import Run
from specchk.native.store import Store
from specchk.search.liveness.explored import Look
from specchk.search.liveness.graph import EVERY, StepGraph


class StepsInStore:
    """States and steps, found breadth first again; `order` has the search's number of each state."""

    def __init__(self, fair: FairSteps, store: Store, lanes: Lanes, initial: list[Run]) -> None:
        self.fair = fair
        self.store = store
        self.lanes = lanes
        self.graph = StepGraph()
        self.order = array("I")
        self._positions = array("I", bytes(4 * store.used))  # + 1
        known = {store.words_of(n): n for first, count in initial for n in range(first, first + count)}
        for state in initial_states(fair.program):
            number = known.get(tuple(store.layout.pack(state)))
            if number is not None:  # inside the constraints
                self._position(number, -1)
        self.graph.initial = len(self.order)

    @property
    def memory_bytes(self) -> int:
        """The memory of the lists, in bytes."""
        graph = self.graph
        lists = (
            graph.start,
            graph.target,
            graph.label,
            graph.parent,
            graph.level,
            self.order,
            self._positions,
        )
        return sum(one.itemsize * len(one) for one in lists) + 8 * len(graph.enabled) + 8 * len(graph.cut)

    def state(self, number: int) -> State:
        """The state with a number in the graph."""
        return self.store.layout.unpack(self.store.words_of(self.order[number]))

    def run(self, look: Look) -> None:
        """List all states and steps."""
        graph = self.graph
        for number, of_search in enumerate(self.order):  # grows during the iteration
            if number % EVERY == 0:
                look(number, len(graph.target), len(self.order) - number)
            ends, enabled = self.lanes.follow(of_search)
            steps = [(self._position(after, number), mask) for after, mask in dict.fromkeys(ends)]
            graph.expand(steps, enabled, enabled & ~self.lanes.blocks[0][Lane.TAKEN])

    def _position(self, of_search: int, parent: int) -> int:
        if not self._positions[of_search]:
            self._positions[of_search] = self.graph.add(parent) + 1
            self.order.append(of_search)
        return self._positions[of_search] - 1
