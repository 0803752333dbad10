"""Steps and predicates on zones: `core.step` and `core.evaluate`, run on open numbers.

`Moves` is the meaning of a program for states whose offsets are terms.  An instance of an action is
run once for each way it can go on: the branches of `either`, the items of `any`, and the open
questions that its guards and values ask.  What a statement means stays in `core.step`; here is only
that alternatives are runs of their own, so that none assumes what another one had to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeVar

from specchk.core.evaluate import Evaluator
from specchk.core.properties import Properties
from specchk.core.step import Compiled, Run, Stepper
from specchk.core.undefined import Undefined
from specchk.core.values import State, Values
from specchk.ir.nodes import Apply, Choice, Const, Either, Op
from specchk.ir.program import Action, Program, Property
from specchk.ir.types import Int, Set, Type
from specchk.symbolic.paths import Matrix, Path, Term, outcomes

T = TypeVar("T")
Instance = tuple[int, tuple[Any, ...]]  # an action's position and its arguments, None where open
Test = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Move:
    """One way on from a zone: an action with its arguments, the state after it, and what is known there.

    `after` is why instead where the step has no meaning.
    """

    action: int
    args: tuple[Any, ...]
    after: State | Undefined
    rows: Matrix


class Moves(Stepper):
    """The steps of a program on states of terms of `path`."""

    def __init__(self, program: Program, path: Path, *, horizons: bool = False) -> None:
        self.path = path
        self._horizons = horizons
        super().__init__(program)
        self.properties = Properties(program, self)
        actions = enumerate(program.actions)
        self.instances = tuple((i, args) for i, action in actions for args in self._arguments_of(action, i))

    def make_evaluator(self) -> Evaluator:
        """One that knows no horizon, unless the program is to be bounded by them."""
        return Evaluator(self.size, self.counts, horizons=self._horizons)

    def compiled(self, index: int, action: Action, values: Values) -> Compiled:
        """One action's functions."""
        return _Alternatives(self, index, action, values)

    def _arguments_of(self, action: Action, index: int) -> Iterator[tuple[Any, ...]]:
        """The instances of an action; an argument that is an offset is left open, as None."""
        open_ = [self.is_open(param.type) for param in action.params]
        domains = [(None,) if o else d for o, d in zip(open_, self._domains[index], strict=True)]
        return product(*domains)

    def is_open(self, kind: Type) -> bool:
        """Whether values of a type are not listed, but open numbers."""
        return isinstance(kind, Int) and kind.horizon and not self._horizons

    def moves(
        self, state: State, rows: Matrix, among: Sequence[tuple[int, tuple[Any, ...]]]
    ) -> Iterator[Move]:
        """All ways on from a state over a matrix, by these instances."""
        for index, args in among:
            for found in self.ask(partial(self.once, state, index, args), rows):
                if found is not None:
                    yield Move(index, *found, self.path.rows)

    def once(
        self, state: State, index: int, args: tuple[Any, ...]
    ) -> tuple[tuple[Any, ...], State | Undefined] | None:
        """One run of an instance: its arguments, and the state after it or why it has no meaning.

        None where a guard is false.
        """
        env = self.environment(state)
        first = self.evaluator.first_local
        self._out.clear()
        given = tuple(args if None not in args else self._opened(args))
        env[first : first + len(args)] = given
        try:
            self._bodies[index](env)
        except Undefined as undefined:
            if not self._out:
                return given, undefined
        return self._out[0][1:] if self._out else None

    def at_rest(self, state: State) -> bool:
        """Whether one run of each instance does nothing."""
        return all(self.once(state, index, args) is None for index, args in self.instances)

    def _opened(self, args: tuple[Any, ...]) -> list[Any]:
        return [Term(self.path, self.path.fresh()) if arg is None else arg for arg in args]

    def ask(self, question: Callable[[], T], rows: Matrix) -> Iterator[T]:
        """The answers to a question about states over a matrix, once for each way to come to one."""
        return outcomes(self.path, rows, question)

    def ways(self, prop: tuple[Property, Test], env: list[Any], rows: Matrix) -> Iterator[bool | Undefined]:
        """What a predicate may be: its value, or why it has none, once for each way to evaluate it."""
        test = prop[1]

        def evaluate() -> bool | Undefined:
            try:
                return bool(test(env))
            except Undefined as undefined:
                return undefined

        return self.ask(evaluate, rows)

    def rests(self, state: State, rows: Matrix) -> Iterator[bool]:
        """Whether nothing at all can be done, once for each way to find out."""
        return self.ask(partial(self.at_rest, state), rows)


class _Alternatives(Compiled):
    """Compiles an action so that each run takes one alternative."""

    @property
    def _moves(self) -> Moves:
        assert isinstance(self.stepper, Moves)
        return self.stepper

    def _either(self, stmt: Either, then: Run) -> Run:
        path = self._moves.path
        branches = [
            self._covered(point, self.block(branch, then))
            for point, branch in zip(stmt.points, stmt.branches, strict=True)
        ]

        def either(e: list[Any]) -> None:
            branches[path.choose(len(branches))](e)

        return either

    def _choice(self, stmt: Choice, then: Run) -> Run:
        path, slot = self._moves.path, self.evaluator.index(stmt.local)
        body = self.block(stmt.body, then)
        kind = stmt.domain.type
        assert isinstance(kind, Set)
        if self._moves.is_open(kind.item):
            return self._open_choice(stmt, slot, body)
        domain = self.evaluator.compile(stmt.domain)

        def choice(e: list[Any]) -> None:
            items: Any = domain(e)
            if items:
                e[slot] = items[path.choose(len(items))]
                body(e)

        return choice

    def _open_choice(self, stmt: Choice, slot: int, body: Run) -> Run:
        """`any n in Offset` or `any n in a..b`: an open number, of which the ends are assumed."""
        path, domain = self._moves.path, stmt.domain
        if isinstance(domain, Const):

            def anything(e: list[Any]) -> None:
                e[slot] = Term(path, path.fresh())
                body(e)

            return anything
        if isinstance(domain, Apply) and domain.op is Op.RANGE:
            low, high = (self.evaluator.compile(end) for end in domain.args)

            def between(e: list[Any]) -> None:
                least: Any = low(e)
                most: Any = high(e)
                number = Term(path, path.fresh())
                if least <= number and number <= most:
                    e[slot] = number
                    body(e)

            return between
        items_of = self.evaluator.compile(domain)

        def item(e: list[Any]) -> None:
            items: Any = items_of(e)
            if items:
                e[slot] = items[path.choose(len(items))]
                body(e)

        return item
