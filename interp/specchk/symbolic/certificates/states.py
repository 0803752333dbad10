"""The states of a certificate's parts as formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from specchk.ir.program import Program
from specchk.ir.types import Map, Type, cardinality
from specchk.meaning.linear import Terms
from specchk.symbolic.certificates.format import CertifiedPart, Constraint, MalformedCertificate
from specchk.symbolic.differences.regions import DifferenceRegion, Formula, Literal, literal, region
from specchk.symbolic.differences.terms import Formulas
from specchk.symbolic.induction.encode.bools import Truth, conj, disj
from specchk.symbolic.induction.encode.numbers import term
from specchk.symbolic.induction.encode.shapes import (
    NotOfType,
    Outline,
    Undecided,
    joined,
    opened,
    outlines,
)
from specchk.symbolic.induction.encode.trees import Tree

Member = Callable[[Sequence[Tree]], Truth]
Row = tuple[tuple[int, int, int] | None, int]  # a constraint as a difference of places; its last place


@dataclass(slots=True)
class PartGroup:
    """All parts of one control part: its state with a Z3 number for each place, and what holds of them.

    `regions` contain the states of its parts, and may have more where a constraint is no difference.
    `refuted` has, of each part whose constraints all are differences, the literals of which each state
    outside satisfies one.
    """

    label: str
    state: tuple[Any, ...]
    trees: tuple[Tree, ...]
    places: list[Any]
    slots: list[list[str]]  # the names of the places of each variable
    constraints: Sequence[tuple[Constraint, ...]]
    regions: list[DifferenceRegion] = field(default_factory=list)
    refuted: list[list[Literal]] = field(default_factory=list)


class CertifiedStates:
    """The states of some parts; `MalformedCertificate` where a part is no state of the program."""

    def __init__(self, program: Program, parts: Sequence[CertifiedPart]) -> None:
        self.program = program
        self.formulas = Formulas()
        # One tree for each value of a variable, or of an entry of one, with its places: control parts that
        # agree on it share it.
        self._trees: dict[tuple[Any, ...], tuple[Tree, list[Any]]] = {}
        self._outlines: dict[tuple[int, int, int], tuple[Tree, list[Outline]]] = {}  # by identity of the tree
        self._rows: dict[Constraint, Row] = {}
        self._truths: dict[Any, Truth] = {}
        regions: dict[tuple[Any, ...], list[tuple[Constraint, ...]]] = {}
        for part in parts:
            regions.setdefault(part.state, []).append(part.constraints)
        self._by_state: dict[tuple[Any, ...], PartGroup] = {}
        for state, some in regions.items():
            self._by_state[state] = self._group(state, some)
        self.groups = [*self._by_state.values()]

    def _group(self, state: tuple[Any, ...], constraints: Sequence[tuple[Constraint, ...]]) -> PartGroup:
        if len(state) != len(self.program.variables):
            size = len(self.program.variables)
            raise MalformedCertificate(f"a state has {len(state)} variables, the spec {size}")
        found = [self._variable(slot, value) for slot, value in enumerate(state)]
        places = [place for _, some in found for place in some]
        slots = [[place.decl().name() for place in some] for _, some in found]
        names = [name for some in slots for name in some]
        label, named = f"control part {len(self._by_state) + 1}", ["", *names]
        group = PartGroup(label, state, tuple([tree for tree, _ in found]), places, slots, constraints)
        for some in constraints:
            rows = [self._row(constraint, len(places)) for constraint in some]
            literals = [(named[row[0]], named[row[1]], row[2]) for row in rows if row is not None]
            here = region(literals, names)
            if here is not None:
                group.regions.append(here)
            if len(literals) == len(rows):
                group.refuted.append([(v, u, -most - 1) for u, v, most in literals])
        return group

    def _row(self, constraint: Constraint, size: int) -> tuple[int, int, int] | None:
        """A constraint as a literal of places, 0 for the number 0; None if it is no such one."""
        if constraint not in self._rows:
            numbers = [*_numbers(constraint[0])]
            if any(number < 1 for number in numbers):
                raise MalformedCertificate("a constraint is on an offset below the first one")
            self._rows[constraint] = difference(constraint), max(numbers, default=0)
        row, last = self._rows[constraint]
        if last > size:
            raise MalformedCertificate(f"a constraint is on offset {last} of {size}")
        return row

    def _variable(self, slot: int, value: Any) -> tuple[Tree, list[Any]]:
        """A variable's value as a tree, and its places."""
        if (slot, value) not in self._trees:
            variable = self.program.variables[slot]
            kind, name = variable.type, variable.name
            if isinstance(kind, Map) and isinstance(value, tuple) and len(value) == cardinality(kind.key):
                pairs = enumerate(value)
                found = [self._entry(slot, n, part, kind.value, f"{name}.{n}") for n, part in pairs]
                places = [place for _, some in found for place in some]
                self._trees[slot, value] = tuple([tree for tree, _ in found]), places
            else:
                self._trees[slot, value] = self._entry(slot, -1, value, kind, name)
        return self._trees[slot, value]

    def _entry(self, slot: int, position: int, value: Any, kind: Type, name: str) -> tuple[Tree, list[Any]]:
        """An entry of a variable, or (position -1) all of it."""
        if (slot, position, value) not in self._trees:
            places: list[Any] = []
            try:
                self._trees[slot, position, value] = opened(value, kind, places, name), places
            except NotOfType:
                raise MalformedCertificate("a state has a value that is not of its variable's type") from None
        return self._trees[slot, position, value]

    def facts(self, group: PartGroup) -> tuple[Truth]:
        """The constraints on the numbers of a control part."""
        regions = [[self._at_most(one, group.places) for one in some] for some in group.constraints]
        return (disj([conj(some) for some in regions]),)

    def _at_most(self, constraint: Constraint, places: Sequence[Any]) -> Truth:
        terms, bound = constraint
        # Each operation of Z3's Python takes long, and control parts have many constraints in common.
        key = _keyed(terms, places), bound
        if key not in self._truths:
            total = _sum(terms, places)
            self._truths[key] = total <= bound if terms else bool(total <= bound)
        return self._truths[key]

    def covers(self, source: PartGroup, when: Sequence[Formula], trees: Sequence[Tree]) -> bool:
        """Whether all steps from a control part to some trees where formulas hold lead to listed states.

        False also where differences do not decide it.
        """
        pairs = enumerate(zip(source.trees, trees, strict=True))
        slots = [slot for slot, (old, new) in pairs if new is not old]
        try:
            rows = joined([self._of_variable(slot, trees[slot]) for slot in slots])
        except Undecided:
            return False
        return all(self._covers(source, when, slots, row) for row in rows)

    def _covers(self, source: PartGroup, when: Sequence[Formula], slots: Sequence[int], row: Outline) -> bool:
        formulas = [*when, *self.formulas.all(row.guards)]
        state = list(source.state)
        for slot, value in zip(slots, row.value, strict=True):
            state[slot] = value
        group = self._by_state.get(tuple(state))
        if group is None:
            return self.formulas.exclude(source.regions, formulas)
        # Other variables have the very trees that they had, and so the numbers.
        names = [name for slot in slots for name in group.slots[slot]]
        pairs = zip(names, map(self.formulas.number, row.numbers), strict=True)
        moved = {name: number for name, number in pairs if number is not None}
        if len(moved) < len(names):
            return False
        return all(region.excludes(formulas, group.refuted, moved) for region in source.regions)

    def member(self, trees: Sequence[Tree]) -> Truth:
        """Whether a state is among them; or False where its control part has too many cases."""
        try:
            return disj([self._in_group(row) for row in self._outlined(trees) if row.value in self._by_state])
        except Undecided:
            return False

    def _in_group(self, row: Outline) -> Truth:
        group = self._by_state[row.value]
        (fact,) = self.facts(group)
        if not isinstance(fact, bool) and group.places:
            # All places at once: one place's number may have another place in it.
            pairs = zip(group.places, map(term, row.numbers), strict=True)
            fact = z3.substitute(fact, *pairs)
        return conj([*row.guards, fact])

    def _outlined(self, trees: Sequence[Tree]) -> list[Outline]:
        """The control parts that a state may be in."""
        return joined([self._of_variable(slot, tree) for slot, tree in enumerate(trees)])

    def _of_variable(self, slot: int, tree: Tree) -> list[Outline]:
        kind = self.program.variables[slot].type
        if not isinstance(kind, Map):
            return self._outline(slot, -1, tree, kind)
        return joined([self._outline(slot, n, part, kind.value) for n, part in enumerate(tree)])

    def _outline(self, slot: int, position: int, tree: Tree, kind: Type) -> list[Outline]:
        key = slot, position, id(tree)
        if key not in self._outlines:  # with the tree, so that no other one gets its identity
            self._outlines[key] = tree, outlines(tree, kind)
        return self._outlines[key][1]


def difference(constraint: Constraint) -> tuple[int, int, int] | None:
    """A constraint as the difference of two places, 0 for the number 0; None if it is no such one."""
    terms, bound = constraint
    if any(not isinstance(place, int) for place, _ in terms) or len(dict(terms)) < len(terms):
        return None
    found = literal(dict(terms), bound)
    return None if found is None else (found[0] or 0, found[1] or 0, found[2])


def _numbers(terms: Terms) -> Iterator[int]:
    """The places in a linear form."""
    for place, _ in terms:
        if isinstance(place, int):
            yield place
        else:
            yield from _numbers(place[0])


def _keyed(terms: Terms, places: Sequence[Any]) -> tuple[Any, ...]:
    """Terms with the identities of their places."""
    keys = [id(places[p - 1]) if isinstance(p, int) else (_keyed(p[0], places), *p[1:]) for p, _ in terms]
    return tuple(zip(keys, [times for _, times in terms], strict=True))


def _sum(terms: Terms, places: Sequence[Any]) -> Any:
    # For divisors above 0 Z3 rounds down, too.
    parts = [
        times * (places[p - 1] if isinstance(p, int) else (_sum(p[0], places) + p[1]) / z3.IntVal(p[2]))
        for p, times in terms
    ]
    return z3.Sum(parts)
