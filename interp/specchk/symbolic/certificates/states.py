"""The states of a certificate's parts as formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from specchk.ir.program import Program
from specchk.ir.types import Map, cardinality
from specchk.meaning.linear import Terms
from specchk.symbolic.certificates.format import CertifiedPart, Constraint, MalformedCertificate
from specchk.symbolic.differences.cases import CaseTree, Formula, Number, case_tree
from specchk.symbolic.differences.regions import DifferenceRegion, Literal, NotDecided, at_most, region
from specchk.symbolic.differences.terms import Formulas
from specchk.symbolic.induction.encode.bools import Truth, conj, disj
from specchk.symbolic.induction.encode.numbers import term
from specchk.symbolic.induction.encode.shapes import NotOfType, Outline, Undecided, joined, opened, outlines
from specchk.symbolic.induction.encode.trees import Tree

Member = Callable[[Sequence[Tree]], Truth]
WHOLE = -1  # the position of a variable that is no map
Row = tuple[Any, Any, int]  # a literal of offsets' numbers, "" for the number 0
Place = tuple[int, int]  # the slot of a variable, and the position of an entry
Change = tuple[Place, Tree]  # an entry, and its tree after a step
Opened = tuple[Tree, list[str]]  # a tree, and the names of its offsets


@dataclass(slots=True)
class Arrival:
    """Entries after a step, with None for offsets, where formulas hold; `numbers` are the offsets."""

    entries: list[tuple[Place, Any]]
    formulas: list[Formula | None]
    numbers: list[Number | None]
    cases: CaseTree | None = None


@dataclass(slots=True)
class PartGroup:
    """All parts of one control part: its state with a number of Z3 for each name, and what holds of them.

    `regions` contain the states of its parts, and may have more where a constraint is no difference.
    `literals` has the constraints of each part of which all are differences.
    """

    state: tuple[Any, ...]
    trees: tuple[Tree, ...]
    names: tuple[str, ...]
    constraints: Sequence[tuple[Constraint, ...]]
    regions: list[DifferenceRegion] = field(default_factory=list)
    literals: list[tuple[Literal, ...]] = field(default_factory=list)
    facts: Truth = None  # the constraints as a term, made when it is needed


class CertifiedStates:
    """The states of some parts; `MalformedCertificate` where a part is no state of the program."""

    def __init__(self, program: Program, parts: Sequence[CertifiedPart]) -> None:
        self.program = program
        self.formulas = Formulas()
        self._kinds = [variable.type for variable in program.variables]
        # What control parts have in common is made once: trees of values, the regions of constraints, and
        # what is read of a tree after a step, by its identity, with the tree, so that no other one gets it.
        self._trees: dict[tuple[int, Any], Opened] = {}
        self._entries: dict[tuple[Place, Any], Opened] = {}
        self._rows: dict[Constraint, tuple[Row | None, int]] = {}
        self._regions: dict[Any, DifferenceRegion | None] = {}
        self._outlines: dict[tuple[Place, int], tuple[Tree, list[Outline]]] = {}
        self._arrivals: dict[tuple[Any, ...], tuple[list[Arrival] | None, list[Change]]] = {}
        self._by_state: dict[tuple[Any, ...], PartGroup] = {}
        regions: dict[tuple[Any, ...], list[tuple[Constraint, ...]]] = {}
        for part in parts:
            regions.setdefault(part.state, []).append(part.constraints)
        for state, some in regions.items():
            self._by_state[state] = self._group(state, some)
        self.groups = [*self._by_state.values()]

    def _group(self, state: tuple[Any, ...], constraints: Sequence[tuple[Constraint, ...]]) -> PartGroup:
        if len(state) != len(self._kinds):
            raise MalformedCertificate(f"a state has {len(state)} variables, the spec {len(self._kinds)}")
        found = [self._variable(slot, value) for slot, value in enumerate(state)]
        names = tuple([name for _, some in found for name in some])
        group = PartGroup(state, tuple([tree for tree, _ in found]), names, constraints)
        named: dict[Any, str] = {"": "", **dict(enumerate(names, 1))}
        for some in constraints:
            pairs = [self._rows.get(constraint) or self._row(constraint) for constraint in some]
            if max([last for _, last in pairs], default=0) > len(names):
                raise MalformedCertificate(f"a constraint is on an offset that is not among {len(names)}")
            literals = tuple([(named[row[0]], named[row[1]], row[2]) for row, _ in pairs if row is not None])
            if (literals, names) not in self._regions:
                self._regions[literals, names] = region(literals, names)
            here = self._regions[literals, names]
            group.regions += [] if here is None else [here]
            if len(literals) == len(some):
                group.literals.append(literals)
        return group

    def _row(self, constraint: Constraint) -> tuple[Row | None, int]:
        """A constraint as a literal of offsets, None if it is no such one; and the last of its offsets."""
        numbers = [*_numbers(constraint[0])]
        if any(number < 1 for number in numbers):
            raise MalformedCertificate("a constraint is on an offset below the first one")
        self._rows[constraint] = _difference(*constraint), max(numbers, default=0)
        return self._rows[constraint]

    def _variable(self, slot: int, value: Any) -> Opened:
        if (slot, value) not in self._trees:
            kind, name = self._kinds[slot], self.program.variables[slot].name
            if isinstance(kind, Map) and isinstance(value, tuple) and len(value) == cardinality(kind.key):
                found = [self._entry((slot, n), part, f"{name}.{n}") for n, part in enumerate(value)]
                names = [name for _, some in found for name in some]
                self._trees[slot, value] = tuple([tree for tree, _ in found]), names
            else:
                self._trees[slot, value] = self._entry((slot, WHOLE), value, name)
        return self._trees[slot, value]

    def _entry(self, place: Place, value: Any, name: str) -> Opened:
        if (place, value) not in self._entries:
            names: list[str] = []
            try:
                self._entries[place, value] = opened(value, self._kind(place), names, name), names
            except NotOfType:
                raise MalformedCertificate("a state has a value that is not of its variable's type") from None
        return self._entries[place, value]

    def _kind(self, place: Place) -> Any:
        kind = self._kinds[place[0]]
        return kind.value if isinstance(kind, Map) and place[1] != WHOLE else kind

    def facts(self, group: PartGroup) -> tuple[Truth]:
        """The constraints on the numbers of a control part."""
        if group.facts is None:
            places = [z3.Int(name) for name in group.names]
            rows = {row for some in group.constraints for row in some}
            truths = {(terms, most): _sum(terms, places) <= most for terms, most in rows}
            group.facts = disj([conj([truths[row] for row in some]) for some in group.constraints])
        return (group.facts,)

    def covers(self, source: PartGroup, when: Sequence[Truth], trees: Sequence[Tree]) -> bool:
        """Whether all steps to trees under conditions lead to listed states; False if not decided."""
        changed = [*self._changed(source.trees, trees)]
        formulas = [self.formulas.of(truth) for truth in when]
        key = *map(id, formulas), None, *[(place, id(tree)) for place, tree in changed]
        if key not in self._arrivals:
            self._arrivals[key] = self._arrivals_of(formulas, changed), changed
        arrivals, _ = self._arrivals[key]
        return arrivals is not None and all(self._covers(source, arrival) for arrival in arrivals)

    def _changed(self, old: Sequence[Tree], new: Sequence[Tree]) -> Iterator[Change]:
        """The entries that are other trees."""
        for slot, (before, after) in enumerate(zip(old, new, strict=True)):
            if after is not before:
                is_map = isinstance(self._kinds[slot], Map)
                pairs = zip(before, after, strict=True) if is_map else [(before, after)]
                entries = enumerate(pairs, 0 if is_map else WHOLE)
                yield from [((slot, position), tree) for position, (one, tree) in entries if tree is not one]

    def _arrivals_of(self, when: list[Formula | None], changed: list[Change]) -> list[Arrival] | None:
        """What changed entries may be; None where that is too much."""
        try:
            rows = joined([self._outline(place, tree) for place, tree in changed])
        except Undecided:
            return None
        places, of = [place for place, _ in changed], self.formulas.of
        return [
            Arrival([*zip(places, row.value, strict=True)], [*when, *map(of, row.guards)],
                    [*map(self.formulas.number, row.numbers)])
            for row in rows
        ]  # fmt: skip

    def _covers(self, source: PartGroup, arrival: Arrival) -> bool:
        state = list(source.state)
        for (slot, position), value in arrival.entries:
            old = state[slot]
            state[slot] = value if position == WHOLE else (*old[:position], value, *old[position + 1 :])
        group = self._by_state.get(tuple(state))
        if group is None:
            return self.formulas.exclude(source.regions, arrival.formulas)
        if arrival.cases is None:
            # Other entries have the very trees that they had, and so the numbers.
            names = [name for entry in arrival.entries for name in self._entries[entry][1]]
            numbers = [number for number in arrival.numbers if number is not None]
            if len(numbers) < len(names):
                return False
            arrival.cases = case_tree(arrival.formulas, dict(zip(names, numbers, strict=True)))
        try:
            parts = [pair for region in source.regions for pair in arrival.cases.within(region)]
            return all(part.is_within(group.literals, moved) for part, moved in parts)
        except NotDecided:
            return False

    def member(self, trees: Sequence[Tree]) -> Truth:
        """Whether a state is among them; or False where its control part has too many cases."""
        try:
            rows = joined([self._outline_all(slot, tree) for slot, tree in enumerate(trees)])
        except Undecided:
            return False
        return disj([self._in_group(row) for row in rows if row.value in self._by_state])

    def _in_group(self, row: Outline) -> Truth:
        group = self._by_state[row.value]
        (fact,) = self.facts(group)
        if not isinstance(fact, bool) and group.names:
            # All places at once: one place's number may have another place in it.
            fact = z3.substitute(fact, *zip(map(z3.Int, group.names), map(term, row.numbers), strict=True))
        return conj([*row.guards, fact])

    def _outline_all(self, slot: int, tree: Tree) -> list[Outline]:
        if not isinstance(self._kinds[slot], Map):
            return self._outline((slot, WHOLE), tree)
        return joined([self._outline((slot, n), part) for n, part in enumerate(tree)])

    def _outline(self, place: Place, tree: Tree) -> list[Outline]:
        key = place, id(tree)
        if key not in self._outlines:
            self._outlines[key] = tree, outlines(tree, self._kind(place))
        return self._outlines[key][1]


def _difference(terms: Terms, bound: int) -> Row | None:
    """A constraint as the difference of two offsets; None if it is no such one."""
    factors = [(times, (place, 0)) for place, times in terms if isinstance(place, int)]
    try:
        return at_most(factors, bound) if len(factors) == len(terms) else None
    except NotDecided:
        return None


def _numbers(terms: Terms) -> Iterator[int]:
    """The places in a linear form."""
    for place, _ in terms:
        yield from [place] if isinstance(place, int) else _numbers(place[0])


def _sum(terms: Terms, places: Sequence[Any]) -> Any:
    # For divisors above 0 Z3 rounds down, too.
    parts = [
        times * (places[p - 1] if isinstance(p, int) else (_sum(p[0], places) + p[1]) / z3.IntVal(p[2]))
        for p, times in terms
    ]
    return z3.Sum(parts)
