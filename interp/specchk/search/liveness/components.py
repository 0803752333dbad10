"""Strongly connected components of a region in which a fair behaviour can stay forever.

Fairness is decided by the steps inside a component, not by its states: taking an action counts only
if the step stays inside.  A weak condition that is enabled in all states of a component and that no inner
step meets is violated by every loop in it.  A strong one that is enabled somewhere and met nowhere is
violated by every loop through the states that enable it; these are deleted, and the rest is decomposed
again (Streett).  Components come from Tarjan's algorithm (Depth-first search and linear graph algorithms,
1972), without recursion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from specchk.search.liveness.graph import EVERY, OwedRegion, Pause


class Conditions(Struct, frozen=True):
    """The weak and the strong fairness conditions of a program, as bit sets."""

    weak: int
    strong: int


def fair_components(
    region: OwedRegion, conditions: Conditions, pause: Pause, enabled: Sequence[int]
) -> Iterator[list[int]]:
    """The maximal components that have a fair loop through all of their steps.

    `enabled` has the conditions enabled in each state of the graph.
    """
    graph = region.graph
    waiting: list[Sequence[int]] = [region.order]
    while waiting:
        for component in components(graph.start, graph.target, waiting.pop(), pause):
            if len(component) == 1:  # no step of a state to itself changes it
                continue
            if not any(map(region.is_bad, component)):
                continue
            always, ever, taken = _judged(region, component, enabled)
            if always & conditions.weak & ~taken:
                continue
            missed = ever & conditions.strong & ~taken
            if not missed:
                yield component
                continue
            rest = [number for number in component if not enabled[number] & missed]
            if rest:
                waiting.append(rest)


def _judged(region: OwedRegion, component: list[int], enabled: Sequence[int]) -> tuple[int, int, int]:
    """The conditions enabled in all states, those enabled in some state, and those met by some inner step."""
    members = set(component)
    always, ever, taken = -1, 0, 0
    for number in component:
        always &= enabled[number]
        ever |= enabled[number]
        for after, mask in region.graph.steps(number):
            if after in members:
                taken |= mask
    return always, ever, taken


def components(
    start: Sequence[int], target: Sequence[int], members: Sequence[int], pause: Pause
) -> Iterator[list[int]]:
    """The strongly connected components of the subgraph induced by the nodes `members`.

    The edges of node n lead to `target[start[n] : start[n + 1]]`.
    """
    index = dict.fromkeys(members, -1)  # -1: not visited; then the order of the visit
    low: dict[int, int] = {}
    done: set[int] = set()
    stack: list[int] = []
    visited = 0
    for root in members:
        if index[root] >= 0:
            continue
        path: list[tuple[int, int]] = [(root, start[root])]
        index[root] = low[root] = visited
        visited += 1
        stack.append(root)
        while path:
            number, at = path.pop()
            end = start[number + 1]
            while at < end:
                after = target[at]
                at += 1
                seen = index.get(after)
                if seen is None or after in done:
                    continue
                if seen < 0:
                    path += ((number, at), (after, start[after]))
                    index[after] = low[after] = visited
                    visited += 1
                    stack.append(after)
                    if visited % EVERY == 0:
                        pause()
                    break
                low[number] = min(low[number], seen)
            else:
                if path:
                    above = path[-1][0]
                    low[above] = min(low[above], low[number])
                if low[number] == index[number]:
                    place = len(stack) - 1
                    while stack[place] != number:
                        place -= 1
                    component = stack[place:]
                    del stack[place:]
                    done.update(component)
                    yield component
