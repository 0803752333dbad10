"""Random simulation: seeded walks, each checked as in a search.

A walk is a uniform choice among a state's successors, again and again.  The same seed gives the
same walks.  Finding nothing is no verdict about the spec: the outcome is then `Inconclusive`.

This is the meaning of a walk: a finding of compiled walks is confirmed here, on the same way (`follow`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from msgspec import Struct

from specchk.ir.program import Program
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.explain import Blame
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import NoAnswer, Properties, answer
from specchk.meaning.step import Stepper, Successor
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State
from specchk.search.budget import Budget, Meter
from specchk.search.coverage import complete_search_warnings
from specchk.search.findings import NOTHING_TO_CHECK
from specchk.search.refined import claim, with_abstract_step, wrong_beginnings
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import (
    INTERRUPTED,
    Inconclusive,
    Outcome,
    Statistics,
    Step,
    Trace,
    Violated,
    Violation,
    WalkCounts,
)


class Walks(Struct, frozen=True):
    """How to simulate: `walks` walks of at most `steps` steps each."""

    seed: int
    walks: int = 1000
    steps: int = 100
    budget: Budget = Budget()


def simulate(program: Program, walks: Walks) -> Outcome:
    """Walk at random until a property fails or the walks are done."""
    return _Simulation(program, walks).run()


def walked(program: Program, walks: Walks) -> tuple[Outcome, frozenset[State]]:
    """As `simulate`; also returns the states that were visited."""
    simulation = _Simulation(program, walks)
    return simulation.run(), frozenset(simulation.seen)


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
    if isinstance(verdict, Violation):
        violated = Violated((with_abstract_step(program, verdict),))
    return Outcome(
        program, engine, violated if isinstance(verdict, Violation) else verdict, statistics,
        tuple(coverage), warnings, tuple(reached.items()), seed,
    )  # fmt: skip


class _Simulation:
    def __init__(self, program: Program, walks: Walks) -> None:
        self.program = program
        self.walks = walks
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

    def run(self) -> Outcome:
        violation, stopped = None, None
        try:
            states, violation = begin(self.program)
            if violation is None:
                violation, stopped = self._walks(states)
        except KeyboardInterrupt:
            stopped = Inconclusive(INTERRUPTED, budget=False)
        failed = self.ended if violation and self.ended else None
        statistics = Statistics(
            len(self.seen), self.generated, self.longest + 1, (), self.meter.seconds,
            self.stepper.horizon_cuts, walks=WalkCounts(self.ended, tuple(self.taken), failed),
        )  # fmt: skip
        verdict = violation or stopped or found_nothing(self.walks.walks)
        return outcome_of_walks(
            self.program,
            "reference (simulation)",
            verdict,
            statistics,
            self.stepper.counts,
            self.reached,
            self.walks.seed,
        )

    def _walks(self, initial: list[State]) -> tuple[Violation | None, Inconclusive | None]:
        """The results of all walks, or the reason why they ended early."""
        if not initial:
            return None, NOTHING_TO_CHECK
        for _ in range(self.walks.walks):
            # All walks draw from one generator, so that the walks before decide what this one is: blocks are
            # repeated whole (`walkers`).
            violation = self.walk(self.random.choice(initial))
            self.ended += 1
            if violation is not None:
                return violation, None
            limit = self.meter.exceeded(len(self.seen))
            if limit is not None:
                return None, Inconclusive(limit, budget=True)
        return None, None

    def walk(self, state: State) -> Violation | None:
        """Take one walk; it ends at a violation, at an end, at a constraint, or with the budget."""
        walked = _Walked(state, [])
        try:
            return self._advance(state, walked)
        except NoAnswer as unclear:
            return Violation("undefined", unclear.name, walked.trace, unclear.blame)

    def _advance(self, state: State, walked: _Walked) -> Violation | None:
        steps = walked.steps
        failed = self._state(state, walked)
        # A state outside the constraints was checked; as in a search it has no witness and no successor.
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
                    self.reached[prop.name] = walked.trace
            except NoAnswer as unclear:
                undefined = undefined or unclear
        if undefined is not None:
            raise undefined
        return True

    def _choose(self, state: State, walked: _Walked) -> Step | Violation | None:
        """A step; a violation if there must be one but is none; None at an allowed end."""
        cuts = self.stepper.horizon_cuts
        try:
            successors = self.stepper.successors(state)
        except Faulty as fault:
            blame = Blame.of_fault(self.program, fault)
            return Violation("undefined", self.program.actions[fault.action].name, walked.trace, blame)
        if not successors:
            # Whether no listed step is a deadlock or the end of a horizon is for `meaning.deadlock`.
            if self.stepper.horizon_cuts > cuts or self.ends.without_steps(state) is not End.DEADLOCK:
                return None
            return Violation("deadlock", "deadlock", walked.trace)
        index, args, after = self.choose(successors, len(walked.steps))
        self.taken[index] += 1
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


class _Walked(Struct, frozen=True):
    """A position in a walk, converted to a trace only when one is needed."""

    initial: State
    steps: list[Step]

    @property
    def trace(self) -> Trace:
        return Trace(self.initial, tuple(self.steps))
