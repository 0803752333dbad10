"""Regions of integer differences: queries that need no solver.

A region is the set of numbers that satisfy some literals `u - v <= d`, where the name "" is 0: a closed
matrix of the greatest differences, with one row for all names that are equal up to a constant (Miné, "The
octagon abstract domain" (2006), section 2).  A literal that a region leaves open is decided in each of two
parts, one with it and one with its negation, which is also a literal since numbers are whole: not
`u - v <= d` is `v - u <= -d - 1`.

Regions of a set of states differ more in names than in numbers, so matrices are shared, with everything
computed from them.

Not here: the literals that decide a question (`cases`), and the conversion of Z3 terms (`terms`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

Literal = tuple[str, str, int]  # u - v <= d
Place = tuple[Any, int]  # a name and a constant, which are added
Rows = list[list[int]]
At = tuple[int, int]  # a row, and the distance from it
Projection = tuple[int, ...]
FAR = 1 << 100  # no bound
LARGEST = 1 << 60  # of a literal: sums of however many remain far below FAR
MAX_PARTS = 256  # of a region, for one question
MATRICES = 1 << 14  # kept for other regions


class NotDecided(Exception):
    """A query that differences do not decide, or only too many of them."""


def at_most(factors: Iterable[tuple[int, Place]], most: int) -> Literal:
    """The literal that a sum is at most a number; `NotDecided` if it is not a difference of two names."""
    terms = dict[Any, int]()
    for times, (name, plus) in factors:
        terms[name] = terms.get(name, 0) + times
        most -= times * plus
    named = [(times, name) for name, times in terms.items() if times and name]
    ends = dict(named)
    if abs(most) > LARGEST or len(ends) < len(named) or not ends.keys() <= {1, -1}:
        raise NotDecided
    return ends.get(1, ""), ends.get(-1, ""), most


class DifferenceRegion(Struct, frozen=True):
    """All numbers that satisfy some literals: the row of each name, its distance from it, and the bounds.

    It is not empty.  A name without a row is any number.
    """

    at: dict[str, At]
    rows: Rows
    _projections: dict[tuple[At | None, ...], Projection] = field(default_factory=dict)  # by rows

    def projected(self, names: tuple[str, ...]) -> Projection:
        """The greatest differences of some names: everything that the region implies about these alone."""
        places = tuple([self.at.get(name) for name in names])
        found = self._projections.get(places)
        if found is None:
            whole = self.including(names)
            at = [(whole.rows[row], row, plus) for row, plus in map(whole.at.__getitem__, names)]
            found = tuple([bounds[j] + p - q for bounds, _, p in at for _, j, q in at])
            self._projections[places] = found
        return found

    def parts(self, literal: Literal) -> tuple[DifferenceRegion | None, DifferenceRegion | None]:
        """The parts of the region in which a literal is true and false; None for an empty part."""
        u, v, most = literal
        (i, p), (j, q) = self.at[u], self.at[v]
        most += q - p
        if self.rows[i][j] <= most:
            return self, None
        if self.rows[j][i] + most < 0:
            return None, self
        ways = _narrowed(self.rows, i, j, most), _narrowed(self.rows, j, i, -most - 1)
        return DifferenceRegion(self.at, ways[0]), DifferenceRegion(self.at, ways[1])

    def narrowed(self, literals: Iterable[Literal]) -> DifferenceRegion:
        """The numbers that also satisfy literals; there are some."""
        rows = self.rows
        for u, v, most in literals:
            (i, p), (j, q) = self.at[u], self.at[v]
            rows = _narrowed(rows, i, j, most + q - p)
        return self if rows is self.rows else DifferenceRegion(self.at, rows)

    def including(self, names: Iterable[str]) -> DifferenceRegion:
        """The same numbers, with rows for these names added."""
        region = self
        for name in [name for name in names if name not in self.at]:
            rows = [*[[*row, FAR] for row in region.rows], [*[FAR] * len(region.rows), 0]]
            region = DifferenceRegion({**region.at, name: (len(region.rows), 0)}, rows)
        return region

    def is_within(
        self, others: Sequence[Sequence[Literal]], moved: Mapping[str, Place], every: Sequence[Literal] = ()
    ) -> bool:
        """Whether all numbers satisfy one of several lists of literals, on `moved` names; False if unknown.

        `every` has further literals, common to all of these lists.
        """
        at = self.at
        if moved:
            at = at | {name: (at[other][0], at[other][1] + plus) for name, (other, plus) in moved.items()}
        for u, v, most in every:
            (i, p), (j, q) = at[u], at[v]
            if self.rows[i][j] > most - p + q:
                return False
        todo, parts = [self.rows], 0
        while todo:
            rows, parts = todo.pop(), parts + 1
            split = None
            for some in others:
                for u, v, most in some:
                    (i, p), (j, q) = at[u], at[v]
                    if rows[i][j] > most - p + q:
                        if split is None and rows[j][i] + most - p + q >= 0:
                            split = i, j, most - p + q
                        break
                else:
                    break
            else:
                if split is None or parts > MAX_PARTS:
                    return False
                i, j, most = split
                todo += [_narrowed(rows, i, j, most), _narrowed(rows, j, i, -most - 1)]
        return True


def _narrowed(rows: Rows, i: int, j: int, most: int) -> Rows:
    along = [most + more for more in rows[j]]
    # A row that was already this near to row j does not change, since the matrix was closed.
    return [[min(old, row[i] + new) for old, new in zip(row, along, strict=True)]
            if row[i] + most < row[j] else row for row in rows]  # fmt: skip


def region(literals: Iterable[Literal], names: Iterable[str]) -> DifferenceRegion | None:
    """The numbers of these names that satisfy literals; None if there are none."""
    bounds: dict[tuple[str, str], int] = {}
    for u, v, most in literals:
        if most < bounds.get((u, v), FAR):
            bounds[u, v] = most
    at = {name: (name, 0) for name in ("", *names)}
    equal = {name: [name] for name in at}
    for (u, v), most in bounds.items():
        (one, p), (other, q) = at[u], at[v]
        if one != other and bounds.get((v, u)) == -most:
            # one + p = other + q + most
            for name in equal[one]:
                at[name] = other, at[name][1] + q + most - p
            equal[other] += equal.pop(one)
    numbers = {first: row for row, first in enumerate(equal)}
    placed = {name: (numbers[first], plus) for name, (first, plus) in at.items()}
    known: dict[tuple[int, int], int] = {}
    for (u, v), most in bounds.items():
        (i, p), (j, q) = placed[u], placed[v]
        known[i, j] = min(known.get((i, j), FAR), most - p + q)
    matrix = _closed(
        len(equal), frozenset([(i, j, most) for (i, j), most in known.items() if i != j or most < 0])
    )
    return None if matrix is None else DifferenceRegion(placed, *matrix)


@lru_cache(MATRICES)
def _closed(
    size: int, bounds: frozenset[tuple[int, int, int]]
) -> tuple[Rows, dict[tuple[At | None, ...], Projection]] | None:
    """The closed matrix of some bounds, and data computed from it; None if it is unsatisfiable."""
    rows = [[0 if i == j else FAR for j in range(size)] for i in range(size)]
    for i, j, most in bounds:
        rows[i][j] = most
    for k, along in enumerate(rows):
        for row in rows:
            if row[k] < FAR // 2:
                row[:] = [min(old, row[k] + new) for old, new in zip(row, along, strict=True)]
    return None if any(row[i] < 0 for i, row in enumerate(rows)) else (rows, {})
