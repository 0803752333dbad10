"""Whether a state without enabled steps is a deadlock, or only the end of a horizon.

An enumerating engine tries the numbers of a `nat upto N` up to N: as arguments, in `any n in Offset`,
in quantifiers.  If all of these are refused a larger number may still be accepted, and then the state is not
a deadlock: the search ends there, not the protocol.  So the actions are tried again, with open numbers
(`moves`) instead of enumerated ones, and without horizons.

    any p in Offset:            a = 3, MaxOffset = 3: nothing to choose, but 4 would do
        require p > a

An instance of an action that no listed number enables is tried in the same way (`OpenInstances`).

Every engine uses this module for its reports, so a deadlock, too, is confirmed by the reference stepper.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import cached_property, partial
from typing import Any

from specchk.ir.footprint import statements_list_horizon, steps_list_horizon
from specchk.ir.program import Program
from specchk.meaning.moves import Moves, open_moves
from specchk.meaning.paths import START, NotSymbolic
from specchk.meaning.properties import NoAnswer, Properties
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.meaning.values import State


class End(Enum):
    """The kind of a state in which no listed step is enabled."""

    ALLOWED = auto()  # `deadlock ok` is true
    DEADLOCK = auto()
    BOUNDED = auto()  # some number beyond a horizon enables a step
    UNDECIDED = auto()  # perhaps one does: open numbers do not show it


class Ends:
    """Distinguishes deadlocks of a program from ends of its horizons."""

    def __init__(self, program: Program, stepper: Stepper, properties: Properties) -> None:
        self.program = program
        self.stepper = stepper
        self.properties = properties
        self.lists_horizon = steps_list_horizon(program)

    def end(self, state: State) -> End | None:
        """The kind of a state without enabled steps, else None; `NoAnswer` if `deadlock ok` is undefined.

        Counts of the stepper are left as they were.
        """
        cuts = self.stepper.horizon_cuts
        try:
            with self.stepper.uncounted():
                successors = self.stepper.successors(state)
                is_cut = self.stepper.horizon_cuts > cuts
        except Faulty:
            return None
        # A step above a horizon was there, though it was not taken.
        return None if successors or is_cut else self.without_steps(state)

    def is_deadlock(self, state: State) -> bool:
        """Whether a state is certainly a deadlock."""
        try:
            return self.end(state) is End.DEADLOCK
        except NoAnswer:
            return False

    def without_steps(self, state: State) -> End:
        """The kind of a state without enabled steps; `NoAnswer` if `deadlock ok` is undefined."""
        # First, since it is one evaluation, and open numbers are a run of every action.
        if self.properties.may_deadlock(self.properties.environment(state)):
            return End.ALLOWED
        return self._beyond(state) if self.lists_horizon else End.DEADLOCK

    def _beyond(self, state: State) -> End:
        moves = self._moves
        if moves is None:
            return End.UNDECIDED
        try:
            # Nothing is open in a real state, so the one matrix is idle whole or not at all.
            return End.DEADLOCK if moves.idle(state, START) else End.BOUNDED
        except NotSymbolic:
            return End.UNDECIDED

    @cached_property
    def _moves(self) -> Moves | None:
        return open_moves(self.program)


class OpenInstances:
    """Distinguishes instances that no number enables from those that one beyond a horizon may enable."""

    def __init__(self, program: Program) -> None:
        self.program = program
        # Arguments are given; it is statements that list numbers.
        actions = enumerate(program.actions)
        self._listing = frozenset(index for index, action in actions if statements_list_horizon(action))

    def lists(self, index: int) -> bool:
        """Whether statements of an action use all numbers up to a horizon."""
        return index in self._listing

    def may_step(self, state: State, index: int, args: tuple[Any, ...]) -> bool:
        """Whether an instance that no listed number enables may have a step in a state."""
        if not self.lists(index):
            return False
        moves = self._moves
        if moves is None:
            return True
        try:
            steps = moves.answers(partial(moves.once, state, index, args), START)
            return any(step is not None for step in steps)
        except NotSymbolic:
            return True

    @cached_property
    def _moves(self) -> Moves | None:
        return open_moves(self.program)
