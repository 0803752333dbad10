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

from specchk.core.budget import Budget, Meter, Progress, resident_bytes
from specchk.core.coverage import complete_search_warnings, vacuous
from specchk.core.initial import initial_states
from specchk.core.properties import NoAnswer, Properties, answer
from specchk.core.replay import quiet_steps_to, rebuild
from specchk.core.step import Faulty, Stepper
from specchk.core.symmetry import Symmetry
from specchk.core.undefined import Undefined
from specchk.core.values import State
from specchk.core.verdict import (
    INTERRUPTED,
    Blame,
    Holds,
    HoldsWithin,
    Inconclusive,
    Outcome,
    Statistics,
    Trace,
    Verdict,
    Violated,
    Violation,
)  # fmt: skip
from specchk.ir.program import Program, Property

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
    no_symmetry: str = field(init=False, default="")
    meter: Meter = field(init=False)
    parents: dict[State, State | None] = field(init=False, default_factory=dict)
    outside: set[State] = field(init=False, default_factory=set)
    levels: list[int] = field(init=False, default_factory=list)
    generated: int = field(init=False, default=0)
    found: dict[tuple[str, str], Violation] = field(init=False, default_factory=dict)
    reached: dict[str, Trace] = field(init=False, default_factory=dict)
    stopped: Inconclusive | None = field(init=False, default=None)
    last_report: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.stepper = Stepper(self.program)
        self.properties = Properties(self.program, self.stepper)
        self.meter = Meter(self.options.budget)
        if self.options.symmetry:
            self.symmetry = Symmetry(self.program)
            if self.symmetry.order == 1:
                self.no_symmetry = self.symmetry.reason
                self.symmetry = None

    def run(self) -> Outcome:
        try:
            self._levels(self._start())
        except KeyboardInterrupt:
            self.stopped = Inconclusive(INTERRUPTED, budget=False)
        except MemoryError:
            self.parents.clear()
            self.stopped = Inconclusive("there is no memory left; limit it with --max-memory", budget=True)
        return self._outcome()

    def _start(self) -> list[State]:
        try:
            states = initial_states(self.program)
        except Undefined as undefined:
            blame = Blame(undefined.span, undefined.reason, ())
            self.found["undefined", "init"] = Violation("undefined", "init", None, blame)
            return []
        if not states:
            self.stopped = Inconclusive(
                "no state satisfies `init`, so there is nothing to check", budget=False
            )
        frontier: list[State] = []
        for state in states:
            self.generated += 1
            self._meet(state, None, frontier)
        return frontier

    def _levels(self, frontier: list[State]) -> None:
        while frontier and not self.stopped:
            self.levels.append(len(frontier))
            if self.found and not self.options.keep_going:
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
            self.stopped = Inconclusive(reason, budget=True)
        if self.on_progress is None:
            return self.stopped is not None
        seconds = self.meter.seconds
        if seconds - self.last_report >= REPORT_EVERY_S:
            self.last_report = seconds
            depth = len(self.levels)
            self.on_progress(
                Progress(len(self.parents), self.generated, depth, frontier, seconds, resident_bytes())
            )
        return self.stopped is not None

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
        for prop, kind, blame in self.properties.failed(env, self.properties.invariants, self.found):
            trace = self._trace(parent, state)
            shown = self._blame_at(trace.last, prop, blame)
            self.found[kind, prop.name] = Violation(kind, prop.name, trace, shown)

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
        if key not in self.found:
            self.found[key] = Violation(*key, self._trace(parent, state), unclear.blame)

    def _check_witnesses(self, state: State, env: list[object]) -> None:
        for prop, test in self.properties.witnesses:
            if prop.name in self.reached:
                continue
            try:
                if answer(prop, test, env):
                    self.reached[prop.name] = self._trace(self.parents[state], state)
            except NoAnswer as unclear:
                self._unclear(unclear, self.parents[state], state)

    def _check_steps(self, state: State, successors: list[State]) -> None:
        for after in successors:
            env = self.properties.environment(state, after)
            for prop, kind, blame in self.properties.failed(env, self.properties.steps, self.found):
                trace, shown = self._step_trace(state, after, prop.name, blame)
                self.found[kind, prop.name] = Violation(kind, prop.name, trace, shown)

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
        if ("undefined", name) in self.found:
            return
        trace = self._trace(self.parents[state], state)
        blame = Blame(fault.undefined.span, fault.undefined.reason, ())
        self.found["undefined", name] = Violation("undefined", name, trace, blame)

    def _deadlock(self, state: State) -> None:
        if ("deadlock", "deadlock") in self.found:
            return
        try:
            fine = self.properties.may_deadlock(self.properties.environment(state))
        except NoAnswer as unclear:
            self._unclear(unclear, self.parents[state], state)
            return
        if not fine:
            trace = self._trace(self.parents[state], state)
            self.found["deadlock", "deadlock"] = Violation("deadlock", "deadlock", trace)

    def _path(self, state: State) -> list[State]:
        path = [state]
        while (parent := self.parents.get(path[-1])) is not None:
            path.append(parent)
        return path[::-1]

    def _trace(self, parent: State | None, state: State) -> Trace:
        path = [*self._path(parent), state] if parent is not None else [state]
        return rebuild(self.program, self.stepper, path, self.symmetry)

    def _outcome(self) -> Outcome:
        complete = self.stopped is None and (not self.found or self.options.keep_going)
        if complete:
            self._unreached()
            if self.options.strict:
                for violation in vacuous(self.program, self.stepper.counts):
                    self.found[violation.kind, violation.name] = violation
        statistics = Statistics(
            distinct=len(self.parents) if self.parents else sum(self.levels), generated=self.generated,
            depth=len(self.levels), levels=tuple(self.levels), seconds=self.meter.seconds,
            horizon_cuts=self.stepper.horizon_cuts, symmetry=self._symmetry_text(),
        )  # fmt: skip
        warnings = complete_search_warnings(self.program, self.stepper.counts, complete=complete)
        return Outcome(
            self.program, "reference", self._verdict(), statistics, tuple(self.stepper.counts), warnings,
            tuple(self.reached.items()),
        )  # fmt: skip

    def _unreached(self) -> None:
        for prop, _ in self.properties.witnesses:
            if prop.name not in self.reached:
                self.found["unreachable", prop.name] = Violation("unreachable", prop.name, None)

    def _symmetry_text(self) -> str:
        if self.symmetry is not None:
            return f"on ({self.symmetry.order} renamings)"
        return f"off ({self.no_symmetry})" if self.no_symmetry else "off"

    def _verdict(self) -> Verdict:
        if self.found:
            return Violated(tuple(sorted(self.found.values(), key=_length)))
        if self.stopped is not None:
            return self.stopped
        bounds = list(self.program.horizons) if self.stepper.horizon_cuts else []
        if self.outside:
            bounds += [prop.name for prop in self.program.constraints]
        return HoldsWithin(tuple(bounds)) if bounds else Holds()


def _length(violation: Violation) -> tuple[int, str, str]:
    steps = len(violation.trace.steps) if violation.trace is not None else 1 << 30
    return steps, violation.kind, violation.name
