"""Whether a recording may need numbers above the horizons of the model that explains it.

A horizon is where a search ends, and not the spec: a step that stores a larger number is a step.  Without
horizons (`events.steps.Horizons`) a recording is followed beyond them, except where all numbers up to one
are listed: as the value of an argument that is not recorded, in an action's statements, in an expression
that an event shows, or as an initial value.
"""

from __future__ import annotations

from collections.abc import Iterator

from specchk.conform.contract.recording import Recording
from specchk.conform.contract.tracing import ANY, Call, Meaning, Repeated, Tracing
from specchk.conform.recordings.events.fields import Fields
from specchk.ir.footprint import starts_list_horizon, statements_list_horizon
from specchk.ir.program import Action, Program
from specchk.ir.types import has_horizon


def lists_horizon(fields: Fields, tracing: Tracing, recording: Recording, number: int) -> bool:
    """Whether the numbers up to a horizon are listed for the first events, or for a silent action."""
    program, reader = fields.instance.program, tracing.again()
    meanings = [reader.meaning(event) for event in recording.events[:number]]
    shown = {one.expression for meaning in meanings for one in meaning.seen}
    actions = {action.name: action for action in program.actions}
    return (
        starts_list_horizon(program)
        or any(call_lists_horizon(actions[call.action], call) for call in _calls(program, tracing, meanings))
        or any(fields.expression(text).lists_horizon for text in shown)
    )


def call_lists_horizon(action: Action, call: Call) -> bool:
    """Whether the numbers up to a horizon are listed for a call of an action."""
    args = zip(call.args, action.params, strict=True)
    return any(arg is ANY and has_horizon(p.type) for arg, p in args) or statements_list_horizon(action)


def _calls(program: Program, tracing: Tracing, meanings: list[Meaning]) -> Iterator[Call]:
    for meaning in meanings:
        for step in (step for way in meaning.ways for step in way):
            yield step.call if isinstance(step, Repeated) else step
        yield from meaning.near or ()
    for action in program.actions:
        if action.name in tracing.silent:
            yield Call(action.name, (ANY,) * len(action.params))
