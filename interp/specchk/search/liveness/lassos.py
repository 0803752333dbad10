"""The shortest counterexample in a region: a rest, or a way to a fair loop and once around it.

A rest is a state in which nothing is owed any more: no fair condition is enabled, and the behaviour may
stay there.  Of loops the shortest lasso is found by breadth-first search from each state of a fair
component over pairs of a state and what the way has met so far; such pairs are as many as 2^k times the
states, so the effort has a limit, and a loop that is made up of shortest ways to each condition is
taken beyond it (`is_shortest` is false then).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from specchk.search.liveness.components import Conditions, fair_components
from specchk.search.liveness.graph import EVERY, OwedRegion, Pause

MAX_PAIRS = 1 << 20
Taken = tuple[int, int]  # a state, and the conditions met by the step to it


@dataclass(frozen=True, slots=True)
class Lasso:
    """States by number: a path from an initial state, and a loop from its last state back to it.

    `loop` has a state and the conditions met for each step; without steps it is a rest.
    """

    path: tuple[int, ...]
    loop: tuple[Taken, ...]
    is_shortest: bool = True


@dataclass(frozen=True, slots=True)
class _Met:
    """Conditions met by a way: weak conditions settled, strong ones seen enabled, and taken; a bad state."""

    settled: int
    seen: int
    taken: int
    bad: bool


def nearest_rest(region: OwedRegion) -> Lasso | None:
    """The nearest state in which no fair condition is enabled."""
    for number in region.order:
        if is_rest(region, number):
            return Lasso(tuple(region.path(number)), ())
    return None


def is_rest(region: OwedRegion, number: int) -> bool:
    """Whether a behaviour may stay in a state, and is a counterexample then."""
    return not region.graph.enabled[number] and (region.bad is None or bool(region.bad[number]))


def shortest_lasso(region: OwedRegion, conditions: Conditions, pause: Pause) -> Lasso | None:
    """The nearest rest, or else the shortest lasso with a fair loop; None where there is neither."""
    rest = nearest_rest(region)
    if rest is not None:
        return rest
    fair = list(fair_components(region, conditions, pause, region.graph.enabled))
    if not fair:
        return None
    starts = sorted((region.distance[number], number, at) for at, c in enumerate(fair) for number in c)
    members = [frozenset(component) for component in fair]
    best: tuple[int, int, list[Taken]] | None = None
    pairs = MAX_PAIRS
    for distance, number, at in starts:
        # A loop has two steps at least.
        if best is not None and distance + 2 >= best[0]:
            break
        most = best[0] - distance - 1 if best is not None else None
        search = _LoopSearch(region, conditions, members[at], pause)
        loop = search.shortest(number, most, pairs)
        pairs -= search.pairs
        if loop is not None:
            best = distance + len(loop), number, loop
        if pairs <= 0:
            if best is None:
                best = distance, number, search.made_up(number)
            return Lasso(tuple(region.path(best[1])), tuple(best[2]), is_shortest=False)
    assert best is not None, "a fair component has a fair loop"
    return Lasso(tuple(region.path(best[1])), tuple(best[2]))


_Pair = tuple[int, _Met]


class _LoopSearch:
    """Loops in one component."""

    def __init__(
        self, region: OwedRegion, conditions: Conditions, members: frozenset[int], pause: Pause
    ) -> None:
        self.region = region
        self.conditions = conditions
        self.members = members
        self.pause = pause
        self.pairs = 0

    def steps(self, number: int) -> Iterator[Taken]:
        """The steps that stay in the component."""
        return (step for step in self.region.graph.steps(number) if step[0] in self.members)

    def _visited(self, met: _Met, number: int, mask: int) -> _Met:
        """The conditions met by a way with a step more, to this state."""
        weak, strong = self.conditions.weak, self.conditions.strong
        enabled, bad = self.region.graph.enabled[number], self.region.bad
        return _Met(
            met.settled | (mask & weak) | (weak & ~enabled), met.seen | (enabled & strong),
            met.taken | (mask & strong), met.bad or bad is None or bool(bad[number]),
        )  # fmt: skip

    def _is_fair(self, met: _Met) -> bool:
        return met.bad and met.settled == self.conditions.weak and not met.seen & ~met.taken

    def shortest(self, start: int, most: int | None, limit: int) -> list[Taken] | None:
        """The shortest fair loop through a state, of at most so many steps; None beyond the limit, too."""
        first = start, self._visited(_Met(0, 0, 0, bad=False), start, 0)
        before: dict[_Pair, tuple[_Pair, int]] = {first: (first, 0)}
        frontier, length = [first], 0
        while frontier and (most is None or length < most):
            following = []
            for pair in frontier:
                for after, mask in self.steps(pair[0]):
                    reached = after, self._visited(pair[1], after, mask)
                    if reached in before and reached != first:
                        continue
                    if after == start and self._is_fair(reached[1]):
                        return [*_unwound(before, pair, first), (after, mask)]
                    if reached not in before:
                        before[reached] = pair, mask
                        following.append(reached)
                        self._count()
                if self.pairs >= limit:
                    return None
            frontier, length = following, length + 1
        return None

    def _count(self) -> None:
        self.pairs += 1
        if self.pairs % EVERY == 0:
            self.pause()

    def made_up(self, start: int) -> list[Taken]:
        """A fair loop through a state by shortest ways to each condition that is open, and back."""
        loop: list[Taken] = []
        met = self._visited(_Met(0, 0, 0, bad=False), start, 0)
        # All that is ever enabled in the component, since the loop may pass any of it on its ways.
        ever = 0
        for number in self.members:
            ever |= self.region.graph.enabled[number]
        met = _Met(met.settled, met.seen | (ever & self.conditions.strong), met.taken, met.bad)
        while not (loop and self._is_fair(met)):
            now = loop[-1][0] if loop else start
            way = self._way(now, met)
            for after, mask in way:
                met = self._visited(met, after, mask)
            loop += way
        return loop + self._back(loop[-1][0], start)

    def _way(self, start: int, met: _Met) -> list[Taken]:
        """The shortest way to a step that meets something open; any step where nothing is."""
        if self._is_fair(met):
            return [next(self.steps(start))]
        return self._nearest(start, lambda after, mask: self._visited(met, after, mask) != met)

    def _back(self, start: int, end: int) -> list[Taken]:
        return [] if start == end else self._nearest(start, lambda after, _: after == end)

    def _nearest(self, start: int, is_goal: Callable[[int, int], bool]) -> list[Taken]:
        before: dict[int, Taken] = {}
        waiting = deque([start])
        while True:
            number = waiting.popleft()
            for after, mask in self.steps(number):
                if is_goal(after, mask):
                    way = [(after, mask)]
                    while number != start:
                        previous, taken = before[number]
                        way.append((number, taken))
                        number = previous
                    return way[::-1]
                if after not in before and after != start:
                    before[after] = number, mask
                    waiting.append(after)


def _unwound(before: Mapping[_Pair, tuple[_Pair, int]], pair: _Pair, first: _Pair) -> list[Taken]:
    """The steps to a pair of a breadth-first search."""
    way: list[Taken] = []
    while pair != first:
        previous, mask = before[pair]
        way.append((pair[0], mask))
        pair = previous
    return way[::-1]
