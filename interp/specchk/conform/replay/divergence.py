"""A divergence for a reader: the spec's behaviour, the two states, and their differences.

    trace      what both did
    told       the same, and the step on which they part where the spec has it
    wanted     the spec's state there, that with the fewest differences where several are allowed
    instead    the implementation's state, unobserved variables as the spec has them

All forms (text, pictures, JSON, ITF, HTML, frozen tests) tell it by these; a file of it is read
back by `read`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.replay.replay import Divergence
from specchk.explore.view import Viewer
from specchk.ir.program import Program
from specchk.meaning.values import State
from specchk.report.diff import VariableChange, changes
from specchk.report.draw.contrast import contrasted
from specchk.report.draw.picture import Picture, picture
from specchk.report.itf import trace_itf
from specchk.report.json import state_json, trace_json, value_json
from specchk.report.read import Unreadable, value_from_json
from specchk.search.verdict import Step, Trace

SCHEMA = "specchk.conform/1"  # of a report, which has the divergence as its member
# Kinds where the spec has a state after the step.
STEPPED = frozenset({"state", "refused", "outside", "raised", "fault", "died", "hung", "garbled"})
MOST_PLACES = 8  # listed at the end; all are in the last row
WORDS = MappingProxyType({
    "initial": "the implementation starts in another state",
    "refused": "the implementation refused a step that the spec allows",
    "accepted": "the implementation took a step that the spec forbids",
    "state": "the implementation took the step to a state that the spec does not allow",
    "changed": "the implementation refused the step, as the spec does, but changed its state",
    "outside": "the implementation is in a state that the spec cannot express",
    "ambiguous": "the binding observes too little to continue",
    "restored": "the binding's snapshots are wrong",
    "reopened": "the implementation's state on disk differs from its state in memory",
    "fault": "a fault inside a step left a state that the spec does not allow",
    "raised": "the implementation failed with an exception",
    "died": "the implementation's process ended",
    "hung": "the implementation did not answer in time",
    "garbled": "the implementation broke the protocol",
    "unrepeatable": "the same requests have another outcome when they are repeated",
})  # fmt: skip


def wanted(program: Program, found: Divergence) -> State | None:
    """The allowed state with the fewest differences; None where the spec allows none."""
    # The nearest of several is what a reader compares with.
    return min(found.expected, key=lambda state: len(differences(program, found, state)), default=None)


def instead(found: Divergence, beside: State | None) -> State | None:
    """The implementation's state, completed from the spec's; None where it is unknown."""
    if found.found is None or beside is None:
        return None
    pairs = zip(beside, found.found, strict=True)
    return tuple(spec if seen is None else seen for spec, seen in pairs)


def differences(program: Program, found: Divergence, beside: State | None) -> list[VariableChange]:
    """Every place in which the implementation's state is not the spec's."""
    other = instead(found, beside)
    return [] if other is None or beside is None else changes(program, beside, other)


def told(program: Program, found: Divergence) -> Trace:
    """The spec's behaviour, with the step on which they part where the spec has it."""
    state = wanted(program, found)
    if found.step is None or state is None or found.kind not in STEPPED:
        return found.trace
    step = Step(found.step.action, found.step.args, state)
    return Trace(found.trace.initial, (*found.trace.steps, step))


def step_text(found: Divergence) -> str:
    """`step 20: apply_response(b2), after waiting`; empty where there is no step."""
    if found.step is None:
        return ""
    way = f", {found.way}" if found.way else ""
    return f"step {len(found.trace.steps) + 1}: {found.step}{way}"


def drawn(instance: Instance, found: Divergence) -> Picture:
    """The picture: the spec's behaviour, the implementation's state as a last row, the reason."""
    viewer, beside = Viewer(instance), wanted(instance.program, found)
    trace = told(instance.program, found)
    if found.kind == "initial" and beside is not None:
        trace = Trace(beside, ())
    spec = picture(viewer, trace, None, "as in the spec", _ending(instance.program, found, beside))
    other = instead(found, beside)
    if other is None or beside is None:
        return spec
    by = found.step if found.kind in ("accepted", "changed") else None
    title = "the implementation instead" if by is None else f"the implementation, after {by}"
    return contrasted(viewer, spec, beside, other, title)


def _ending(program: Program, found: Divergence, beside: State | None) -> tuple[str, ...]:
    """The kind of divergence, the step, the reason, and the first differences."""
    places = [
        f"{change.path}: the spec has {change.before}, the implementation {change.after}"
        for change in differences(program, found, beside)
    ]
    more = [f"and {len(places) - MOST_PLACES} more"] if len(places) > MOST_PLACES else []
    first = f"diverges: {WORDS[found.kind]}"
    said = (first, step_text(found), *found.reason.splitlines(), *places[:MOST_PLACES], *more)
    return tuple(filter(None, said))


def as_json(program: Program, found: Divergence) -> dict[str, Any]:
    """Everything of it; `read` is the inverse."""
    beside = wanted(program, found)
    return {
        "kind": found.kind,
        "path": [str(step) for step in found.trace.steps],
        "ways": list(found.ways),
        "step": None if found.step is None else str(found.step),
        "action": None if found.step is None else found.step.action,
        "args": [] if found.step is None else list(found.step.args),
        "way": found.way or None,
        "reason": found.reason,
        "found_after": found.found_after,
        "differences": [
            {"place": change.path, "spec": change.before, "implementation": change.after}
            for change in differences(program, found, beside)
        ],
        "trace": trace_json(program, found.trace),
        "spec_states": [state_json(program, state) for state in found.expected],
        "implementation_state": _found_json(program, found),
    }


def _found_json(program: Program, found: Divergence) -> dict[str, Any] | None:
    if found.found is None:
        return None
    pairs = zip(program.variables, found.found, strict=True)
    return {v.name: value_json(value, v.type) for v, value in pairs if value is not None}


def read(program: Program, trace: Trace, found: Mapping[str, Any]) -> Divergence:
    """The divergence of a JSON report whose trace was read already; raises `Unreadable`."""
    if found.get("kind") not in WORDS or not isinstance(found.get("spec_states"), list):
        raise Unreadable("its divergence is of no known kind")
    action, args = found.get("action"), found.get("args") or ()
    # The step's own state is not used: it diverged, so the spec has none, or several.
    step = Step(action, tuple(map(str, args)), trace.last) if isinstance(action, str) else None
    expected = tuple(_whole(program, state) for state in found["spec_states"])
    seen = found.get("implementation_state")
    return Divergence(
        found["kind"], trace, step, str(found.get("way") or ""), str(found.get("reason") or ""), expected,
        None if seen is None else _observed(program, seen), tuple(map(str, found.get("ways") or ())),
        found.get("found_after"),
    )  # fmt: skip


def _observed(program: Program, state: Any) -> tuple[Any, ...]:
    if not isinstance(state, dict):
        raise Unreadable("a state is an object, one member a variable")
    variables = program.variables
    return tuple(value_from_json(state[v.name], v.type) if v.name in state else None for v in variables)


def _whole(program: Program, state: Any) -> State:
    found = _observed(program, state)
    if None in found:
        raise Unreadable("a state of the spec lacks a variable")
    return found


def as_itf(program: Program, found: Divergence) -> dict[str, Any]:
    """The spec's behaviour as an ITF trace; the divergence itself is in its `#meta`."""
    itf = trace_itf(program, told(program, found), None)
    about = as_json(program, found)
    kept = ("kind", "step", "way", "reason", "differences", "implementation_state")
    itf["#meta"]["divergence"] = {name: about[name] for name in kept}
    return itf
