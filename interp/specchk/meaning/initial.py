"""Initial states: initial values, choices, and the constraints of `init` on the variables left open."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from specchk.ir.nodes import Expr, Value
from specchk.ir.program import Program
from specchk.ir.verify import bound
from specchk.ir.walk import inside
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import BeyondHorizon, Undefined
from specchk.meaning.values import State, Values


def value_of(expr: Expr) -> Value:
    """The value of an expression that reads no variable; `Undefined` or `BeyondHorizon` where it has none."""
    slots = [local.slot for node in inside(expr) for local in bound(node)]
    return Evaluator(0).compile(expr)([0] * (max(slots, default=-1) + 1))


def initial_states(program: Program) -> list[State]:
    """All initial states, ascending, each once; `Undefined` where an initial value has none."""
    # In the order of values, not of `product`: the order decides which of two counterexamples is reported.
    return sorted(set(_candidates(program)))


def _candidates(program: Program) -> Iterator[State]:
    values = Values()
    domains: list[tuple[Any, ...]] = []
    for start, variable in zip(program.starts, program.variables, strict=True):
        if start.value is not None:
            domains.append((_constant(start.value),))
        elif start.choices is not None:
            domains.append(_constant(start.choices))
        else:
            domains.append(values.values(variable.type))
    evaluator = Evaluator(len(program.variables))
    tests = [(evaluator.compile(init.body), init.locals) for init in program.inits]
    for state in product(*domains):
        # Made for each state: `init` binds names in it.
        env = [*state, *state, *([0] * (max((n for _, n in tests), default=0) + 1))]
        if all(test(env) for test, _ in tests):
            yield state


def _constant(expr: Expr) -> Any:
    try:
        return value_of(expr)
    except BeyondHorizon:
        # In a step it would mean that the step is not taken; an initial value has no such way out, so it is a
        # mistake of the spec.
        raise Undefined(expr.span, "an initial value is above its horizon") from None
