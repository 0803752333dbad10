"""A divergence as reported: the spec's behaviour, the two states, and their differences.

    trace      what both did
    spec_trace the same, and the diverging step if the spec has it
    wanted     the spec's state there, the one with the fewest differences if several are allowed
    instead    the implementation's state, unobserved variables as the spec has them

All forms (text, pictures, JSON, ITF, HTML, frozen tests) consist of these; a file of it is read
back by `read`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from specchk.compile.instantiate import Instance
from specchk.conform.replay.place import Divergence
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
    "hung": "the implementation did not respond in time",
    "garbled": "the implementation broke the protocol",
    "unrepeatable": "the same requests have another outcome when they are repeated",
})  # fmt: skip


def wanted(program: Program, divergence: Divergence) -> State | None:
    """The allowed state with the fewest differences; None if the spec allows none."""
    # The nearest of several is used for the comparison.
    return min(
        divergence.expected, key=lambda state: len(differences(program, divergence, state)), default=None
    )


def instead(divergence: Divergence, beside: State | None) -> State | None:
    """The implementation's state, completed from the spec's; None if it is unknown."""
    if divergence.found is None or beside is None:
        return None
    pairs = zip(beside, divergence.found, strict=True)
    return tuple(spec if seen is None else seen for spec, seen in pairs)


def differences(program: Program, divergence: Divergence, beside: State | None) -> list[VariableChange]:
    """The places in which the implementation's state differs from the spec's."""
    actual = instead(divergence, beside)
    return [] if actual is None or beside is None else changes(program, beside, actual)


def spec_trace(program: Program, divergence: Divergence) -> Trace:
    """The spec's behaviour, with the diverging step if the spec has it."""
    state = wanted(program, divergence)
    if divergence.step is None or state is None or divergence.kind not in STEPPED:
        return divergence.trace
    step = Step(divergence.step.action, divergence.step.args, state)
    return Trace(divergence.trace.initial, (*divergence.trace.steps, step))


def step_text(divergence: Divergence) -> str:
    """The step in words: `step 20: apply_response(b2), after waiting`; empty if there is none."""
    if divergence.step is None:
        return ""
    way = f", {divergence.way}" if divergence.way else ""
    return f"step {len(divergence.trace.steps) + 1}: {divergence.step}{way}"


def drawn(instance: Instance, divergence: Divergence) -> Picture:
    """The picture: the spec's behaviour, the implementation's state as a last row, and the reason."""
    viewer, nearest = Viewer(instance), wanted(instance.program, divergence)
    trace = spec_trace(instance.program, divergence)
    if divergence.kind == "initial" and nearest is not None:
        trace = Trace(nearest, ())
    spec = picture(viewer, trace, None, "as in the spec", _ending(instance.program, divergence, nearest))
    actual = instead(divergence, nearest)
    if actual is None or nearest is None:
        return spec
    by = divergence.step if divergence.kind in ("accepted", "changed") else None
    title = "the implementation instead" if by is None else f"the implementation, after {by}"
    return contrasted(viewer, spec, nearest, actual, title)


def _ending(program: Program, divergence: Divergence, beside: State | None) -> tuple[str, ...]:
    """The kind of divergence, the step, the reason, and the first differences."""
    places = [
        f"{change.path}: the spec has {change.before}, the implementation {change.after}"
        for change in differences(program, divergence, beside)
    ]
    more = [f"and {len(places) - MOST_PLACES} more"] if len(places) > MOST_PLACES else []
    first = f"diverges: {WORDS[divergence.kind]}"
    # What a binding says of a refusal may be a bare word of the implementation's.
    says = "the implementation says: " if divergence.kind == "refused" and divergence.reason else ""
    reasons = f"{says}{divergence.reason}".splitlines()
    said = (first, step_text(divergence), *reasons, *places[:MOST_PLACES], *more)
    return tuple(filter(None, said))


def as_json(program: Program, divergence: Divergence) -> dict[str, Any]:
    """The complete divergence as JSON; `read` is the inverse."""
    beside = wanted(program, divergence)
    return {
        "kind": divergence.kind,
        "path": [str(step) for step in divergence.trace.steps],
        "ways": list(divergence.ways),
        "step": None if divergence.step is None else str(divergence.step),
        "action": None if divergence.step is None else divergence.step.action,
        "args": [] if divergence.step is None else list(divergence.step.args),
        "way": divergence.way or None,
        "reason": divergence.reason,
        "found_after": divergence.found_after,
        "differences": [
            {"place": change.path, "spec": change.before, "implementation": change.after}
            for change in differences(program, divergence, beside)
        ],
        "trace": trace_json(program, divergence.trace),
        "spec_states": [state_json(program, state) for state in divergence.expected],
        "implementation_state": _found_json(program, divergence),
    }


def _found_json(program: Program, divergence: Divergence) -> dict[str, Any] | None:
    if divergence.found is None:
        return None
    pairs = zip(program.variables, divergence.found, strict=True)
    return {v.name: value_json(value, v.type) for v, value in pairs if value is not None}


def read(program: Program, trace: Trace, report: Mapping[str, Any]) -> Divergence:
    """The divergence in a JSON report whose trace was already read; raises `Unreadable`."""
    if report.get("kind") not in WORDS or not isinstance(report.get("spec_states"), list):
        raise Unreadable("its divergence is of no known kind")
    action, args = report.get("action"), report.get("args") or ()
    # The step's own state is not used: it diverged, so the spec has none, or several.
    step = Step(action, tuple(map(str, args)), trace.last) if isinstance(action, str) else None
    expected = tuple(_whole(program, state) for state in report["spec_states"])
    seen = report.get("implementation_state")
    return Divergence(
        report["kind"], trace, step, str(report.get("way") or ""), str(report.get("reason") or ""), expected,
        None if seen is None else _observed(program, seen), tuple(map(str, report.get("ways") or ())),
        report.get("found_after"),
    )  # fmt: skip


def _observed(program: Program, state: Any) -> tuple[Any, ...]:
    if not isinstance(state, dict):
        raise Unreadable("a state is an object, one member a variable")
    variables = program.variables
    return tuple(value_from_json(state[v.name], v.type) if v.name in state else None for v in variables)


def _whole(program: Program, state: Any) -> State:
    values = _observed(program, state)
    if None in values:
        raise Unreadable("a state of the spec lacks a variable")
    return values


def as_itf(program: Program, divergence: Divergence) -> dict[str, Any]:
    """The spec's behaviour as an ITF trace; the divergence itself is in its `#meta`."""
    itf = trace_itf(program, spec_trace(program, divergence), None)
    about = as_json(program, divergence)
    kept = ("kind", "step", "way", "reason", "differences", "implementation_state")
    itf["#meta"]["divergence"] = {name: about[name] for name in kept}
    return itf
