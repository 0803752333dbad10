"""Regions of differences of whole numbers: queries that need no solver.

A region is all numbers that satisfy some literals `u - v <= d`, with the name "" for 0: a closed matrix of
the greatest differences, with one row for all names that are equal up to a constant (Miné, "The octagon
abstract domain" (2006), section 2).  What a region leaves open is decided in each of its two parts, with
a literal and with its negation, which is one since numbers are whole: not `u - v <= d` is
`v - u <= -d - 1`.

Every answer is exact or "not decided".  Not here: how terms of Z3 become formulas (`terms`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Literal = tuple[Any, Any, int]  # u - v <= d, of names or of rows
Number = tuple[Any, ...]  # a name and a constant; or a condition, and a number for each way
# A literal of names; whether all parts hold (not some), and the parts; or None, factors and numbers, and
# the greatest value of their sum.
Formula = tuple[Any, ...]
Rows = list[list[int]]
FAR = 1 << 100  # no bound
LARGEST = 1 << 60  # of a literal: far below FAR, however many of them are added up
MAX_PARTS = 256  # of a region, for one question


class NoDifference(Exception):
    """A term that is no formula of differences, or a sum that is no difference of two numbers."""


def literal(terms: Mapping[Any, int], most: int) -> Literal | None:
    """That a sum is at most a number, if it is the difference of two names or rows."""
    named = sorted([(times, name) for name, times in terms.items() if times and name != ""], reverse=True)
    match named:
        case _ if abs(most) > LARGEST:
            return None
        case [(1, u)]:
            return u, "", most
        case [(-1, v)]:
            return "", v, most
        case [(1, u), (-1, v)]:
            return u, v, most
    return None


@dataclass(slots=True)
class DifferenceRegion:
    """All numbers that satisfy some literals: the row of each name, its distance to it, and the bounds."""

    at: dict[str, tuple[int, int]]
    rows: Rows

    def excludes(
        self,
        formulas: Sequence[Formula],
        lists: Sequence[Sequence[Literal]] | None = None,
        moved: Mapping[str, Number] | None = None,
    ) -> bool:
        """Whether no numbers satisfy all formulas and one literal of each list; False if it is not decided.

        In the lists, each name that is in `moved` is the number that it has there.
        """
        goal, todo, parts = (True, formulas), [self.rows], 0
        try:
            while todo:
                rows = todo.pop()
                found = _truth(goal, self.at, rows)
                if found is True and lists is not None:
                    found = self._outside(lists, moved or {}, rows)
                if found is False:
                    continue
                parts += 1
                if found is True or parts > MAX_PARTS:
                    return False
                i, j, most = found
                todo += [_narrowed(rows, (i, j, most)), _narrowed(rows, (j, i, -most - 1))]
        except KeyError as missing:
            self._add(missing.args[0])
            return self.excludes(formulas, lists, moved)
        except NoDifference:
            return False
        return True

    def projected(self, names: Iterable[str]) -> tuple[int, ...]:
        """The rows, distances and bounds of some names: all that the region states of these alone."""
        firsts, key = dict[int, tuple[int, int]](), list[int]()
        for name in names:
            if name not in self.at:
                self._add(name)
            row, plus = self.at[name]
            number, first = firsts.setdefault(row, (len(firsts), plus))
            key += number, plus - first
        ends = [(row, first) for row, (_, first) in firsts.items()]
        for i, p in ends:
            row_i = self.rows[i]
            key += [row_i[j] + p - q for j, q in ends]
        return tuple(key)

    def _add(self, name: str) -> None:
        """A name that may be any number."""
        self.at[name] = len(self.rows), 0
        for row in self.rows:
            row.append(FAR)
        self.rows.append([*[FAR] * len(self.rows), 0])

    def _outside(
        self, lists: Sequence[Sequence[Literal]], moved: Mapping[str, Number], rows: Rows
    ) -> bool | Literal:
        """Whether one literal of each list holds; or a literal on which that may depend."""
        at = self.at
        if moved:
            at = dict(at)
            for name, number in moved.items():
                found = _place(number, self.at, rows)
                if len(found) == 3:
                    return found
                at[name] = found
        for some in lists:
            for u, v, most in some:
                (i, p), (j, q) = at[u], at[v]
                if rows[j][i] + most - p + q >= 0:
                    break
            else:
                return False
        ways = [[_truth(one, at, rows) for one in some] for some in lists]
        left = [[one for one in some if not isinstance(one, bool)] for some in ways if True not in some]
        return min(left, key=len)[0] if left else True


def _truth(formula: Formula, at: Mapping[str, tuple[int, int]], rows: Rows) -> bool | Literal:
    """Whether a formula holds in all of a region, or in none of it; or a literal on which that depends."""
    head = formula[0]
    if isinstance(head, bool):
        left: bool | Literal = head
        for part in formula[1]:
            found = _truth(part, at, rows)
            if found is (not head):
                return found
            if left is head:
                left = found
        return left
    if head is not None:
        (i, p), (j, q) = at[head], at[formula[1]]
        most = formula[2] - p + q
    else:
        terms, most = dict[int, int](), formula[2]
        for times, number in formula[1]:
            place = _place(number, at, rows)
            if len(place) == 3:
                return place
            terms[place[0]] = terms.get(place[0], 0) + times
            most -= times * place[1]
        i, j, most = _of_rows(terms, most, at[""])
    if rows[i][j] <= most:
        return True
    return False if rows[j][i] + most < 0 else (i, j, most)


def _of_rows(terms: dict[int, int], most: int, zero: tuple[int, int]) -> Literal:
    if not any(terms.values()):
        return zero[0], zero[0], most
    # The row of 0 has a number, too.
    most -= -sum(terms.values()) * zero[1]
    terms[zero[0]] = terms.get(zero[0], 0) - sum(terms.values())
    ends = sorted([(times, row) for row, times in terms.items() if times])
    if abs(most) > LARGEST or [times for times, _ in ends] not in ([], [-1, 1]):
        raise NoDifference
    return (ends[1][1], ends[0][1], most) if ends else (zero[0], zero[0], most)


def _place(number: Number, at: Mapping[str, tuple[int, int]], rows: Rows) -> tuple[Any, ...]:
    """The row of a number and its distance to it; or a literal on which these depend."""
    while len(number) == 3:
        found = _truth(number[0], at, rows)
        if not isinstance(found, bool):
            return found
        number = number[1 if found else 2]
    row, plus = at[number[0]]
    return row, plus + number[1]


def _narrowed(rows: Rows, literal: Literal) -> Rows:
    """The rows with a literal as well that holds in a part of them."""
    i, j, most = literal
    along = [most + more for more in rows[j]]
    return [[min(old, row[i] + new) for old, new in zip(row, along, strict=True)] for row in rows]


def region(literals: Iterable[Literal], names: Iterable[str]) -> DifferenceRegion | None:
    """The numbers of these names that satisfy literals; None if there are none."""
    bounds: dict[tuple[str, str], int] = {}
    for u, v, most in literals:
        if most < bounds.get((u, v), FAR):
            bounds[u, v] = most
    at, members = {name: (name, 0) for name in ("", *names)}, dict[str, list[str]]()
    for (u, v), most in bounds.items():
        if bounds.get((v, u)) == -most and at[u][0] != at[v][0]:
            (one, p), (other, q) = at[u], at[v]
            moving = [one, *members.pop(one, ())]
            members.setdefault(other, []).extend(moving)
            for name in moving:  # one + p = other + q + most
                at[name] = other, at[name][1] + q + most - p
    numbers = {first: row for row, first in enumerate(dict.fromkeys([first for first, _ in at.values()]))}
    placed = {name: (numbers[first], plus) for name, (first, plus) in at.items()}
    rows: Rows = [[0 if i == j else FAR for j in numbers.values()] for i in numbers.values()]
    for (u, v), most in bounds.items():
        (i, p), (j, q) = placed[u], placed[v]
        rows[i][j] = min(rows[i][j], most - p + q)
    for k, along in enumerate(rows):
        for row in rows:
            if row[k] < FAR // 2:
                row[:] = [min(old, row[k] + new) for old, new in zip(row, along, strict=True)]
    return None if any(row[i] < 0 for i, row in enumerate(rows)) else DifferenceRegion(placed, rows)
