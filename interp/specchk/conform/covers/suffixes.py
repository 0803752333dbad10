"""Suffixes: a few steps added to the paths of a class cover, for graphs too large for tours.

A step may leave a wrong value where the projection does not look, and only a later step depends on it.  So
each path is continued: by a class that has not followed the one before it, else to a state that no path has
been in, else by any edge.  Which of several is decided by a digest of the path, so that a change of the spec
elsewhere leaves the other paths as they are.

Invariants: a function of the graph and the paths; at most `LONGEST_SUFFIX` steps each, and in all a fifth
of the steps of the paths, or `FEWEST_STEPS` where that is more.  Not here: small graphs (`tours`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from specchk.conform.covers.graph import ClassGraph, ClassifiedEdge
from specchk.conform.covers.tours import Path

# Suffixes are added to every gate, so they are a share of it: a fifth of the time, however large the graph.
LONGEST_SUFFIX = 5
FEWEST_STEPS = 200
SHARE = 5  # one step in so many


class _Trodden(Struct):
    """The pairs of classes in succession on paths, and the states on the paths."""

    graph: ClassGraph
    pairs: set[tuple[int, int]] = field(default_factory=set)
    states: set[int] = field(default_factory=set)

    def note(self, before: ClassifiedEdge | None, edge: ClassifiedEdge) -> None:
        """Note an edge that follows another one."""
        self.states.update((edge.source, edge.target))
        self.pairs.update(self.pairs_of(before, edge))

    def pairs_of(self, before: ClassifiedEdge | None, edge: ClassifiedEdge) -> set[tuple[int, int]]:
        """The pairs of classes of two edges."""
        if before is None:
            return set()
        return {(first, second) for first in self._classes(before) for second in self._classes(edge)}

    def _classes(self, edge: ClassifiedEdge) -> tuple[int, ...]:
        return self.graph.edges_of(edge.source)[edge]

    def digest(self, path: Sequence[ClassifiedEdge]) -> bytes:
        """A digest of a path in terms of the spec, since numbers change with any other edge or action."""
        actions = self.graph.program.actions
        return hashlib.sha256(
            repr([(actions[e.action].name, e.args, e.choice) for e in path]).encode()
        ).digest()

    def novelty(self, before: ClassifiedEdge, edge: ClassifiedEdge) -> int:
        """The novelty of a step: 2 for a new pair of classes, 1 for a new state, 0 otherwise."""
        if self.pairs_of(before, edge) - self.pairs:
            return 2
        return int(edge.target not in self.states)


def suffixed(graph: ClassGraph, paths: Sequence[Path]) -> list[Path]:
    """The given paths, each extended by a suffix."""
    seen = _Trodden(graph)
    for _, path in paths:
        for before, edge in zip((None, *path), path, strict=False):
            seen.note(before, edge)
    # As the runner takes them: what paths share is one step.
    tree = {(start, path[: end + 1]) for start, path in paths for end in range(len(path))}
    left = max(FEWEST_STEPS, len(tree) // SHARE)
    longer: dict[Path, None] = {}
    ends = sorted(paths, key=lambda end: seen.digest(end[1]))
    while left > 0:
        at_first = left
        for start, path in ends:
            suffix = tuple(_suffix(seen, path, min(left, LONGEST_SUFFIX)))
            if suffix:
                longer[start, (*path, *suffix)] = None
                left -= len(suffix)
        # A round that led to nothing new would be followed by others like it.
        if left == at_first:
            break
    return list(longer)


def _suffix(seen: _Trodden, path: tuple[ClassifiedEdge, ...], longest: int) -> Iterator[ClassifiedEdge]:
    """The steps added to a path, up to the last one that covers something new."""
    steps = list(path)
    taken = waiting = 0
    while taken + waiting < longest:
        before = steps[-1]
        edges = seen.graph.edges_of(before.target)
        if not edges:
            break
        edge = max(edges, key=lambda new: (seen.novelty(before, new), seen.digest((*steps, new))))
        steps.append(edge)
        waiting += 1
        if seen.novelty(before, edge):
            taken, waiting = taken + waiting, 0
        seen.note(before, edge)
    yield from steps[len(path) : len(path) + taken]
