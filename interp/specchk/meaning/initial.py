"""Initial states: initial values, choices, and the constraints of `init` on the variables left open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from specchk.ir.nodes import And, Apply, Expr, Value, Var
from specchk.ir.ops import Op
from specchk.ir.program import Program, Start
from specchk.ir.types import cardinality, fits
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
    return sorted(set(_Search(program).states()))


def tries(program: Program, most: int) -> int:
    """The number of values that are tried for the initial states; above `most` some number above it."""
    search = _Search(program, most)
    for _ in search.states():
        pass
    return search.tried


@dataclass(frozen=True, slots=True)
class _Try:
    """Try each value of a variable."""

    slot: int


@dataclass(frozen=True, slots=True)
class _Give:
    """Give a variable the value of an expression."""

    slot: int
    expr: Expr
    evaluate: Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class _Test:
    """Drop all for which a condition is false."""

    test: Callable[[list[Any]], Any]


class _Search:
    """Initial states by trying values; the conditions of `init` in their order, each as early as possible.

    A condition is tested once the variables that it reads have values, and after all conditions before it, so
    that the same is undefined as if whole states were tested.  `x == e` gives x its value.
    """

    def __init__(self, program: Program, most: int | None = None) -> None:
        self.kinds = [variable.type for variable in program.variables]
        self.most = most
        self.tried = 0
        self.evaluator = Evaluator(len(self.kinds))
        self.domains = dict(enumerate(map(_domain, program.starts)))
        self.steps = list(self._steps([part for init in program.inits for part in _conjuncts(init.body)]))
        local_slots = max((init.locals for init in program.inits), default=0)
        self.env: list[Any] = [0] * (2 * len(self.kinds) + local_slots)

    def states(self) -> Iterator[State]:
        """The states; one may come again."""
        # Without a value for one variable there is no state, and no condition is evaluated.
        if all(cardinality(self.kinds[slot]) if d is None else d for slot, d in self.domains.items()):
            yield from self._from(0)

    def _steps(self, conditions: list[Expr]) -> Iterator[_Test | _Give | _Try]:
        known: set[int] = set()
        for condition in conditions:
            given = next(self._equations(condition, known), None)
            needs = _reads(given.expr if given is not None else condition)
            yield from (_Try(slot) for slot in sorted(needs - known))
            yield given if given is not None else _Test(self.evaluator.compile(condition))
            known |= needs | ({given.slot} if given is not None else set())
        yield from (_Try(slot) for slot in self.domains if slot not in known)

    def _equations(self, condition: Expr, known: set[int]) -> Iterator[_Give]:
        if isinstance(condition, Apply) and condition.op is Op.EQ:
            for one, other in (condition.args, reversed(condition.args)):
                if isinstance(one, Var) and self._is_given(one.slot, other, known):
                    yield _Give(one.slot, other, self.evaluator.compile(other))

    def _is_given(self, slot: int, value: Expr, known: set[int]) -> bool:
        """Whether an equation gives a variable its value: it has none yet, and any such value fits."""
        is_open = self.domains[slot] is None and slot not in known | _reads(value)
        return is_open and fits(value.type, self.kinds[slot])

    def _from(self, place: int) -> Iterator[State]:
        if self.most is not None and self.tried > self.most:
            return
        if place == len(self.steps):
            yield tuple(self.env[: len(self.kinds)])
            return
        match self.steps[place]:
            case _Test(test):
                if test(self.env):
                    yield from self._from(place + 1)
            case _Give(slot, _, evaluate):
                self.env[slot] = evaluate(self.env)
                yield from self._from(place + 1)
            case _Try(slot):
                for value in self._values(slot):
                    self.tried += 1
                    self.env[slot] = value
                    yield from self._from(place + 1)

    def _values(self, slot: int) -> tuple[Any, ...]:
        values, kind = self.domains[slot], self.kinds[slot]
        if values is None:
            if self.most is not None and cardinality(kind) > self.most:
                self.tried += self.most + 1
                return ()
            self.domains[slot] = values = Values().values(kind)
        return values


def _domain(start: Start) -> tuple[Any, ...] | None:
    """The values that a variable may start with; None where `init` is to decide."""
    if start.value is not None:
        return (_constant(start.value),)
    return _constant(start.choices) if start.choices is not None else None


def _conjuncts(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, And):
        yield from chain.from_iterable(map(_conjuncts, expr.parts))
    else:
        yield expr


def _reads(expr: Expr) -> set[int]:
    return {node.slot for node in inside(expr) if isinstance(node, Var)}


def _constant(expr: Expr) -> Any:
    try:
        return value_of(expr)
    except BeyondHorizon:
        # In a step it would mean that the step is not taken; an initial value has no such way out, so it is a
        # mistake of the spec.
        raise Undefined(expr.span, "an initial value is above its horizon") from None
