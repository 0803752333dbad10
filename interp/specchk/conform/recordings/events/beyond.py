"""Whether a recording may need numbers above the horizons of the model that explains it.

A horizon is where a search ends, and not the spec: a step that stores a larger number is a step.  Without
horizons (`events.steps.Horizons`) a recording is followed beyond them, except where an action lists all
numbers up to one: as the value of an argument that is not recorded, or in its statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from specchk.conform.contract.recording import Recording
from specchk.conform.contract.tracing import ANY, Call, Repeated, Tracing
from specchk.ir.footprint import statements_list_horizon
from specchk.ir.program import Program
from specchk.ir.types import has_horizon
from specchk.meaning.evaluate import misfit
from specchk.meaning.values import State


def leaves_horizons(program: Program, states: Iterable[State]) -> bool:
    """Whether a state has a number above a horizon."""
    misfits = [misfit(variable.type) for variable in program.variables]
    return any(describe(value) for state in states for describe, value in zip(misfits, state, strict=True))


def lists_horizon(program: Program, tracing: Tracing, recording: Recording, number: int) -> bool:
    """Whether a call of the first events, or a silent action, lists the numbers up to a horizon."""
    return any(map(partial(_lists, program), _calls(program, tracing.again(), recording, number)))


def _calls(program: Program, tracing: Tracing, recording: Recording, number: int) -> Iterator[Call]:
    for event in recording.events[:number]:
        meaning = tracing.meaning(event)
        for step in (step for way in meaning.ways for step in way):
            yield step.call if isinstance(step, Repeated) else step
    for action in program.actions:
        if action.name in tracing.silent:
            yield Call(action.name, (ANY,) * len(action.params))


def _lists(program: Program, call: Call) -> bool:
    action = next(one for one in program.actions if one.name == call.action)
    open_ = any(
        arg is ANY and has_horizon(param.type) for arg, param in zip(call.args, action.params, strict=True)
    )
    return open_ or statements_list_horizon(action)
