"""Traces of real steps: from a path of states to the actions that take it.

The reference stepper takes the path of any engine here, step by step, from an initial
state; a path that cannot be taken is a bug of that engine (`ReplayFailed`).  Under symmetry a path
is of representatives, and a concrete behaviour through their classes is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from specchk.ir.program import Program, Same
from specchk.meaning.initial import initial_states, tries
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Step, Trace

CONFIRMING = 200  # states that confirm the found invariants: some milliseconds, tens for a large spec
BEGINNINGS = 2_000  # values tried for the initial states; where there are more, nothing is confirmed


class ReplayFailed(Exception):
    """An engine reported a path, or a property as true, against the semantics of the spec."""


def has_first_states(program: Program) -> bool:
    """Whether the initial states are few enough for a search of the first states by the reference."""
    try:
        return tries(program, BEGINNINGS) <= BEGINNINGS
    except Undefined:
        return True  # found again by that search


def rebuild(program: Program, stepper: Stepper, path: Sequence[State], symmetry: Symmetry | None) -> Trace:
    """The trace along a path of states (representatives under symmetry), with its actions.

    The counts of the stepper are left as they were: replaying is not coverage.
    """
    current = _initial(Same(program), path[0], symmetry)
    initial = current
    steps: list[Step] = []
    for wanted in path[1:]:
        ways = quiet_steps_to(program, stepper, current, wanted, symmetry)
        if not ways:
            raise ReplayFailed(f"no step leads from state {len(steps) + 1} of the trace to the next")
        steps.append(ways[0])
        # Any of them: the states of a class have the same behaviours up to renaming, so no choice here can
        # make the rest of the path impossible.
        current = ways[0].state
    return Trace(initial, tuple(steps))


@lru_cache(maxsize=16)  # most traces of a search begin in one state, perhaps of a million
def _initial(same: Same, wanted: State, symmetry: Symmetry | None) -> State:
    for state in initial_states(same.program):
        if state == wanted or (symmetry is not None and symmetry.canonical(state) == wanted):
            return state
    raise ReplayFailed("the trace does not start in an initial state")


def quiet_steps_to(
    program: Program, stepper: Stepper, state: State, wanted: State, symmetry: Symmetry | None
) -> list[Step]:
    """As `step_to`, leaving the stepper's counts unchanged: a replay is not coverage."""
    with stepper.uncounted():
        return list(step_to(program, stepper, state, wanted, symmetry))


def step_to(
    program: Program, stepper: Stepper, state: State, wanted: State, symmetry: Symmetry | None
) -> Iterator[Step]:  # fmt: skip
    """The steps from a state to `wanted` or, under symmetry, to its class."""
    goal = wanted if symmetry is None else symmetry.canonical(wanted)
    for index, args, after in stepper.successors(state):
        if (after if symmetry is None else symmetry.canonical(after)) == goal:
            yield Step.of(program, index, args, after)
