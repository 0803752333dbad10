"""The symbolic engine: an exact search over zones, with a search for hulls beside it.

The exact search (`zones`) finds violations, with shortest traces, and decides small models.  Once it has
`join_after` zones, a search for hulls has its share of the steps, level by level.  If that proves all
properties, the absence of deadlocks, and that no step is undefined, only witnesses and coverage are open,
since hulls have states that are not real.  The exact search then continues until it has reached all that
hulls reach, at first with few zones of each control part.  If real states on a path of hulls show a
violation, the exact search is narrowed to zones from which one may be reached in as many steps; if they show
all failures of the first level of hulls that fails, it has nothing left to do.

So witnesses and covered branches come from the exact search, `holds` and violations from either.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from specchk.ir.program import Program
from specchk.meaning.paths import NotSymbolic
from specchk.search.engine import OnProgress, Search, Totals, explore
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Outcome, Violation
from specchk.symbolic.certificates.format import CertifiedPart
from specchk.symbolic.joins.member import HullMember
from specchk.symbolic.joins.search import HullSearch, JoinState
from specchk.symbolic.legality import check
from specchk.symbolic.zones.certify import part_of
from specchk.symbolic.zones.concrete import Goal, Real, Taken
from specchk.symbolic.zones.engine import ZoneEngine, ZoneOptions
from specchk.symbolic.zones.expand import Candidate
from specchk.symbolic.zones.members import ZoneMember

JOIN_AFTER = 1_000  # zones: about a second
SHARE = 16  # steps of hulls for each of the exact search
FIRST_MOST = 1  # zones of a control part, once only witnesses and coverage are open


class JoinOptions(ZoneOptions, frozen=True):
    """As `ZoneOptions`; the search for hulls starts at `join_after` zones, never if None."""

    join_after: int | None = JOIN_AFTER


def search(
    program: Program, options: JoinOptions = JoinOptions(), on_progress: OnProgress | None = None
) -> Outcome:
    """Search a program for all values of its offsets, and answer all of its properties.

    `SpecError` if only an engine that enumerates can do what the program does with offsets.
    """
    if not options.horizons:
        check(program)
    engine = JoiningEngine(Search(program, options, on_progress), options)
    try:
        return explore(engine)
    finally:
        engine.workers.close()


class JoiningEngine(ZoneEngine):
    """The exact engine, with a search for hulls; `hulls` is None if there is none."""

    options: JoinOptions
    # Of one search; it begins with these.
    hulls: HullSearch | None = None
    hull_steps = 0  # of searches with another precision
    most = FIRST_MOST  # zones of a control part, once there is a proof
    is_narrow = False  # to states that may fail as soon as hulls did

    @property
    def is_proved(self) -> bool:
        """Whether hulls prove that nothing is violated."""
        return self.hulls is not None and self.hulls.state is JoinState.PROVED

    def failing_hulls(self) -> frozenset[str] | None:
        """Search only for hulls, completely; returns the names of all failures in them, none for a proof.

        None if there is no answer: the budget ended the search, or open numbers do not support something.
        """
        self.begin()
        if self.hulls is None or self.search.is_stopped or self.findings.found or self.spurious:
            return None
        self._join(is_limited=False)
        return self.hulls.failing() if self.hulls.is_done and not self.search.is_stopped else None

    def begin(self) -> range:
        """The zones of the initial states; a search for hulls with another precision also starts."""
        atoms = self.hulls.atoms if self.hulls is not None else []
        self.hull_steps += self.hulls.generated if self.hulls is not None else 0
        self.hulls, self.most, self.is_narrow = None, FIRST_MOST, False
        frontier = ZoneEngine.begin(self)
        # Without a reach, hulls might grow forever; a state outside a constraint has no zone.
        if self.options.join_after is not None and self.reach is not None and not self.outside:
            points = len(self.program.points)
            self.hulls = HullSearch(self.workers, self.initial, points, self._shown, atoms)
        return frontier

    def expand(self, frontier: range) -> range:
        """The zones of the next level; none once hulls give a proof and all that they reach was reached."""
        if self.options.join_after is not None and len(self.nodes) >= self.options.join_after:
            self._join(is_limited=True)
        if self.search.is_stopped or self.search.is_answered or self._is_confirmed():
            return range(0)
        following = ZoneEngine.expand(self, frontier)
        while self.is_proved and not following and self._are_left():
            following = self._number(self.workers.each(HullMember.take_left))
        return following

    def finish(self) -> bool:
        """Whether the search was precise enough; a certificate is built from hulls if they give a proof."""
        if self.is_proved:
            self.spurious.clear()  # of a level before the proof
        elif self.options.on_fixpoint is not None and not (self._is_answered() or self.spurious):
            self._join(is_limited=False)
        if self.is_narrow and not (self._is_answered() or self.spurious):
            raise ReplayFailed("zones lack the violation that hulls and real states have")
        return ZoneEngine.finish(self)

    def totals(self) -> Totals:
        """The counts at the end, including hulls if they give the proof."""
        totals = ZoneEngine.totals(self)
        generated = totals.generated + self.hull_steps
        if self.hulls is None:
            return replace(totals, generated=generated)
        assert totals.symbolic is not None
        hulls, parts = (self.hulls.hulls, self.hulls.parts) if self.is_proved else (0, 0)
        symbolic = replace(
            totals.symbolic, hulls=hulls, parts=parts, rounds=self.hulls.rounds, splits=len(self.hulls.atoms)
        )
        return replace(
            totals, distinct=totals.distinct + symbolic.hulls, generated=generated + self.hulls.generated,
            symbolic=symbolic,
        )  # fmt: skip

    def _shown(self, path: Sequence[Taken], candidate: Candidate) -> Real | None:
        """Real states that exhibit a failure at the end of a path of hulls."""
        self._note_faulty(candidate)
        goal = Goal(candidate.kind, candidate.name, candidate.step)
        with suppress(NotSymbolic):  # of numbers that no real state may have
            return self.concretiser.find(path, goal)
        return None

    def _join(self, *, is_limited: bool) -> None:
        """Continue the search for hulls, up to its share of the steps or to its end."""
        hulls = self.hulls
        while hulls is not None and not hulls.is_done:
            # Only between its levels, since the end of a slice depends on the number of workers.
            if is_limited and hulls.is_between_levels and hulls.generated >= SHARE * self.counts.generated:
                return
            counts = len(self.nodes) + hulls.hulls, self.counts.generated + hulls.generated
            if self.search.look(*counts, hulls.waiting):
                return
            hulls.advance()
            if hulls.is_done and hulls.bound is not None and not self.options.keep_going:
                self._use_bound(hulls, hulls.bound)
            if self.is_proved:
                self.workers.each(HullMember.limit, self.most)

    def _use_bound(self, hulls: HullSearch, bound: int) -> None:
        """Report a violation by real states, if it is the only failure; else narrow the exact search."""
        if hulls.shown and not self.findings.unreached():
            for candidate, real in hulls.shown:
                self.findings.note(
                    Violation(candidate.kind, candidate.name, real.trace, real.blame, real.condition)
                )
        elif hulls.near is not None:
            hulls.restart()
        else:
            self.workers.each(HullMember.narrow, hulls.latest(bound, self.findings.unreached()))
            self.is_narrow = True

    def _is_confirmed(self) -> bool:
        """Whether hulls give a proof, and real states reach everything that hulls do."""
        if self.hulls is None or not self.is_proved or self.findings.unreached():
            return False
        pairs = zip(self.hulls.coverage, self.counts.coverage, strict=True)
        return self.outside >= self.hulls.outside and all(own or not some for some, own in pairs)

    def _are_left(self) -> bool:
        """Whether zones were postponed; up to twice as many of each control part are now taken."""
        if self.search.is_stopped or self._is_confirmed():
            return False
        self.most *= 2
        return any(self.workers.each(HullMember.limit, self.most))

    def _confirm(self, candidates: list[tuple[int, Candidate]]) -> None:
        # After a proof, candidates in zones are spurious, since zones forget.
        wanted = [one for one in candidates if one[1].kind == "reached" or not self.is_proved]
        ZoneEngine._confirm(self, wanted)

    def _parts(self) -> list[CertifiedPart]:
        if self.hulls is None or not self.is_proved:
            return ZoneEngine._parts(self)
        parts = [part_of(hull, self.abstraction.of(hull.shape)) for hull in self.hulls.zones()]
        return sorted(parts, key=repr)

    def _member(self, count: int, number: int) -> ZoneMember:
        return HullMember(number, count, self.expander, covering=self.options.covering)
