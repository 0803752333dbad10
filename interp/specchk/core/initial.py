"""Initial states: initial values, choices, and what `init` says of the variables left open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from specchk.core.evaluate import Evaluator
from specchk.core.values import State, Values
from specchk.ir.program import Program


def initial_states(program: Program) -> list[State]:
    """All initial states, ascending, each once; `Undefined` where an initial value has none."""
    return sorted(set(_candidates(program)))


def _candidates(program: Program) -> Iterator[State]:
    constant = Evaluator(0)
    values = Values()
    locals_ = [0] * 1000
    domains: list[tuple[Any, ...]] = []
    for start, variable in zip(program.starts, program.variables, strict=True):
        if start.value is not None:
            domains.append((constant.compile(start.value)(list(locals_)),))
        elif start.choices is not None:
            chosen: Any = constant.compile(start.choices)(list(locals_))
            domains.append(tuple(chosen))
        else:
            domains.append(values.values(variable.type))
    evaluator = Evaluator(len(program.variables))
    tests = [(evaluator.compile(init.body), init.locals) for init in program.inits]
    for state in product(*domains):
        env = [*state, *state, *([0] * (max((n for _, n in tests), default=0) + 1))]
        if all(test(env) for test, _ in tests):
            yield state
