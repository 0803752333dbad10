"""States of an implementation with numbers above a horizon of the spec.

A horizon ends a search, not the spec, so a step may lead there.  A suite does not continue from such a state,
since the spec's own steps from it are not known; but the step to it must be one of the spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from specchk.conform.contract.values import NotAValue, reader
from specchk.ir.program import Program
from specchk.ir.range_checks import with_checks
from specchk.ir.ranges import without_horizons
from specchk.meaning.deadlock import OpenInstances
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State


class StepsBeyond:
    """The steps of a program without horizons."""

    def __init__(self, program: Program, open_: OpenInstances) -> None:
        self.program, self._open = program, open_

    def may_reach(self, state: State, index: int, args: tuple[Any, ...], shown: Mapping[str, Any]) -> bool:
        """Whether a step of an instance may lead to a state of which these variables are observed."""
        wanted = []
        for slot, variable in enumerate(self.program.variables):
            if variable.name in shown:
                try:
                    wanted.append((slot, reader(without_horizons(variable.type))(shown[variable.name])))
                except NotAValue:
                    return False
        # Of all numbers only those up to the horizon are tried, so which steps there are is not known.
        if self._open.lists(index):
            return True
        try:
            successors = self._stepper.of_action(state, index, args)
            return any(all(after[slot] == value for slot, value in wanted) for _, _, after in successors)
        except Faulty:
            return False

    @cached_property
    def _stepper(self) -> Stepper:
        return _Unbounded(with_checks(self.program))


class _Unbounded(Stepper):
    """A stepper that stores numbers above a horizon."""

    def make_evaluator(self) -> Evaluator:
        """An evaluator without horizons."""
        return Evaluator(self.size, self.counts, horizons=False)
