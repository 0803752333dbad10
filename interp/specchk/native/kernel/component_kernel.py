"""Strongly connected components of a region, as a kernel that does not depend on the spec.

Pearce's form of Tarjan's algorithm (A space-efficient algorithm for finding strongly connected components,
2016), without recursion.  A state has one word of 4 bytes, its order of visit and then its component; a frame
of the walk has 8 bytes:

    state (31 bits) | whether it is a root so far (bit 31) | the next of its edges (32 bits)

Components of one state share a number, since no step of a state to itself changes it.
"""

from __future__ import annotations

from specchk.codegen.arrays import Halves, Words, halves, peek, words
from specchk.native.machine.frames import Owing, SharedWord
from specchk.native.machine.layout import mask

NO_EDGES = 4  # the place of a state of the region without edges; lower: not in it; others are above
LAST_EDGE, STATE_BITS = 31, 31
STATE = mask(STATE_BITS)
ALONE = mask(32)  # the component of all states that are alone in theirs


def components(control: Words, region: Words, listed: Halves, first: int, end: int) -> None:
    """Find the components reachable from listed states."""
    edges, index = halves(region[Owing.EDGES]), halves(region[Owing.INDEX])
    frames, stack = words(region[Owing.FRAMES]), halves(region[Owing.STACK])
    visited, depth, stacked = 0, 0, 0
    for number in range(first, end):
        if peek(control, SharedWord.STOP):
            return
        state = listed[number]
        if index[state] != 0:
            continue
        visited += 1
        at, root = visit(region, state, visited), 1
        while True:
            if at != 0:
                edge = edges[at]
                target = edge & STATE
                at = 0 if edge >> LAST_EDGE else at + 1
                if index[target] == 0:
                    frames[depth] = state | root << STATE_BITS | at << 32
                    depth += 1
                    visited += 1
                    state, at, root = target, visit(region, target, visited), 1
                elif lower(index, state, index[target]):
                    root = 0
                continue
            if root:
                # Numbers of visits are reused, so that they stay below those of components (Pearce).
                left = component(region, state, stacked)
                visited -= stacked - left + 1
                stacked = left
            else:
                stack[stacked] = state
                stacked += 1
            if depth == 0:
                break
            depth -= 1
            order, frame = index[state], frames[depth]
            state, root, at = frame & STATE, frame >> STATE_BITS & 1, frame >> 32
            if lower(index, state, order):
                root = 0
            # At a return and not at each edge: every state has one, and an atomic load for each edge would be
            # costly.
            if peek(control, SharedWord.STOP):
                return


def visit(region: Words, state: int, order: int) -> int:
    """Visit a state for the first time; where its edges begin, or 0."""
    halves(region[Owing.INDEX])[state] = order
    place = halves(region[Owing.PLACES])[state]
    return 0 if place == NO_EDGES else place


def lower(index: Halves, state: int, order: int) -> int:
    """Note that a state from which an earlier visited state is reachable is not a root: whether it is so."""
    # Finished components have numbers above all orders of visit, so they lower nothing.
    if order >= index[state]:
        return 0
    index[state] = order
    return 1


def component(region: Words, root: int, stacked: int) -> int:
    """Pop the states above the root from the stack, with it its component; how many states are left."""
    index, stack = halves(region[Owing.INDEX]), halves(region[Owing.STACK])
    left = stacked
    while left != 0 and index[stack[left - 1]] >= index[root]:
        left -= 1
        enter(region, stack[left])
    if left == stacked:
        index[root] = ALONE
        return left
    enter(region, root)
    region[Owing.COMPONENTS] += 1
    halves(region[Owing.BOUNDS])[region[Owing.COMPONENTS]] = region[Owing.MEMBER_COUNT]
    region[Owing.NEXT_ID] -= 1
    return left


def enter(region: Words, state: int) -> None:
    """Make a state a member of the component that is being finished."""
    halves(region[Owing.INDEX])[state] = region[Owing.NEXT_ID]
    halves(region[Owing.MEMBERS])[region[Owing.MEMBER_COUNT]] = state
    region[Owing.MEMBER_COUNT] += 1
