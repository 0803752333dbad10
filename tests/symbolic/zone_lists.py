"""Zones by lists: what kernels compute, written down once more, without arrays and without a cap."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from specchk.meaning.paths import FREE, Matrix, Rows, assuming
from specchk.symbolic.zones.zones import Reach, Shape, Zone


def zone_with(shape: Shape, classes: Iterable[tuple[int, int]], bounds: Matrix) -> Zone:
    """The zone with these classes and bounds."""
    places = [number for pair in ((0, 0), *classes) for number in pair]
    numbers = [len(bounds), len(places) // 2, *places, *chain.from_iterable(bounds)]
    return Zone(shape, array("q", numbers).tobytes(), hash(shape))


def zone_at(shape: Shape, at: Sequence[tuple[int, int]], rows: Matrix, reach: Reach | None) -> Zone:
    """The zone of a shape with `x + d` at each open place, over a matrix; None forgets nothing."""
    distinct = list(dict.fromkeys([(0, 0), *at]))
    # Symbols that no place has (chosen and not stored) are left out: of a closed matrix that is exact
    # projection.
    matrix = [[rows[i][j] + d - c for j, c in distinct] for i, d in distinct]
    if reach is not None:
        matrix = _forget(matrix, reach)
    return canonical(shape, at, distinct, matrix)


def canonical(shape: Shape, places: Sequence[Any], distinct: Sequence[Any], matrix: Rows) -> Zone:
    """The zone of a closed matrix over the symbols `distinct`, one of which is in each open place."""
    # After forgetting, which may leave or break equalities: only offsets known to be equal now are one class.
    place, kept = _classes(matrix)
    bounds = tuple([tuple([matrix[i][j] for j in kept]) for i in kept])
    where = dict(zip(distinct, place, strict=True))
    return zone_with(shape, [where[one] for one in places], bounds)


def _forget(matrix: Rows, reach: Reach) -> Rows:
    """The closed matrix without the bounds beyond `reach`."""
    upper, lower = reach.upper, -reach.lower
    # As with clocks (Bengtsson and Yi, 2004) this gives finitely many matrices.  With differences compared,
    # no such abstraction is exact (Bouyer, 2003): that is why no finding in zones is accepted before
    # `concrete` has real offsets for it.
    out = [[FREE if bound > upper else max(bound, lower) for bound in row] for row in matrix]
    for index, row in enumerate(out):
        row[index] = 0
    if out == matrix:
        return matrix
    # Closed again, so that equal sets have equal matrices; a bound may then be below `-lower` again, but
    # there are no more results than matrices before closing.
    return closed(out)


def closed(matrix: Rows) -> Rows:
    """The least matrix with the same solutions (Floyd and Warshall)."""
    for via, onward in enumerate(matrix):
        far = [(j, bound) for j, bound in enumerate(onward) if bound < FREE]
        for row in matrix:
            near = row[via]
            if near < FREE:
                for j, bound in far:
                    if near + bound < row[j]:
                        row[j] = near + bound
    return matrix


def _classes(matrix: Rows) -> tuple[list[tuple[int, int]], list[int]]:
    """For each symbol, its class and its distance from it; and the first symbol of each class."""
    place: list[tuple[int, int]] = []
    kept: list[int] = []
    for i, row in enumerate(matrix):
        # The first symbol of a class names it, so that classes are numbered by the order of places:
        # canonical.
        for number, first in enumerate(kept):
            # x_i - x_first <= c and x_first - x_i <= -c: the distance is known.
            if row[first] < FREE and row[first] == -matrix[first][i]:
                place.append((number, row[first]))
                break
        else:
            place.append((len(kept), 0))
            kept.append(i)
    return place, kept


def joined(a: Zone, b: Zone) -> Zone:
    """The least zone that contains two zones of one shape; `a` itself if it contains the other."""
    # One symbol for all places at the same distance in both zones: few symbols, even for many places.
    number: dict[tuple[int, int, int], int] = {}
    first: list[tuple[int, int, int, int]] = []
    classes: list[tuple[int, int]] = []
    for (c, d), (e, f) in zip(((0, 0), *a.classes), ((0, 0), *b.classes), strict=True):
        key = (c, e, d - f)
        at = number.get(key)
        if at is None:
            at = number[key] = len(first)
            first.append((c, d, e, f))
        classes.append((at, d - first[at][1]))
    of_a, of_b = a.bounds, b.bounds
    is_larger = len(first) > len(of_a)
    rows = []
    for c, d, e, f in first:
        in_a, in_b = of_a[c], of_b[e]
        row = []
        for c2, d2, e2, f2 in first:
            known = in_a[c2]
            if known < FREE:
                known += d - d2
                other = in_b[e2]
                if other >= FREE:
                    known, is_larger = FREE, True
                elif other + f - f2 > known:
                    known, is_larger = other + f - f2, True
            row.append(known)
        rows.append(tuple(row))
    return zone_with(a.shape, classes[1:], rows) if is_larger else a


def cut(zone: Zone, i: int, j: int, bound: int) -> Zone:
    """The part of a zone with `y_i - y_j <= bound`, given its classes; it must not be empty."""
    rows = assuming(zone.bounds, i, j, bound)
    smaller = canonical(zone.shape, range(1, len(rows)), range(len(rows)), rows)
    places = ((0, 0), *smaller.classes)
    classes = tuple([(places[c][0], places[c][1] + d) for c, d in zone.classes])
    return zone_with(zone.shape, classes, smaller.bounds)
