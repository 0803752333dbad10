"""The check of a certificate by Z3, independent of the search that wrote it.

    initiation     every initial state is in the set of the certificate
    safety         in all of it, invariants hold and every action is defined; nothing is stuck
    consecution    every step leads to a state of the set, or outside the constraints

Steps are those of the encoding of actions that `--prove` uses (`induction.encode`); zones, decision trees
and the stepper on open numbers are not involved.  Each query must be unsatisfiable, and can be written as
SMT-LIB, so that another solver can repeat it.  A `Decider` may prove some obligations without a query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import z3
from msgspec import Struct, field

from specchk.ir.program import Program, allows_any_end
from specchk.meaning.initial import initial_states
from specchk.symbolic.certificates.states import CertifiedStates, Member, PartGroup
from specchk.symbolic.induction.encode.bools import Truth, conj, disj, negation
from specchk.symbolic.induction.encode.program import State
from specchk.symbolic.induction.encode.recall import RecallingSystem
from specchk.symbolic.induction.encode.steps import ActionInstance, ActionPath
from specchk.symbolic.induction.encode.trees import lift

OnQuery = Callable[[int, str, str], None]
MAX_PROBLEMS = 20  # reported for one certificate, which is rejected in any case


class Decider(Protocol):
    """Decides obligations of a control part without a query; returns False if it cannot."""

    def excludes(self, group: PartGroup, wrong: Sequence[Truth], unless: Truth) -> bool:
        """Whether no state of the control part satisfies all of `wrong` and not `unless`."""

    def covers(self, source: PartGroup, when: Sequence[Truth], trees: Sequence[Any]) -> bool:
        """Whether all steps to trees under conditions lead to listed states."""


class Recheck(Struct):
    """The result: the obligations that were not proved, if any, and the effort."""

    cases: int = 0
    queries: int = 0
    problems: list[str] = field(default_factory=list)


class CertificateChecker:
    """Checks the obligations of a program: together for each part, and one by one if that fails.

    `on_query` is called with each query: its number, the problem that it would show, and its SMT-LIB text.
    Without a `decider` every obligation is in a query.
    """

    def __init__(
        self, program: Program, query_seconds: float = 60.0, on_query: OnQuery | None = None,
        decider: Decider | None = None,
    ) -> None:  # fmt: skip
        self.program = program
        self.system = RecallingSystem(program)
        self.on_query = on_query
        self.result = Recheck()
        self._milliseconds = int(query_seconds * 1000)
        self._open: list[tuple[Truth, str]] = []
        self._together = False
        self._decider = decider
        self._group: PartGroup | None = None

    def parts(self, states: CertifiedStates, on_case: Callable[[Recheck], None] = lambda _: None) -> Recheck:
        """Whether the states of some parts are closed under steps, and safe."""
        self._together = True
        for state in initial_states(self.program):
            trees = tuple(map(lift, state, states.kinds))
            self._arrival("an initial state", trees, states.member, True)
            for refinement in self.program.refinements:
                kept = self.system.kept(refinement.initial, trees)
                self._never((), f"`{refinement.name}` does not begin", unless=kept)
        self._decide(lambda: ())
        for number, group in enumerate(states.groups, 1):
            self._group = group
            self.check(f"control part {number}", group.trees, partial(states.facts, group), states.member)
            on_case(self.result)
            if len(self.result.problems) >= MAX_PROBLEMS:
                break
        return self.result

    def invariants(self) -> Recheck:
        """Whether all states in which the program's invariants hold are closed under steps."""
        state, hold = self.system.state(0), self._all_hold
        begins = [(one.name, conj(self.system.holds(one.initial, state))) for one in self.program.refinements]
        facts = (*self.system.constrained(state), *hold(state))
        # Facts last, since they are recorded while trees are made.
        unclear = self.system.unclear_initial(state)
        first = conj([*self.system.initial(state), *self.system.fresh.facts])
        self._never((unclear, *self.system.fresh.facts), "`init` is undefined")
        self._arrival("an initial state", state, lambda trees: conj(hold(trees)), first)
        for name, kept in begins:
            self._never((first,), f"an initial state begins nothing that `{name}` does", unless=kept)
        self._decide(lambda: ())
        facts = (*facts, *self.system.fresh.facts)
        where = "a state in which all invariants hold"
        self.check(where, state, lambda: facts, lambda trees: conj(hold(trees)))
        return self.result

    def _all_hold(self, state: Sequence[Any]) -> list[Truth]:
        return [part for prop in self.program.invariants for part in self.system.holds(prop, tuple(state))]

    def check(self, where: str, trees: State, facts: Callable[[], Sequence[Truth]], member: Member) -> None:
        """Check the obligations of some of the states: trees, with constraints on their numbers."""
        self.result.cases += 1
        program = self.program
        for prop in program.invariants:
            kept = self.system.kept(prop, trees)
            self._never((), f"`{prop.name}` fails in {where}", unless=kept)
        for prop in program.witnesses:
            self._never((self.system.unclear(prop, trees),), f"`{prop.name}` is undefined in {where}")
        instances = self.system.instances(trees)
        for instance in [one for one in instances if one.outcomes or one.faults]:  # few of them
            name = program.actions[instance.action].name
            self._never((instance.undefined,), f"`{name}` is undefined in {where}")
            for outcome in instance.outcomes:
                self._step(trees, outcome, member, f"`{name}` from {where}")
        self._decide(facts)
        self._deadlock(trees, instances, where)  # separately, since it may have a quantifier
        self._decide(facts)

    def _step(self, trees: State, outcome: ActionPath, member: Member, label: str) -> None:
        for prop in self.program.step_invariants:
            kept = self.system.kept(prop, trees, outcome.after)
            self._never((outcome.guard,), f"`{prop.name}` fails after {label}", unless=kept)
        self._arrival(label, outcome.after, member, outcome.guard)

    def _arrival(self, label: str, after: State, member: Member, *when: Truth) -> None:
        """The obligation that a reached state is in the set; outside a constraint, that invariants hold."""
        if self.program.constraints:
            inside = conj(self.system.constrained(after))
            for prop, unclear in self.system.unclear_constraints(after):
                self._never((*when, unclear), f"the constraint `{prop.name}` is undefined after {label}")
            outside = f"an invariant fails outside the constraints after {label}"
            self._never((*when, negation(inside)), outside, unless=conj(self._all_hold(after)))
            when = (*when, inside)
        if not (self._decider and self._group and self._decider.covers(self._group, when, after)):
            self._never(when, f"{label} leads to a state that is not listed", unless=member(after))

    def _deadlock(self, trees: State, instances: Sequence[ActionInstance], where: str) -> None:
        if allows_any_end(self.program):
            return
        fine = self.program.deadlock_ok
        allowed = [] if fine is None else [negation(self.system.kept(fine, trees))]
        # Idle parts may have a quantifier, over the numbers that could be chosen.
        idle = [instance.idle for instance in instances if instance.outcomes]
        self._never((*idle, *allowed), f"nothing can be done in {where}")

    def _never(self, wrong: Sequence[Truth], problem: str, unless: Truth = False) -> None:
        """Note, unless decided, that no state of the case may satisfy all of `wrong` but not `unless`."""
        if unless is True or any(part is False for part in wrong):
            return
        if not (self._decider and self._group and self._decider.excludes(self._group, wrong, unless)):
            self._open.append((conj([*wrong, negation(unless)]), problem))

    def _decide(self, case_facts: Callable[[], Sequence[Truth]]) -> None:
        """Decide the noted obligations: together, and one by one if that is not sufficient."""
        noted, self._open = self._open, []
        facts = case_facts() if noted else (False,)
        if any(fact is False for fact in facts):
            return  # no state, so nothing to show
        if len(noted) > 1 and self._together:
            label = f"one of {len(noted)} obligations, the first: {noted[0][1]}"
            if self._problem(facts, disj([wrong for wrong, _ in noted]), label) is None:
                return
        for wrong, label in noted:
            problem = self._problem(facts, wrong, label)
            if problem is not None and len(self.result.problems) < MAX_PROBLEMS:
                self.result.problems.append(problem)

    def _problem(self, facts: Sequence[Truth], wrong: Truth, label: str) -> str | None:
        """One query; None if no state is wrong."""
        # A new solver, so that the answer does not depend on earlier queries.
        solver = z3.SimpleSolver()
        solver.set("timeout", self._milliseconds)
        solver.add([*[fact for fact in facts if fact is not True], wrong])
        self.result.queries += 1
        if self.on_query is not None:
            self.on_query(self.result.queries, label, solver.to_smt2())
        answer = solver.check()
        if answer == z3.unsat:
            return None
        return label if answer == z3.sat else f"{label} perhaps (Z3: {solver.reason_unknown()})"
