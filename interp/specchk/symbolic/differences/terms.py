"""Terms of Z3 as formulas of differences: comparisons of names plus constants, and of `If` between these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import z3

from specchk.symbolic.differences.regions import (
    LARGEST,
    DifferenceRegion,
    Formula,
    NoDifference,
    Number,
    literal,
)

TRUE: Formula = (True, ())
FALSE: Formula = (False, ())
KINDS = MappingProxyType(
    {z3.Z3_OP_LE: (1, 0), z3.Z3_OP_LT: (1, -1), z3.Z3_OP_GE: (-1, 0), z3.Z3_OP_GT: (-1, -1)}
)


@dataclass(slots=True)
class Formulas:
    """Formulas and numbers of Z3's terms, each made once."""

    _known: dict[tuple[int, bool], tuple[Any, Formula | None]] = field(default_factory=dict)
    _numbers: dict[int, tuple[Any, Number]] = field(default_factory=dict)
    _constants: dict[int, Number] = field(default_factory=dict)
    _names: dict[tuple[int, ...], tuple[Any, tuple[str, ...]]] = field(default_factory=dict)
    _parts: dict[int, tuple[Formula, frozenset[str]]] = field(default_factory=dict)
    _excluded: dict[tuple[Any, ...], bool] = field(default_factory=dict)

    def of(self, truth: Any, is_true: bool = True) -> Formula | None:
        """The formula of a truth value, or of its negation; None where it has none."""
        try:
            return self._formula(truth, is_true)
        except NoDifference:
            return None

    def number(self, term: Any) -> Number | None:
        """The number of a term; None where it has none."""
        if isinstance(term, int):
            return self._constants.setdefault(term, ("", term)) if abs(term) <= LARGEST else None
        try:
            return self._number(term) if z3.is_expr(term) else None
        except NoDifference:
            return None

    def exclude(self, regions: Iterable[DifferenceRegion], formulas: Sequence[Formula]) -> bool:
        """Whether formulas that were made here hold in no region together; False if it is not decided."""
        # What a region has of their names decides that, and is often the same.
        ids = tuple(map(id, formulas))
        if ids not in self._names:  # with the formulas, so that no other ones get their identities
            named = frozenset([""]).union(*[_names(one, self._parts) for one in formulas])
            self._names[ids] = formulas, tuple(sorted(named))
        names = self._names[ids][1]
        for region in regions:
            key = ids, region.projected(names)
            if key not in self._excluded:
                self._excluded[key] = region.excludes(formulas)
            if not self._excluded[key]:
                return False
        return True

    def all(self, truths: Iterable[Any]) -> list[Formula]:
        """The formulas of truth values, without those that have none: fewer exclude less."""
        formulas = [self.of(truth) for truth in truths]
        return [one for one in formulas if one is not None]

    def _formula(self, term: Any, is_true: bool) -> Formula:
        if isinstance(term, bool):
            return TRUE if term is is_true else FALSE
        key = term.get_id(), is_true
        if key not in self._known:  # with the term, so that no other one gets its identity
            try:
                self._known[key] = term, self._made(term, is_true)
            except NoDifference:
                self._known[key] = term, None
        found = self._known[key][1]
        if found is None:
            raise NoDifference
        return found

    def _made(self, term: Any, is_true: bool) -> Formula:
        kind, parts = term.decl().kind(), term.children()
        if kind == z3.Z3_OP_NOT:
            return self._formula(parts[0], not is_true)
        if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR):
            return (kind == z3.Z3_OP_AND) is is_true, tuple([self._formula(part, is_true) for part in parts])
        if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
            return TRUE if (kind == z3.Z3_OP_TRUE) is is_true else FALSE
        if kind == z3.Z3_OP_ITE:
            ways = [(True, (self._formula(parts[0], way), self._formula(parts[1 if way else 2], is_true)))
                    for way in (True, False)]  # fmt: skip
            return False, tuple(ways)
        if len(parts) != 2 or not z3.is_int(parts[0]):
            raise NoDifference
        (left, plus), (right, more) = self._sum(parts[0]), self._sum(parts[1])
        terms, most = [*left, *[(-times, number) for times, number in right]], more - plus
        if kind == z3.Z3_OP_EQ:
            return is_true, (_at_most(terms, 1, most, is_true), _at_most(terms, -1, -most, is_true))
        if kind not in KINDS:
            raise NoDifference
        sign, less = KINDS[kind]
        return _at_most(terms, sign, sign * most + less, is_true)

    def _sum(self, term: Any, times: int = 1) -> tuple[list[tuple[int, Number]], int]:
        """A term as factors and numbers, and a constant."""
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
            raise NoDifference
        terms, plus = self._sum(term)
        if not terms:
            return "", plus
        if len(terms) > 1 or terms[0][0] != 1:
            raise NoDifference
        return _raised(terms[0][1], plus)


def _at_most(terms: Sequence[tuple[int, Number]], sign: int, most: int, is_true: bool) -> Formula:
    """That a sum, or the negative one, is at most a number; or that it is not."""
    if not is_true:
        sign, most = -sign, -most - 1
    if any(len(number) > 2 for _, number in terms):
        return None, tuple([(sign * times, number) for times, number in terms]), most
    table: dict[str, int] = {}
    for times, (name, plus) in terms:
        table[name] = table.get(name, 0) + sign * times
        most -= sign * times * plus
    if not any(table.values()):
        return most >= 0, ()
    found = literal(table, most)
    if found is None:
        raise NoDifference
    return found


def _names(formula: Formula, known: dict[int, tuple[Formula, frozenset[str]]]) -> frozenset[str]:
    """The names in a formula or a number; most are parts of several, so those of each are known."""
    if id(formula) not in known:
        head = formula[0]
        if isinstance(head, str):
            found = frozenset([part for part in formula if isinstance(part, str)])
        else:
            number_parts = [number for _, number in formula[1]] if head is None else formula
            parts = formula[1] if isinstance(head, bool) else number_parts
            found = frozenset[str]().union(*[_names(part, known) for part in parts])
        known[id(formula)] = formula, found
    return known[id(formula)][1]


def _raised(number: Number, plus: int) -> Number:
    if len(number) == 2:
        if abs(number[1] + plus) > LARGEST:
            raise NoDifference
        return number[0], number[1] + plus
    return number[0], _raised(number[1], plus), _raised(number[2], plus)
