"""The API of the explorer's page: positions, pictures, exports, each a pure function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specchk.explore.view import Viewer
from specchk.explore.walk import DEADLOCK, Position, Walker
from specchk.explore.written import expression_of, value_of
from specchk.ir.program import Program
from specchk.ir.types import Map, Record, Type
from specchk.meaning.explain import Blame
from specchk.meaning.values import State, positions, show
from specchk.report.diff import changes, parts
from specchk.report.draw import lanes
from specchk.report.draw.picture import picture
from specchk.report.draw.render import svg_element
from specchk.report.draw.text import text
from specchk.search.verdict import Step, Trace, Violation

MOST_STARTS = 1000  # initial states in the page's list; an address reaches the others, too


def about(walker: Walker) -> dict[str, Any]:
    """The spec, the model, and the possible targets of a jump."""
    program = walker.program
    return {
        "spec": program.spec,
        "model": program.model,
        "initial": len(walker.initial),
        "starts": _starts(walker),
        "witnesses": [prop.name for prop in program.witnesses],
        "properties": [prop.name for prop in (*program.invariants, *program.step_invariants)] + [DEADLOCK],
    }


def _starts(walker: Walker) -> list[str]:
    """The first initial states, each described by the variables in which they differ."""
    variables, states = walker.program.variables, walker.initial[:MOST_STARTS]
    differing = [slot for slot in range(len(variables)) if len({state[slot] for state in states}) > 1]
    return [
        ", ".join(f"{variables[slot].name} = {show(state[slot], variables[slot].type)}" for slot in differing)
        for state in states
    ]


def position(walker: Walker, at: Position) -> dict[str, Any]:
    """A position: the state with the changes of the last step, the enabled steps, the trace so far."""
    program, states = walker.program, at.trace.states
    before = states[-2] if len(states) > 1 else None
    changed = {c.variable for c in changes(program, before, states[-1])} if before is not None else set()
    return {
        "path": list(at.path),
        "trace": ["initial state", *(str(step) for step in at.trace.steps)],
        "state": [{"name": n, "value": v, "changed": n in changed} for n, v in parts(program, states[-1])],
        "enabled": [
            {"label": str(step), "changes": [c.text("→") for c in changes(program, states[-1], step.state)]}
            for step in at.enabled
        ],
        "failed": [{"property": n, "kind": kind, "because": _why(why)} for n, kind, why in at.failed],
        "undefined": _undefined(at.fault),
    }


def _undefined(fault: Violation | None) -> str | None:
    return f"{fault.name}: {fault.blame.text}" if fault is not None and fault.blame is not None else None


def _why(blame: Blame) -> str:
    bound = ", ".join(f"{name} = {value}" for name, value in blame.bindings)
    return f"for {bound}: {blame.text}" if bound else blame.text


def drawing(walker: Walker, at: Position) -> dict[str, Any]:
    """The trace so far as lanes: `svg` (null without Graphviz), and the same as text."""
    drawn = picture(Viewer(walker.instance), at.trace, None)
    return {"svg": svg_element(lanes.dot(drawn), placed=True), "text": text(drawn)}


def scenario(walker: Walker, trace: Trace) -> str:
    """The trace as a scenario to paste into the spec; choices are determined by their changes."""
    lines = [f"scenario explored on {walker.program.model}:"]
    for _, before, step in trace.numbered:
        # Several outcomes of one step: a scenario needs a `where` that picks this one.
        twins = {twin.state for twin in walker.enabled(before) if str(twin) == str(step)} - {step.state}
        where = f" where {_pin(walker, step.state, twins)}" if twins else ""
        lines.append(f"    {_call(walker.program, step)}{where}")
    return "\n".join(lines) + "\n"


def _call(program: Program, step: Step) -> str:
    action = next(action for action in program.actions if action.name == step.action)
    kinds = [param.type for param in action.params]
    args = [expression_of(value_of(arg, kind), kind) for arg, kind in zip(step.args, kinds, strict=True)]
    return f"{step.action}({', '.join(args)})"


def _pin(walker: Walker, state: State, twins: set[State]) -> str:
    """The conditions that distinguish a state from the others to which the same step may lead."""
    conditions = [
        condition
        for slot, (variable, value) in enumerate(zip(walker.program.variables, state, strict=True))
        for condition in _places(variable.name, variable.type, value, [twin[slot] for twin in twins])
    ]
    return " and ".join(conditions)


def _places(place: str, kind: Type, value: Any, others: list[Any]) -> Iterator[str]:
    """The equations of the places in a value that distinguish it from others.

    Only these: a `where` with all of them would break with any change.  A map is no whole, since a literal of
    it has keys that are names or numbers.
    """
    if all(other == value for other in others):
        return
    match kind:
        case Map():
            for at, key in enumerate(positions(kind.key)):
                part = f"{place}[{expression_of(key, kind.key)}]"
                yield from _places(part, kind.value, value[at], [other[at] for other in others])
        case Record(is_tuple=False):
            for at, (name, part_kind) in enumerate(kind.fields):
                yield from _places(f"{place}.{name}", part_kind, value[at], [other[at] for other in others])
        case _:
            yield f"{place} == {expression_of(value, kind)}"
