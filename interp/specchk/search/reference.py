"""Exhaustive search of the reference engine: breadth first, so traces are as short as can be.

States are found level by level.  A level is always completed: the search stops after the level in
which the first violation was found, so that counts, verdict and counterexample depend on nothing
but the program (with `keep_going`, after the last level).  What is remembered of a state is its
parent; traces are rebuilt by taking real steps from an initial state, so each is replayed before
anyone sees it, under symmetry too.

A state outside a `constraint` is checked, but neither counted nor expanded (as in TLC).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from specchk.ir.footprint import lists_horizon
from specchk.ir.program import Program, Property
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer, Properties, answer
from specchk.meaning.step import Faulty, Stepper
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.findings import NO_MEMORY, NOTHING_TO_CHECK, Findings
from specchk.search.replay import quiet_steps_to, rebuild
from specchk.search.symmetry import Symmetry, symmetry_of
from specchk.search.verdict import INTERRUPTED, Inconclusive, Outcome, Statistics, Trace, Violation

REPORT_EVERY_S = 0.25


@dataclass(frozen=True, slots=True)
class Options:
    """How to search."""

    budget: Budget = Budget()
    symmetry: bool = True
    keep_going: bool = False
    strict: bool = False


OnProgress = Callable[[Progress], None]


def search(program: Program, options: Options = Options(), on_progress: OnProgress | None = None) -> Outcome:
    """Explore a program and answer for all of its properties."""
    return _Search(program, options, on_progress).run()


@dataclass(slots=True)
class _Search:
    program: Program
    options: Options
    on_progress: OnProgress | None
    stepper: Stepper = field(init=False)
    properties: Properties = field(init=False)
    symmetry: Symmetry | None = field(init=False, default=None)
    symmetry_text: str = field(init=False)
    ends: Ends = field(init=False)
    meter: Meter = field(init=False)
    parents: dict[State, State | None] = field(init=False, default_factory=dict)
    outside: set[State] = field(init=False, default_factory=set)
    levels: list[int] = field(init=False, default_factory=list)
    generated: int = field(init=False, default=0)
    findings: Findings = field(init=False)
    last_report: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.stepper = Stepper(self.program)
        self.properties = Properties(self.program, self.stepper)
        self.ends = Ends(self.program, self.stepper, self.properties)
        self.meter = Meter(self.options.budget)
        self.findings = Findings(self.program)
        self.symmetry, self.symmetry_text = symmetry_of(self.program, wanted=self.options.symmetry)

    def run(self) -> Outcome:
        try:
            self._levels(self._start())
        except KeyboardInterrupt:
            self.findings.stopped = Inconclusive(INTERRUPTED, budget=False)
        except MemoryError:
            self.parents.clear()
            self.findings.stopped = NO_MEMORY
        return self._outcome()

    def _start(self) -> list[State]:
        try:
            states = initial_states(self.program)
        except Undefined as undefined:
            self.findings.note_bad_init(undefined)
            return []
        if not states:
            self.findings.stopped = NOTHING_TO_CHECK
        frontier: list[State] = []
        for state in states:
            self.generated += 1
            self._meet(state, None, frontier)
        return frontier

    def _levels(self, frontier: list[State]) -> None:
        while frontier and not self.findings.stopped:
            self.levels.append(len(frontier))
            if self.findings.found and not self.options.keep_going:
                return
            next_frontier: list[State] = []
            for index, state in enumerate(frontier):
                if self._out_of_budget(len(frontier) - index + len(next_frontier)):
                    self._count_cut_level(next_frontier)
                    return
                self._expand(state, next_frontier)
            frontier = next_frontier

    def _count_cut_level(self, next_frontier: list[State]) -> None:
        if next_frontier:
            self.levels.append(len(next_frontier))

    def _out_of_budget(self, frontier: int) -> bool:
        reason = self.meter.exceeded(len(self.parents))
        if reason is not None:
            self.findings.stopped = Inconclusive(reason, budget=True)
        if self.on_progress is None:
            return self.findings.stopped is not None
        seconds = self.meter.seconds
        if seconds - self.last_report >= REPORT_EVERY_S:
            self.last_report = seconds
            depth = len(self.levels)
            self.on_progress(
                Progress(len(self.parents), self.generated, depth, frontier, seconds, resident_bytes())
            )
        return self.findings.stopped is not None

    def _expand(self, state: State, next_frontier: list[State]) -> None:
        cuts = self.stepper.horizon_cuts
        try:
            successors = self.stepper.successors(state)
        except Faulty as fault:
            self._faulty(state, fault)
            return
        if not successors and self.stepper.horizon_cuts == cuts:
            self._deadlock(state)
        self.generated += len(successors)
        if self.properties.steps:
            self._check_steps(state, [after for _, _, after in successors])
        symmetry = self.symmetry
        for _, _, after in successors:
            known = after if symmetry is None else symmetry.canonical(after)
            if known not in self.parents and known not in self.outside:
                self._meet(known, state, next_frontier)

    def _meet(self, state: State, parent: State | None, frontier: list[State]) -> None:
        """A state that has not been seen before, in its representative."""
        if parent is None and self.symmetry is not None:
            state = self.symmetry.canonical(state)
        if state in self.parents:
            return
        env = self.properties.environment(state)
        if self._inside(state, parent, env):
            self.parents[state] = parent
            frontier.append(state)
            self._check_witnesses(state, env)
        else:
            self.outside.add(state)
        for prop, kind, blame in self.properties.failed(env, self.properties.invariants, self.findings.found):
            trace = self._trace(parent, state)
            shown = self._blame_at(trace.last, prop, blame)
            self.findings.note(Violation(kind, prop.name, trace, shown))

    def _blame_at(self, state: State, prop: Property, blame: Blame) -> Blame:
        """The blame in a state of the trace, under symmetry a renaming; looking is not coverage."""
        counts = list(self.stepper.counts)
        among = [(p, test) for p, test in self.properties.invariants if p is prop]
        again = self.properties.failed(self.properties.environment(state), among)
        shown = next((found for _, _, found in again), blame)
        self.stepper.counts[:] = counts
        return shown

    def _inside(self, state: State, parent: State | None, env: list[object]) -> bool:
        try:
            return self.properties.inside(env)
        except NoAnswer as unclear:
            self._unclear(unclear, parent, state)
            return False

    def _unclear(self, unclear: NoAnswer, parent: State | None, state: State) -> None:
        key = ("undefined", unclear.name)
        if key not in self.findings.found:
            self.findings.found[key] = Violation(*key, self._trace(parent, state), unclear.blame)

    def _check_witnesses(self, state: State, env: list[object]) -> None:
        """Evaluated in every state: one that is undefined is a violation, whether reached before or not."""
        for prop, test in self.properties.witnesses:
            try:
                if answer(prop, test, env) and prop.name not in self.findings.reached:
                    self.findings.reached[prop.name] = self._trace(self.parents[state], state)
            except NoAnswer as unclear:
                self._unclear(unclear, self.parents[state], state)

    def _check_steps(self, state: State, successors: list[State]) -> None:
        for after in successors:
            env = self.properties.environment(state, after)
            for prop, kind, blame in self.properties.failed(env, self.properties.steps, self.findings.found):
                trace, shown = self._step_trace(state, after, prop.name, blame)
                self.findings.note(Violation(kind, prop.name, trace, shown))

    def _step_trace(self, state: State, after: State, name: str, blame: Blame) -> tuple[Trace, Blame]:
        """A trace that ends in the failing step; under symmetry in a renaming of it that fails too."""
        base = rebuild(self.program, self.stepper, self._path(state), self.symmetry)
        last = base.last
        counts = list(self.stepper.counts)
        try:
            for step in quiet_steps_to(self.program, self.stepper, last, after, self.symmetry):
                env = self.properties.environment(last, step.state)
                for prop, _, found in self.properties.failed(env, self.properties.steps):
                    if prop.name == name:
                        return Trace(base.initial, (*base.steps, step)), found
        finally:
            self.stepper.counts[:] = counts
        return base, blame

    def _faulty(self, state: State, fault: Faulty) -> None:
        name = self.program.actions[fault.action].name
        if ("undefined", name) in self.findings.found:
            return
        trace = self._trace(self.parents[state], state)
        blame = Blame(fault.undefined.span, fault.undefined.reason, ())
        self.findings.found["undefined", name] = Violation("undefined", name, trace, blame)

    def _deadlock(self, state: State) -> None:
        if ("deadlock", "deadlock") in self.findings.found:
            return
        try:
            end = self.ends.without_steps(state)
        except NoAnswer as unclear:
            self._unclear(unclear, self.parents[state], state)
            return
        self.findings.note_end(end)
        if end is End.DEADLOCK:
            trace = self._trace(self.parents[state], state)
            self.findings.found["deadlock", "deadlock"] = Violation("deadlock", "deadlock", trace)

    def _path(self, state: State) -> list[State]:
        path = [state]
        while (parent := self.parents.get(path[-1])) is not None:
            path.append(parent)
        return path[::-1]

    def _trace(self, parent: State | None, state: State) -> Trace:
        path = [*self._path(parent), state] if parent is not None else [state]
        return rebuild(self.program, self.stepper, path, self.symmetry)

    def _outcome(self) -> Outcome:
        counts = self.stepper.counts
        complete = self.findings.is_complete(keep_going=self.options.keep_going)
        verdict = self.findings.conclude(
            counts, complete=complete, strict=self.options.strict, outside=bool(self.outside),
            cut=self.stepper.horizon_cuts > 0 or lists_horizon(self.program),
        )  # fmt: skip
        statistics = Statistics(
            distinct=len(self.parents) if self.parents else sum(self.levels), generated=self.generated,
            depth=len(self.levels), levels=tuple(self.levels), seconds=self.meter.seconds,
            horizon_cuts=self.stepper.horizon_cuts, symmetry=self.symmetry_text,
        )  # fmt: skip
        warnings = self.findings.warnings(counts, complete=complete)
        reached = tuple(self.findings.reached.items())
        return Outcome(self.program, "reference", verdict, statistics, tuple(counts), warnings, reached)
