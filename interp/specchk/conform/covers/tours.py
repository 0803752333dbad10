"""Tours: paths through a state graph that contain every edge, or every sequence of a few edges.

An implementation may remember more of its path than the projection shows: the position of the first item of a
ring, a cache, a counter.  Two paths to one state of the spec may then be two states of it, which a cover of
states, classes or edges need not distinguish.  Sequences do so up to their length (as the k-switch cover of
Chow, "Testing Software Design Modeled by Finite-State Machines", 1978): every path to an edge by the
edges before it is taken.

    unfolded graph    a node is a state with the last `order` - 1 edges that led to it, or fewer at a start
    tour              go on by an edge that was not taken yet, else to the nearest node that has one, else
                      start again; a case is at most `LONGEST_TOUR` steps

Invariants: a function of the graph alone; a longer order has every sequence of a shorter one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from math import inf

from msgspec import Struct, field

from specchk.conform.covers.graph import ClassGraph, ClassifiedEdge

LONGEST_TOUR = 200  # so that a failure has a path that can be read
MOST_SEQUENCES = 1500  # taken beside the classes: the gate is to stay fast
# Each edge more multiplies the sequences by the edges of a state, so a greater order fits no graph that has
# choices.
LONGEST_SEQUENCE = 4
Path = tuple[int, tuple[ClassifiedEdge, ...]]  # the initial state's number, and the steps
_Node = tuple[int, tuple[ClassifiedEdge, ...]]


class Unfolding(Struct):
    """The unfolded graph: for each node its edges, each with the next node; `starts` by initial state."""

    order: int
    steps: list[dict[ClassifiedEdge, int]] = field(default_factory=list)
    starts: dict[int, int] = field(default_factory=dict)
    sequences: int = 0

    @classmethod
    def of(cls, graph: ClassGraph, order: int, most: float = inf) -> Unfolding:
        """The unfolding of an order; if it has more than `most` sequences, only a part of it."""
        unfolding = cls(order)
        numbers: dict[_Node, int] = {}
        queue: deque[_Node] = deque()

        def number(node: _Node) -> int:
            if node not in numbers:
                numbers[node] = len(numbers)
                unfolding.steps.append({})
                queue.append(node)
            return numbers[node]

        for state, step in enumerate(graph.first):
            if step is None:
                unfolding.starts[state] = number((state, ()))
        while queue:
            node = queue.popleft()
            state, before = node
            for edge in graph.edges_of(state):
                # Of the edges before as many as an order needs: none for single edges.
                last = (*before, edge)[-(order - 1) :] if order > 1 else ()
                unfolding.steps[numbers[node]][edge] = number((edge.target, last))
                unfolding.sequences += 1
            if unfolding.sequences > most:
                break
        return unfolding


def unfold(graph: ClassGraph, most: int = MOST_SEQUENCES) -> Unfolding | None:
    """The unfolding of the greatest feasible order; None if even that of single edges is too large."""
    # Of a graph that a limit has cut not all sequences are known, and a larger limit would give others.
    if not graph.complete or graph.edges > most:
        return None
    best = None
    for order in range(1, LONGEST_SEQUENCE + 1):
        unfolding = Unfolding.of(graph, order, most)
        if unfolding.sequences > most or (best is not None and unfolding.sequences == best.sequences):
            break
        best = unfolding
    return best


def tours(unfolding: Unfolding) -> Iterator[Path]:
    """Paths that contain every edge of an unfolding."""
    left = [dict.fromkeys(edges) for edges in unfolding.steps]
    # From a start with no edge left to take there is none later, either.
    for state, node in unfolding.starts.items():
        while path := _tour(unfolding, left, node):
            yield state, tuple(path)


def _tour(unfolding: Unfolding, left: list[dict[ClassifiedEdge, None]], start: int) -> list[ClassifiedEdge]:
    path: list[ClassifiedEdge] = []
    node = start
    # At least one way, however far it is: else an edge beyond that length would never be taken.
    while len(path) < LONGEST_TOUR or not path:
        way = _nearest(unfolding, left, node)
        if way is None:
            break
        for edge in way:
            left[node].pop(edge, None)
            node = unfolding.steps[node][edge]
        path += way
    return path


def _nearest(
    unfolding: Unfolding, left: list[dict[ClassifiedEdge, None]], start: int
) -> list[ClassifiedEdge] | None:
    """The shortest path that ends with a remaining edge."""
    before: dict[int, tuple[int, ClassifiedEdge] | None] = {start: None}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if left[node]:
            path = [next(iter(left[node]))]
            at = node
            while (step := before[at]) is not None:
                at = step[0]
                path.append(step[1])
            return path[::-1]
        for edge, after in unfolding.steps[node].items():
            if after not in before:
                before[after] = (node, edge)
                queue.append(after)
    return None
