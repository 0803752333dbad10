"""Steps and predicates on open numbers: `meaning.step` and `meaning.evaluate`, run on terms of a path.

`Moves` is the meaning of a program for states whose offsets may be terms.  An instance of an action is
run once for each possible continuation: the branches of `either`, the items of `any`, and the open
questions of its guards and values.  The meaning of a statement stays in `meaning.step`; here
alternatives only become separate runs, so that none depends on the assumptions of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any, TypeVar

from msgspec import Struct

from specchk.ir import types
from specchk.ir.nodes import Apply, Choice, Const, Either, Expr, MapOf, Quantifier, Value
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program, Property
from specchk.ir.types import Type, cardinality, has_horizon, item_of
from specchk.meaning.evaluate import Env, Evaluator
from specchk.meaning.open_numbers import Linear, OpenNumber, Term
from specchk.meaning.paths import ForkPath, Matrix, NotSymbolic, outcomes
from specchk.meaning.properties import NoAnswer, Properties
from specchk.meaning.regions import outside
from specchk.meaning.step import Compiled, Run, Stepper
from specchk.meaning.texts.joined import body_of
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, Values, universe

MAX_LISTED = 256  # at most this many values of an open number, where only a known one can be kept
T = TypeVar("T")
Instance = tuple[int, tuple[Any, ...]]  # an action's position and its arguments, None where open
Test = Callable[[list[Any]], Any]


class Move(Struct, frozen=True):
    """One continuation from a zone: an action with its arguments, the state after it, and the facts there.

    `after` is why instead where the step has no meaning.
    """

    action: int
    args: tuple[Any, ...]
    after: State | Undefined
    rows: Matrix


class Endless(Evaluator):
    """Expressions without horizons: `NotSymbolic` if all values of a `nat upto` would have to be listed."""

    def __init__(self, variables: int, counts: list[int] | None = None) -> None:
        super().__init__(variables, counts, horizons=False)

    def compile(self, expr: Expr) -> Callable[[Env], Value]:
        """The function of an expression."""
        match expr:
            case Const(ends_at_horizon=True) | Quantifier(domain=Const(ends_at_horizon=True)):
                return _unlisted
            case MapOf(type=types.Map(key=key)) if has_horizon(key):
                return _unlisted
        return super().compile(expr)


def outlines(kind: Type) -> list[Any]:
    """The values of a type with a horizon, with None for each offset; `NotSymbolic` for sets of them."""
    match kind:
        case types.Int(horizon=True):
            return [None]
        case types.Option():
            return [(), *[(item,) for item in outlines(kind.item)]]
        case types.Record():
            return list(product(*[outlines(part) for _, part in kind.fields]))
        case types.Union():
            return [(tag, one) for tag, (_, record) in enumerate(kind.variants) for one in outlines(record)]
        case types.Map() if not has_horizon(kind.key):
            return list(product(outlines(kind.value), repeat=cardinality(kind.key)))
        case types.Seq() if has_horizon(kind):
            items = outlines(kind.item)
            return [seq for size in range(kind.limit + 1) for seq in product(items, repeat=size)]
    if has_horizon(kind):  # sets, bags and keys are kept in the order of their items
        return _unlisted([])  # type: ignore[return-value]
    return sorted(universe(kind))


def settling(kind: Type) -> Callable[[Any], Any]:
    """A function that makes a value storable: offsets become terms, and other numbers known ones."""
    match kind:
        case types.Int():
            return _as_term if kind.horizon else partial(_known, kind)
        case types.Option() | types.Set() | types.Seq() | types.Bag():
            item = settling(kind.item)
            return lambda value: tuple([item(part) for part in value]) if value else value
        case types.Map():
            part_ = settling(kind.value)
            return lambda value: tuple([part_(part) for part in value])
        case types.Record():
            parts = [settling(part) for _, part in kind.fields]
            return lambda value: tuple([go(part) for go, part in zip(parts, value, strict=True)])
        case types.Union():
            records = [settling(record) for _, record in kind.variants]
            return lambda value: (value[0], records[value[0]](value[1]))
    return lambda value: value


def _as_term(value: Any) -> Any:
    return value.as_term() if isinstance(value, Linear) else value


def _known(kind: types.Int, value: Any) -> Any:
    """A known value for an open number in a place of bounded type: one alternative for each value."""
    if not isinstance(value, OpenNumber):
        return value
    low, high = kind.low, kind.high
    if high - low >= MAX_LISTED:
        raise NotSymbolic(f"an open number is stored where {high - low + 1} numbers are allowed")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if value <= middle else (middle + 1, high)
    return low


def outline(value: Any) -> Any:
    """A value with None in place of each open number."""
    if isinstance(value, Term):
        return None
    return tuple([outline(part) for part in value]) if isinstance(value, tuple) else value


def _unlisted(_: Env) -> Value:
    raise NotSymbolic("all values of an unbounded type would have to be listed")


class Moves(Stepper):
    """The steps of a program on states whose numbers are terms of `path`."""

    def __init__(self, program: Program, path: ForkPath, *, horizons: bool = False) -> None:
        self.path = path
        self._horizons = horizons
        super().__init__(program)
        self.properties = Properties(program, self)
        self._settle = [settling(variable.type) for variable in program.variables]
        actions = enumerate(program.actions)
        self.instances = tuple((i, args) for i, action in actions for args in self._arguments_of(action, i))

    def make_evaluator(self) -> Evaluator:
        """An evaluator without horizons, unless the program is to be bounded by them."""
        return Evaluator(self.size, self.counts) if self._horizons else Endless(self.size, self.counts)

    def compiled(self, index: int, action: Action, values: Values) -> Compiled:
        """The functions of one action."""
        return _Alternatives(self, index, action, values)

    def _arguments_of(self, action: Action, index: int) -> Iterator[tuple[Any, ...]]:
        """The instances of an action; offsets in the arguments are left open, as None."""
        pairs = zip(action.params, self._domains[index], strict=True)
        return product(*[outlines(p.type) if self.is_open(p.type) else listed for p, listed in pairs])

    def is_open(self, kind: Type) -> bool:
        """Whether values of a type contain open numbers, and so are not listed."""
        return has_horizon(kind) and not self._horizons

    def moves(
        self, state: State, rows: Matrix, among: Sequence[tuple[int, tuple[Any, ...]]]
    ) -> Iterator[Move]:
        """All moves from a state over a matrix, by these instances."""
        for index, args in among:
            for result in self.answers(partial(self.once, state, index, args), rows):
                if result is not None:
                    yield Move(index, *result, self.path.rows)

    def idle(self, state: State, rows: Matrix) -> list[Matrix]:
        """The parts of a matrix over which no step is possible in a state, whatever is chosen."""
        # What no instance leaves: each takes away where it can do something, and subtraction is exact over
        # whole numbers, so nothing idle is lost and nothing busy is kept.
        parts = [rows]
        for index, args in self.instances:
            cuts = self.horizon_cuts
            # A run that a horizon ended has a step in the real system, so its part is not idle.
            for result in self.answers(partial(self.once, state, index, args), rows):
                if result is not None or self.horizon_cuts > cuts:
                    parts = outside(parts, self.path.rows, len(rows), self.path.solver)
                cuts = self.horizon_cuts
        return parts

    def once(
        self, state: State, index: int, args: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], State | Undefined] | None:
        """One run of an instance: its arguments, and the state after it or the reason why it is undefined.

        None where a guard is false.
        """
        env = self.environment(state)
        first = self.evaluator.first_local
        self._out.clear()
        # Opened in the run: each is a symbol of the path, which every run starts from the beginning.
        given = tuple([self.opened(arg) for arg in args])
        env[first : first + len(args)] = given
        try:
            self._compiled[index].body(env)
        except Undefined as undefined:
            if not self._out:
                return given, undefined
        if not self._out:
            return None
        after = self._out[0][2]
        if not isinstance(after, Undefined):
            after = self._settled(state, after)
        return given, after

    def _settled(self, before: State, after: State) -> State:
        """A storable state; parts that a step left unchanged are storable already."""
        parts = zip(self._settle, before, after, strict=True)
        return tuple([part if part is old else settle(part) for settle, old, part in parts])

    def opened(self, outline: Any) -> Any:
        """A value of an outline: each None in it is replaced by a new open number."""
        if outline is None:
            return Term(self.path, self.path.fresh())
        return tuple([self.opened(part) for part in outline]) if isinstance(outline, tuple) else outline

    def answers(self, question: Callable[[], T], rows: Matrix) -> Iterator[T]:
        """The answers to a question about states over a matrix, one for each run that yields one."""
        return outcomes(self.path, rows, question)

    def ways(self, prop: tuple[Property, Test], env: list[Any], rows: Matrix) -> Iterator[bool | Undefined]:
        """The results of a predicate, one for each run: its value, or the reason why it is undefined."""
        return self.answers(partial(answered, prop[1], env), rows)


def answered(test: Test, env: list[Any]) -> bool | Undefined:
    """The value of a predicate in an environment, or the reason why it is undefined."""
    try:
        return bool(test(env))
    except Undefined as undefined:
        return undefined
    except NoAnswer as unclear:
        return Undefined(unclear.blame.span, unclear.blame.text)


def open_moves(program: Program) -> Moves | None:
    """The program on open numbers; None if an argument cannot be an open number."""
    with suppress(NotSymbolic):
        return Moves(program, ForkPath())
    return None


class _Alternatives(Compiled):
    """Compiles an action so that each run takes one alternative."""

    def __init__(self, stepper: Stepper, index: int, action: Action, values: Values) -> None:
        super().__init__(stepper, index, action, values)
        # At once: what cannot be an open number is refused when the moves are made (`open_moves`).
        self.body = self.body

    def domain(self, kind: Type, values: Values) -> Sequence[Value]:
        """The values of a parameter; an empty list for an open one, which has infinitely many."""
        return () if self._moves.is_open(kind) else super().domain(kind, values)

    @property
    def _moves(self) -> Moves:
        assert isinstance(self.stepper, Moves)
        return self.stepper

    def _either(self, stmt: Either, then: Run) -> Run:
        path = self._moves.path
        branches = [
            body_of(self._covered(point, self.block(branch, then)))
            for point, branch in zip(stmt.points, stmt.branches, strict=True)
        ]

        def either(e: list[Any]) -> None:
            # One branch for each run: in one environment, what one branch has assumed would hold for the
            # next.
            branches[path.choose(len(branches))](e)

        return either

    def _choice(self, stmt: Choice, then: Run) -> Run:
        path, slot = self._moves.path, self.evaluator.index(stmt.local)
        body = self.block(stmt.body, then)
        if self._moves.is_open(item_of(stmt.domain.type)):
            if isinstance(stmt.domain, Const) and stmt.domain.ends_at_horizon:
                return self._anything(stmt.domain, slot, body)
            if isinstance(stmt.domain, Apply) and stmt.domain.op is Op.RANGE:
                return self._between(stmt.domain, slot, body)
        domain = self.evaluator.compile(stmt.domain)

        def choice(e: list[Any]) -> None:
            items: Any = domain(e)
            # Of a set of offsets that the state has the items may be terms, but there are so many of them.
            if items:
                e[slot] = items[path.choose(len(items))]
                body(e)

        return choice

    def _anything(self, domain: Const, slot: int, body: Run) -> Run:
        """`any n in Offset`: an open number."""
        # One for each shape of a value; a plain offset has one shape, an option of one two.
        path, moves, choices = self._moves.path, self._moves, outlines(item_of(domain.type))

        def anything(e: list[Any]) -> None:
            e[slot] = moves.opened(choices[path.choose(len(choices))])
            body(e)

        return anything

    def _between(self, domain: Apply, slot: int, body: Run) -> Run:
        """`any n in a..b`: an open number, assumed to be between the ends."""
        path = self._moves.path
        low, high = (self.evaluator.compile(end) for end in domain.args)

        def between(e: list[Any]) -> None:
            least: Any = low(e)
            # Both ends before the number, as the evaluator computes them to list the range.
            most: Any = high(e)
            number = Term(path, path.fresh())
            if least <= number and number <= most:
                e[slot] = number
                body(e)

        return between
