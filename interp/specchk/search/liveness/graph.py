"""The steps of a state space as arrays, and the region in which an obligation is pending.

States are numbers in breadth-first order.  Stuttering steps are left out: every state may be
repeated (`meaning.behaviours.fairness`).  A step has the position of the set of fair conditions that it
meets; there are few such sets.

    steps of state n:   target[start[n] : start[n + 1]],   masks[label[...]]
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct, field

Pause = Callable[[], None]  # called often; raises what ends the search
EVERY = 256  # states between two calls of it


class StepGraph(Struct):
    """All states and steps; `parent` is the state from which one was first found, -1 for an initial state."""

    start: array[int] = field(default_factory=lambda: array("Q", [0]))
    target: array[int] = field(default_factory=lambda: array("I"))
    label: array[int] = field(default_factory=lambda: array("I"))
    # Of shared numbers, since sets of conditions may be wider than a word.
    enabled: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    parent: array[int] = field(default_factory=lambda: array("q"))
    level: array[int] = field(default_factory=lambda: array("I"))
    masks: list[int] = field(default_factory=list)
    initial: int = 0  # the initial states are the first
    _labels: dict[int, int] = field(default_factory=dict)  # the position of each mask

    @property
    def count(self) -> int:
        """The number of states."""
        return len(self.parent)

    def add(self, parent: int) -> int:
        """Add a state and return its number."""
        self.parent.append(parent)
        self.level.append(self.level[parent] + 1 if parent >= 0 else 0)
        return len(self.parent) - 1

    def expand(self, steps: Iterable[tuple[int, int]], enabled: int, cut: int) -> None:
        """Give the first unexpanded state its steps: the successors, each with the conditions it meets."""
        for after, mask in steps:
            self.target.append(after)
            self.label.append(self._label(mask))
        self.start.append(len(self.target))
        self.enabled.append(self.masks[self._label(enabled)])
        self.cut.append(self.masks[self._label(cut)])

    def _label(self, mask: int) -> int:
        if mask not in self._labels:
            self._labels[mask] = len(self.masks)
            self.masks.append(mask)
        return self._labels[mask]

    def steps(self, number: int) -> Iterator[tuple[int, int]]:
        """The steps of a state: each successor, with the conditions that the step meets."""
        for at in range(self.start[number], self.start[number + 1]):
            yield self.target[at], self.masks[self.label[at]]

    def path(self, number: int) -> list[int]:
        """A shortest path from an initial state."""
        return _path_to(number, self.parent)


class OwedRegion(Struct):
    """States with a pending obligation whose goal is not reached, ordered by their shortest behaviours.

    `distance` is the length of such a behaviour, -1 outside; `before` the state before it in the region, -1
    where the obligation starts, and the path to that state is one of the graph.  `bad` has the states of
    which a counterexample's loop must contain one; None if any loop is one.
    """

    graph: StepGraph
    order: list[int]
    distance: array[int]
    before: array[int]
    bad: bytearray | None = None

    def is_bad(self, number: int) -> bool:
        """Whether a loop or a rest in this state is a counterexample."""
        return self.bad is None or bool(self.bad[number])

    def path(self, number: int) -> list[int]:
        """A shortest behaviour to a state: to the beginning of the obligation, then on without the goal."""
        owing = _path_to(number, self.before)
        return [*self.graph.path(owing[0])[:-1], *owing]


def _path_to(number: int, before: Sequence[int]) -> list[int]:
    """The path to a state, by the predecessor of each state; -1 precedes the first."""
    path = [number]
    while before[path[-1]] >= 0:
        path.append(before[path[-1]])
    return path[::-1]


def owed_region(
    graph: StepGraph, triggers: Iterable[int], reaches_goal: Callable[[int], bool], pause: Pause
) -> OwedRegion:
    """The states reachable from `triggers` (in the order of their levels) without passing the goal."""
    distance, before = array("i", [-1]) * graph.count, array("q", [-1]) * graph.count
    waiting: dict[int, list[int]] = {}
    for number in triggers:
        waiting.setdefault(graph.level[number], []).append(number)
    region = OwedRegion(graph, [], distance, before)
    depth = 0
    begun = {number for states in waiting.values() for number in states}
    frontier: list[int] = []
    while frontier or waiting:
        # States reached by a step come first: of the same length, the first path is as good.
        for number in waiting.pop(depth, ()):
            if distance[number] < 0:
                distance[number] = depth
                frontier.append(number)
        following: list[int] = []
        for number in frontier:
            region.order.append(number)
            if len(region.order) % EVERY == 0:
                pause()
            for after, _ in graph.steps(number):
                if distance[after] < 0 and (after in begun or not reaches_goal(after)):
                    distance[after], before[after] = depth + 1, number
                    following.append(after)
        frontier, depth = following, depth + 1
    return region
