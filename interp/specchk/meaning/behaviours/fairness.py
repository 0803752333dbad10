"""Fairness: the conditions that a step meets, and the conditions that are enabled in a state.

A behaviour is an infinite sequence of states; each step is one of an action or changes nothing, since
stuttering is always possible.  So a step that changes nothing is no step of an action here: it neither
takes the action nor enables it (TLA+'s <<A>>_vars).

- *weak*: an action that is enabled from some state on is taken again and again;
- *strong*: an action that is enabled again and again is taken again and again.

A step that a horizon or a constraint cuts off exists in the real system.  It enables its action and is never
taken: where nothing else is owed, a behaviour ends at the horizon and is no counterexample.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from specchk.ir.footprint import steps_list_horizon
from specchk.ir.program import Action, Program
from specchk.meaning.moves import Moves, open_moves
from specchk.meaning.paths import START, NotSymbolic
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State, show, universe


class FairCondition(Struct, frozen=True):
    """One weak or strong condition: its actions, with the values of the parameters that it fixes."""

    actions: tuple[tuple[int, Mapping[int, Any]], ...]
    strong: bool
    declared: int  # the position of its declaration in the program
    text: str

    def covers(self, action: int, args: Sequence[Any]) -> bool:
        """Whether an instance of an action belongs to the condition; an open argument (None) matches any."""
        return any(
            index == action and all(args[at] is None or args[at] == value for at, value in given.items())
            for index, given in self.actions
        )


class Outgoing(Struct, frozen=True):
    """The steps of one state that change it, each with the conditions that it meets, as a bit set.

    `enabled` are the conditions of these steps and of those that a horizon or a constraint cut off; `cut` are
    the ones that only the latter enable.
    """

    steps: tuple[tuple[State, int], ...]
    enabled: int
    cut: int


class FairSteps:
    """The steps of a program with the fairness conditions that they meet.

    `in_doubt`: whether a condition is enabled where only numbers above a horizon may enable it, and open
    numbers do not show whether one does.
    """

    def __init__(self, program: Program, *, in_doubt: bool = True) -> None:
        self.program = program
        self.in_doubt = in_doubt
        self.conditions = tuple(fair_conditions(program))
        self.all = (1 << len(self.conditions)) - 1
        self.strong = sum(1 << bit for bit, one in enumerate(self.conditions) if one.strong)
        self.weak = self.all & ~self.strong
        self.stepper = Stepper(program)
        self.properties = Properties(program, self.stepper)
        self._masks: dict[tuple[int, tuple[Any, ...]], int] = {}
        self._beyond = self._listing()
        self._moves = open_moves(program) if self._beyond else None
        self._instances: dict[int, list[tuple[Any, ...]]] = {}

    @property
    def lists_horizon(self) -> bool:
        """Whether numbers above a horizon may enable a step."""
        return bool(self._beyond)

    def mask(self, action: int, args: tuple[Any, ...]) -> int:
        """The conditions to which an instance of an action belongs."""
        key = action, args
        if key not in self._masks:
            self._masks[key] = sum(
                1 << bit for bit, one in enumerate(self.conditions) if one.covers(action, args)
            )
        return self._masks[key]

    def outgoing(self, state: State) -> Outgoing:
        """The steps of a state; if one is undefined, no steps, with all conditions enabled."""
        cuts = self.stepper.horizon_cuts
        try:
            successors = self.stepper.successors(state)
        except Faulty:  # a separate violation, which ends the behaviour
            return Outgoing((), self.all, 0)
        cut = self._cut_by_horizons(state) if self.stepper.horizon_cuts > cuts else 0
        steps: list[tuple[State, int]] = []
        taken = 0
        for action, args, after in successors:
            if after == state:
                continue
            mask = self.mask(action, args)
            if self.properties.keeps(after):
                taken |= mask
                steps.append((after, mask))
            else:
                cut |= mask
        if self._beyond:
            cut |= self._enabled_beyond(state, taken | cut)
        # Each step once: two instances with the same conditions and result differ in nothing that matters
        # here.
        return Outgoing(tuple(dict.fromkeys(steps)), taken | cut, cut & ~taken)

    def _cut_by_horizons(self, state: State) -> int:
        """The conditions of the instances that have a step cut off by a horizon."""
        conditions = 0
        # The stepper counts its cuts for a state as a whole. The instances concerned are determined by
        # trying each alone, at a cost only for states at a horizon.
        for index in {index for one in self.conditions for index, _ in one.actions}:
            if index not in self._instances:
                domains = [sorted(universe(param.type)) for param in self.program.actions[index].params]
                self._instances[index] = list(product(*domains))
            for args in self._instances[index]:
                cuts = self.stepper.horizon_cuts
                with suppress(Faulty):
                    self.stepper.of_action(state, index, args)
                if self.stepper.horizon_cuts > cuts:
                    conditions |= self.mask(index, args)
        return conditions

    def _listing(self) -> int:
        """The conditions of actions that enumerate the values of a type with a horizon."""
        actions = self.program.actions
        listing = [steps_list_horizon(replace(self.program, actions=(action,))) for action in actions]
        return sum(
            1 << bit for bit, one in enumerate(self.conditions)
            if any(listing[index] for index, _ in one.actions)
        )  # fmt: skip

    def _enabled_beyond(self, state: State, known: int) -> int:
        """The conditions not in `known` that steps with numbers above a horizon enable."""
        moves, conditions = self._moves, 0
        if moves is None:
            return self._beyond & ~known if self.in_doubt else 0
        for index, args in moves.instances:
            for bit, condition in enumerate(self.conditions):
                # Not those that are known already: trying all open numbers costs more than the rest here.
                may = condition.covers(index, args)
                if may and not (known | conditions) >> bit & 1 and self._moves_on(moves, state, index, args):
                    conditions |= 1 << bit
        return conditions

    def _moves_on(self, moves: Moves, state: State, index: int, args: tuple[Any, ...]) -> bool:
        """Whether some step of an instance changes the state, for any values of its open numbers."""

        def changes() -> bool:
            cuts = moves.horizon_cuts
            result = moves.once(state, index, args)
            # No step: none is enabled, or a horizon ended it, and then the real system has it.
            if result is None:
                return moves.horizon_cuts > cuts
            if isinstance(result[1], Undefined):
                return self.in_doubt
            return bool(result[1] != state)

        try:
            return any(list(moves.answers(changes, START)))
        except NotSymbolic:
            return self.in_doubt


def fair_conditions(program: Program) -> Iterator[FairCondition]:
    """All conditions, in the order of declarations and then of values."""
    for declared, fairness in enumerate(program.fairness):
        for row in fairness.rows:
            actions = tuple(
                (index, dict(zip(kept, values, strict=True)))
                for (index, kept), values in zip(fairness.actions, row, strict=True)
            )
            text = " or ".join(_text(program.actions[index], given) for index, given in actions)
            text = f"{'strong ' if fairness.strong else ''}fair {text}"
            yield FairCondition(actions, fairness.strong, declared, text)


def _text(action: Action, given: Mapping[int, Any]) -> str:
    shown = ", ".join(show(given[at], p.type) if at in given else "_" for at, p in enumerate(action.params))
    return f"{action.name}{f'({shown})' if given else ''}"
