"""Z3 terms as formulas of differences: comparisons of names plus constants, and of `If` between these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any

import z3
from msgspec import Struct, field

from specchk.symbolic.differences.cases import CaseTree, Formula, Number, case_tree
from specchk.symbolic.differences.regions import LARGEST, DifferenceRegion, NotDecided, at_most

TRUE: Formula = (True, ())
FALSE: Formula = (False, ())
JUNCTIONS = MappingProxyType(  # whether all parts must hold; true and false have no parts
    {z3.Z3_OP_AND: True, z3.Z3_OP_TRUE: True, z3.Z3_OP_OR: False, z3.Z3_OP_FALSE: False}
)


class Formulas(Struct):
    """The formulas and numbers of Z3 terms, each converted once, and their mutual exclusions."""

    # The terms and formulas are kept, too, so that their identities are not reused.
    _known: dict[tuple[int, bool], tuple[Any, Formula]] = field(default_factory=dict)
    _numbers: dict[int, tuple[Any, Number]] = field(default_factory=dict)
    _together: dict[tuple[int, ...], tuple[Any, CaseTree]] = field(default_factory=dict)
    _excluded: dict[tuple[int, tuple[int, ...]], bool] = field(default_factory=dict)

    def of(self, truth: Any, is_true: bool = True) -> Formula | None:
        """The formula of a truth value, or of its negation; None if there is none."""
        try:
            return self._formula(truth, is_true)
        except NotDecided:
            return None

    def number(self, term: Any) -> Number | None:
        """The number of a term; None if there is none."""
        try:
            if isinstance(term, int):
                return _raised(("", 0), term)
            return self._number(term) if z3.is_expr(term) else None
        except NotDecided:
            return None

    def exclude(self, regions: Iterable[DifferenceRegion], formulas: Sequence[Formula | None]) -> bool:
        """Whether the conjunction of formulas made here is unsatisfiable; False if that is not decided."""
        ids = tuple(map(id, formulas))
        if ids not in self._together:
            self._together[ids] = formulas, case_tree(formulas, {})
        _, cases = self._together[ids]
        for region in regions:
            # The answer depends only on the region's bounds on their names, which are often the same.
            key = id(cases), region.projected(cases.names)
            if key not in self._excluded:
                try:
                    self._excluded[key] = next(cases.parts(region.including(cases.names)), None) is None
                except NotDecided:
                    self._excluded[key] = False
            if not self._excluded[key]:
                return False
        return True

    def _formula(self, term: Any, is_true: bool) -> Formula:
        if isinstance(term, bool):
            return TRUE if term is is_true else FALSE
        key = term.get_id(), is_true
        if key not in self._known:
            self._known[key] = term, self._made(term, is_true)
        return self._known[key][1]

    def _made(self, term: Any, is_true: bool) -> Formula:
        kind, parts = term.decl().kind() if z3.is_app(term) else None, term.children()  # None: a quantifier
        if kind == z3.Z3_OP_NOT:
            return self._formula(parts[0], not is_true)
        if kind in JUNCTIONS:
            return JUNCTIONS[kind] is is_true, tuple([self._formula(part, is_true) for part in parts])
        if kind == z3.Z3_OP_ITE:
            ways = [(True, (self._formula(parts[0], way), self._formula(parts[1 if way else 2], is_true)))
                    for way in (True, False)]  # fmt: skip
            return False, tuple(ways)
        if len(parts) != 2 or not z3.is_int(parts[0]):
            raise NotDecided
        if kind in (z3.Z3_OP_GE, z3.Z3_OP_GT):
            parts.reverse()
        (left, plus), (right, more) = self._sum(parts[0]), self._sum(parts[1])
        terms, most = [*left, *[(-times, number) for times, number in right]], more - plus
        if kind == z3.Z3_OP_EQ:
            return is_true, (_at_most(terms, 1, most, is_true), _at_most(terms, -1, -most, is_true))
        if kind not in (z3.Z3_OP_LE, z3.Z3_OP_GE, z3.Z3_OP_LT, z3.Z3_OP_GT):
            raise NotDecided
        return _at_most(terms, 1, most - (kind in (z3.Z3_OP_LT, z3.Z3_OP_GT)), is_true)

    def _sum(self, term: Any, times: int = 1) -> tuple[list[tuple[int, Number]], int]:
        """A term as coefficients of numbers, and a constant."""
        if z3.is_int_value(term):
            return [], times * term.as_long()
        kind = term.decl().kind()
        if kind not in (z3.Z3_OP_ADD, z3.Z3_OP_SUB):
            return [(times, self._number(term))], 0
        parts = term.children()
        signs = [times, *[times if kind == z3.Z3_OP_ADD else -times] * (len(parts) - 1)]
        sums = [self._sum(part, sign) for part, sign in zip(parts, signs, strict=True)]
        return [row for terms, _ in sums for row in terms], sum([plus for _, plus in sums])

    def _number(self, term: Any) -> Number:
        key = term.get_id()
        if key not in self._numbers:
            self._numbers[key] = term, self._made_number(term)
        return self._numbers[key][1]

    def _made_number(self, term: Any) -> Number:
        kind, parts = term.decl().kind(), term.children()
        if kind == z3.Z3_OP_UNINTERPRETED and not parts:
            return term.decl().name(), 0
        if kind == z3.Z3_OP_ITE:
            return self._formula(parts[0], True), self._number(parts[1]), self._number(parts[2])
        if kind not in (z3.Z3_OP_ADD, z3.Z3_OP_SUB) and not z3.is_int_value(term):
            raise NotDecided
        terms, plus = self._sum(term)
        if [times for times, _ in terms] not in ([], [1]):
            raise NotDecided
        return _raised(terms[0][1] if terms else ("", 0), plus)


def _at_most(terms: Sequence[tuple[int, Number]], sign: int, most: int, is_true: bool) -> Formula:
    """The literal that a sum, or its negative, is at most a number; or the negated literal."""
    if not is_true:
        sign, most = -sign, -most - 1
    factors = tuple([(sign * times, number) for times, number in terms])
    if any(len(number) > 2 for _, number in factors):
        return None, factors, most
    return at_most(factors, most)


def _raised(number: Number, plus: int) -> Number:
    if len(number) == 2:
        if abs(number[1] + plus) > LARGEST:
            raise NotDecided
        return number[0], number[1] + plus
    return number[0], _raised(number[1], plus), _raised(number[2], plus)
