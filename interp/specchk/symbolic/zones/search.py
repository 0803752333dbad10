"""Exhaustive search over zones: the answer for every length of the logs.

Breadth first over zones of states (`zones`), by the spec's own meaning run on open numbers (`moves`).
A zone that lies within one seen before is dropped.  Zones forget differences beyond a reach, so that
there are finitely many; what they then say too much is never believed: a violation, a witness or a
deadlock counts only once `concrete` has found real states along its path.  If it finds none, the
search begins again with a further reach, and after `MAX_REFINEMENTS` of these it is inconclusive.

So `Holds` is for all offsets, and counterexamples are shortest: every behaviour of n steps lies in
zones of at most n steps.  As in the other engines a level is always completed.

Zones are expanded by forked processes, each of which owns those of some shapes (`members`); the answer
is the same for any number of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter

from specchk.ir.footprint import lists_horizon
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.paths import NotSymbolic
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.findings import NO_MEMORY, NOTHING_TO_CHECK, Findings
from specchk.search.symmetry import symmetry_of
from specchk.search.verdict import INTERRUPTED, Inconclusive, Outcome, Statistics, Symbolic, Trace, Violation
from specchk.symbolic.legality import check, orders_offsets
from specchk.symbolic.replay import Replay
from specchk.symbolic.zones.concrete import Concretiser, Goal, Real, Taken
from specchk.symbolic.zones.expand import Candidate, Counts, Expander, Part
from specchk.symbolic.zones.members import SLICE, Arrival, Member, Taking
from specchk.symbolic.zones.words import condition
from specchk.symbolic.zones.workers import Workers, cores
from specchk.symbolic.zones.zones import Reach

REPORT_EVERY_S = 0.25
MAX_REFINEMENTS = 5
TRIES = 40  # candidates for one property in one level that are looked at
FIRST_REACH = Reach(0, 1)  # the order of offsets, and nothing else
OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to search; the first three as in `search.reference.Options`.

    `workers` 0 is one for each core.  With `horizons` the upper ends of `nat upto` are put back, so
    the zones have exactly the states that the other engines find.  Without `covering` only equal
    zones are dropped.  `reach` is the first one that is tried; None forgets nothing.
    """

    budget: Budget = Budget()
    symmetry: bool = True
    keep_going: bool = False
    strict: bool = False
    workers: int = 0
    horizons: bool = False
    covering: bool = True
    reach: Reach | None = FIRST_REACH


class _Spurious(Exception):
    """Something found in zones that no concrete states along its path show: the reach was too short."""


def search(program: Program, options: Options = Options(), on_progress: OnProgress | None = None) -> Outcome:
    """Explore a program for all values of its offsets, and answer for all of its properties.

    `SpecError` where the program does with offsets what only an engine that enumerates can do.
    """
    if not options.horizons:
        check(program)
    return Search(program, options, on_progress).run()


@dataclass(slots=True)
class Search:
    """One search; `nodes` are the zones found: the one before each (-1: none), and the step from it."""

    program: Program
    options: Options
    on_progress: OnProgress | None = None
    nodes: list[tuple[int, Taken]] = field(init=False, default_factory=list)
    steps: dict[Taken, Taken] = field(init=False, default_factory=dict)
    levels: list[int] = field(init=False, default_factory=list)
    findings: Findings = field(init=False)
    meter: Meter = field(init=False)
    counts: Counts = field(init=False)
    workers: Workers[Member] = field(init=False)
    expander: Expander = field(init=False)
    concretiser: Concretiser = field(init=False)
    reach: Reach | None = field(init=False)
    symmetry_text: str = field(init=False, default="off")
    refinements: int = field(init=False, default=0)
    doubtful: set[str] = field(init=False, default_factory=set)
    outside: bool = field(init=False, default=False)
    last_report: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.meter = Meter(self.options.budget)
        self.findings = Findings(self.program)
        self.reach = None if self.options.horizons else self.options.reach

    def run(self) -> Outcome:
        """Search, further each time that the reach was too short."""
        try:
            self._begin()
            while self._is_too_short():
                if self.refinements == MAX_REFINEMENTS or self.reach is None:
                    self.findings.stopped = Inconclusive(
                        f"the violations in zones with differences up to {self.reach} are spurious, "
                        "and larger differences were not tried",
                        budget=False,
                    )
                    break
                self.refinements += 1
                self.reach = self.reach.further()
        except KeyboardInterrupt:
            self.findings.stopped = Inconclusive(INTERRUPTED, budget=False)
        except MemoryError:
            self.findings.stopped = NO_MEMORY
        except NotSymbolic as reason:
            self.findings.stopped = Inconclusive(
                f"{reason}; the other engines can run this model", budget=False
            )
        return self._outcome()

    def _begin(self) -> None:
        self.counts = Counts(len(self.program.points))
        symmetry, self.symmetry_text = symmetry_of(self.program, wanted=self.options.symmetry)
        if symmetry is not None and any(orders_offsets(variable.type) for variable in self.program.variables):
            symmetry, self.symmetry_text = None, "off (offsets are kept in sets)"
        horizons = self.options.horizons
        self.expander = Expander(self.program, self.reach, symmetry, horizons=horizons)
        self.concretiser = Concretiser(self.program, symmetry, horizons=horizons)

    def _is_too_short(self) -> bool:
        """Search once, with the present reach; whether something that was found was not real."""
        self.expander.reach = self.reach
        self.nodes.clear()
        self.steps.clear()
        self.levels.clear()
        self.findings = Findings(self.program, stopped=self.findings.stopped)
        self.doubtful.clear()
        count = self.options.workers or cores()
        try:
            with Workers(count, partial(self._member, count)) as self.workers:
                self._levels(self._start())
        except _Spurious:
            return True
        return self.findings.stopped is None and not self.doubtful.isdisjoint(self._unreached())

    def _member(self, count: int, number: int) -> Member:
        return Member(number, count, self.expander, covering=self.options.covering)

    def _unreached(self) -> list[str]:
        return [prop.name for prop in self.program.witnesses if prop.name not in self.findings.reached]

    def _start(self) -> range:
        try:
            states = initial_states(self.program)
        except Undefined as undefined:
            self.findings.note_bad_init(undefined)
            return range(0)
        if not states:
            self.findings.stopped = NOTHING_TO_CHECK
        arrivals: list[Arrival] = []
        for number, state in enumerate(states):
            self.counts.generated += 1
            if not self._is_inside(state):
                continue
            zone = self.expander.initial(state)
            arrivals.append(((-1, number), zone, Taken(number, (), zone.shape)))
        return self._number(self.workers.call(Member.start, [(arrivals,)] * self.workers.count))

    def _is_inside(self, state: State) -> bool:
        """Whether an initial state is within all constraints; another one is checked here, and left out."""
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

    # ------------------------------------------------------------ levels

    def _levels(self, frontier: range) -> None:
        while frontier and not self.findings.stopped:
            self.levels.append(len(frontier))
            level = self._level(only_ask=False)
            self._confirm(level.states)
            if self._is_over:
                return
            self._confirm(level.steps)
            frontier = self._next()
            if self._is_over and frontier:  # what was found are steps to these: they are of the level, too
                self.levels.append(len(frontier))
                self._confirm(self._level(only_ask=True).states)
                return

    @property
    def _is_over(self) -> bool:
        return bool(self.findings.found) and not self.options.keep_going

    def _level(self, *, only_ask: bool) -> Part:
        """What comes of a level, or of as much of it as the budget allows."""
        level = Part(self.counts)
        asked = self._unanswered()
        first, is_more = 0, True
        while is_more and not self._out_of_budget(level.arrived):
            done = self.workers.call(Member.expand, [(first, asked, only_ask)] * self.workers.count)
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
        """Have every zone that arrived taken by its owner; the next frontier."""
        parcels = self.workers.call(Member.sent, [()] * self.workers.count)
        return self._number(self.workers.call(Member.take, list(zip(*parcels, strict=True))))

    def _number(self, takings: list[Taking]) -> range:
        """Number the new zones in one order, whoever owns them."""
        first = len(self.nodes)
        found = [(order, owner, taken) for owner, own in enumerate(takings) for order, taken in own.found]
        found.sort(key=itemgetter(0))
        numbers: list[list[int]] = [[] for _ in takings]
        for index, ((parent, _), owner, taken) in enumerate(found, first):
            numbers[owner].append(index)
            self.nodes.append((parent, self.steps.setdefault(taken, taken)))
        self.counts.covered += sum([own.dropped for own in takings])
        self.workers.call(Member.number_level, [(own,) for own in numbers])
        return range(first, len(self.nodes))

    def _unanswered(self) -> frozenset[str]:
        """The open questions: `kind name` of all that was not found yet."""
        return frozenset(f"{kind} {name}" for kind, name in self.findings.found) | frozenset(
            f"reached {name}" for name in self.findings.reached
        )

    def _out_of_budget(self, frontier: int) -> bool:
        reason = self.meter.exceeded(len(self.nodes))
        if reason is not None:
            self.findings.stopped = Inconclusive(reason, budget=True)
        seconds = self.meter.seconds
        if self.on_progress is not None and seconds - self.last_report >= REPORT_EVERY_S:
            self.last_report = seconds
            memory, generated = resident_bytes(), self.counts.generated
            self.on_progress(
                Progress(len(self.nodes), generated, len(self.levels), frontier, seconds, memory)
            )
        return self.findings.stopped is not None

    # ------------------------------------------------------------ findings

    def _confirm(self, candidates: list[tuple[int, Candidate]]) -> None:
        """Find real states for what was found in zones; raises `_Spurious` where there are none."""
        by_what: dict[tuple[str, str], list[tuple[int, Candidate]]] = {}
        for index, candidate in candidates:
            if candidate.step is not None and candidate.step.shape is None:
                self.concretiser.faulty.add(candidate.step.action)
            by_what.setdefault((candidate.kind, candidate.name), []).append((index, candidate))
        for (kind, name), found in sorted(by_what.items()):
            if (kind, name) in self.findings.found or (kind == "reached" and name in self.findings.reached):
                continue
            real = self._first_real(found[:TRIES])
            if real is None and kind == "reached":
                self.doubtful.add(name)  # perhaps it is reached by another path
            elif real is None and kind == "deadlock" and self.options.horizons:
                continue  # the ends of horizons only
            elif real is None:
                raise _Spurious
            elif kind == "reached":
                self.findings.reached[name] = real.trace
            else:
                said = condition(self.program, real.ends)
                self.findings.note(Violation(kind, name, real.trace, real.blame, said))

    def _first_real(self, found: list[tuple[int, Candidate]]) -> Real | None:
        for one in found:
            real = self._real(one)
            if real is not None:
                return real
        return None

    def _real(self, found: tuple[int, Candidate]) -> Real | None:
        index, candidate = found
        chain: list[Taken] = []
        while index >= 0:
            index, taken = self.nodes[index]
            chain.append(taken)
        return self.concretiser.find(chain[::-1], Goal(candidate.kind, candidate.name, candidate.step))

    # ------------------------------------------------------------ outcome

    def _outcome(self) -> Outcome:
        counts = self.counts
        complete = self.findings.is_complete(keep_going=self.options.keep_going)
        verdict = self.findings.conclude(
            counts.coverage, complete=complete, strict=self.options.strict,
            cut=counts.cuts > 0 or (self.options.horizons and lists_horizon(self.program)),
            outside=self.outside,
        )  # fmt: skip
        symbolic = Symbolic(
            forks=counts.forks, questions=counts.forks + counts.known, answered=counts.known,
            covered=counts.covered, refinements=self.refinements,
            reach=None if self.reach is None else self.reach.lower,
        )  # fmt: skip
        statistics = Statistics(
            distinct=len(self.nodes), generated=counts.generated, depth=len(self.levels),
            levels=tuple(self.levels), seconds=self.meter.seconds, horizon_cuts=counts.cuts,
            symmetry=self.symmetry_text, symbolic=symbolic,
        )  # fmt: skip
        warnings = self.findings.warnings(counts.coverage, complete=complete)
        reached: tuple[tuple[str, Trace], ...] = tuple(self.findings.reached.items())
        return Outcome(
            self.program, "symbolic", verdict, statistics, tuple(counts.coverage), warnings, reached
        )
