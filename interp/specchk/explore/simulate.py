"""Random simulation: seeded walks, each checked like a search.

A walk is a uniform choice among a state's successors, again and again.  The same seed gives the
same walks.  Finding nothing is no verdict about the spec: the outcome is then `Inconclusive`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from specchk.ir.program import Program
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer, Properties, answer
from specchk.meaning.step import Faulty, Stepper
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.coverage import complete_search_warnings
from specchk.search.refined import claim, with_abstract_step, wrong_beginnings
from specchk.search.verdict import (
    INTERRUPTED,
    Inconclusive,
    Outcome,
    Statistics,
    Step,
    Trace,
    Violated,
    Violation,
)


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


def walked(program: Program, walks: Walks) -> tuple[Outcome, frozenset[State]]:
    """As `simulate`, with the states that were seen."""
    simulation = _Simulation(program, walks, None)
    return simulation.run(), frozenset(simulation.seen)


class _Simulation:
    def __init__(
        self, program: Program, walks: Walks, on_progress: Callable[[Progress], None] | None
    ) -> None:
        self.program = program
        self.walks = walks
        self.on_progress = on_progress
        self.stepper = Stepper(program)
        self.properties = Properties(program, self.stepper)
        self.ends = Ends(program, self.stepper, self.properties)
        self.meter = Meter(walks.budget)
        self.random = Random(walks.seed)  # noqa: S311 - reproducible walks, not secrets
        self.seen: set[State] = set()
        self.generated = 0
        self.longest = 0
        self.reached: dict[str, Trace] = {}

    def run(self) -> Outcome:
        violation, stopped = None, None
        try:
            states = initial_states(self.program)
            violation, stopped = next(wrong_beginnings(self.program, states), None), None
            if violation is None:
                violation, stopped = self._walks(states)
        except Undefined as undefined:
            violation = Violation("undefined", "init", None, Blame(undefined.span, undefined.reason, ()))
        except KeyboardInterrupt:
            stopped = Inconclusive(INTERRUPTED, budget=False)
        nothing = Inconclusive(
            f"{self.walks.walks} random walks found no violation, which is not a proof", budget=True
        )
        found = (with_abstract_step(self.program, violation),) if violation else ()
        verdict = Violated(found) if found else stopped or nothing
        statistics = Statistics(len(self.seen), self.generated, self.longest + 1, (), self.meter.seconds,
                                self.stepper.horizon_cuts)  # fmt: skip
        warnings = complete_search_warnings(self.program, self.stepper.counts, complete=False)
        # A walk has an end, and what is owed there may still be met.
        names = ", ".join(map(claim, self.program.temporal))
        warnings += (f"not checked by walks: {names}",) if names else ()
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
        # Progress reads this process's memory from the system: not after every short walk.
        if self.on_progress is not None and number % 16 == 0:
            self.on_progress(Progress(len(self.seen), self.generated, self.longest, self.walks.walks - number,
                                      self.meter.seconds, resident_bytes()))  # fmt: skip

    def _walks(self, initial: list[State]) -> tuple[Violation | None, Inconclusive | None]:
        """The results of all walks, or the reason why they ended early."""
        if not initial:
            return None, Inconclusive("no state satisfies `init`, so there is nothing to check", budget=False)
        for number in range(self.walks.walks):
            self._report(number)
            # All walks draw from one generator, so that the walks before decide what this one is: blocks are
            # repeated whole (`walkers`).
            violation = self._walk(self.random.choice(initial))
            if violation is not None:
                return violation, None
            limit = self.meter.exceeded(len(self.seen))
            if limit is not None:
                return None, Inconclusive(limit, budget=True)
        return None, None

    def _walk(self, state: State) -> Violation | None:
        """One walk; it ends at a violation, at an end, at the edge of a constraint or of the budget."""
        walked = _Walked(state, [])
        try:
            return self._advance(state, walked)
        except NoAnswer as unclear:
            return Violation("undefined", unclear.name, walked.trace, unclear.blame)

    def _advance(self, state: State, walked: _Walked) -> Violation | None:
        steps = walked.steps
        failed = self._state(state, walked)
        # A state outside of the constraints was checked; as in a search it has no witness and no successor.
        while failed is None and self._inside(state, walked):
            if len(steps) >= self.walks.steps or self.meter.exceeded(len(self.seen)):
                break
            following = self._choose(state, walked)
            if following is None or isinstance(following, Violation):
                return following
            before, state = state, following.state
            steps.append(following)
            self.generated += 1
            self.longest = max(self.longest, len(steps))
            failed = self._step(before, state, walked) or self._state(state, walked)
        return failed

    def _inside(self, state: State, walked: _Walked) -> bool:
        """Whether a state is inside of the constraints; the witnesses that it has are noted."""
        env = self.properties.environment(state)
        if not self.properties.inside(env):
            return False
        for prop, test in self.properties.witnesses:
            if prop.name not in self.reached and answer(prop, test, env):
                self.reached[prop.name] = walked.trace
        return True

    def _choose(self, state: State, walked: _Walked) -> Step | Violation | None:
        """A step; a violation when there is none that may be; None at an end."""
        cuts = self.stepper.horizon_cuts
        try:
            successors = self.stepper.successors(state)
        except Faulty as fault:
            blame = Blame(fault.undefined.span, fault.undefined.reason, ())
            return Violation("undefined", self.program.actions[fault.action].name, walked.trace, blame)
        if not successors:
            # Whether no listed step is a deadlock or the end of a horizon is for `meaning.deadlock`.
            if self.stepper.horizon_cuts > cuts or self.ends.without_steps(state) is not End.DEADLOCK:
                return None
            return Violation("deadlock", "deadlock", walked.trace)
        # With repetitions: a state to which several instances lead is as many times as likely.  Choosing
        # among distinct states would need them compared, and would change the walks of every seed.
        index, args, after = self.random.choice(successors)
        return Step.of(self.program, index, args, after)

    def _step(self, before: State, after: State, walked: _Walked) -> Violation | None:
        env = self.properties.environment(before, after)
        for prop, kind, blame in self.properties.failed(env, self.properties.steps):
            return Violation(kind, prop.name, walked.trace, blame)
        return None

    def _state(self, state: State, walked: _Walked) -> Violation | None:
        self.seen.add(state)
        env = self.properties.environment(state)
        for prop, kind, blame in self.properties.failed(env, self.properties.invariants):
            return Violation(kind, prop.name, walked.trace, blame)
        return None


@dataclass(frozen=True, slots=True)
class _Walked:
    """A position in a walk; made into a trace only when one is needed."""

    initial: State
    steps: list[Step]

    @property
    def trace(self) -> Trace:
        return Trace(self.initial, tuple(self.steps))
