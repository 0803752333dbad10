"""Random simulation: seeded walks, each checked like a search.

A walk is a uniform choice among a state's successors, again and again.  The same seed gives the
same walks.  Finding nothing is no verdict about the spec: the outcome is then `Inconclusive`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from specchk.core.budget import Budget, Meter, Progress, resident_bytes
from specchk.core.coverage import complete_search_warnings
from specchk.core.initial import initial_states
from specchk.core.properties import Properties
from specchk.core.step import Faulty, Stepper
from specchk.core.values import State, show
from specchk.core.verdict import Blame, Inconclusive, Outcome, Statistics, Step, Trace, Violated, Violation
from specchk.ir.program import Program


@dataclass(frozen=True, slots=True)
class Walks:
    """How to simulate: `walks` walks of at most `steps` steps each."""

    seed: int
    walks: int = 1000
    steps: int = 100
    budget: Budget = Budget()


def simulate(
    program: Program, walks: Walks, on_progress: Callable[[Progress], None] | None = None
) -> Outcome:
    """Walk at random until a property fails or the walks are done."""
    return _Simulation(program, walks, on_progress).run()


class _Simulation:
    def __init__(
        self, program: Program, walks: Walks, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self.program = program
        self.walks = walks
        self.on_progress = on_progress
        self.stepper = Stepper(program)
        self.properties = Properties(program, self.stepper)
        self.meter = Meter(walks.budget)
        self.random = Random(walks.seed)  # noqa: S311 - reproducible walks, not secrets
        self.seen: set[State] = set()
        self.generated = 0
        self.longest = 0
        self.reached: dict[str, Trace] = {}

    def run(self) -> Outcome:
        initial = initial_states(self.program)
        reason = f"{self.walks.walks} random walks found nothing, which is no proof"
        violation = None
        try:
            for number in range(self.walks.walks):
                limit = self.meter.exceeded(len(self.seen))
                if limit or not initial:
                    reason = limit or "no state satisfies `init`"
                    break
                self._report(number)
                violation = self._walk(self.random.choice(initial))
                if violation is not None:
                    break
        except KeyboardInterrupt:
            reason = "it was interrupted"
        verdict = Violated((violation,)) if violation else Inconclusive(reason, budget=True)
        statistics = Statistics(len(self.seen), self.generated, self.longest + 1, (), self.meter.seconds,
                                self.stepper.horizon_cuts)  # fmt: skip
        warnings = complete_search_warnings(self.program, self.stepper.counts, complete=False)
        return Outcome(
            self.program,
            "reference (simulation)",
            verdict,
            statistics,
            tuple(self.stepper.counts),
            warnings,
            tuple(self.reached.items()),
            self.walks.seed,
        )

    def _report(self, number: int) -> None:
        if self.on_progress is not None and number % 16 == 0:
            self.on_progress(Progress(len(self.seen), self.generated, self.longest, self.walks.walks - number,
                                      self.meter.seconds, resident_bytes()))  # fmt: skip

    def _walk(self, state: State) -> Violation | None:
        trace = Trace(state, ())
        failed = self._state(state, trace)
        while failed is None and len(trace.steps) < self.walks.steps:
            following = self._choose(trace)
            if following is None or isinstance(following, Violation):
                return following
            failed = self._step(trace.states[-1], following) or self._state(following.states[-1], following)
            trace = following
        return failed

    def _choose(self, trace: Trace) -> Trace | Violation | None:
        """The trace with one more step; a violation when there is none that may be; None at an end."""
        state, cuts = trace.states[-1], self.stepper.horizon_cuts
        try:
            successors = self.stepper.successors(state)
        except Faulty as fault:
            blame = Blame(fault.undefined.span, fault.undefined.reason, ())
            return Violation("undefined", self.program.actions[fault.action].name, trace, blame)
        if not successors:
            fine = self.stepper.horizon_cuts > cuts
            if fine or self.properties.may_deadlock(self.properties.environment(state)):
                return None
            return Violation("deadlock", "deadlock", trace)
        index, args, after = self.random.choice(successors)
        if not self.properties.inside(self.properties.environment(after)):
            return None
        action = self.program.actions[index]
        shown = tuple(show(arg, param.type) for arg, param in zip(args, action.params, strict=True))
        self.generated += 1
        self.longest = max(self.longest, len(trace.steps) + 1)
        return Trace(trace.initial, (*trace.steps, Step(action.name, shown, after)))

    def _step(self, before: State, trace: Trace) -> Violation | None:
        env = self.properties.environment(before, trace.states[-1])
        for prop, kind, blame in self.properties.failed(env, self.properties.steps):
            return Violation(kind, prop.name, trace, blame)
        return None

    def _state(self, state: State, trace: Trace) -> Violation | None:
        self.seen.add(state)
        env = self.properties.environment(state)
        for prop, test in self.properties.witnesses:
            if prop.name not in self.reached and test(env):
                self.reached[prop.name] = trace
        for prop, kind, blame in self.properties.failed(env, self.properties.invariants):
            return Violation(kind, prop.name, trace, blame)
        return None
