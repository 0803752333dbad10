"""Candidates with open numbers: a number that no event shows may be any, also one beyond a horizon.

`NamedSteps` takes a number that is not recorded from those up to the horizon.  Here it is a symbol, about
which steps and fields decide (`meaning.moves`), so candidates represent all states that there are:

    shape    a state with OPEN in the place of each open number
    places   for each of these a pair (x, c): it is x + c
    bounds   the closed matrix of the symbols' differences (`meaning.paths`); symbol 0 is the number 0

`NotSymbolic` is raised where open numbers do not decide: then nothing is known of the recording.

Not here: zones of a search, which forget bounds to become finitely many (`symbolic.zones`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any, TypeVar

from specchk.compile.instantiate import Instance
from specchk.conform.recordings.events.fields import Fields, WantedValues
from specchk.conform.recordings.events.steps import Horizons
from specchk.ir.footprint import expression_lists_horizon, has_keys_to_horizon, starts_list_horizon
from specchk.ir.program import Program, Start, Variable
from specchk.ir.range_checks import with_checks
from specchk.ir.types import cardinality, has_horizon
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.initial import chosen_values, initial_states
from specchk.meaning.moves import Endless, Moves, outlines
from specchk.meaning.open_numbers import Term
from specchk.meaning.paths import FREE, START, ForkPath, Matrix, NotSymbolic, widened
from specchk.meaning.regions import outside
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, Values

OpenState = Any  # a `State`, so that candidates of either kind are followed alike; read as a triple
OPEN = -1 << 61  # no value of a spec is so small
MOST_INITIAL = 1 << 12
MOST_FORKS = 1 << 12  # of one question: the orders of a few numbers are more
T = TypeVar("T")


def _initial(variable: Variable, start: Start) -> Sequence[Any]:
    """The values that a variable may start with, with None for each open number."""
    chosen = chosen_values(start)
    if chosen is not None:
        return chosen
    if has_horizon(variable.type):
        return outlines(variable.type)
    if cardinality(variable.type) > MOST_INITIAL:
        raise NotSymbolic("there are many initial values")
    return Values().values(variable.type)


def _opened(outline: Any) -> OpenState:
    """The open state with any number in the place of each None."""
    places, rows = list[tuple[int, int]](), START

    def opened(part: Any) -> Any:
        nonlocal rows
        if isinstance(part, tuple):
            return tuple([opened(item) for item in part])
        if part is not None:
            return part
        places.append((len(rows), 0))
        rows = widened(rows)
        return OPEN

    return opened(outline), tuple(places), tuple(map(tuple, rows))


def closed_state(state: OpenState) -> State:
    """One of the states that an open one represents: that of the least numbers."""
    _, _, bounds = state
    closed: State = _joined(state, lambda symbol, plus: plus - bounds[0][symbol])
    return closed


def _joined(state: OpenState, number: Callable[[int, int], Any]) -> Any:
    shape, places, _ = state
    left = iter(places)

    def join(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple([join(item) for item in part])
        return number(*next(left)) if part == OPEN else part

    return join(shape)


def _split(state: Any, rows: Matrix) -> OpenState:
    """The open state of a state of terms over a matrix: equal for states that differ only by names."""
    symbols, known, places = [0], dict[int, tuple[int, int]](), list[tuple[int, int]]()

    def place(symbol: int) -> tuple[int, int]:
        for number, first in enumerate(symbols):
            # x - first <= c and first - x <= -c: the distance is known.
            if rows[symbol][first] < FREE and rows[symbol][first] == -rows[first][symbol]:
                return number, rows[symbol][first]
        symbols.append(symbol)
        return len(symbols) - 1, 0

    def split(part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple([split(item) for item in part])
        if not isinstance(part, Term):
            return part
        if part.symbol not in known:
            known[part.symbol] = place(part.symbol)
        number, distance = known[part.symbol]
        if number == 0:
            return distance + part.plus
        places.append((number, distance + part.plus))
        return OPEN

    shape = split(state)
    # Of a closed matrix the rest of the symbols can be left out: an exact projection.
    return shape, tuple(places), tuple([tuple([rows[i][j] for j in symbols]) for i in symbols])


class OpenSteps:
    """As `NamedSteps`, for open states; raises `NotSymbolic` where a program has no steps of open numbers."""

    horizon_cuts = 0

    def __init__(self, program: Program) -> None:
        if has_keys_to_horizon(program):
            raise NotSymbolic("a map has keys up to a horizon")
        self.program = program
        self._moves = Moves(with_checks(program), ForkPath())

    def initial(self) -> tuple[OpenState, ...]:
        """The initial states."""
        program = self.program
        if not starts_list_horizon(program):
            return tuple([(state, (), START) for state in initial_states(program)])
        given = [one for start in program.starts for one in (start.value, start.choices) if one is not None]
        if any(map(expression_lists_horizon, given)):
            raise NotSymbolic("initial values are listed up to a horizon")
        values = [_initial(*one) for one in zip(program.variables, program.starts, strict=True)]
        if prod(map(len, values)) > MOST_INITIAL:
            raise NotSymbolic("there are many initial values")
        evaluators = [Endless(len(program.variables)) for _ in program.inits]
        tests = [one.compile(init.body) for one, init in zip(evaluators, program.inits, strict=True)]
        env = [0] * max([init.locals for init in program.inits], default=0)

        def is_initial(state: State) -> bool:
            try:
                return all(test([*state, *state, *env]) for test in tests)
            except Undefined:
                raise NotSymbolic("`init` is undefined for some number") from None

        return tuple(dict.fromkeys(self.having(map(_opened, product(*values)), is_initial)))

    def after(
        self, before: Iterable[OpenState], index: int, instances: Iterable[Sequence[Any]]
    ) -> list[OpenState]:
        """The states after an action's instances, whose open arguments are None; with repetitions.

        An instance that has no meaning in a state is no step there.
        """
        calls = [(index, tuple(args)) for args in instances]
        return [after for state in before for call in calls for after in self._after(state, call)]

    def _after(self, state: OpenState, call: tuple[int, tuple[Any, ...]]) -> Iterator[OpenState]:
        once = partial(self._moves.once, self._terms(state), *call)
        results = [(*result, rows) for result, rows in self._results(once, state[2]) if result is not None]
        # Arguments are the first symbols of each run; what is chosen later is not part of an instance.
        size = len(state[2]) + _count_open(call[1])
        undefined = [rows for _, after, rows in results if isinstance(after, Undefined)]
        for _, after, rows in results:
            if not isinstance(after, Undefined):
                parts = [rows]
                for taken in undefined:
                    parts = outside(parts, taken, size)
                for part in parts:
                    yield _split(after, part)

    def having(self, states: Iterable[OpenState], test: Callable[[State], bool]) -> Iterator[OpenState]:
        """The parts of states in which a test of them is true."""
        for state in states:
            terms = self._terms(state)
            for answer, rows in self._results(partial(test, terms), state[2]):
                if answer:
                    yield _split(terms, rows)

    def _results(self, question: Callable[[], T], rows: Matrix) -> Iterator[tuple[T, Matrix]]:
        """The answers to a question about numbers over a matrix, each with the matrix where it is given."""
        path = self._moves.path
        most = path.forks + MOST_FORKS
        for answer in self._moves.answers(question, rows):
            if path.forks > most:
                raise NotSymbolic("it compares many of them")
            yield answer, path.rows

    def _terms(self, state: OpenState) -> Any:
        return _joined(state, partial(Term, self._moves.path))


def _count_open(arg: Any) -> int:
    return sum(map(_count_open, arg)) if isinstance(arg, tuple) else int(arg is None)


class OpenFields(Fields):
    """As `Fields`, of open states."""

    def __init__(self, instance: Instance, steps: OpenSteps) -> None:
        super().__init__(instance, Horizons.OPEN)
        self._steps = steps

    def make_evaluator(self) -> Evaluator:
        """An evaluator that lists no numbers up to a horizon."""
        return Endless(len(self.instance.program.variables))

    def having(self, states: Sequence[OpenState], shown: WantedValues) -> list[OpenState]:
        """The parts of states that agree with the fields of an event."""
        together, wanted, _ = shown
        if any(isinstance(value, str) for value in wanted):  # the reason why it is not a value
            return []

        def agrees(state: State) -> bool:
            try:
                return bool(together.values(self.environment(state)) == wanted)
            except Undefined:
                return False

        return list(self._steps.having(states, agrees))
