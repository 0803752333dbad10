"""The states in the parts of a certificate, as Z3 formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3
from msgspec import Struct

from specchk.ir.program import Program
from specchk.ir.types import Map, cardinality
from specchk.meaning.linear import Terms, symbols
from specchk.symbolic.certificates.format import CertifiedPart, Constraint, MalformedCertificate
from specchk.symbolic.induction.encode.bools import Truth, conj, disj
from specchk.symbolic.induction.encode.numbers import term
from specchk.symbolic.induction.encode.scope import placed
from specchk.symbolic.induction.encode.shapes import NotOfType, Outline, Undecided, joined, opened, outlines
from specchk.symbolic.induction.encode.trees import Tree

Member = Callable[[Sequence[Tree]], Truth]
WHOLE = -1  # the position of a variable that is no map
Place = tuple[int, int]  # the slot of a variable, and the position of an entry
Opened = tuple[Tree, list[str]]  # a tree, and the names of its offsets


class PartGroup(Struct, eq=False):
    """All parts of one control part: its state with a Z3 number for each name, and their constraints."""

    state: tuple[Any, ...]
    trees: tuple[Tree, ...]
    names: tuple[str, ...]
    constraints: Sequence[tuple[Constraint, ...]]
    facts: Truth = None  # the constraints as a term, made when it is needed


class CertifiedStates:
    """The states of some parts; `MalformedCertificate` if a part is not a state of the program."""

    def __init__(self, program: Program, parts: Sequence[CertifiedPart]) -> None:
        self.program = program
        self.kinds = [variable.type for variable in program.variables]
        # Made once for all control parts: trees of values, and readings of a tree after a step, by its
        # identity; the tree is kept, so that its identity is not reused.
        self._trees: dict[tuple[int, Any], Opened] = {}
        self.entries: dict[tuple[Place, Any], Opened] = {}
        self._last: dict[Constraint, int] = {}
        self._outlines: dict[tuple[Place, int], tuple[Tree, list[Outline]]] = {}
        constraints: dict[tuple[Any, ...], list[tuple[Constraint, ...]]] = {}
        for part in parts:
            constraints.setdefault(part.state, []).append(part.constraints)
        self.by_state = {state: self._group(state, some) for state, some in constraints.items()}
        self.groups = [*self.by_state.values()]

    def _group(self, state: tuple[Any, ...], constraints: Sequence[tuple[Constraint, ...]]) -> PartGroup:
        if len(state) != len(self.kinds):
            raise MalformedCertificate(f"a state has {len(state)} variables, the spec {len(self.kinds)}")
        found = [self._variable(slot, value) for slot, value in enumerate(state)]
        names = tuple([name for _, some in found for name in some])
        if max([self._last_of(one) for some in constraints for one in some], default=0) > len(names):
            raise MalformedCertificate(f"a constraint is on an offset that is not among {len(names)}")
        return PartGroup(state, tuple([tree for tree, _ in found]), names, constraints)

    def _last_of(self, constraint: Constraint) -> int:
        """The last offset that occurs in a constraint."""
        if constraint not in self._last:
            numbers = symbols(constraint[0])
            if min(numbers, default=1) < 1:
                raise MalformedCertificate("a constraint is on an offset below the first one")
            self._last[constraint] = max(numbers, default=0)
        return self._last[constraint]

    def _variable(self, slot: int, value: Any) -> Opened:
        if (slot, value) not in self._trees:
            kind, name = self.kinds[slot], self.program.variables[slot].name
            if isinstance(kind, Map) and isinstance(value, tuple) and len(value) == cardinality(kind.key):
                found = [self._entry((slot, n), part, f"{name}.{n}") for n, part in enumerate(value)]
                names = [name for _, some in found for name in some]
                self._trees[slot, value] = tuple([tree for tree, _ in found]), names
            else:
                self._trees[slot, value] = self._entry((slot, WHOLE), value, name)
        return self._trees[slot, value]

    def _entry(self, place: Place, value: Any, name: str) -> Opened:
        if (place, value) not in self.entries:
            names: list[str] = []
            try:
                with placed(self.program.variables[place[0]].span):
                    self.entries[place, value] = opened(value, self._kind(place), names, name), names
            except NotOfType:
                raise MalformedCertificate("a state has a value that is not of its variable's type") from None
        return self.entries[place, value]

    def _kind(self, place: Place) -> Any:
        kind = self.kinds[place[0]]
        return kind.value if isinstance(kind, Map) and place[1] != WHOLE else kind

    def facts(self, group: PartGroup) -> tuple[Truth]:
        """The constraints on the numbers of a control part."""
        if group.facts is None:
            places = [z3.Int(name) for name in group.names]
            rows = {row for some in group.constraints for row in some}
            truths = {(terms, most): _sum(terms, places) <= most for terms, most in rows}
            group.facts = disj([conj([truths[row] for row in some]) for some in group.constraints])
        return (group.facts,)

    def member(self, trees: Sequence[Tree]) -> Truth:
        """The condition that a state is among them; False if its control part has too many cases."""
        try:
            rows = joined([self._outline_all(slot, tree) for slot, tree in enumerate(trees)])
        except Undecided:
            return False
        return disj([self._in_group(row) for row in rows if row.value in self.by_state])

    def _in_group(self, row: Outline) -> Truth:
        group = self.by_state[row.value]
        (fact,) = self.facts(group)
        if not isinstance(fact, bool) and group.names:
            # All places at once, since the number for one place may contain another place.
            fact = z3.substitute(fact, *zip(map(z3.Int, group.names), map(term, row.numbers), strict=True))
        return conj([*row.guards, fact])

    def _outline_all(self, slot: int, tree: Tree) -> list[Outline]:
        if not isinstance(self.kinds[slot], Map):
            return self.outline((slot, WHOLE), tree)
        return joined([self.outline((slot, n), part) for n, part in enumerate(tree)])

    def outline(self, place: Place, tree: Tree) -> list[Outline]:
        """The possible values of an entry after a step."""
        key = place, id(tree)
        if key not in self._outlines:
            self._outlines[key] = tree, outlines(tree, self._kind(place))
        return self._outlines[key][1]


def _sum(terms: Terms, places: Sequence[Any]) -> Any:
    # For positive divisors Z3 rounds down, too.
    parts = [
        times * (places[p - 1] if isinstance(p, int) else (_sum(p[0], places) + p[1]) / z3.IntVal(p[2]))
        for p, times in terms
    ]
    return z3.Sum(parts)
