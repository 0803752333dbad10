"""The search for hulls in which all properties hold: a proof for all offsets, with few zones.

A round makes the hulls of all control parts, from the initial zones until no step leads out of them, and
checks each that grew.  It ends with the first level in which a property fails: the atoms of these failures
split the hulls of the next round (`failures`).  Later levels would fail as well, for lack of the first ones'
atoms, and their own atoms would split more than a proof needs: `three_brokers` has a proof with 21 atoms of
such rounds, and had 39 of whole ones.  A search without new atoms has failed.  So has one whose hulls fail
like real states on a path by which a hull grew: it ends at once.

Every behaviour of n steps lies in hulls of the first n levels, so the number of recorded steps from a control
part to one whose hull fails is a lower bound of the real number (an abstraction as heuristic: Qian and
Nymeyer, "Guided Invariant Model Checking Based on Abstraction and Symbolic Pattern Databases", 2004).  That
serves two purposes.

    a near round    after a round that fails in level n: only control parts from which a failure is within n
                    levels, which are few.  More near rounds follow until nothing fails in that level, or new
                    atoms do not help; the same hulls fail as in whole rounds, which take longer, the larger
                    the model is.
    a bound         a real path of n steps bounds the shortest one.  If real states show all failures in the
                    first level that fails, they are violations with shortest traces.  Otherwise the exact
                    search continues with zones from which a failure is within the bound.

Steps can be taken level by level, between levels of the exact search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from msgspec import Struct, field

from specchk.symbolic.joins.atoms import Atom
from specchk.symbolic.joins.hulls import Origin
from specchk.symbolic.joins.member import FailingAtoms, HullMember, HullTally, nearest
from specchk.symbolic.workers import Workers
from specchk.symbolic.zones.concrete import Real, Taken
from specchk.symbolic.zones.expand import Candidate
from specchk.symbolic.zones.members import ZoneMember
from specchk.symbolic.zones.zones import Shape, Zone

MAX_ROUNDS = 30
MAX_ATOMS = 400
SHARE_OF_NEAR = 8  # a round is near if it has at most one control part in this many


class JoinState(Enum):
    """The next step of a search for hulls, or its end."""

    NEW_ROUND = "new round"
    EXPANDING = "expanding"
    PROVED = "proved"
    FAILED = "failed"


class HullSearch(Struct):
    """A search for hulls by some workers, from initial zones."""

    workers: Workers[ZoneMember]
    initial: Mapping[Zone, Taken]
    points: int
    real: Callable[[Sequence[Taken], Candidate], Real | None]  # states that fail at the end of a path
    atoms: list[Atom] = field(default_factory=list)
    state: JoinState = JoinState.NEW_ROUND
    rounds: int = 0
    generated: int = 0
    level: int = -1  # of the present round, the last that is checked
    near: Mapping[Shape, int] | None = None  # of a near round: the last level of each control part
    bound: int | None = None  # the steps of a violation that real states show
    shown: list[tuple[Candidate, Real]] = field(default_factory=list)  # all of this many steps, if known
    hulls: int = 0  # of the present round,
    parts: int = 0  # and their control parts
    waiting: int = 0
    is_between_levels: bool = True
    coverage: list[int] = field(default_factory=list)  # of the round, including what no real state may reach
    outside: bool = False

    @property
    def is_done(self) -> bool:
        """Whether it has found a proof or failed."""
        return self.state in (JoinState.PROVED, JoinState.FAILED)

    def advance(self) -> None:
        """Check and expand some hulls; at the end of a round, find the comparisons that split them."""
        # The number of workers determines where slices end, so only ends of levels may decide anything.
        self.is_between_levels = False
        if self.state is JoinState.NEW_ROUND:
            self.rounds += 1
            self.level = -1
            self.coverage = [0] * self.points
            self._note(self.workers.each(HullMember.start_hulls, self.atoms, self.initial, self.near))
            self.state = JoinState.EXPANDING
        elif self.state is JoinState.EXPANDING:
            failures = self._note(self.workers.each(HullMember.expand_hulls))
            if self.waiting or self.is_done:
                return
            parcels = self.workers.each(HullMember.sent_hulls)
            self._note(self.workers.call(HullMember.join, list(zip(*parcels, strict=True))))
            self.is_between_levels = True
            self.level += 1
            if failures and self.bound is None:
                self.bound = self._violation()
            if self.bound is not None:
                # If a step fails, states of the next level may have violations of as many steps.
                if self.level >= self.bound or not self.waiting:
                    self.state = JoinState.FAILED
            elif failures or not self.waiting:
                self._end_round(failures)

    def failing(self) -> frozenset[str] | None:
        """The names of all failures in the hulls of the last level; None if a hull was not expanded."""
        if self.state is JoinState.PROVED:
            return frozenset()
        return frozenset().union(*self.workers.each(HullMember.failing_names)) or None

    def zones(self) -> list[Zone]:
        """Zones with the states of all hulls of the last round."""
        return [zone for zones in self.workers.each(HullMember.united) for zone in zones]

    def _note(self, tallies: Sequence[HullTally]) -> int:
        """Add up the results of the members; return the number of failures."""
        self.hulls = sum([tally.hulls for tally in tallies])
        self.parts = sum([tally.parts for tally in tallies])
        self.waiting = sum([tally.waiting for tally in tallies])
        self.outside = any(tally.outside for tally in tallies)
        for tally in tallies:
            self.generated += tally.counts.generated
            self.coverage = [a + b for a, b in zip(self.coverage, tally.counts.coverage, strict=True)]
        if any(tally.refused for tally in tallies):
            # The failures in hulls that were not expanded are unknown, so nothing bounds the exact search.
            self.state, self.bound = JoinState.FAILED, None
        return sum([tally.failures for tally in tallies])

    def _end_round(self, failures: int) -> None:
        if not failures:
            # A near round is followed by a whole one, since later levels may have failures.
            self.state = JoinState.PROVED if self.near is None else JoinState.NEW_ROUND
            self.near = None
            return
        new = self._new_atoms()
        # Without new atoms the next round would repeat this one; the limits keep a proof that does not
        # converge from taking the exact search's time.
        if not new or self.rounds >= MAX_ROUNDS or len(self.atoms) + len(new) > MAX_ATOMS:
            self.state = JoinState.FAILED
            return
        if self.near is None:
            near = self.latest(self.level, ())
            self.near = near if SHARE_OF_NEAR * len(near) <= self.parts else None
        self.atoms += new
        self.state = JoinState.NEW_ROUND

    def restart(self) -> None:
        """Follow with a whole round up to the bound: a near round lacks hulls far from its failures."""
        self.near = None
        self.state = JoinState.NEW_ROUND

    def latest(self, bound: int, witnesses: Sequence[str]) -> dict[Shape, int]:
        """For each shape, the last depth from which a failure or a witness may be within a bound."""
        latest: dict[Shape, int] = {}
        shapes: set[Shape] = set().union(*self.workers.each(HullMember.goals, witnesses))
        for depth in range(bound, -1, -1):
            latest |= dict.fromkeys(shapes, depth)
            found: set[Shape] = set().union(*self.workers.each(HullMember.sources, list(shapes)))
            shapes = found - latest.keys()
        return latest

    def _violation(self) -> int | None:
        """The steps of a violation shown by real states, if hulls of the last level fail."""
        # There is no proof then; real states may show that some failures are violations.
        failing = nearest([one for found in self.workers.each(HullMember.failing) for one in found])
        # States before steps: a failure in a step makes a path one step longer.
        for is_later in (False, True):
            shown: dict[tuple[str, str], tuple[Candidate, Real]] = {}
            alike = [one for one in failing if one[1].is_in_step == is_later]
            for origin, candidate in alike:
                if (candidate.kind, candidate.name) not in shown:
                    real = self.real(self._path(origin), candidate)
                    if real is not None:
                        shown[candidate.kind, candidate.name] = candidate, real
            if shown:
                # If a step fails, states of the next level may fail after as many steps.
                is_all = len(shown) == len({(one.kind, one.name) for _, one in alike})
                self.shown = [*shown.values()] if is_all and not is_later else []
                return self.level + is_later
        return None

    def _path(self, origin: Origin) -> list[Taken]:
        path = [origin.taken]
        while origin.before is not None:
            origins = self.workers.each(HullMember.origin, origin.before, origin.level - 1)
            origin = next(one for some in origins for one in some)
            path.append(origin.taken)
        return path[::-1]

    def _new_atoms(self) -> list[Atom]:
        """The atoms of failures that do not split hulls yet; if none, preimages of known ones by one step."""
        by_shape: FailingAtoms = {}
        for own in self.workers.each(HullMember.failing_atoms):
            by_shape |= own  # a shape has one owner: nothing is overwritten
        new = self._unknown(atom for atoms in by_shape.values() for atom, is_open in atoms.items() if is_open)
        if new:
            return new
        known = set(self.atoms)
        failing = {shape: sorted(known.intersection(atoms)) for shape, atoms in by_shape.items()}
        before: list[list[Atom]] = self.workers.each(HullMember.atoms_before, failing)
        return self._unknown(atom for atoms in before for atom in atoms)

    def _unknown(self, atoms: Iterable[Atom]) -> list[Atom]:
        # Sorted, so that the order does not depend on which worker found them.
        return sorted(set(atoms).difference(self.atoms))
