"""Steps of named instances: only the states after them are needed, and no coverage is counted.

Not here: the definition of a step (`meaning.step`), and the instances named by an event (`reading`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from specchk.ir.program import Action, Program
from specchk.ir.range_checks import with_checks
from specchk.ir.ranges import without_horizons
from specchk.ir.types import Type
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Compiled, Run, Stepper
from specchk.meaning.texts.joined import RuleText, called
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, Values

MOST_COMPARED = 8  # states that are compared in pairs


class Horizons(Enum):
    """Whether a step that stores a number above a `nat upto` horizon is cut off, as in a search.

    `OPEN`: nor are numbers that no event shows taken from those up to the horizon.
    """

    KEPT = "kept"
    LIFTED = "lifted"
    OPEN = "open"

    def of_type(self, kind: Type) -> Type:
        """The type of values that a step may store where one of this type is declared."""
        return kind if self is Horizons.KEPT else without_horizons(kind)


def distinct(states: Sequence[State], known: Sequence[State] = ()) -> tuple[State, ...]:
    """The states that are not among the known ones, each once, in order."""
    # Mostly there are one or two.  A hash reads hundreds of numbers, and is not kept; a comparison of two
    # states ends where they differ, and skips what they share.
    if len(states) + len(known) > MOST_COMPARED:
        others = dict.fromkeys(known)
        return tuple(dict.fromkeys(state for state in states if state not in others))
    kept: list[State] = []
    for state in states:
        if state not in kept and state not in known:
            kept.append(state)
    return tuple(kept)


class NamedSteps(Stepper):
    """A stepper whose actions add the states after their steps to `reached`."""

    def __init__(self, program: Program, horizons: Horizons = Horizons.KEPT) -> None:
        self.reached: list[State] = []
        self.horizons = horizons
        # Where intervals that end at a horizon have shown that a value fits its place, it is checked now.
        super().__init__(program if horizons is Horizons.KEPT else with_checks(program))
        self._env = self._fresh()

    def make_evaluator(self) -> Evaluator:
        """The compiler of expressions, without coverage, since a recording is not a search."""
        return Evaluator(self.size, horizons=self.horizons is Horizons.KEPT)

    def compiled(self, index: int, action: Action, values: Values) -> NamedAction:
        """One action's functions."""
        return NamedAction(self, index, action, values)

    def initial(self) -> tuple[State, ...]:
        """The initial states."""
        return tuple(initial_states(self.program))

    def after(self, before: Iterable[State], index: int, instances: Iterable[Sequence[Any]]) -> list[State]:
        """The states after an action's instances in some states, with repetitions.

        An instance that has no meaning in a state is no step there.
        """
        reached, body, env = self.reached, self._compiled[index].body, self._env
        first = self.evaluator.first_local
        reached.clear()
        for state in before:
            for args in instances:
                known = len(reached)
                env[:first] = state + state
                env[first : first + len(args)] = args
                try:
                    body(env)
                except Undefined:
                    del reached[known:]
                    # Assignments are not undone then.
                    self._env = env = self._fresh()
        return reached.copy()

    def _fresh(self) -> list[Any]:
        """An environment for all steps: each undoes its writes, and reads only locals that it has bound."""
        return [None] * self.evaluator.first_local + list(self._blank)


class NamedAction(Compiled):
    """Compiles one action for `NamedSteps`."""

    stepper: NamedSteps

    def _reach(self, first: int, count: int) -> Run:
        del first, count
        append, begin, end = self.stepper.reached.append, self.size, 2 * self.size

        def reach(e: list[Any]) -> None:
            append(tuple(e[begin:end]))

        return reach

    def _counted(self, run: Run) -> Run:
        return run

    def _covered(self, point: int, run: Run) -> list[RuleText]:
        del point
        return [called(run)]
