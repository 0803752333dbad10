"""Initial states: initial values, choices, and the conjuncts of `init` on the variables left open.

They are the states of the product of all variables' values in which the conjuncts of `init` hold, from left
to right: behind a false conjunct nothing is evaluated.  The product itself is never made.  As in TLC, the
conjuncts are taken in their order (`plan`): one of the form `x == e` gives `x` its value, one of the form
`x in e` its candidates, and any other a test, before which the variables that it reads are enumerated.  A
`forall` over the keys of a map does the same for the values in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import Struct

from specchk.ir.nodes import And, Apply, Const, Expr, Let, Local, Quantifier, Value, Var
from specchk.ir.ops import Op
from specchk.ir.program import Program, Start
from specchk.ir.types import BOOL, Map, Type, cardinality, of_shape
from specchk.ir.verify import bound
from specchk.ir.walk import inside
from specchk.meaning.evaluate import Env, Evaluator, misfit
from specchk.meaning.undefined import BeyondHorizon, Undefined
from specchk.meaning.values import State, Values, universe


class Draw(Struct, frozen=True):
    """A variable takes each of its values, or each item of `among`."""

    slot: int
    among: Expr | None = None


class Solve(Struct, frozen=True):
    """A variable takes the value of an expression, if that is one of its values."""

    slot: int
    value: Expr


class SolveMap(Struct, frozen=True):
    """A map variable takes at each key the value of an expression."""

    slot: int
    key: Local
    value: Expr


class DrawMap(Struct, frozen=True):
    """A map variable takes at each key each item of a set."""

    slot: int
    key: Local
    among: Expr


class Named(Struct, frozen=True):
    """A `let` of `init`."""

    local: Local
    value: Expr


class Tested(Struct, frozen=True):
    """A conjunct that must be true."""

    condition: Expr


Evaluate = Callable[[Env], Any]
Part = Draw | Solve | SolveMap | DrawMap | Named | Tested


def value_of(expr: Expr) -> Value:
    """The value of an expression that reads no variable; raises `Undefined` or `BeyondHorizon`."""
    slots = [local.slot for node in inside(expr) for local in bound(node)]
    return Evaluator(0).compile(expr)([0] * (max(slots, default=-1) + 1))


def plan(program: Program) -> list[tuple[int, Part]]:
    """The parts of the enumeration in order, each with the number of its `init` (0 if it has none)."""
    known = {slot for slot, start in enumerate(program.starts) if start.value is not None}
    given = {slot for slot, start in enumerate(program.starts) if start.choices is not None}
    planned: list[tuple[int, Part]] = []
    for number, init in enumerate(program.inits):
        for conjunct in _conjuncts(init.body):
            part: Part
            if isinstance(conjunct, Named):
                part = conjunct
            else:
                part = _solved(conjunct, known, given) or Tested(conjunct)
            planned += [(number, Draw(slot)) for slot in sorted(_reads(part) - known)]
            known |= _reads(part)
            if isinstance(part, Draw | Solve | SolveMap | DrawMap):
                known.add(part.slot)
            planned.append((number, part))
    return planned + [(0, Draw(slot)) for slot in range(len(program.variables)) if slot not in known]


def _conjuncts(body: Expr) -> Iterator[Expr | Named]:
    if isinstance(body, And):
        for part in body.parts:
            yield from _conjuncts(part)
    elif isinstance(body, Let):
        yield Named(body.local, body.value)
        yield from _conjuncts(body.body)
    else:
        yield body


def _reads(part: Part | Expr) -> set[int]:
    """The variables whose values are needed before a part of the enumeration."""
    match part:
        case Draw():
            return _reads(part.among) if part.among is not None else set()
        case DrawMap():
            return _reads(part.among)
        case Solve() | SolveMap() | Named():
            return _reads(part.value)
        case Tested():
            return _reads(part.condition)
    return {node.slot for node in inside(part) if isinstance(node, Var)}


def _solved(conjunct: Expr, known: set[int], given: set[int]) -> Part | None:
    """The part by which a conjunct gives a variable its value or candidates; None if it gives none.

    `given` are the variables with candidates of their own: a map among these has few of the values that its
    items could make.
    """
    match conjunct:
        case Apply(op=Op.EQ, args=(left, right)):
            for target, value in ((left, right), (right, left)):
                if isinstance(target, Var) and _is_open(target, known, value):
                    return Solve(target.slot, value)
        case Apply(op=Op.IN_SET, args=(Var() as target, among)) if _is_open(target, known, among):
            return Draw(target.slot, among)
        case Var() if _is_open(conjunct, known):
            return Solve(conjunct.slot, Const(BOOL, conjunct.span, True))
        case Apply(op=Op.NOT, args=(Var() as target,)) if _is_open(target, known):
            return Solve(target.slot, Const(BOOL, conjunct.span, False))
        case Quantifier(every=True, body=Apply(op=Op.EQ, args=(left, right))):
            for place, value in ((left, right), (right, left)):
                map_ = _at_each_key(place, conjunct)
                if map_ is not None and _is_open(map_, known, value):
                    return SolveMap(map_.slot, conjunct.local, value)
        case Quantifier(every=True, body=Apply(op=Op.IN_SET, args=(place, among))):
            map_ = _at_each_key(place, conjunct)
            if map_ is not None and _is_open(map_, known, among) and map_.slot not in given:
                return DrawMap(map_.slot, conjunct.local, among)
    return None


def _is_open(target: Var, known: set[int], *others: Expr) -> bool:
    """Whether a variable has no value yet, and the other expressions do not read it."""
    return target.slot not in known and all(target.slot not in _reads(other) for other in others)


def _at_each_key(place: Expr, around: Quantifier) -> Var | None:
    """The variable `m` of a place `m[k]` whose key `k` is bound by the quantifier."""
    match place, around.domain:
        case Apply(op=Op.MAP_GET, args=(Var(type=Map(key=keys)) as target, Local() as key)), Const(
            value=listed
        ):
            return target if key == around.local and listed == tuple(sorted(universe(keys))) else None
    return None


def initial_states(program: Program) -> list[State]:
    """All initial states, ascending, each once; raises `Undefined` if an initial value is undefined."""
    # In the order of values, not of the plan: the order decides which of two counterexamples is reported.
    return sorted(_Enumeration(program).states())


def tries(program: Program, most: int) -> int:
    """The number of values enumerated for the initial states; above `most`, some number above it."""
    search = _Enumeration(program, most)
    with suppress(_TooMany):
        search.states()
    return search.tried


class _TooMany(Exception):
    """More values would be enumerated than the limit allows."""


class _Enumeration:
    """The plan as functions: each does its part in the environment, then calls the next."""

    def __init__(self, program: Program, most: int | None = None) -> None:
        self.program = program
        self.most = most  # values to try
        self.tried = 0
        size = len(program.variables)
        self.found: list[State] = []
        # Each `init` has its own locals, which stay while later ones are evaluated.
        self.evaluators = [Evaluator(size)]
        for init in program.inits:
            following = Evaluator(size)
            following.first_local = self.evaluators[-1].first_local + init.locals + 1
            self.evaluators.append(following)
        self.env: Env = [0] * self.evaluators[-1].first_local
        self.values = Values()
        self.chosen: list[tuple[Value, ...] | None] = []

    def states(self) -> list[State]:
        """The states, each once."""
        program, env = self.program, self.env
        # All of them first: an undefined initial value is a fault, independently of `init`.
        self.chosen = [chosen_values(start) for start in program.starts]
        if any(chosen == () for chosen in self.chosen):
            return []
        for slot, start in enumerate(program.starts):
            if start.value is not None:
                env[slot] = self.chosen[slot][0]  # type: ignore[index]
        size, found = len(program.variables), self.found

        def following() -> None:
            found.append(tuple(env[:size]))

        for number, part in reversed(plan(program)):
            following = self._function(part, self.evaluators[number], following)
        following()
        return found

    def _function(
        self, part: Part, evaluator: Evaluator, following: Callable[[], None]
    ) -> Callable[[], None]:
        """The function of one part of the plan and of all parts after it."""
        env = self.env
        match part:
            case Draw(slot, among):
                return self._draw(slot, evaluator.compile(among) if among is not None else None, following)
            case Solve(slot, value):
                return self._solve(slot, evaluator.compile(value), following)
            case SolveMap(slot, key, value):
                return self._solve(
                    slot, self._map(slot, evaluator.index(key), evaluator.compile(value)), following
                )
            case DrawMap(slot, key, among):
                return self._draw_map(slot, evaluator.index(key), evaluator.compile(among), following)
            case Named(local, value):
                index, named = evaluator.index(local), evaluator.compile(value)

                def name() -> None:
                    env[index] = named(env)
                    following()

                return name
            case Tested(condition):
                holds = evaluator.compile(condition)

                def test() -> None:
                    if holds(env):
                        following()

                return test

    def _draw(self, slot: int, among: Evaluate | None, following: Callable[[], None]) -> Callable[[], None]:
        env = self.env
        if among is None:
            if self.most is not None:
                return self._draw_counted(slot, following)
            values = self._all(slot)

            def each() -> None:
                for env[slot] in values:
                    following()

            return each
        is_value = self._membership(slot)

        def some() -> None:
            for value in among(env):
                if is_value(value):
                    self._count(1)
                    env[slot] = value
                    following()

        return some

    def _draw_map(
        self, slot: int, key: int, among: Evaluate, following: Callable[[], None]
    ) -> Callable[[], None]:
        env, kind = self.env, of_shape(self.program.variables[slot].type, Map)
        keys, is_item = sorted(universe(kind.key)), _within(kind.value)

        def items(values: tuple[Value, ...]) -> None:
            if len(values) == len(keys):
                env[slot] = values
                following()
                return
            # As `forall` goes on to a key only where the values at those before it are in their sets.
            env[key] = keys[len(values)]
            for item in among(env):
                if is_item(item):
                    self._count(1)
                    items((*values, item))

        return partial(items, ())

    def _draw_counted(self, slot: int, following: Callable[[], None]) -> Callable[[], None]:
        """As `_draw`, but the values are listed only when needed, and only if they are few enough."""

        def each() -> None:
            if self.chosen[slot] is None:
                self._count(cardinality(self.program.variables[slot].type), at_once=True)
            for value in self._all(slot):
                self._count(1)
                self.env[slot] = value
                following()

        return each

    def _count(self, values: int, *, at_once: bool = False) -> None:
        """Count enumerated values; those `at_once` are only compared with the limit."""
        if self.most is not None:
            self.tried += values
            if self.tried > self.most:
                raise _TooMany
            self.tried -= values * at_once

    def _all(self, slot: int) -> tuple[Value, ...]:
        return self.chosen[slot] or self.values.values(self.program.variables[slot].type)

    def _solve(self, slot: int, solution: Evaluate, following: Callable[[], None]) -> Callable[[], None]:
        env, is_value = self.env, self._membership(slot)

        def solve() -> None:
            value = solution(env)
            if is_value(value):
                env[slot] = value
                following()

        return solve

    def _map(self, slot: int, key: int, item: Evaluate) -> Evaluate:
        kind = of_shape(self.program.variables[slot].type, Map)
        keys, is_item = sorted(universe(kind.key)), _within(kind.value)

        def items(env: Env) -> Value:
            values = []
            for env[key] in keys:
                values.append(item(env))
                # As `forall` stops at the first key that is different: no map has this item.
                if not is_item(values[-1]):
                    break
            return tuple(values)

        return items

    def _membership(self, slot: int) -> Callable[[Any], bool]:
        """A test of whether a value is one that a variable may start with."""
        chosen = self.chosen[slot]
        if chosen is not None:
            return frozenset(chosen).__contains__
        return _within(self.program.variables[slot].type)


def _within(kind: Type) -> Callable[[Any], bool]:
    """Whether a value of a type's shape is within its ranges and limits."""
    misfit_of = misfit(kind)
    return lambda value: misfit_of(value) is None


def chosen_values(start: Start) -> tuple[Value, ...] | None:
    """The values that a declaration gives a variable; None if it gives all values of the type."""
    if start.value is not None:
        return (_constant(start.value),)
    if start.choices is None:
        return None
    chosen = _constant(start.choices)
    assert isinstance(chosen, tuple)
    return chosen


def _constant(expr: Expr) -> Value:
    try:
        return value_of(expr)
    except BeyondHorizon:
        # In a step it would mean that the step is not taken; an initial value has no alternative, so it is a
        # mistake of the spec.
        raise Undefined(expr.span, "an initial value is above its horizon") from None
