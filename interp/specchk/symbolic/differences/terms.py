"""Terms of Z3 as formulas of differences: comparisons of names plus constants, and of `If` between these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
    _numbers: dict[int, tuple[Any, Number | None]] = field(default_factory=dict)
    _names: dict[tuple[int, ...], tuple[Sequence[Formula], tuple[str, ...]]] = field(default_factory=dict)
    _excluded: dict[tuple[Any, ...], bool] = field(default_factory=dict)

    def of(self, truth: Any, is_true: bool = True) -> Formula | None:
        """The formula of a truth value, or of its negation; None where it has none."""
        if isinstance(truth, bool):
            return TRUE if truth is is_true else FALSE
        key = truth.get_id(), is_true
        if key not in self._known:  # with the term, so that no other one gets its identity
            try:
                self._known[key] = truth, _formula(truth, is_true)
            except NoDifference:
                self._known[key] = truth, None
        return self._known[key][1]

    def exclude(self, regions: Iterable[DifferenceRegion], formulas: Sequence[Formula]) -> bool:
        """Whether formulas that were made here hold in no region together; False if it is not decided.

        What a region has of their names decides that, and is often the same.
        """
        ids = tuple(map(id, formulas))
        if ids not in self._names:  # with the formulas, so that no other ones get their identities
            found = {"", *[name for formula in formulas for name in _names(formula)]}
            self._names[ids] = formulas, tuple(sorted(found))
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

    def number(self, term: Any) -> Number | None:
        """The number of a term; None where it has none."""
        if isinstance(term, int):
            return ("", term) if abs(term) <= LARGEST else None
        if not z3.is_expr(term):
            return None
        key = term.get_id()
        if key not in self._numbers:
            try:
                self._numbers[key] = term, _number(term)
            except NoDifference:
                self._numbers[key] = term, None
        return self._numbers[key][1]


def _formula(term: Any, is_true: bool) -> Formula:
    kind, parts = term.decl().kind(), term.children()
    if kind == z3.Z3_OP_NOT:
        return _formula(parts[0], not is_true)
    if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR):
        return (kind == z3.Z3_OP_AND) is is_true, tuple([_formula(part, is_true) for part in parts])
    if kind in (z3.Z3_OP_TRUE, z3.Z3_OP_FALSE):
        return (kind == z3.Z3_OP_TRUE) is is_true, ()
    if kind == z3.Z3_OP_ITE:
        ways = [(_formula(parts[0], way), _formula(parts[1 if way else 2], is_true)) for way in (True, False)]
        return False, tuple([(True, way) for way in ways])
    if len(parts) != 2 or not z3.is_int(parts[0]):
        raise NoDifference
    (left, plus), (right, more) = _sum(parts[0]), _sum(parts[1])
    terms, most = [*left, *[(-times, number) for times, number in right]], more - plus
    if kind == z3.Z3_OP_EQ:
        return is_true, (_at_most(terms, 1, most, is_true), _at_most(terms, -1, -most, is_true))
    if kind not in KINDS:
        raise NoDifference
    sign, less = KINDS[kind]
    return _at_most(terms, sign, sign * most + less, is_true)


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


def _names(formula: Formula) -> Iterator[str]:
    """The names in a formula or a number."""
    head = formula[0]
    if isinstance(head, str):
        yield head
        if len(formula) == 3:
            yield formula[1]
    elif isinstance(head, bool):
        for part in formula[1]:
            yield from _names(part)
    elif head is None:
        for _, number in formula[1]:
            yield from _names(number)
    else:
        for part in formula:
            yield from _names(part)


def _sum(term: Any, times: int = 1) -> tuple[list[tuple[int, Number]], int]:
    """A term as factors and numbers, and a constant."""
    kind, parts = term.decl().kind(), term.children()
    if z3.is_int_value(term):
        return [], times * term.as_long()
    if kind == z3.Z3_OP_UNINTERPRETED and not parts:
        return [(times, (term.decl().name(), 0))], 0
    if kind == z3.Z3_OP_ITE:
        return [(times, (_formula(parts[0], True), _number(parts[1]), _number(parts[2])))], 0
    if kind not in (z3.Z3_OP_ADD, z3.Z3_OP_SUB):
        raise NoDifference
    signs = [times, *[times if kind == z3.Z3_OP_ADD else -times] * (len(parts) - 1)]
    sums = [_sum(part, sign) for part, sign in zip(parts, signs, strict=True)]
    return [row for terms, _ in sums for row in terms], sum([plus for _, plus in sums])


def _number(term: Any) -> Number:
    terms, plus = _sum(term)
    if not terms:
        return "", plus
    if len(terms) > 1 or terms[0][0] != 1:
        raise NoDifference
    return _raised(terms[0][1], plus)


def _raised(number: Number, plus: int) -> Number:
    if len(number) == 2:
        if abs(number[1] + plus) > LARGEST:
            raise NoDifference
        return number[0], number[1] + plus
    return number[0], _raised(number[1], plus), _raised(number[2], plus)
