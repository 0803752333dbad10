"""The predicates of a temporal clause, evaluated on states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specchk.ir.program import Clause, Property
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.properties import answer
from specchk.meaning.values import State


class Owed:
    """A temporal clause with its predicates, evaluated on states."""

    def __init__(self, clause: Clause, variables: int) -> None:
        self.clause = clause
        parts = [part for part in (clause.trigger, clause.goal) if part is not None]
        self._locals = [0] * (max(part.locals for part in parts) + 1)
        evaluator = Evaluator(variables)
        self._trigger = _test(clause.trigger, evaluator) if clause.trigger is not None else None
        self._goal = _test(clause.goal, evaluator)

    def triggers(self, state: State) -> bool:
        """Whether the obligation begins in a state, which may also meet it; raises `NoAnswer`."""
        return self._trigger is None or self._trigger([*state, *state, *self._locals])

    def reaches(self, state: State) -> bool:
        """Whether the goal is true in a state; raises `NoAnswer`."""
        return self._goal([*state, *state, *self._locals])


def _test(prop: Property, evaluator: Evaluator) -> Callable[[list[Any]], bool]:
    compiled = evaluator.compile(prop.body)
    return lambda env: answer(prop, compiled, env)
