"""Bounded model checking: every behaviour of up to K steps, over unbounded offsets, shortest first.

One solver has the steps from an initial state; each level adds a step and searches for a state that violates
something.  A path that is found is decoded, replayed by the reference interpreter, and explained by it.
Source: Biere, Cimatti, Clarke, Zhu, "Symbolic model checking without BDDs" (1999).
"""

from __future__ import annotations

from itertools import count, takewhile
from typing import Any

import z3

from specchk.ir.program import Program
from specchk.search.budget import Budget, Meter
from specchk.search.coverage import complete_search_warnings
from specchk.search.refined import with_abstract_step
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import (
    Inconclusive,
    Outcome,
    Statistics,
    Trace,
    Verdict,
    Violated,
    Violation,
    stopped_by,
)
from specchk.symbolic.confirmation import confirm
from specchk.symbolic.induction.beginnings import bad_beginnings, no_beginning
from specchk.symbolic.induction.encode.bools import Truth, conj, disj, negation
from specchk.symbolic.induction.encode.program import State as Open
from specchk.symbolic.induction.encode.program import System, step
from specchk.symbolic.induction.encode.steps import ActionInstance
from specchk.symbolic.induction.models import interrupt_at_limit, path_of, smallest, solver_of
from specchk.symbolic.replay import Replay, ReplayPath

QUERY_SECONDS = 60.0


class Unrolling:
    """The behaviours of a program with exactly `len(states) - 1` steps; `path_to` searches for one."""

    def __init__(self, program: Program, query_seconds: float = QUERY_SECONDS) -> None:
        self.program = program
        self.query_seconds = query_seconds
        self.system = System(program)
        # With a limit for each query; the budget of all of them together is that of `Meter`.
        self.solver = solver_of(query_seconds)
        self.states: list[Open] = [self.system.beginning()]
        self.steps: list[list[ActionInstance]] = []  # out of each state
        self.reached: dict[str, Trace] = {}
        self.queries = 0
        self.checked = 0  # lengths, of which all behaviours were checked
        self._facts = 0
        self._add(self.system.initial(self.states[0]))
        self._enter()

    def _add(self, facts: list[Truth]) -> None:
        fresh = self.system.fresh.facts
        self.solver.add([*facts, *fresh[self._facts :]])
        # Facts of open values are noted as they are made; only new ones are asserted.
        self._facts = len(fresh)

    def _enter(self) -> None:
        self.steps.append(self.system.instances(self.states[-1], f"t{len(self.states)}."))

    def extend(self) -> None:
        """Add one step; only states that satisfy the constraints have successors."""
        self.states.append(self.system.state(len(self.states)))
        # As in the searches: a state outside the constraints is checked, but has no steps.
        inside = self.system.constrained(self.states[-2])
        self._add([*inside, step(self.steps[-1], self.states[-1])])
        self._enter()

    def wrong(self) -> Truth:
        """The condition that a property fails in the last state or in the step to it."""
        last = self.states[-1]
        # Inside the constraints or not: a state outside is checked, too, and only has no steps (`extend`).
        goals = [self.system.holds(prop, last) for prop in self.program.invariants]
        if len(self.states) > 1:
            before = self.states[-2]
            goals += [self.system.holds(prop, before, last) for prop in self.program.step_invariants]
        inside = conj(self.system.constrained(last))
        unclear = [when for _, when in self.system.unclear_constraints(last)]
        unclear += [conj([inside, self.system.unclear(prop, last)]) for prop in self.program.witnesses]
        return disj([*[negation(conj(parts)) for parts in goals], *unclear])

    def undefined(self) -> Truth:
        """The condition that an action is undefined in the last state."""
        inside = conj(self.system.constrained(self.states[-1]))
        return conj([inside, disj([instance.undefined for instance in self.steps[-1]])])

    def stuck(self) -> Truth:
        """The condition that no action is enabled and `deadlock ok` does not allow it."""
        # A state with a fault has no steps either, but is no deadlock: `undefined` is tried first, and ends
        # the run.
        idle = [instance.idle for instance in self.steps[-1]]
        allowed = self.program.deadlock_ok
        fine = conj(self.system.holds(allowed, self.states[-1])) if allowed is not None else False
        inside = conj(self.system.constrained(self.states[-1]))
        return conj([inside, *idle, negation(fine)])

    def path_to(self, goal: Truth) -> ReplayPath | str | None:
        """A path whose last state satisfies the goal, or the reason why this is unknown, or None."""
        if goal is False:
            # Decided while encoding, as most goals of the first states are.
            return None
        # The steps stay asserted for all goals and levels, so that the solver keeps what it has learnt about
        # them.
        self.solver.push()
        if goal is not True:
            self.solver.add(goal)
        result = self.solver.check()
        answer: ReplayPath | str | None = None
        if result == z3.sat:
            answer = path_of(self._smallest(), self.program, self.states, self.steps)
        elif result == z3.unknown:
            answer = str(self.solver.reason_unknown())
        self.queries += 1
        self.solver.pop()
        return answer

    def _smallest(self) -> Any:
        """A model with small offsets, if a few attempts find one."""
        model = self.solver.model()
        # Also numbers that were chosen but not stored: the horizon of the replay has to contain them.
        chosen = [number for steps in self.steps for instance in steps for number in instance.numbers]
        numbers = [*self.system.fresh.offsets, *chosen]
        most = max([model.eval(number, model_completion=True).as_long() for number in numbers], default=0)
        # Any model is a counterexample; a reader wants one with small offsets.  Doubling the bound takes
        # log2 queries.
        ends = takewhile(lambda end: end < most, (1 << doublings for doublings in count()))
        return smallest(self.solver, self.solver.check, numbers, ends)

    def search(self, depth: int, meter: Meter) -> Verdict:
        """Search the behaviours of up to `depth` steps, shortest first."""
        for steps in range(depth + 1):
            if steps:
                self.extend()
            verdict = self._level()
            if verdict is not None:
                return verdict
            if steps == 0 and (empty := no_beginning(self.program, self.query_seconds)) is not None:
                return empty
            self.checked += 1
            limit = meter.exceeded(0)
            if limit is not None:
                return Inconclusive(f"{limit} after {steps} steps", budget=True)
        return Inconclusive(f"no violation within {depth} steps, which is not a proof", budget=True)

    def _level(self) -> Verdict | None:
        """The verdict on the behaviours of one length."""
        # In this order, since the trace of a failure in a state is one step shorter than that of a fault in a
        # step out of it.
        for goal, is_left in ((self.wrong(), False), (self.undefined(), True), (self.stuck(), True)):
            answer = self.path_to(goal)
            if isinstance(answer, str):
                reason = f"the solver gave up at step {len(self.states) - 1}: {answer}"
                return Inconclusive(reason, budget=False)
            if answer is not None:
                return Violated(self._violations(answer, is_left=is_left))
        return self._witnesses()

    def _violations(self, path: ReplayPath, *, is_left: bool) -> tuple[Violation, ...]:
        replay = Replay.along(self.program, path)
        trace = replay.trace(path.states)
        failed = replay.left(trace.last) if is_left else replay.met(trace)
        if not failed:
            raise ReplayFailed("nothing fails at the end of a path that the solver found to be wrong")
        violations = [Violation(kind, name, trace, blame) for kind, name, blame in failed]
        return tuple([with_abstract_step(replay.program, one) for one in violations])

    def _witnesses(self) -> Verdict | None:
        for prop in self.program.witnesses:
            if prop.name in self.reached:
                continue
            parts = self.system.holds(prop, self.states[-1])
            answer = self.path_to(conj(parts))
            if isinstance(answer, ReplayPath):
                replay = Replay.along(self.program, answer)
                trace = replay.trace(answer.states)
                if not replay.reaches(trace.last, prop.name):
                    raise ReplayFailed(f"`{prop.name}` is not true where the solver found it to be")
                self.reached[prop.name] = trace
        return None


def bounded(program: Program, depth: int, budget: Budget, query_seconds: float = QUERY_SECONDS) -> Outcome:
    """As `unrolled`; the absence of a violation is confirmed on some states."""
    outcome = unrolled(program, depth, budget, query_seconds)
    if is_whole(outcome, depth):
        confirm(program, depth)
    return outcome


def is_whole(outcome: Outcome, depth: int) -> bool:
    """Whether all behaviours of this length were checked, without a violation."""
    # A limit or the solver may have ended the search earlier.
    verdict = outcome.verdict
    return isinstance(verdict, Inconclusive) and verdict.budget and outcome.statistics.depth > depth


def unrolled(program: Program, depth: int, budget: Budget, query_seconds: float = QUERY_SECONDS) -> Outcome:
    """Search for a violation in at most `depth` steps; finding none is not a proof, and not reported as one.

    Raises `Unencodable` where the program has something that has no encoding.
    """
    meter = Meter(budget)
    interrupt_at_limit(budget)
    unrolling = Unrolling(program, query_seconds)
    stopped: Inconclusive | None = None
    try:
        verdict = bad_beginnings(program, query_seconds) or unrolling.search(depth, meter)
    except KeyboardInterrupt as interrupt:
        verdict = stopped = stopped_by(interrupt)
    lengths = unrolling.checked if stopped is not None else len(unrolling.states)
    statistics = Statistics(
        distinct=0, generated=0, depth=lengths, levels=(), seconds=meter.seconds,
        queries=unrolling.queries,
    )  # fmt: skip
    reached = tuple(unrolling.reached.items())
    nothing = (0,) * len(program.points)  # of coverage
    warnings = complete_search_warnings(program, nothing, complete=False)
    return Outcome(
        program, "symbolic", verdict, statistics, nothing, warnings, witnesses=reached, stopped=stopped
    )
