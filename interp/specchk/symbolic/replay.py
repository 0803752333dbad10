"""Paths out of models, taken by the reference interpreter before anyone sees them.

Offsets found by the solver may lie above the model's horizon, so the path is taken in the same
program with a higher one.  A path that cannot be taken is a bug of the encoding: `ReplayFailed`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from specchk.ir.nodes import Const, Value
from specchk.ir.program import Action, Program
from specchk.ir.types import Int, Set, of_shape
from specchk.meaning.deadlock import End, Ends
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.explain import Blame
from specchk.meaning.properties import NoAnswer, Properties, answer
from specchk.meaning.step import Faulty, Stepper
from specchk.meaning.values import State, universe
from specchk.search.replay import ReplayFailed, quiet_steps_to
from specchk.search.verdict import Step, Trace
from specchk.symbolic.ranges import with_checks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplayPath:
    """States out of a model, and the greatest number that was chosen in steps between and out of them."""

    states: tuple[State, ...]
    chosen: int = 0


def raised(program: Program, path: ReplayPath) -> Program:
    """The program with horizons high enough for a path and one step more."""
    # One more for a step out of the last state, and what was chosen there without being stored.
    return raised_to(program, max(most_in(path.states) + 1, path.chosen))


def most_in(states: Sequence[State]) -> int:
    """The largest number in some states."""
    return max((number for state in states for number in _numbers(state)), default=0)


def raised_to(program: Program, high: int) -> Program:
    """The program with horizons of at least `high`.

    Where intervals that end at a horizon have shown that an offset fits a range, it is checked now.
    """
    return _with_horizon(with_checks(program), high)


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for part in value:
            yield from _numbers(part)
    else:
        yield value


def _with_horizon(found: T, high: int) -> T:
    """A copy in which every `nat upto` ends at `high` at least; equal parts stay the same objects."""
    changed: Any = found
    if isinstance(found, Int):
        changed = replace(found, high=max(found.high, high)) if found.horizon else found
    elif isinstance(found, Const) and found.ends_at_horizon:
        kind = of_shape(_with_horizon(found.type, high), Set)
        changed = replace(found, type=kind, value=tuple(sorted(universe(kind.item))))
    elif isinstance(found, tuple):
        parts = tuple([_with_horizon(part, high) for part in found])
        if any(a is not b for a, b in zip(parts, found, strict=True)):
            changed = parts
    elif (
        # Any node of the core, by its fields: a new kind of node needs no line here.
        is_dataclass(found)
        and not isinstance(found, type)
        and type(found).__module__.startswith("specchk.ir")
    ):
        parts_ = {f.name: _with_horizon(getattr(found, f.name), high) for f in fields(found)}
        if any(part is not getattr(found, name) for name, part in parts_.items()):
            changed = replace(found, **parts_)
    result: T = changed
    return result


class Unended(Stepper):
    """Steps that no horizon ends; sets of all numbers are listed up to theirs."""

    def make_evaluator(self) -> Evaluator:
        """One that stores numbers above a horizon."""
        # A step may compute more than any number of the path, `b' = 2 * a`, and go on from there: to a
        # statement that is undefined, which must not be hidden by the end of the step.
        return Evaluator(self.size, self.counts, horizons=False)


class Replay:
    """Takes paths in a program whose horizons are high enough (`raised`)."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.stepper = Unended(self.program)
        self.properties = Properties(self.program, self.stepper)
        self.ends = Ends(self.program, self.stepper, self.properties)

    def trace(self, states: Sequence[State]) -> Trace:
        """The trace along the states, actions filled in; it need not start in an initial state."""
        steps: list[Step] = []
        for before, after in itertools.pairwise(states):
            steps_between = self._steps(before, after)
            if not steps_between:
                raise ReplayFailed(f"no step leads from state {len(steps) + 1} of the path to the next")
            # Whichever leads there: the states are given, so nothing after it depends on the choice.
            steps.append(steps_between[0])
        return Trace(states[0], tuple(steps))

    def _steps(self, before: State, after: State) -> list[Step]:
        """The steps between two states, also where another step out of the first one is undefined.

        No search expands such a state, but induction may begin in one: that it is reached is not known.
        """
        try:
            return quiet_steps_to(self.program, self.stepper, before, after, None)
        except Faulty:
            return list(self._defined_steps(before, after))

    def _defined_steps(self, before: State, after: State) -> Iterator[Step]:
        for index, action in enumerate(self.program.actions):
            for args in self._arguments(action):
                with suppress(Faulty):
                    # One instance at a time: where another one is undefined, `successors` would give
                    # nothing for the whole state.
                    if after in [found[2] for found in self.stepper.of_action(before, index, args)]:
                        yield Step.of(self.program, index, args, after)

    def failed(self, trace: Trace) -> list[tuple[str, str, Blame | None]]:
        """The violation at the end of a trace or in a step out of it: kind, name and blame."""
        state = trace.last
        return [*self.met(trace), *self._faults(state)]

    def met(self, trace: Trace) -> list[tuple[str, str, Blame | None]]:
        """As `failed`, of the last state and the step to it."""
        before = trace.states[-2] if trace.steps else None
        env = self.properties.environment(trace.last)
        found = [(kind, p.name, b) for p, kind, b in self.properties.failed(env, self.properties.invariants)]
        if before is not None:
            env = self.properties.environment(before, trace.last)
            rows = self.properties.failed(env, self.properties.steps)
            found += [(kind, prop.name, blame) for prop, kind, blame in rows]
        return [*found, *self._unclear(trace.last)]

    def reaches(self, state: State, name: str) -> bool:
        """Whether a state satisfies the witness of a name."""
        env = self.properties.environment(state)
        return any(answer(prop, test, env) for prop, test in self.properties.witnesses if prop.name == name)

    def left(self, state: State) -> list[tuple[str, str, Blame | None]]:
        """As `failed`, of the steps out of a state: one has no meaning, or there is none."""
        return [*self._undefined(state), *self._ended(state)]

    def _ended(self, state: State) -> list[tuple[str, str, Blame | None]]:
        """Whether a state is a deadlock, or one without steps for which `deadlock ok` has no value.

        The caller has found that no number enables a step, listed or not.  Open numbers confirm that where
        they can be computed with; elsewhere only the listed ones do.
        """
        try:
            is_deadlock = self.ends.end(state) in (End.DEADLOCK, End.UNDECIDED)
        except NoAnswer as reason:
            return [("undefined", reason.name, reason.blame)]
        return [("deadlock", "deadlock", None)] if is_deadlock else []

    def _unclear(self, state: State) -> list[tuple[str, str, Blame | None]]:
        """The constraint, or else the witnesses of a state inside of all, that have no value."""
        env = self.properties.environment(state)
        try:
            witnesses = self.properties.witnesses if self.properties.inside(env) else []
        except NoAnswer as reason:
            return [("undefined", reason.name, reason.blame)]
        found: list[tuple[str, str, Blame | None]] = []
        for prop, test in witnesses:
            try:
                answer(prop, test, env)
            except NoAnswer as reason:
                found.append(("undefined", reason.name, reason.blame))
        return found

    def _faults(self, state: State) -> Iterator[tuple[str, str, Blame | None]]:
        """The actions that have no meaning in a state, each once."""
        for index, action in enumerate(self.program.actions):
            try:
                for args in self._arguments(action):
                    self.stepper.of_action(state, index, args)
            except Faulty as fault:
                yield "undefined", action.name, Blame.of_fault(self.program, fault)

    def _arguments(self, action: Action) -> Iterator[tuple[Value, ...]]:
        return itertools.product(*(sorted(universe(param.type)) for param in action.params))

    def _undefined(self, state: State) -> list[tuple[str, str, Blame | None]]:
        try:
            self.stepper.successors(state)
        except Faulty as fault:
            name = self.program.actions[fault.action].name
            return [("undefined", name, Blame.of_fault(self.program, fault))]
        return []
