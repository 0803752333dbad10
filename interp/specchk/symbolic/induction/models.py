"""Paths from the solver's models: the states, and the numbers chosen along the path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Any

import z3

from specchk.ir.program import Program
from specchk.search.budget import Budget
from specchk.symbolic.induction.encode.bools import Truth, conj
from specchk.symbolic.induction.encode.merge import equal
from specchk.symbolic.induction.encode.states import ModelReader
from specchk.symbolic.induction.encode.steps import ActionInstance
from specchk.symbolic.induction.encode.trees import Tree
from specchk.symbolic.replay import ReplayPath


def solver_of(query_seconds: float, facts: Iterable[Truth] = ()) -> z3.Solver:
    """A solver of facts that gives up on a query after this time."""
    solver = z3.Solver()
    solver.set("timeout", int(query_seconds * 1000))
    solver.add([fact for fact in facts if fact is not True])
    return solver


def interrupt_at_limit(budget: Budget) -> None:
    """Have queries to the solver end at the limits of a budget, whose watch raises them."""
    if budget.watch is not None:
        with budget.watch.resting():  # a context that is half made prints a trace where it is removed
            context = z3.main_ctx()
        budget.watch.also(context.interrupt, z3.Z3Exception)


def path_of(
    model: Any, program: Program, states: Sequence[Sequence[Tree]], steps: Sequence[Sequence[ActionInstance]]
) -> ReplayPath:
    """The path in a model: `steps` are those out of each state; the next state shows which were taken."""
    reading = ModelReader(model)
    kinds = [variable.type for variable in program.variables]
    path = tuple([tuple(map(reading.value, state, kinds)) for state in states])
    numbers: list[int] = []
    for instances, after in zip_longest(steps, states[1:]):
        for instance in instances or ():
            # Numbers chosen by actions that were not taken are irrelevant, and could raise the horizon
            # considerably.
            if instance.numbers and _is_met(reading, instance, after):
                numbers += [reading.number(number) for number in instance.numbers]
    return ReplayPath(path, tuple(numbers))


def smallest(solver: Any, check: Callable[[], Any], numbers: Sequence[Any], ends: Iterable[int]) -> Any:
    """The model of the last check, or one with all numbers up to one of the `ends`, tried in order."""
    model = solver.model()
    for end in ends:
        solver.push()
        solver.add([number <= end for number in numbers])
        small = solver.model() if check() == z3.sat else None
        solver.pop()
        if small is not None:
            return small
    return model


def _is_met(reading: ModelReader, instance: ActionInstance, after: Sequence[Tree] | None) -> bool:
    """Whether an instance was taken, or is the reason why a state has no steps."""
    if any(map(reading.truth, instance.faults)):
        return True
    ways = [outcome for outcome in instance.outcomes if after is not None and reading.truth(outcome.guard)]
    return any(reading.truth(conj(map(equal, way.after, after or ()))) for way in ways)
