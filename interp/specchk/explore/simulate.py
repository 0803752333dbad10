"""Random simulation: seeded walks, each checked as in a search.

A walk is a uniform choice among a state's successors, again and again.  The same seed gives the
same walks.  Finding nothing is no verdict about the spec: the outcome is then `Inconclusive`.

This is the meaning of a walk: a finding of compiled walks is confirmed here, on the same way (`follow`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from specchk.ir.program import Program
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer, Properties, Tests, answer
from specchk.meaning.step import Stepper, Successor
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State
from specchk.search.budget import Budget, Meter, Progress, resident_bytes
from specchk.search.coverage import complete_search_warnings
from specchk.search.engine import OnProgress
from specchk.search.findings import NOTHING_TO_CHECK
from specchk.search.refined import claim, with_abstract_step, wrong_beginnings
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import (
    Inconclusive,
    Outcome,
    Statistics,
    Step,
    Trace,
    Violated,
    Violation,
    WalkCounts,
    stopped_by,
)

BETWEEN_REPORTS = 50  # walks


class Walks(Struct, frozen=True):
    """How to simulate: `walks` walks of at most `steps` steps each."""

    seed: int
    walks: int = 1000
    steps: int = 100
    budget: Budget = Budget()


def simulate(program: Program, walks: Walks, on_progress: OnProgress | None = None) -> Outcome:
    """Walk at random until a property fails or the walks are done."""
    return _Simulation(program, walks, on_progress).run()


class Followed(Struct, frozen=True):
    """The findings of a walk along given states."""

    violation: Violation | None
    reached: Mapping[str, Trace]
    coverage: tuple[int, ...]
    horizon_cuts: int


def follow(
    program: Program, path: Sequence[State], steps: int, on_step: Callable[[int], object] = lambda _: None
) -> Followed:
    """A walk of at most `steps` steps along given states; `ReplayFailed` if no step leads to the next one.

    `on_step` is called before each step with the number of those taken.
    """
    simulation = _Simulation(program, Walks(0, 1, steps))

    def along(successors: Sequence[Successor], number: int) -> Successor:
        on_step(number)
        following = path[number + 1 : number + 2]
        for successor in successors:
            if following and successor[2] == following[0]:
                return successor
        raise ReplayFailed(f"no step leads from state {number + 1} of the walk to the next")

    if path[0] not in initial_states(program):
        raise ReplayFailed("the walk does not start in an initial state")
    simulation.choose = along
    violation = simulation.walk(path[0])
    stepper = simulation.stepper
    return Followed(violation, simulation.reached, tuple(stepper.counts), stepper.horizon_cuts)


def begin(program: Program) -> tuple[list[State], Violation | None]:
    """The initial states, and their violations."""
    try:
        states = initial_states(program)
    except Undefined as undefined:
        blame = Blame.of(undefined)
        return [], Violation("undefined", "init", None, blame)
    return states, next(wrong_beginnings(program, states), None)


def found_nothing(walks: int) -> Inconclusive:
    """The verdict of walks without a violation."""
    return Inconclusive(f"{walks} random walks found no violation, which is not a proof", budget=True)


def outcome_of_walks(
    program: Program, engine: str, verdict: Violation | Inconclusive, statistics: Statistics,
    coverage: Sequence[int], reached: Mapping[str, Trace], seed: int,
) -> Outcome:  # fmt: skip
    """The outcome of a simulation, with its warnings."""
    warnings = complete_search_warnings(program, coverage, complete=False)
    # A walk is finite, and a pending obligation may still be met.
    names = ", ".join(map(claim, program.temporal))
    warnings += (f"not checked by walks: {names}",) if names else ()
    found = Violated((with_abstract_step(program, verdict),)) if isinstance(verdict, Violation) else verdict
    return Outcome(
        program, engine, found, statistics, tuple(coverage), warnings, tuple(reached.items()), seed
    )


class _Simulation:
    def __init__(self, program: Program, walks: Walks, on_progress: OnProgress | None = None) -> None:
        self.program = program
        self.walks = walks
        self.on_progress = on_progress
        self.stepper = Stepper(program)
        self.properties = Properties(program, self.stepper)
        self.ends = Ends(program, self.stepper, self.properties)
        self.meter = Meter(walks.budget)
        random = Random(walks.seed)  # noqa: S311 - reproducible walks, not secrets
        # With repetitions: a state to which several instances lead is as many times as likely.  Choosing
        # among distinct states would need them compared, and would change the walks of every seed.
        self.choose: Callable[[Sequence[Successor], int], Successor] = lambda found, _: random.choice(found)
        self.random = random
        self.ended = 0
        self.taken = [0] * len(program.actions)
        self.seen: set[State] = set()
        self.generated = 0
        self.longest = 0
        self.reached: dict[str, Trace] = {}
        # The present walk.
        self._initial: State = ()
        self._steps: list[Step] = []

    def run(self) -> Outcome:
        verdict: Violation | Inconclusive
        try:
            states, violation = begin(self.program)
            verdict = violation or self._walks(states)
        except KeyboardInterrupt as interrupt:
            verdict = stopped_by(interrupt)
        failed = self.ended if isinstance(verdict, Violation) and self.ended else None
        statistics = Statistics(
            len(self.seen), self.generated, self.longest + 1, (), self.meter.seconds,
            self.stepper.horizon_cuts, walks=WalkCounts(self.ended, tuple(self.taken), failed),
        )  # fmt: skip
        return outcome_of_walks(
            self.program, "reference (simulation)", verdict, statistics, self.stepper.counts, self.reached,
            self.walks.seed,
        )  # fmt: skip

    def _walks(self, initial: list[State]) -> Violation | Inconclusive:
        """The result of all walks, or the reason why they ended early."""
        if not initial:
            return NOTHING_TO_CHECK
        for _ in range(self.walks.walks):
            violation = self.walk(self.random.choice(initial))
            self.ended += 1
            if violation is not None:
                return violation
            if self.on_progress is not None and self.ended % BETWEEN_REPORTS == 0:
                self.on_progress(self._progress())
            limit = self.meter.exceeded(len(self.seen))
            if limit is not None:
                return Inconclusive(limit, budget=True)
        return found_nothing(self.walks.walks)

    def _progress(self) -> Progress:
        """The progress after a walk; what is ahead are walks."""
        left = self.walks.walks - self.ended
        return Progress(
            len(self.seen), self.generated, self.longest + 1, left, self.meter.seconds, resident_bytes()
        )

    def walk(self, state: State) -> Violation | None:
        """Take one walk; it ends at a violation, at an end, at a constraint, or with the budget."""
        self._initial, self._steps = state, []
        try:
            return self._advance(state)
        except NoAnswer as unclear:
            return Violation("undefined", unclear.name, self._trace, unclear.blame)

    @property
    def _trace(self) -> Trace:
        """The present walk, converted to a trace only when one is needed."""
        return Trace(self._initial, tuple(self._steps))

    def _advance(self, state: State) -> Violation | None:
        failed = self._state(state)
        # A state outside the constraints was checked; as in a search it has no witness and no successor.
        while failed is None and self._inside(state):
            if len(self._steps) >= self.walks.steps or self.meter.exceeded(len(self.seen)):
                break
            following = self._choose(state)
            if following is None or isinstance(following, Violation):
                return following
            before, state = state, following.state
            self._steps.append(following)
            self.generated += 1
            self.longest = max(self.longest, len(self._steps))
            env = self.properties.environment(before, state)
            failed = self._failure(env, self.properties.steps) or self._state(state)
        return failed

    def _inside(self, state: State) -> bool:
        """Whether a state satisfies the constraints, with its witnesses recorded; raises `NoAnswer`."""
        env = self.properties.environment(state)
        if not self.properties.inside(env):
            return False
        # In every state, as in a search: a witness may be undefined after it was reached, or beside one that
        # is reached here.
        undefined: NoAnswer | None = None
        for prop, test in self.properties.witnesses:
            try:
                if answer(prop, test, env) and prop.name not in self.reached:
                    self.reached[prop.name] = self._trace
            except NoAnswer as unclear:
                undefined = undefined or unclear
        if undefined is not None:
            raise undefined
        return True

    def _choose(self, state: State) -> Step | Violation | None:
        """A step; a violation if there must be one but is none; None at an allowed end."""
        cuts = self.stepper.horizon_cuts
        try:
            successors = self.stepper.successors(state)
        except Faulty as fault:
            blame = Blame.of_fault(self.program, fault)
            return Violation("undefined", self.program.actions[fault.action].name, self._trace, blame)
        if not successors:
            # Whether no listed step is a deadlock or the end of a horizon is for `meaning.deadlock`.
            if self.stepper.horizon_cuts > cuts or self.ends.without_steps(state) is not End.DEADLOCK:
                return None
            return Violation("deadlock", "deadlock", self._trace)
        index, args, after = self.choose(successors, len(self._steps))
        self.taken[index] += 1
        return Step.of(self.program, index, args, after)

    def _state(self, state: State) -> Violation | None:
        self.seen.add(state)
        return self._failure(self.properties.environment(state), self.properties.invariants)

    def _failure(self, env: list[Any], among: Tests) -> Violation | None:
        """The first of some properties that fails at the end of the walk."""
        for prop, kind, blame in self.properties.failed(env, among):
            return Violation(kind, prop.name, self._trace, blame)
        return None
