"""Formulas and numbers as case trees: each literal has two branches.

The next literal depends only on those before it, not on a region.  So a tree is made once for all regions,
and each node when the first region reaches it (a binary decision diagram without sharing).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from specchk.symbolic.differences.regions import (
    MAX_PARTS,
    DifferenceRegion,
    Literal,
    NotDecided,
    Place,
    Projection,
    at_most,
)

# A literal; or whether all parts must hold (else some), and the parts; or None, factors and numbers, and the
# greatest value of their sum.
Formula = tuple[Any, ...]
Number = tuple[Any, ...]  # a place; or a formula, and a number for each of its truth values
Known = Mapping[Literal, bool]
CasePart = tuple[tuple[Literal, ...], Mapping[str, Place]]  # of a region: literals assumed there, and places


class CaseTree(Struct):
    """A formula and numbers, after some literals are decided."""

    formula: Formula
    numbers: Mapping[str, Number]
    names: tuple[str, ...]  # in the formula and the numbers
    known: Known = field(default_factory=dict)
    _next: bool | Literal | None = None  # whether the formula holds, or a literal on which it depends
    _places: dict[str, Place] = field(default_factory=dict)
    _ways: tuple[CaseTree, ...] = ()
    _parts: dict[Projection, list[CasePart]] = field(default_factory=dict)

    def within(self, region: DifferenceRegion) -> Iterator[tuple[DifferenceRegion, Mapping[str, Place]]]:
        """The parts of a region in which the formula holds, with the places of moved numbers there."""
        whole = region.including(self.names)
        # The parts depend only on what the region implies for these names, which is often the same.
        key = whole.projected(self.names)
        if key not in self._parts:
            self._parts[key] = [*self.parts(whole)]
        for literals, places in self._parts[key]:
            yield whole.narrowed(literals), places

    def parts(self, region: DifferenceRegion) -> Iterator[CasePart]:
        """The parts of a region that has all names."""
        todo: list[tuple[CaseTree, DifferenceRegion, tuple[Literal, ...]]] = [(self, region, ())]
        parts = 0
        while todo:
            case, part, literals = todo.pop()
            # When the first region reaches the node; later ones find it decided.
            if case._next is None:
                case._decide()
            if case._next is True:
                parts += 1
                if parts > MAX_PARTS:
                    raise NotDecided
                yield literals, case._places
            elif isinstance(case._next, tuple):
                u, v, most = case._next
                ways = zip(case._ways, part.parts(case._next), ((u, v, most), (v, u, -most - 1)), strict=True)
                todo += [
                    (way, here, literals if here is part else (*literals, literal))
                    for way, here, literal in ways
                    if here is not None
                ]

    def _decide(self) -> None:
        found: Any = _truth(self.formula, self.known)
        for name, number in self.numbers.items() if found is True else ():
            place = _place(number, self.known)
            if len(place) == 3:
                found = place
                break
            if place != (name, 0):
                self._places[name] = place
        self._next = found
        if isinstance(found, tuple):
            u, v, most = found
            ways = [{found: is_true, (v, u, -most - 1): not is_true} for is_true in (True, False)]
            whole = self.formula, self.numbers, self.names
            self._ways = tuple([CaseTree(*whole, {**self.known, **way}) for way in ways])


def case_tree(formulas: Iterable[Formula | None], numbers: Mapping[str, Number]) -> CaseTree:
    """The cases in which all formulas hold; None is an unknown formula."""
    formula = True, tuple([formula for formula in formulas if formula is not None])
    names, seen, todo = {""}, set[int](), [formula, *numbers.values()]
    while todo:
        for part in todo.pop():
            if isinstance(part, str):
                names.add(part)
            elif isinstance(part, tuple) and id(part) not in seen:  # each part of several once
                seen.add(id(part))
                todo.append(part)
    return CaseTree(formula, numbers, tuple(sorted(names)))


def _truth(formula: Formula, known: Known) -> bool | Literal:
    """Whether a formula holds, or a literal on which this depends."""
    head = formula[0]
    if isinstance(head, bool):
        left: bool | Literal = head
        for part in formula[1]:
            found = _truth(part, known)
            if found is (not head):
                return found
            if left is head:
                left = found
        return left
    if head is None:
        places = [(times, _place(number, known)) for times, number in formula[1]]
        for _, place in places:
            if len(place) == 3:
                return place
        formula = at_most(places, formula[2])
    u, v, most = formula
    return most >= 0 if u == v else known.get((u, v, most), (u, v, most))


def _place(number: Number, known: Known) -> tuple[Any, ...]:
    """The place of a number, or a literal on which it depends."""
    while len(number) == 3:
        found = _truth(number[0], known)
        if not isinstance(found, bool):
            return found
        number = number[1 if found else 2]
    return number
