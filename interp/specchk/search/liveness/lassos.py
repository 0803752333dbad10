"""The shortest fair lasso of a region: a path to a loop, and the loop.

Of all counterexample lassos it has the fewest steps, prefix and loop together; of equally short ones
the one with the nearer loop.  A prefix may reach its loop before an obligation exists; it then starts in the
loop, which must contain a trigger.  The loop is found by breadth-first search from each state of a fair
component over pairs of a state and the conditions met so far; there are up to 2^k times as many pairs as
states, so the effort has a limit, beyond which a loop of shortest paths to each condition is taken
(`is_shortest` is false then).

Not here: rests, which are reported first even where a lasso is shorter (`regions`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from specchk.search.liveness.components import Conditions
from specchk.search.liveness.graph import EVERY, Pause

MAX_PAIRS = 1 << 20
N = TypeVar("N")
Taken = tuple[int, int]  # a state, and the conditions met by the step to it


class FairStates(Protocol):
    """The states of the fair components of a region."""

    def starts(self) -> Iterator[LoopStart]:
        """All possible starts of a loop, the nearest first."""

    def steps(self, number: int) -> Iterable[Taken]:
        """The steps of a state that stay in its component."""

    def enabled(self, number: int) -> int:
        """The conditions enabled in a state."""

    def is_bad(self, number: int) -> bool:
        """Whether any loop through this state is a counterexample, whatever the obligation before it."""


class LoopStart(Struct, frozen=True):
    """A state at which a loop may begin, and its distance; `is_bad`: any loop from it is a counterexample."""

    distance: int
    number: int
    is_bad: bool


class Loop(Struct, frozen=True):
    """The steps of a loop from a state back to it."""

    start: LoopStart
    steps: tuple[Taken, ...]
    is_shortest: bool = True


class _Met(Struct, frozen=True):
    """Conditions met along a path: weak ones settled, strong ones seen enabled, and taken; a bad state."""

    settled: int
    seen: int
    taken: int
    bad: bool


def shortest_loop(states: FairStates, conditions: Conditions, pause: Pause) -> Loop | None:
    """The fair loop of the shortest lasso, or None."""
    best: tuple[int, Loop] | None = None
    search = _LoopSearch(states, conditions, pause)
    starts = iter(states.starts())
    for start in starts:
        # A loop has two steps at least.
        if best is not None and start.distance + 2 >= best[0]:
            break
        steps = search.shortest(start, best[0] - start.distance - 1 if best is not None else None)
        if steps is not None:
            best = start.distance + len(steps), Loop(start, tuple(steps))
        if search.pairs >= MAX_PAIRS:
            if best is None:
                # A loop from a start at which nothing is owed yet may never meet a trigger.
                owing = next((one for one in chain([start], starts) if one.is_bad), start)
                best = 0, Loop(owing, tuple(search.made_up(owing)))
            return replace(best[1], is_shortest=False)
    return best[1] if best is not None else None


_Pair = tuple[int, _Met]


class _LoopSearch:
    """Searches for loops in fair components; `pairs` counts the pairs visited so far."""

    def __init__(self, states: FairStates, conditions: Conditions, pause: Pause) -> None:
        self.states = states
        self.conditions = conditions
        self.pause = pause
        self.pairs = 0

    def _visited(self, met: _Met, number: int, mask: int) -> _Met:
        """The conditions met by a path after one more step, to this state."""
        weak, strong = self.conditions.weak, self.conditions.strong
        enabled = self.states.enabled(number)
        return _Met(
            met.settled | (mask & weak) | (weak & ~enabled), met.seen | (enabled & strong),
            met.taken | (mask & strong), met.bad or self.states.is_bad(number),
        )  # fmt: skip

    def _is_fair(self, met: _Met) -> bool:
        return met.bad and met.settled == self.conditions.weak and not met.seen & ~met.taken

    def _first(self, start: LoopStart) -> _Met:
        return self._visited(_Met(0, 0, 0, start.is_bad), start.number, 0)

    def shortest(self, start: LoopStart, most: int | None) -> list[Taken] | None:
        """The shortest fair loop through a state, of at most `most` steps; None beyond the limits."""
        first = start.number, self._first(start)
        before: dict[_Pair, tuple[_Pair, int]] = {first: (first, 0)}
        frontier, length = [first], 0
        while frontier and (most is None or length < most):
            following = []
            for pair in frontier:
                for after, mask in self.states.steps(pair[0]):
                    reached = after, self._visited(pair[1], after, mask)
                    if reached in before and reached != first:
                        continue
                    if after == start.number and self._is_fair(reached[1]):
                        way = [(state, met) for (state, _), met in _unwound(before, pair, first)]
                        return [*way, (after, mask)]
                    if reached not in before:
                        before[reached] = pair, mask
                        following.append(reached)
                        self._count()
                if self.pairs >= MAX_PAIRS:
                    return None
            frontier, length = following, length + 1
        return None

    def _count(self) -> None:
        self.pairs += 1
        if self.pairs % EVERY == 0:
            self.pause()

    def made_up(self, start: LoopStart) -> list[Taken]:
        """A fair loop through a state, joined from shortest paths to each open condition, and back."""
        loop: list[Taken] = []
        met, now = self._first(start), start.number
        # The way back may enable strong conditions that were not seen before: then it continues.
        while not loop or now != start.number or not self._is_fair(met):
            way = self._way(now, start.number, met)
            for after, mask in way:
                met = self._visited(met, after, mask)
            loop += way
            now = loop[-1][0]
        return loop

    def _way(self, number: int, start: int, met: _Met) -> list[Taken]:
        """The shortest path to a step that meets an open condition; if none is open, back to the start."""
        if self._is_fair(met):
            return self._nearest(number, lambda after, _: after == start)
        return self._nearest(number, lambda after, mask: self._visited(met, after, mask) != met)

    def _nearest(self, start: int, is_goal: Callable[[int, int], bool]) -> list[Taken]:
        before: dict[int, Taken] = {}
        waiting = deque([start])
        while True:
            number = waiting.popleft()
            for after, mask in self.states.steps(number):
                if is_goal(after, mask):
                    return [*_unwound(before, number, start), (after, mask)]
                if after not in before and after != start:
                    before[after] = number, mask
                    waiting.append(after)
                    self._count()


def _unwound(before: Mapping[N, tuple[N, int]], node: N, first: N) -> list[tuple[N, int]]:
    """The steps to a node of a breadth-first search, each with the conditions that it meets."""
    way: list[tuple[N, int]] = []
    while node != first:
        previous, mask = before[node]
        way.append((node, mask))
        node = previous
    return way[::-1]
