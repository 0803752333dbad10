"""Fairness of a refined program as regions of the refining program's step graph.

Fairness of an abstract action A is a claim on our behaviours, seen through the mapping.  With E for "A has a
step from the image that changes it", and T for "the images of the step are such a step":

    weak     always eventually (not E or T)     fails in a fair loop, or a rest, of states with E, without T
    strong   always eventually E implies        fails in a fair loop, or a rest, that has a state with E,
             always eventually T                without T

So the steps T are removed from the graph.  The states that enable our own fair conditions stay unchanged: a
condition that only such a step would meet is owed in the loop, and the loop is not fair.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

from msgspec.structs import replace

from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.values import State
from specchk.search.liveness.graph import EVERY, OwedRegion, Pause, StepGraph, owed_region


class PulledFairness:
    """The conditions of the refined program that each state enables and each step meets."""

    def __init__(
        self, graph: StepGraph, fair: FairSteps, image: Callable[[int], State], pause: Pause
    ) -> None:
        self.graph = graph
        self.fair = fair
        self.pause = pause
        self.enabled: list[int] = []
        self.taken: list[int] = []
        self._numbers: dict[State, int] = {}
        self._steps: list[tuple[dict[State, int], int]] = []
        images = array("I")
        for number in range(graph.count):
            if number % EVERY == 0:
                pause()
            images.append(self._number(image(number)))
        states = list(self._numbers)
        for number, before in enumerate(images):
            if number % EVERY == 0:
                pause()
            steps, enabled = self._steps[before]
            self.enabled.append(enabled)
            for after, _ in graph.steps(number):
                self.taken.append(steps.get(states[images[after]], 0))

    def _number(self, state: State) -> int:
        if state not in self._numbers:
            self._numbers[state] = len(self._numbers)
            self._steps.append(taken_by(self.fair, state))
        return self._numbers[state]

    def region(self, bit: int) -> OwedRegion:
        """The states in which a condition is pending, with the steps that do not meet it."""
        rest = self._without(bit)
        enabled = bytearray(mask >> bit & 1 for mask in self.enabled)
        everywhere = range(self.graph.count)
        if self.fair.strong >> bit & 1:
            region = owed_region(rest, everywhere, lambda _: False, self.pause)
            region.bad = enabled
            return region
        triggers = [number for number in everywhere if enabled[number]]
        return owed_region(rest, triggers, lambda number: not enabled[number], self.pause)

    def _without(self, bit: int) -> StepGraph:
        graph = self.graph
        start, target, label = array("Q", [0]), array("I"), array("I")
        for number in range(graph.count):
            for at in range(graph.start[number], graph.start[number + 1]):
                if not self.taken[at] >> bit & 1:
                    target.append(graph.target[at])
                    label.append(graph.label[at])
            start.append(len(target))
        return replace(graph, start=start, target=target, label=label)


def taken_by(fair: FairSteps, state: State) -> tuple[dict[State, int], int]:
    """The successors of a state with the conditions met by the steps to them, and the enabled conditions."""
    out = fair.outgoing(state)
    steps: dict[State, int] = {}
    for after, mask in out.steps:
        # One pair of images may be a step of several actions, and is one of each.
        steps[after] = steps.get(after, 0) | mask
    return steps, out.enabled
