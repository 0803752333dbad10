"""A process of a search that joins: besides its zones it owns the hulls of some shapes.

A level of the search for hulls has two parts, like one of the search for zones: all hulls that grew are
expanded, and every owner joins the zones that arrived.  The join of some zones does not depend on their
order, so hulls do not depend on the number of processes.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from operator import itemgetter

from msgspec import Struct

from specchk.meaning.paths import NotSymbolic
from specchk.symbolic.joins.atoms import Atom, PlaceNames, SplitAtoms
from specchk.symbolic.joins.failures import Failures, effects_of
from specchk.symbolic.joins.hulls import Hull, HullKey, HullTable, Origin, united
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.expand import Candidate, Counts, Expander, Expansion
from specchk.symbolic.zones.members import SLICE, Taking, ZoneMember
from specchk.symbolic.zones.zones import Shape, Zone

TRIES = 20  # failures of one kind for which real states are sought
FailingAtoms = dict[Shape, dict[Atom, bool]]  # on paths to failures: the atoms, and whether a hull is open


class HullTally(Struct):
    """A member's hulls and their control parts, the number to be expanded, and failures.

    `counts` and `outside` cover all expansions of a round, and so more than real states would.
    """

    counts: Counts
    hulls: int = 0
    parts: int = 0
    waiting: int = 0
    failures: int = 0
    outside: bool = False
    refused: bool = False  # a hull needs something that open numbers do not support


class HullMember(ZoneMember):
    """A member that also owns hulls."""

    def __init__(self, number: int, count: int, expander: Expander, *, covering: bool) -> None:
        super().__init__(number, count, expander, covering=covering)
        self._names = PlaceNames(expander.program, expander.abstraction)
        self._table = HullTable(SplitAtoms(self._names))
        self._due: list[Hull] = []  # of the level, those that are not expanded yet
        self._parcels: list[dict[Zone, Origin]] = []
        self._expanding: Sequence[Hull] = ()
        self._near: Mapping[Shape, int] | None = None  # the last levels of shapes
        self._depth = 0  # of the level that is expanded next
        self._joined = 0  # steps of hulls, of all levels
        self._failing: dict[Hull, list[Candidate]] = {}  # what may fail in a hull or in steps out of it
        self._reaching: dict[str, set[Shape]] = {}  # where a hull may have a witness
        self._before: dict[Shape, set[Shape]] = {}  # from which of its shapes steps lead to one
        self._tally = HullTally(Counts([]))

    def start_hulls(
        self, atoms: Sequence[Atom], initial: Mapping[Zone, Taken], near: Mapping[Shape, int] | None
    ) -> HullTally:
        """Start a round, with hulls split by atoms; a near round has shapes only up to a level."""
        self._near = near
        self._before.clear()  # more may be recorded by then
        self._table = HullTable(SplitAtoms(self._names, atoms))
        self._failing.clear()
        self._reaching.clear()
        self._tally = HullTally(Counts([0] * len(self.expander.program.points)))
        self._depth = 0
        own = {
            zone: Origin(0, 0, 0, number, None, taken)
            for number, (zone, taken) in enumerate(initial.items())
            if self._owner(zone.shape) == self.number and (near is None or zone.shape in near)
        }
        self._parcels = [own if to == self.number else {} for to in range(self.count)]
        return self.join(b"")

    def expand_hulls(self) -> HullTally:
        """Check and expand some hulls of the level."""
        hulls, self._due = self._due[:SLICE], self._due[SLICE:]
        self._expanding = hulls
        try:
            part = self.expander.expand(enumerate([hull.zone for hull in hulls]), self._joins, frozenset())
        except NotSymbolic:
            # The state may not be real: this does not end the search, but hulls have failed.
            self.expander.drop_counts()
            self._tally.refused = True
            part = Expansion(Counts([0] * len(self.expander.program.points)))
        for hull in hulls:
            self._failing.pop(hull, None)  # from before it grew
        for number, candidate in (*part.states, *part.steps):
            if candidate.kind == "reached":
                self._reaching.setdefault(candidate.name, set()).add(hulls[number].key[0])
            else:
                self._failing.setdefault(hulls[number], []).append(candidate)
        self._tally.outside = self._tally.outside or part.outside
        return self._counted(part.counts)

    def _counted(self, counts: Counts) -> HullTally:
        """The tally, with the counts of one call."""
        tally = self._tally
        tally.counts = counts
        tally.hulls = len(self._table.hulls)
        tally.parts = len(self._table.parts)
        tally.waiting = len(self._due)
        tally.failures = sum(map(len, self._failing.values()))
        return tally

    def sent_hulls(self) -> list[bytes]:
        """The successors for each member."""
        out = [b"" if to == self.number else pickle.dumps(one) for to, one in enumerate(self._parcels)]
        self._parcels = [one if to == self.number else {} for to, one in enumerate(self._parcels)]
        return out

    def join(self, *parcels: bytes) -> HullTally:
        """Join the hulls that arrived into the next level."""
        arrived = self._parcels[self.number]
        self._parcels[self.number] = {}
        for parcel in [pickle.loads(p) for p in parcels if p]:  # noqa: S301 - another member's
            for zone, origin in parcel.items():
                _keep_least(arrived, zone, origin)
        # In one order, whoever sent them: a hull is reached by the first zone of a level that made it grow.
        for zone, origin in sorted(arrived.items(), key=itemgetter(1)):
            self._table.add(zone, origin)
        self._depth += 1
        self._due, self._table.changed = list(self._table.changed), {}
        return self._counted(Counts([0] * len(self.expander.program.points)))

    def failing(self) -> list[tuple[Origin, Candidate]]:
        """A few of each failure in hulls of the level before, or in steps out of them."""
        return nearest([
            (origin, candidate)
            for hull, candidates in self._failing.items()
            for origin in hull.origins
            if origin.level == self._depth - 2  # the next level has joined already
            for candidate in candidates
        ])  # fmt: skip

    def origin(self, key: HullKey, level: int) -> list[Origin]:
        """The step after which a hull grew in a level, if the member owns the hull."""
        hull = self._table.find(key)
        return [] if hull is None else [one for one in hull.origins if one.level == level]

    def goals(self, witnesses: Sequence[str]) -> set[Shape]:
        """The shapes of its hulls in which, or in steps out of which, there is a failure or a witness."""
        shapes = {hull.key[0] for hull in self._failing}
        return shapes.union(*[self._reaching.get(name, ()) for name in witnesses])

    def sources(self, targets: Sequence[Shape]) -> set[Shape]:
        """The shapes from which recorded steps lead to targets."""
        if not self._before:
            for shape, control in self.expander.controls.known.items():
                for target, _ in effects_of(control):
                    self._before.setdefault(target, set()).add(shape)
        return {shape for target in targets for shape in self._before.get(target, ())}

    def narrow(self, latest: Mapping[Shape, int]) -> None:
        """From here on, take zones of a shape only up to a depth, and none of other shapes."""
        self.latest = latest
        pairs = zip(self._indexes, self._level, strict=True)
        kept = [one for one in pairs if self._is_in_time(one[1].shape, self.depth - 1)]
        self._indexes, self._level = [index for index, _ in kept], [zone for _, zone in kept]

    def failing_names(self) -> set[str]:
        """The names of all failures in its hulls, or in steps out of them."""
        return {candidate.name for candidates in self._failing.values() for candidate in candidates}

    def failing_atoms(self) -> FailingAtoms:
        """The atoms on the paths to failures in hulls, by shape."""
        by_shape: FailingAtoms = {}
        failures = Failures(self.expander.abstraction, self._names)
        for hull, candidates in self._failing.items():
            zone = hull.zone
            control = self.expander.controls.of(zone.shape, zone.size)
            known = by_shape.setdefault(zone.shape, {})
            for atom, was_open in failures.atoms(control, zone, candidates):
                known[atom] = known.get(atom, False) or was_open
        return by_shape

    def atoms_before(self, failing: Mapping[Shape, Sequence[Atom]]) -> list[Atom]:
        """The preimages of atoms of failing shapes before the steps that lead to these."""
        failures = Failures(self.expander.abstraction, self._names)
        atoms: dict[Atom, None] = {}
        for shape, part in self._table.parts.items():
            zones = [hull.zone for hull in part.hulls.values()]
            control = self.expander.controls.of(shape, zones[0].size)
            atoms.update(dict.fromkeys(failures.before(shape, control, zones, failing)))
        return list(atoms)

    def united(self) -> list[Zone]:
        """Zones with the states of all hulls that this member owns."""
        return [zone for part in self._table.parts.values() for zone in united(part)]

    def limit(self, most: int) -> int:
        """From here on, take at most this many zones of a shape, and postpone others; returns how many."""
        self.most = most
        return len(self.left)

    def take_left(self) -> Taking:
        """Take the postponed ones, up to the limit."""
        self._arrived[self.number], self.left = self.left, []
        return self.take(b"")

    def _joins(self, index: int, zone: Zone, taken: Taken) -> bool:
        if self._near is not None and self._near.get(zone.shape, -1) < self._depth:
            return False
        owner = self._owner(zone.shape)
        # Whether a hull contains a zone is known only to its owner, once the level is joined; but a zone that
        # was joined before is contained.
        if owner == self.number and zone in self._table.met:
            return False
        self._joined += 1
        hull = self._expanding[index]
        # A running number, which orders the steps out of one hull.
        origin = Origin(self._depth, hull.zone.mark, hull.key[1], self._joined, hull.key, taken)
        _keep_least(self._parcels[owner], zone, origin)
        return True


def nearest(failing: Iterable[tuple[Origin, Candidate]]) -> list[tuple[Origin, Candidate]]:
    """A few of each failure."""
    by_kind: dict[tuple[str, str, bool], list[tuple[Origin, Candidate]]] = {}
    for origin, candidate in failing:
        key = candidate.kind, candidate.name, candidate.step is None
        by_kind.setdefault(key, []).append((origin, candidate))
    return [one for key in sorted(by_kind) for one in nsmallest(TRIES, by_kind[key])]


def _keep_least(origins: dict[Zone, Origin], zone: Zone, origin: Origin) -> None:
    known = origins.setdefault(zone, origin)
    if known is not origin and origin < known:
        origins[zone] = origin
