"""A process of a search that joins: beside its zones it owns the hulls of some shapes.

A level of the search for hulls has two parts, as one of the search for zones has: all hulls that grew are
expanded, and every owner joins what arrived.  The join of some zones does not depend on their order, so
neither do the hulls depend on the number of processes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from specchk.meaning.paths import NotSymbolic
from specchk.symbolic.joins.atoms import Atom, PlaceNames, SplitAtoms
from specchk.symbolic.joins.failures import Failures
from specchk.symbolic.joins.hulls import HullTable, Side
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.expand import Arrive, Candidate, Counts, Expander, Expansion
from specchk.symbolic.zones.members import SLICE, Taking, ZoneMember
from specchk.symbolic.zones.zones import Shape, Zone

HullKey = tuple[Shape, Side]
FailingAtoms = dict[Shape, dict[Atom, bool]]  # on ways to failures: the atoms, and whether a hull is open


@dataclass(slots=True)
class HullTally:
    """A member's hulls and their control parts, the number that is to be expanded, and failures.

    `counts` and `outside` are of all expansions of a round, so of more than real states do.
    """

    counts: Counts
    hulls: int = 0
    parts: int = 0
    waiting: int = 0
    failures: int = 0
    outside: bool = False
    refused: bool = False  # a hull needs what open numbers cannot do


class HullMember(ZoneMember):
    """A member that owns hulls, too."""

    def __init__(self, number: int, count: int, expander: Expander, *, covering: bool) -> None:
        super().__init__(number, count, expander, covering=covering)
        self._names = PlaceNames(expander.program, expander.abstraction)
        self._atoms = SplitAtoms(self._names)
        self._table = HullTable()
        self._due: list[HullKey] = []  # of the level, those that are not expanded yet
        self._unchecked: list[HullKey] = []
        self._parcels: list[dict[Zone, None]] = []
        self._steps: dict[HullKey, list[Candidate]] = {}  # what may fail in steps out of a hull
        self._states: dict[HullKey, list[Candidate]] = {}  # and in the hull itself
        self._tally = HullTally(Counts(0))

    def start_hulls(self, atoms: Sequence[Atom], initial: Iterable[Zone]) -> HullTally:
        """Begin a round, with hulls that atoms split."""
        self._atoms = SplitAtoms(self._names, atoms)
        self._table = HullTable()
        self._steps.clear()
        self._states.clear()
        self._unchecked.clear()
        self._tally = HullTally(Counts(len(self.expander.program.points)))
        own = dict.fromkeys([zone for zone in initial if self._owner(zone.shape) == self.number])
        self._parcels = [own if to == self.number else {} for to in range(self.count)]
        return self.join(b"")

    def expand_hulls(self, asked: frozenset[str]) -> HullTally:
        """Expand some hulls of the level; properties are left for the check."""
        due, self._due = self._due[:SLICE], self._due[SLICE:]
        for key in due:
            self._steps.pop(key, None)
        part = self._expanded(due, self._joins, asked)
        for number, candidate in part.steps:
            self._steps.setdefault(due[number], []).append(candidate)
        self._tally.outside = self._tally.outside or part.outside
        return self._told(part.counts)

    def start_check(self) -> HullTally:
        """Begin to check all hulls."""
        self._unchecked = list(self._table.hulls)
        return self._told(Counts(len(self.expander.program.points)))

    def check_hulls(self) -> HullTally:
        """Check the properties in some hulls."""
        keys, self._unchecked = self._unchecked[:SLICE], self._unchecked[SLICE:]
        part = self._expanded(keys, None, frozenset())
        for number, candidate in part.states:
            if candidate.kind != "reached":
                self._states.setdefault(keys[number], []).append(candidate)
        return self._told(part.counts)

    def _expanded(self, keys: Sequence[HullKey], arrive: Arrive | None, asked: frozenset[str]) -> Expansion:
        hulls = [(number, self._table.hulls[key]) for number, key in enumerate(keys)]
        try:
            return self.expander.expand(hulls, arrive, asked)
        except NotSymbolic:
            # Of a state that may not be real: no reason to end the search, but hulls have failed.
            self.expander.drop_counts()
            self._tally.refused = True
            return Expansion(Counts(len(self.expander.program.points)))

    def _told(self, counts: Counts) -> HullTally:
        """The tally, with the counts of one call."""
        tally = self._tally
        tally.counts = counts
        tally.hulls = len(self._table.hulls)
        tally.parts = len({shape for shape, _ in self._table.hulls})
        tally.waiting = len(self._due) + len(self._unchecked)
        tally.failures = sum(map(len, self._states.values())) + sum(map(len, self._steps.values()))
        return tally

    def sent_hulls(self) -> list[bytes]:
        """The successors for each member."""
        out = [b"" if to == self.number else pickle.dumps(list(one)) for to, one in enumerate(self._parcels)]
        self._parcels = [one if to == self.number else {} for to, one in enumerate(self._parcels)]
        return out

    def join(self, *parcels: bytes) -> HullTally:
        """Join what arrived: the next level."""
        own = self._parcels[self.number]
        self._parcels[self.number] = {}
        arrived = [list(own), *[pickle.loads(p) for p in parcels if p]]  # noqa: S301 - another member's
        for zones in arrived:
            for zone in zones:
                self._table.add(zone, self._atoms.of(zone.shape))
        self._due, self._table.changed = list(self._table.changed), {}
        return self._told(Counts(len(self.expander.program.points)))

    def failing_atoms(self) -> FailingAtoms:
        """The atoms on the ways to failures in hulls, by shape."""
        found: FailingAtoms = {}
        failures = Failures(self.expander.abstraction, self._names)
        for key in dict.fromkeys([*self._states, *self._steps]):
            hull = self._table.hulls[key]
            control = self.expander.controls.of(hull.shape, len(hull.classes))
            candidates = [*self._states.get(key, ()), *self._steps.get(key, ())]
            known = found.setdefault(hull.shape, {})
            for atom, was_open in failures.atoms(control, hull, candidates):
                known[atom] = known.get(atom, False) or was_open
        return found

    def atoms_before(self, failing: Mapping[Shape, Sequence[Atom]]) -> list[Atom]:
        """What atoms of failing shapes are before the steps that lead to these."""
        failures = Failures(self.expander.abstraction, self._names)
        by_shape: dict[Shape, list[Zone]] = {}
        for hull in self._table.hulls.values():
            by_shape.setdefault(hull.shape, []).append(hull)
        found: dict[Atom, None] = {}
        for shape, hulls in by_shape.items():
            control = self.expander.controls.of(shape, len(hulls[0].classes))
            found.update(dict.fromkeys(failures.before(shape, control, hulls, failing)))
        return list(found)

    def hulls(self) -> list[Zone]:
        """All hulls that it owns."""
        return list(self._table.hulls.values())

    def limit(self, most: int) -> int:
        """Take at most so many zones of a shape from here on, and leave others; how many are left."""
        self.most = most
        return len(self.left)

    def take_left(self) -> Taking:
        """Take what was left, up to the limit."""
        self._arrived[self.number], self.left = self.left, []
        return self.take(b"")

    def _joins(self, index: int, zone: Zone, taken: Taken) -> bool:
        self._parcels[self._owner(zone.shape)][zone] = None
        return True
