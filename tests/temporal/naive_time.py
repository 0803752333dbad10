"""Temporal properties by enumeration: small, slow, and without components, masks or regions.

A behaviour that violates a clause ends in a walk from a state back to itself, which may be repeated forever.
Of a walk only this matters: which conditions were disabled, enabled and taken on it, and whether it passed a
state without the goal.  So all walks from each state are enumerated, up to these sets, and the empty walk is
a rest.  Only the meaning of single steps is shared with the checker (`meaning.step`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from specchk.ir.program import Clause, Form, Program
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import universe
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Violated

Part = tuple[int, tuple[tuple[int, Any], ...]]  # action, kept arguments
Condition = tuple[tuple[Part, ...], int, bool]  # of some of these, the declaration's number, whether strong
NONE: frozenset[Condition] = frozenset()


@dataclass(frozen=True)
class Naive:
    """`rest` is the length of the shortest behaviour to a rest, `lasso` that of the shortest lasso."""

    rest: int | None
    lasso: int | None

    @property
    def is_violated(self) -> bool:
        return self.rest is not None or self.lasso is not None


class NaiveChecker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.stepper = Stepper(program)
        self.properties = Properties(program, self.stepper)
        self.evaluator = Evaluator(len(program.variables))
        self.conditions: list[Condition] = []
        for number, fairness in enumerate(program.fairness):
            for row in fairness.rows:
                parts: list[Part] = []
                for place, (action, kept) in enumerate(fairness.actions):
                    parts.append((action, tuple(zip(kept, row[place], strict=True))))
                self.conditions.append((tuple(parts), number, fairness.strong))
        self.instances = [
            (index, args) for index, action in enumerate(program.actions)
            for args in product(*(sorted(universe(param.type)) for param in action.params))
        ]  # fmt: skip
        self._out: dict[Any, tuple[list[tuple[Any, frozenset[Condition]]], frozenset[Condition]]] = {}

    def out(self, state: Any) -> tuple[list[tuple[Any, frozenset[Condition]]], frozenset[Condition]]:
        """The steps that change a state, each with the conditions it meets; and the conditions enabled."""
        if state not in self._out:
            steps, enabled = [], set()
            for index, args in self.instances:
                mine = frozenset(
                    condition
                    for condition in self.conditions
                    for action, given in condition[0]
                    if action == index and all(args[at] == value for at, value in given)
                )
                cuts = self.stepper.horizon_cuts
                for _, _, after in self.stepper.of_action(state, index, args):
                    if after == state:
                        continue
                    enabled |= mine
                    if self.properties.inside(self.properties.environment(after)):
                        steps.append((after, mine))
                if self.stepper.horizon_cuts > cuts:
                    enabled |= mine
            self._out[state] = steps, frozenset(enabled)
        return self._out[state]

    def truth(self, prop: Any, state: Any) -> bool:
        env = [*state, *state, *([0] * (prop.locals + 1))]
        return bool(self.evaluator.compile(prop.body)(env))

    def check(self, clause: Clause) -> Naive:
        rest = lasso = None
        owing = self.owing(clause)
        for (state, pending), length in sorted(owing.items(), key=lambda item: not item[0][1]):
            # A loop in which the obligation begins goes on where it is pending, so there is one there, too.
            if not pending and lasso is None:
                break
            most = None if pending else (lasso or 0) - length - 1
            for loop in self.loops(clause, state, most, pending=pending):
                if loop == 0:
                    rest = length if rest is None else min(rest, length)
                else:
                    lasso = length + loop if lasso is None else min(lasso, length + loop)
        return Naive(rest, lasso)

    def owing(self, clause: Clause) -> dict[tuple[Any, bool], int]:
        """The reachable pairs of a state and whether the goal is owed there, with the shortest length."""

        def pairs(state: Any, pending: bool, first: bool) -> list[tuple[Any, bool]]:
            if clause.form is Form.EVENTUALLY_ALWAYS:
                return [(state, True)]
            begins = {
                Form.LEADS_TO: clause.trigger is not None and self.truth(clause.trigger, state),
                Form.EVENTUALLY: first, Form.ALWAYS_EVENTUALLY: True,
            }[clause.form]  # fmt: skip
            return [(state, (pending or begins) and not self.truth(clause.goal, state))]

        inside = [s for s in initial_states(self.program)
                  if self.properties.inside(self.properties.environment(s))]  # fmt: skip
        found = {pair: 0 for state in inside for pair in pairs(state, False, True)}
        for pair in (queue := list(found)):
            for after, _ in self.out(pair[0])[0]:
                for reached in pairs(after, pair[1], False):
                    if reached not in found:
                        found[reached] = found[pair] + 1
                        queue.append(reached)
        return found

    def loops(self, clause: Clause, start: Any, most: int | None, *, pending: bool) -> list[int]:
        """The lengths of the shortest fair loop from a state, and of the empty one if it is fair.

        Where nothing is pending, the obligation has to begin in the loop; it has at most so many steps.
        """
        always = clause.form is Form.EVENTUALLY_ALWAYS
        if not always and self.truth(clause.goal, start):
            return []

        def met(state: Any, before: tuple[Any, ...], taken: frozenset[Condition]) -> tuple[Any, ...]:
            enabled = self.out(state)[1]
            disabled = frozenset(self.conditions) - enabled
            if always:
                is_bad = not self.truth(clause.goal, state)
            else:
                is_bad = pending or (clause.trigger is not None and self.truth(clause.trigger, state))
            return (before[0] | disabled, before[1] | enabled, before[2] | taken, before[3] or is_bad)

        def fair(seen: tuple[Any, ...]) -> bool:
            disabled, enabled, taken, is_bad = seen
            return is_bad and all(
                c in taken or (c not in enabled if c[2] else c in disabled) for c in self.conditions
            )

        first = start, met(start, (NONE, NONE, NONE, False), NONE)
        lengths = [0] if fair(first[1]) else []
        frontier, known, length = [first], {first}, 0
        while frontier and (most is None or length < most):
            following = []
            length += 1
            for state, seen in frontier:
                for after, taken in self.out(state)[0]:
                    if not always and self.truth(clause.goal, after):
                        continue
                    reached = after, met(after, seen, taken)
                    if after == start and fair(reached[1]):
                        return [*lengths, length]
                    if reached not in known:
                        known.add(reached)
                        following.append(reached)
            frontier = following
        return lengths


def matched(program: Program, outcome: Outcome, text: str) -> str:
    """Verdict and length against the naive checker; the verdict's kind."""
    (liveness,) = program.liveness
    checker = NaiveChecker(program)
    if not checker.owing(liveness.clauses[0]):
        return "no state"
    expected = next((n for c in liveness.clauses if (n := checker.check(c)).is_violated), Naive(None, None))
    if not expected.is_violated:
        assert isinstance(outcome.verdict, Holds | HoldsWithin), text
        return "holds"
    assert isinstance(outcome.verdict, Violated), text
    (violation,) = outcome.verdict.violations
    trace = violation.trace
    assert violation.kind == "liveness"
    assert trace is not None
    assert trace.loop is not None
    is_rest = trace.loop == len(trace.steps)
    # A rest is reported where there is one, and the nearest.
    assert is_rest == (expected.rest is not None), text
    assert len(trace.steps) == (expected.rest if is_rest else expected.lasso), text
    assert trace.states[trace.loop] == trace.last
    assert len(violation.fairness) == len(checker.conditions)
    return "rest" if is_rest else "loop"
