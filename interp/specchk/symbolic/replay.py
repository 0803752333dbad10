"""Paths from models, replayed by the reference interpreter before they are reported.

Offsets found by the solver may lie above the model's horizon, so the path is taken in the same
program with a higher one.  A path that cannot be taken is a bug of the encoding: `ReplayFailed`.

A horizon of a million gives a million numbers for each choice, of which a path has few.  So a step of a
replay chooses among the numbers of its path and their neighbours: a step that it finds is a step, and whether
none is enabled is decided with open numbers (`meaning.deadlock`).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, TypeGuard, TypeVar

from msgspec import Struct
from msgspec.structs import asdict, replace

from specchk.ir.nodes import Apply, Choice, Const, Expr, Value
from specchk.ir.ops import Op
from specchk.ir.program import Action, Program
from specchk.ir.range_checks import with_checks
from specchk.ir.types import Int, Set, has_horizon, item_of, of_shape
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame
from specchk.meaning.properties import NoAnswer, Properties, answer
from specchk.meaning.step import Compiled, Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State, Values, universe
from specchk.search.replay import ReplayFailed, quiet_steps_to
from specchk.search.verdict import Step, Trace

T = TypeVar("T")
Failing = tuple[str, str, Blame | None]  # the kind and the name of a violation, and its reason
LISTED = 16  # this many of the least numbers are candidates on every path


class ReplayPath(Struct, frozen=True):
    """States from a model, and the numbers chosen in the steps between and out of them."""

    states: tuple[State, ...]
    chosen: tuple[int, ...] = ()

    @property
    def most(self) -> int:
        """A horizon sufficient for the path and one more step."""
        # One more for a step out of the last state; also numbers that were chosen there but not stored.
        return max(most_in(self.states) + 1, 0, *self.chosen)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers to choose from, ascending: those of the path, their neighbours, and the least one."""
        own = {number for state in self.states for number in _numbers(state)}.union(self.chosen)
        near = {number + distance for number in own for distance in (-1, 0, 1)}
        return tuple(sorted({number for number in near if number >= 0}.union(range(LISTED))))


def most_in(states: Sequence[State]) -> int:
    """The largest number in some states."""
    return max((number for state in states for number in _numbers(state)), default=0)


def raised_to(program: Program, high: int, *, choosing: bool = True) -> Program:
    """The program with horizons of at least `high`.

    If intervals that end at a horizon have shown that an offset fits a range, this is now checked.  Without
    `choosing`, the sets of all numbers from which statements choose stay unlisted: for `Replay` alone.
    """
    return _Raising(high, choosing=choosing).copy(with_checks(program))


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    else:
        yield value


class _Raising:
    """Copies a program with every `nat upto` ending at `high` or later; equal parts stay the same objects."""

    def __init__(self, high: int, *, choosing: bool) -> None:
        self.high = high
        self.choosing = choosing
        # By identity, since a program keeps its parts, and a type is in many nodes: the 80 000 parts of
        # `replication.spec` are 15 000 objects.
        self._copies: dict[int, Any] = {}

    def copy(self, found: T) -> T:
        """The copy of a program, or of a part of it."""
        if isinstance(found, str | int | None):
            return found
        result: T | None = self._copies.get(id(found))
        if result is None:
            result = self._copies[id(found)] = self._new_copy(found)
        return result

    def _new_copy(self, found: Any) -> Any:
        if isinstance(found, Int):
            return replace(found, high=max(found.high, self.high)) if found.horizon else found
        if isinstance(found, Const) and found.ends_at_horizon:
            kind = of_shape(self.copy(found.type), Set)
            return replace(found, type=kind, value=tuple(sorted(universe(kind.item))))
        if isinstance(found, Choice) and not self.choosing and _is_any(found.domain):
            domain = replace(found.domain, type=self.copy(found.domain.type))
            return replace(found, local=self.copy(found.local), domain=domain, body=self.copy(found.body))
        if isinstance(found, tuple):
            copies = tuple([self.copy(part) for part in found])
            return copies if any(a is not b for a, b in zip(copies, found, strict=True)) else found
        # Any node of the core, by its fields: a new kind of node needs no line here.
        if isinstance(found, Struct) and type(found).__module__.startswith("specchk.ir"):
            parts = asdict(found)
            changed = {name: copy for name, part in parts.items() if (copy := self.copy(part)) is not part}
            return replace(found, **changed) if changed else found
        return found


def _is_any(domain: Any) -> TypeGuard[Const]:
    """Whether a statement chooses from all values of a type."""
    return isinstance(domain, Const) and domain.ends_at_horizon


class Unended(Stepper):
    """A stepper without horizons; choices are among some numbers, or those up to a limit (None)."""

    def __init__(self, program: Program, numbers: Sequence[int] | None = None) -> None:
        self.numbers = numbers
        super().__init__(program)

    def compiled(self, index: int, action: Action, values: Values) -> Compiled:
        """The functions of one action."""
        if self.numbers is None:
            return super().compiled(index, action, values)
        return _AmongNumbers(self, index, action, Values(self.numbers))

    def make_evaluator(self) -> Evaluator:
        """An evaluator that stores numbers above a horizon."""
        # A step may compute a number above all on the path, `b' = 2 * a`, and continue to a statement that is
        # undefined, which the end of the step must not hide.
        return Evaluator(self.size, self.counts, horizons=False)


class _AmongNumbers(Compiled):
    """Compiles an action so that arguments and choices of offsets are among some numbers, ascending."""

    def __init__(self, stepper: Stepper, index: int, action: Action, values: Values) -> None:
        super().__init__(stepper, index, action, values)
        self.values = values

    def _items(self, domain: Expr) -> Callable[[list[Any]], Any]:
        if _is_any(domain):
            listed = self.values.values(item_of(domain.type))
            return lambda _: listed
        if isinstance(domain, Apply) and domain.op is Op.RANGE and has_horizon(domain.type):
            low, high = [self.evaluator.compile(end) for end in domain.args]
            numbers = self.values.offsets
            assert numbers is not None

            def between(e: list[Any]) -> Sequence[int]:
                least: Any = low(e)
                most: Any = high(e)
                return numbers[bisect_left(numbers, least) : bisect_right(numbers, most)]

            return between
        return super()._items(domain)


class Replay:
    """Replays paths in a program with sufficiently high horizons, with some numbers to choose from."""

    def __init__(self, program: Program, numbers: Sequence[int] | None = None) -> None:
        self.program = program
        self.numbers = numbers
        self.stepper = Unended(program, numbers)
        self.properties = Properties(self.program, self.stepper)
        self.ends = Ends(self.program, self.stepper, self.properties)

    @classmethod
    def along(cls, program: Program, path: ReplayPath) -> Replay:
        """A replay of one path, in the program with sufficiently high horizons."""
        return cls(raised_to(program, path.most, choosing=False), path.numbers)

    def trace(self, states: Sequence[State]) -> Trace:
        """The trace along the states, with its actions; it need not start in an initial state."""
        steps: list[Step] = []
        for before, after in itertools.pairwise(states):
            steps_between = self._steps(before, after)
            if not steps_between:
                raise ReplayFailed(f"no step leads from state {len(steps) + 1} of the path to the next")
            # Any of them will do: the states are given, so nothing after the step depends on the choice.
            steps.append(steps_between[0])
        return Trace(states[0], tuple(steps))

    def _steps(self, before: State, after: State) -> list[Step]:
        """The steps between two states, even if another step out of the first one is undefined.

        No search expands such a state, but induction may begin in one: it is not known whether it is reached.
        """
        try:
            return quiet_steps_to(self.program, self.stepper, before, after, None)
        except Faulty:
            return list(self._defined_steps(before, after))

    def _defined_steps(self, before: State, after: State) -> Iterator[Step]:
        for index, action in enumerate(self.program.actions):
            for args in self._arguments(action):
                with suppress(Faulty):
                    # One instance at a time: if another one is undefined, `successors` would give nothing for
                    # the whole state.
                    if after in [found[2] for found in self.stepper.of_action(before, index, args)]:
                        yield Step.of(self.program, index, args, after)

    def failed(self, trace: Trace) -> list[Failing]:
        """The violations at the end of a trace or in a step out of it."""
        return [*self.met(trace), *self._faults(trace.last)]

    def met(self, trace: Trace) -> list[Failing]:
        """As `failed`, for the last state and the step to it."""
        properties, env = self.properties, self.properties.environment(trace.last)
        rows = [*properties.failed(env, properties.invariants)]
        if trace.steps:
            rows += properties.failed(properties.environment(*trace.states[-2:]), properties.steps)
        return [*[(kind, prop.name, blame) for prop, kind, blame in rows], *self._unclear(env)]

    def reaches(self, state: State, name: str) -> bool:
        """Whether a state satisfies the witness of this name."""
        env = self.properties.environment(state)
        return any(answer(prop, test, env) for prop, test in self.properties.witnesses if prop.name == name)

    def left(self, state: State) -> list[Failing]:
        """As `failed`, for the steps out of a state: one is undefined, or there are none.

        The caller has found that no number enables a step, listed or not.  Open numbers confirm this if they
        can be computed with; otherwise only the listed ones do.
        """
        try:
            self.stepper.successors(state)
            is_deadlock = self.ends.end(state) in (End.DEADLOCK, End.UNDECIDED)
        except Faulty as fault:
            name = self.program.actions[fault.action].name
            return [("undefined", name, Blame.of_fault(self.program, fault))]
        except NoAnswer as reason:
            return [("undefined", reason.name, reason.blame)]
        return [("deadlock", "deadlock", None)] if is_deadlock else []

    def _unclear(self, env: list[Any]) -> Iterator[Failing]:
        """The undefined constraint of a state, or the undefined witnesses of a state inside them all."""
        try:
            witnesses = self.properties.witnesses if self.properties.inside(env) else []
        except NoAnswer as reason:
            yield "undefined", reason.name, reason.blame
            return
        for prop, test in witnesses:
            try:
                answer(prop, test, env)
            except NoAnswer as reason:
                yield "undefined", reason.name, reason.blame

    def _faults(self, state: State) -> Iterator[Failing]:
        """The actions that are undefined in a state, each once."""
        for index, action in enumerate(self.program.actions):
            try:
                for args in self._arguments(action):
                    self.stepper.of_action(state, index, args)
            except Faulty as fault:
                yield "undefined", action.name, Blame.of_fault(self.program, fault)

    def _arguments(self, action: Action) -> Iterator[tuple[Value, ...]]:
        return itertools.product(*(sorted(universe(param.type, self.numbers)) for param in action.params))
