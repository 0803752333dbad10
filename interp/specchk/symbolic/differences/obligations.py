"""Obligations on differences, decided without a query, for a fast check of certificates.

Obligations decided here need no solver; all others remain queries.  A check can do without this module: Z3
then decides everything, and nothing is shared with this arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from specchk.ir.types import Map
from specchk.meaning.linear import Terms
from specchk.symbolic.certificates.format import Constraint
from specchk.symbolic.certificates.states import WHOLE, CertifiedStates, PartGroup, Place
from specchk.symbolic.differences.cases import CaseTree, Formula, Number, case_tree
from specchk.symbolic.differences.regions import DifferenceRegion, Literal, NotDecided, at_most, region
from specchk.symbolic.differences.terms import Formulas
from specchk.symbolic.induction.encode.bools import Truth
from specchk.symbolic.induction.encode.shapes import Undecided, joined
from specchk.symbolic.induction.encode.trees import Tree

Row = tuple[Any, Any, int]  # a literal of offsets' numbers, "" for the number 0
Change = tuple[Place, Tree]  # an entry, and its tree after a step


class Arrival(Struct):
    """Entries after a step, with None for offsets, if formulas hold; `numbers` are the offsets."""

    entries: list[tuple[Place, Any]]
    formulas: list[Formula | None]
    numbers: list[Number | None]
    cases: CaseTree | None = None


class PartRegions(Struct):
    """The parts of one control part, as regions of differences.

    `regions` contain the states of the parts, and more where a constraint is not a difference.  Of the parts
    with only differences, `every` has the constraints that all have, and `literals` the others of each.
    """

    regions: list[DifferenceRegion]
    every: list[Literal]
    literals: list[list[Literal]]


class DifferenceDecider:
    """Decides the obligations of a certificate's control parts by differences."""

    def __init__(self, states: CertifiedStates) -> None:
        self.states = states
        self.formulas = Formulas()
        # Made once for all control parts: the regions of constraints, and the arrivals of steps by the
        # identity of their trees, which are kept, so that their identities are not reused.
        self._rows: dict[Constraint, Row | None] = {}
        self._regions: dict[Any, DifferenceRegion | None] = {}
        self._parts: dict[PartGroup, PartRegions] = {}
        self._arrivals: dict[tuple[Any, ...], tuple[list[Arrival] | None, list[Change]]] = {}

    def excludes(self, group: PartGroup, wrong: Sequence[Truth], unless: Truth) -> bool:
        """Whether no state satisfies all of `wrong` and not `unless`; False if that is not decided."""
        parts = [*map(self.formulas.of, wrong), self.formulas.of(unless, False)]
        return self.formulas.exclude(self._of(group).regions, parts)

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
        """The entries whose trees have changed."""
        for slot, (before, after) in enumerate(zip(old, new, strict=True)):
            if after is not before:
                is_map = isinstance(self.states.kinds[slot], Map)
                pairs = zip(before, after, strict=True) if is_map else [(before, after)]
                entries = enumerate(pairs, 0 if is_map else WHOLE)
                yield from [((slot, position), tree) for position, (one, tree) in entries if tree is not one]

    def _arrivals_of(self, when: list[Formula | None], changed: list[Change]) -> list[Arrival] | None:
        """The possible values of changed entries; None if there are too many."""
        try:
            rows = joined([self.states.outline(place, tree) for place, tree in changed])
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
        group, regions = self.states.by_state.get(tuple(state)), self._of(source).regions
        if group is None:
            return self.formulas.exclude(regions, arrival.formulas)
        if arrival.cases is None:
            # Other entries keep their trees, and so their numbers.
            names = [name for entry in arrival.entries for name in self.states.entries[entry][1]]
            numbers = [number for number in arrival.numbers if number is not None]
            if len(numbers) < len(names):
                return False
            arrival.cases = case_tree(arrival.formulas, dict(zip(names, numbers, strict=True)))
        try:
            target = self._of(group)
            return all(
                part.is_within(target.literals, moved, target.every)
                for region in regions
                for part, moved in arrival.cases.within(region)
            )
        except NotDecided:
            return False

    def _of(self, group: PartGroup) -> PartRegions:
        if group not in self._parts:
            self._parts[group] = self._new(group)
        return self._parts[group]

    def _new(self, group: PartGroup) -> PartRegions:
        regions = list[DifferenceRegion]()
        only = list[tuple[Literal, ...]]()  # the literals of parts that have no other constraints
        named: dict[Any, str] = {"": "", **dict(enumerate(group.names, 1))}
        for some in group.constraints:
            rows = [row for row in map(self._row, some) if row is not None]
            literals = tuple([(named[u], named[v], most) for u, v, most in rows])
            if (literals, group.names) not in self._regions:
                self._regions[literals, group.names] = region(literals, group.names)
            here = self._regions[literals, group.names]
            regions += [] if here is None else [here]
            only += [literals] if len(literals) == len(some) else []
        every = set(only[0]).intersection(*only) if only else set()
        own = [[literal for literal in some if literal not in every] for some in only]
        return PartRegions(regions, [literal for literal in (only or [()])[0] if literal in every], own)

    def _row(self, constraint: Constraint) -> Row | None:
        """A constraint as a literal of offsets; None if it is not a difference of two."""
        if constraint not in self._rows:
            self._rows[constraint] = _difference(*constraint)
        return self._rows[constraint]


def _difference(terms: Terms, bound: int) -> Row | None:
    """A constraint as the difference of two offsets; None if it is not such a difference."""
    factors = [(times, (place, 0)) for place, times in terms if isinstance(place, int)]
    try:
        return at_most(factors, bound) if len(factors) == len(terms) else None
    except NotDecided:
        return None
