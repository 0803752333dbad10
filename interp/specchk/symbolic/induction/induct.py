"""The queries of a proof by k-induction, in one worker process.

The hypothesis: k states in a row, all of which satisfy every invariant and constraint.  The goals:
after one more step (one outcome of one action) each invariant is defined and true, each constraint
is defined, each step invariant holds of the step, and no action is undefined in the last state.  A
goal whose conjuncts are, by form, conjuncts of the hypothesis is settled without a query: most of a
state is not touched by a step.

Source of the method: Sheeran, Singh, Stalmarck, "Checking safety properties using induction and a
SAT-solver" (2000).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import z3
from msgspec import Struct, field

from specchk.ir.program import Program
from specchk.symbolic.induction.encode.bools import Truth, conjuncts, disj, negation
from specchk.symbolic.induction.encode.program import System, distinct_from, step
from specchk.symbolic.induction.encode.steps import ActionInstance, ActionPath, arguments, instance
from specchk.symbolic.induction.models import path_of, smallest, solver_of
from specchk.symbolic.replay import ReplayPath

SMALL = (1, 2, 3, 4, 6, 8, 12, 16, 32)  # ends of offsets to try for a readable state


class ObligationResult(Struct, frozen=True):
    """The result of an obligation: None is proved, a path of states refutes it, a text means unknown."""

    kind: str
    name: str
    action: int
    found: ReplayPath | str | None


class InductionWork(Struct):
    """The answers for some instances, with their costs."""

    answers: list[ObligationResult] = field(default_factory=list)
    queries: int = 0
    settled: int = 0
    seconds_solver: float = 0.0

    @property
    def open(self) -> set[tuple[str, str]]:
        """The kind and name of the properties that an answer leaves unproved."""
        return {(answer.kind, answer.name) for answer in self.answers if answer.found is not None}

    def add(self, other: InductionWork) -> None:
        """Add the work of another worker."""
        self.answers += other.answers
        self.queries += other.queries
        self.settled += other.settled
        self.seconds_solver += other.seconds_solver


class Induction:
    """The induction hypothesis of a program, asserted once; `check` checks the goals of an instance."""

    def __init__(self, program: Program, k: int, query_seconds: float) -> None:
        self.program = program
        self.system = System(program)
        self.states = [self.system.state(index) for index in range(k)]
        self.work = InductionWork()
        self.solver = solver_of(query_seconds)
        self.known: list[Any] = []
        self.steps: list[list[ActionInstance]] = []  # out of each state but the last one
        for index, state in enumerate(self.states):
            # For all k states: no step is taken from one outside the constraints, so the behaviours in
            # question have none.
            self._assume(self.system.constrained(state))
            for prop in program.invariants:
                self._assume(self.system.holds(prop, state))
            if index + 1 < k:
                self.steps.append(self.system.instances(state, f"t{index}."))
                self._assume([step(self.steps[-1], self.states[index + 1])])
        # At the end, when all states are made, since facts are noted as trees are made.
        self._assume(self.system.fresh.facts)

    def _assume(self, facts: Sequence[Truth]) -> None:
        for fact in facts:
            if fact is not True:
                self.solver.add(fact)
                self.known.append(fact)

    def check(self, index: int, position: int) -> None:
        """Check all goals of one instance of an action: the position-th of its arguments."""
        last = self.states[-1]
        action = self.program.actions[index]
        given = arguments(self.program, action, "t.")[position]
        encoded = instance(self.program, index, given, last, "t.")
        # Before the faults are excluded: afterwards, no state with a fault could be found.
        self._defined(encoded)
        self.solver.push()  # an instance has no step where it is undefined, which is checked above
        self.solver.add([negation(fault) for fault in encoded.faults])
        for outcome in encoded.outcomes:
            self._consecution(encoded, outcome)
        self.solver.pop()

    def _defined(self, encoded: ActionInstance) -> None:
        if encoded.undefined is False:
            self.work.settled += 1
            return
        action = self.program.actions[encoded.action]
        self._query("undefined", action.name, [encoded.undefined], encoded, None)

    def _consecution(self, encoded: ActionInstance, outcome: ActionPath) -> None:
        last, after = self.states[-1], outcome.after
        goals = [(prop.kind, prop, self.system.holds(prop, after)) for prop in self.program.invariants]
        goals += [(p.kind, p, self.system.holds(p, last, after)) for p in self.program.step_invariants]
        goals += [
            ("undefined", prop, conjuncts(negation(unclear)))
            for prop, unclear in self.system.unclear_constraints(after)
        ]
        entered = False
        for kind, prop, parts in goals:
            # By form, without the solver: an invariant of parts that the step does not change is literally
            # the hypothesis.
            open_ = distinct_from(parts, self.known)
            if not open_:
                self.work.settled += 1
                continue
            if not entered:
                # The guard is asserted once for all goals of an outcome, and not at all if none of them needs
                # a query.
                self.solver.push()
                self.solver.add(outcome.guard)
                entered = True
            wrong = [disj([negation(part) for part in open_])]
            self._query(kind, prop.name, wrong, encoded, outcome)
        if entered:
            self.solver.pop()

    def _query(
        self, kind: str, name: str, wrong: list[Truth], instance: ActionInstance, outcome: ActionPath | None
    ) -> None:
        """One query: for a state in which all of `wrong` holds."""
        self.solver.push()
        self.solver.add(*wrong)
        answer = self._check()
        refutation: ReplayPath | str | None = None
        if answer == z3.sat:
            refutation = self._path(instance, outcome)
        elif answer == z3.unknown:
            refutation = self.solver.reason_unknown()
        self.solver.pop()
        self.work.answers.append(ObligationResult(kind, name, instance.action, refutation))

    def _check(self) -> Any:
        started = time.monotonic()
        answer = self.solver.check()
        self.work.seconds_solver += time.monotonic() - started
        self.work.queries += 1
        return answer

    def _path(self, instance: ActionInstance, outcome: ActionPath | None) -> ReplayPath:
        """The states of a refutation, with small offsets if possible."""
        offsets = [*self.system.fresh.offsets, *instance.numbers]
        model = smallest(self.solver, self._check, offsets, SMALL)
        states = [*self.states, *([outcome.after] if outcome is not None else [])]
        return path_of(model, self.program, states, [*self.steps, [instance]])
