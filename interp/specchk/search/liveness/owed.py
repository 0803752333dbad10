"""The predicates of a temporal clause, evaluated on states."""

from __future__ import annotations

from functools import partial

from specchk.ir.program import Clause
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.properties import answer
from specchk.meaning.values import State


class Owed:
    """A temporal clause with its predicates, evaluated on states."""

    def __init__(self, clause: Clause, variables: int) -> None:
        self.clause = clause
        evaluator = Evaluator(variables)
        trigger, goal = clause.trigger, clause.goal
        self._trigger = partial(answer, trigger, evaluator.compile(trigger.body)) if trigger else None
        self._goal = partial(answer, goal, evaluator.compile(goal.body))
        self._locals = [0] * (max(part.locals for part in (trigger, goal) if part) + 1)

    def triggers(self, state: State) -> bool:
        """Whether the obligation begins in a state, which may also meet it; raises `NoAnswer`."""
        return self._trigger is None or self._trigger([*state, *state, *self._locals])

    def reaches(self, state: State) -> bool:
        """Whether the goal is true in a state; raises `NoAnswer`."""
        return self._goal([*state, *state, *self._locals])
