"""Exhaustive search over zones: the answer for logs of every length.

Breadth first over zones of states (`zones`), by the spec's own meaning run on open numbers (`moves`).  A zone
that lies within an earlier one is dropped (`covering`).  Zones forget differences beyond a reach, so that
there are finitely many.  They then have states that do not exist, so a violation, a witness or a deadlock
counts only once `concrete` has found real states along its path.  If it finds none, the search restarts with
a larger reach; after `MAX_REFINEMENTS` of these it is inconclusive.

So `Holds` is for all offsets, and counterexamples are shortest: every behaviour of n steps lies in
zones of at most n steps.

Zones are expanded by forked processes, each of which owns those of some shapes (`members`); the answer
is the same for any number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import ClassVar

from specchk.ir.range_checks import with_checks
from specchk.meaning.paths import NotSymbolic
from specchk.meaning.properties import NoAnswer
from specchk.meaning.values import State
from specchk.processes import cores
from specchk.search.engine import Engine, Options, Search, Totals
from specchk.search.verdict import Inconclusive, Symbolic, Trace, Violation
from specchk.symbolic.certificates.format import CertifiedPart
from specchk.symbolic.confirmation import confirm
from specchk.symbolic.induction.models import interrupt_at_limit
from specchk.symbolic.legality import orders_offsets
from specchk.symbolic.recording.solver import LinearSolver
from specchk.symbolic.replay import Replay
from specchk.symbolic.workers import Workers
from specchk.symbolic.zones.certify import part_of
from specchk.symbolic.zones.comparisons import PrecisionBuilder
from specchk.symbolic.zones.concrete import Concretiser, Goal, Real, Taken
from specchk.symbolic.zones.expand import Candidate, Counts, Expander, Expansion
from specchk.symbolic.zones.members import SLICE, Arrival, Taking, ZoneMember
from specchk.symbolic.zones.precision import Abstraction, Precision
from specchk.symbolic.zones.zones import Reach, Zone

MAX_REFINEMENTS = 5  # by a larger reach; before each, by predicates as long as there are new ones
MAX_PRECISIONS = 8
TRIES = 40  # candidates for one property in one level that are tried
FIRST_REACH = Reach(0, 1)  # the order of offsets, and nothing else


class ZoneOptions(Options, frozen=True):
    """The options of a search over zones.

    `workers` 0 is one for each core.  With `horizons` the upper ends of `nat upto` are restored, so the zones
    have exactly the states that the other engines find.  Without `covering` only equal zones are dropped.
    `reach` is the first one that is tried; None forgets nothing.  `on_fixpoint` is called with all zones, as
    parts of a certificate, if the search found no violation.
    """

    workers: int = 0
    horizons: bool = False
    covering: bool = True
    reach: Reach | None = FIRST_REACH
    on_fixpoint: Callable[[list[CertifiedPart]], None] | None = None


class _Spurious(Exception):
    """A property fails in zones, but not in concrete states along its path: too much was forgotten."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class ZoneEngine(Engine[range]):
    """Searches over zones; `nodes` has the predecessor of each zone (-1: none), and the step from it.

    A frontier is a range of their numbers.
    """

    name: ClassVar[str] = "symbolic"

    def __init__(self, search: Search, options: ZoneOptions) -> None:
        self.search, self.options, self.findings = search, options, search.findings
        self.nodes: list[tuple[int, Taken]] = []
        self.steps: dict[Taken, Taken] = {}
        self.initial: dict[Zone, Taken] = {}
        self.doubtful: set[str] = set()
        self.spurious: set[str] = set()
        self.refinements = self.reaches = self.precisions = 0
        self.outside = False
        self.program = search.program if options.horizons else with_checks(search.program)
        self.reach = None if options.horizons else options.reach
        self.counts = Counts([0] * len(self.program.points))
        # A renaming sorts the items of sets and bags again (`search.symmetry.renamer`).  That would compare
        # open numbers, and a comparison is a question.
        if search.symmetry and any(orders_offsets(variable.type) for variable in self.program.variables):
            search.symmetry, search.symmetry_text = None, "off (offsets are kept in sets)"
        self.abstraction = Abstraction(self.reach, LinearSolver(), {})
        self.expander = Expander(self.program, self.abstraction, search.symmetry, horizons=options.horizons)
        self.concretiser = Concretiser(
            self.program, search.symmetry, horizons=options.horizons, is_over=self._is_over
        )
        interrupt_at_limit(options.budget)  # a search without processes has its queries here
        count = options.workers or cores()
        self.workers = Workers(count, partial(self._member, count))

    def begin(self) -> range:
        """The zones of the initial states, with the current reach."""
        self.abstraction.reach = self.reach
        self.nodes.clear()
        self.steps.clear()
        self.doubtful.clear()
        self.spurious.clear()
        self.initial.clear()
        with self._answered():
            # Forked in each search: members are copies of the expander with its current reach.
            self.workers.start()
            arrivals: list[Arrival] = []
            for number, state in enumerate(self.search.initial_states()):
                self.counts.generated += 1
                if self._is_inside(state):
                    zone = self.expander.initial(state)
                    taken = self.initial.setdefault(zone, Taken(number, (), zone.shape))
                    arrivals.append(((-1, number), zone, taken))
            return self._number(self.workers.each(ZoneMember.start, arrivals))
        return range(0)

    def size(self, frontier: range) -> int:
        """The number of zones in a frontier."""
        return len(frontier)

    def expand(self, frontier: range) -> range:
        """The zones of the next level; none if this level has the violation that ends the search."""
        with self._answered():
            level = self._level(only_check=False)
            # States before steps: the trace of a failure in a zone of this level is one step shorter than
            # that of a failure in a step out of it.
            self._confirm(level.states)
            if self.search.is_answered:
                return range(0)
            self._confirm(level.steps)
            following = self._next()
            if self.search.is_answered and following:  # states after failing steps are of the level, too
                self._confirm(self._level(only_check=True).states)
            return following
        return range(0)

    def finish(self) -> bool:
        """Whether the reach was sufficient; otherwise the next search has a larger one."""
        # A doubtful witness is no reason to search again if some real state reached it after all.
        unsettled = self.spurious or self.doubtful.intersection(self.findings.unreached())
        is_done = self.search.is_stopped or not unsettled
        precision = self.abstraction.precision if is_done else self._more_precise()
        if is_done and self.options.on_fixpoint is not None and not self._is_answered():
            self.options.on_fixpoint(self._parts())
        self.workers.close()
        if is_done:
            if not self._is_answered():
                confirm(self.search.program)
            return True
        self.refinements += 1
        if precision != self.abstraction.precision:
            self.precisions += 1
            self.abstraction.precision = precision
            self.expander.controls.known.clear()  # a control part has a symbol for each further place
            return False
        # Predicates first, since they concern single shapes: a larger reach makes the zones of all finer.
        if self.reaches == MAX_REFINEMENTS or self.reach is None:
            self.findings.stopped = Inconclusive(
                f"`{min(unsettled)}` is not decided: it depends on differences of offsets that the search "
                "does not distinguish; try --prove, or an engine that enumerates (--engine native)",
                budget=False,
            )
            return True
        self.reaches += 1
        self.reach = self.reach.further()
        return False

    def _is_answered(self) -> bool:
        return self.search.is_stopped or bool(self.findings.found)

    def _parts(self) -> list[CertifiedPart]:
        """All zones as parts of a certificate, in an order that does not depend on the number of members."""
        zones = chain.from_iterable(self.workers.each(ZoneMember.zones))
        parts = [part_of(zone, self.abstraction.of(zone.shape)) for zone in zones]
        return sorted(parts, key=repr)

    def _more_precise(self) -> Precision:
        """The precision that the recorded comparisons need."""
        if self.precisions == MAX_PRECISIONS:
            return self.abstraction.precision
        builder = PrecisionBuilder(self.abstraction.precision)
        records = self.workers.each(ZoneMember.recorded)
        # In one order, independent of who recorded them: predicates have a limit, and zones their order.
        for record in sorted({record for some in records for record in some}, key=repr):
            builder.add(record)
        return builder.precision()

    @contextmanager
    def _answered(self) -> Iterator[None]:
        """End the level with the questions that zones cannot answer."""
        try:
            yield
        except _Spurious as spurious:
            self.spurious.add(spurious.name)
        except NotSymbolic as reason:
            self.findings.stopped = Inconclusive(
                f"{reason}; the other engines can run this model", budget=False
            )

    def _member(self, count: int, number: int) -> ZoneMember:
        return ZoneMember(number, count, self.expander, covering=self.options.covering)

    def _is_inside(self, state: State) -> bool:
        """Whether an initial state satisfies all constraints; if not, it is checked here and left out."""
        if not self.program.constraints:
            return True
        replay = Replay(self.program)
        env = replay.properties.environment(state)
        with suppress(NoAnswer):
            if replay.properties.inside(env):
                return True
        self.outside = True
        for kind, name, blame in replay.met(Trace(state, ())):
            self.findings.note(Violation(kind, name, Trace(state, ()), blame))
        return False

    def _level(self, *, only_check: bool) -> Expansion:
        """The result of a level, or of the part that the budget allows."""
        level = Expansion(self.counts)
        decided = self._decided()
        first, is_more = 0, True
        # Slice by slice, so that the budget is checked within a level, too.
        while is_more and not self._look(level.arrived):
            done = self.workers.each(ZoneMember.expand, first, decided, only_check)
            first += SLICE
            is_more = any(more for _, more in done)
            for part, _ in done:
                self.counts.add(part.counts)
                self.outside = self.outside or part.outside
                level.arrived += part.arrived
                level.states += part.states
                level.steps += part.steps
        level.states.sort(key=itemgetter(0))
        level.steps.sort(key=itemgetter(0))
        return level

    def _next(self) -> range:
        """Have each zone that arrived taken by its owner; return the next frontier."""
        parcels = self.workers.each(ZoneMember.sent)
        return self._number(self.workers.call(ZoneMember.take, list(zip(*parcels, strict=True))))

    def _number(self, takings: list[Taking]) -> range:
        """Number the new zones in one order, independent of their owners."""
        first = len(self.nodes)
        arrived = [(order, owner, taken) for owner, own in enumerate(takings) for order, taken in own.found]
        arrived.sort(key=itemgetter(0))
        numbers: list[list[int]] = [[] for _ in takings]
        for index, ((parent, _), owner, taken) in enumerate(arrived, first):
            numbers[owner].append(index)
            self.nodes.append((parent, self.steps.setdefault(taken, taken)))
        self.counts.covered += sum([own.dropped for own in takings])
        self.workers.call(ZoneMember.number_level, [(own,) for own in numbers])
        return range(first, len(self.nodes))

    def _decided(self) -> frozenset[str]:
        """The decided questions: `kind name` of everything found so far."""
        return frozenset(f"{kind} {name}" for kind, name in self.findings.found) | frozenset(
            f"reached {name}" for name in self.findings.reached
        )

    def _look(self, arrived: int) -> bool:
        return self.search.look(len(self.nodes), self.counts.generated, arrived)

    def _is_over(self) -> bool:
        """Whether time or memory is used up; after too many states, findings are still confirmed."""
        return self.search.meter.exceeded(0) is not None and self._look(0)

    def _confirm(self, candidates: list[tuple[int, Candidate]]) -> None:
        """Find real states for the findings in zones; raises `_Spurious` if there are none."""
        by_what: dict[tuple[str, str], list[tuple[int, Candidate]]] = {}
        for index, candidate in candidates:
            self._note_faulty(candidate)
            by_what.setdefault((candidate.kind, candidate.name), []).append((index, candidate))
        # Sorted, and candidates in the order of their zones: what is reported depends neither on the number
        # of members nor on which was faster.
        for (kind, name), alike in sorted(by_what.items()):
            if self.findings.has(kind, name):
                continue
            real = next(filter(None, map(self._real, alike[:TRIES])), None)
            if real is None and self._is_over():
                return  # with nothing known about this candidate
            if real is None and kind == "reached":
                self.doubtful.add(name)  # perhaps it is reached by another path
            elif real is None and kind == "deadlock" and self.options.horizons:
                continue  # only the ends of horizons
            elif real is None:
                raise _Spurious(name)
            elif kind == "reached":
                self.findings.reached[name] = real.trace
            else:
                self.findings.note(Violation(kind, name, real.trace, real.blame, real.condition))

    def _note_faulty(self, candidate: Candidate) -> None:
        if candidate.step is not None and candidate.step.shape is None:
            self.concretiser.faulty.add(candidate.step.action)

    def _real(self, found: tuple[int, Candidate]) -> Real | None:
        index, candidate = found
        chain: list[Taken] = []
        while index >= 0:
            index, taken = self.nodes[index]
            chain.append(taken)
        return self.concretiser.find(chain[::-1], Goal(candidate.kind, candidate.name, candidate.step))

    def totals(self) -> Totals:
        """The counts at the end, including those of searches with a smaller reach."""
        counts = self.counts
        symbolic = Symbolic(
            forks=counts.forks, questions=counts.forks + counts.known, answered=counts.known,
            covered=counts.covered, refinements=self.refinements,
            reach=None if self.reach is None else self.reach.lower,
            solver_checks=counts.checks, solver_pruned=counts.pruned,
        )  # fmt: skip
        return Totals(
            len(self.nodes), counts.generated, tuple(counts.coverage), counts.cuts, self.outside,
            has_horizons=self.options.horizons, symbolic=symbolic,
        )  # fmt: skip
