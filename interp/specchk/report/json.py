"""Reports as JSON: one object for each run, complete and versioned.

`schema` names the form; fields are only ever added to a version.  Values: numbers and booleans as
they are, names as strings, `none` as null and `some(x)` as `{"some": x}`, records as objects,
union values as `{"tag": ..., fields}`, or `{"tag": ..., "value": {fields}}` with a field `tag`, maps as
objects where keys are scalars (else as a list of pairs), sets, sequences and bags as lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from msgspec import to_builtins

from specchk.explore.scenario import ScenarioResult
from specchk.ir.footprint import live_points, switched_off
from specchk.ir.nodes import Value
from specchk.ir.program import Program, Same, allows_any_end
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.explain import Blame
from specchk.meaning.values import State, int_of, pairs_of, show, universe
from specchk.report.diff import changes
from specchk.report.text import selected
from specchk.search.verdict import (
    AbstractStep,
    HoldsWithin,
    Inconclusive,
    Outcome,
    Trace,
    Violation,
    WalkCounts,
    name_of,
    violations_of,
)

SCHEMA = "specchk.run/1"


def value_json(value: Value, kind: Type) -> Any:
    """A value in JSON."""
    if isinstance(kind, Bool):
        return bool(value)
    if isinstance(kind, Int):
        return value
    if isinstance(kind, Enum | Sort):
        return kind.members[int_of(value)]
    assert isinstance(value, tuple)
    match kind:
        case Option():
            return {"some": value_json(value[0], kind.item)} if value else None
        case Record(is_tuple=True):
            return [value_json(v, item) for (_, item), v in zip(kind.fields, value, strict=True)]
        case Record():
            return {name: value_json(v, item) for (name, item), v in zip(kind.fields, value, strict=True)}
        case Union():
            name, record = kind.variants[int_of(value[0])]
            if record.element is not None:
                return show(value, kind)
            fields = value_json(value[1], record)
            # A field that is named so would take the place of the tag.
            return {"tag": name, **({"value": fields} if "tag" in fields else fields)}
        case Map():
            return _map_json(value, kind)
        case Set(keyed=True):
            key, item = kind.pair
            return [[value_json(k, key), value_json(v, item)] for k, v in pairs_of(value)]
        case Set() | Seq() | Bag():
            return [value_json(item, kind.item) for item in value]


def _map_json(value: tuple[Value, ...], kind: Map) -> Any:
    pairs = list(zip(sorted(universe(kind.key)), value, strict=True))
    if isinstance(kind.key, Bool | Int | Enum | Sort):
        return {show(key, kind.key): value_json(item, kind.value) for key, item in pairs}
    return [[value_json(key, kind.key), value_json(item, kind.value)] for key, item in pairs]


def state_json(program: Program, state: State) -> dict[str, Any]:
    """A state as an object, with one member for each variable; equal values are one object."""
    return {name: of(value) for (name, of), value in zip(_members(Same(program)), state, strict=True)}


@lru_cache(maxsize=2)
def _members(same: Same) -> list[tuple[str, Callable[[Value], Any]]]:
    # The states of traces share most values of their variables.
    return [(v.name, lru_cache(1 << 10)(partial(value_json, kind=v.type))) for v in same.program.variables]


def model_json(program: Program) -> dict[str, Any]:
    """The model: its name, constants and sorts."""
    return {
        "model": program.model,
        "constants": {const.name: value_json(const.value, const.type) for const in program.constants},
        "sorts": {sort.name: list(sort.members) for sort in program.sorts},
    }


def trace_json(program: Program, trace: Trace) -> list[dict[str, Any]]:
    """A trace: state 0 without an action, then each step with its whole state and its changes."""
    initial: list[dict[str, Any]] = [
        {"index": 0, "action": None, "args": [], "state": state_json(program, trace.initial), "changed": []}
    ]
    # Whole states and what changed: a reader that wants one of them need not compute it from the other.
    return initial + [
        {
            "index": index,
            "action": step.action,
            "args": list(step.args),
            "state": state_json(program, step.state),
            "changed": [change.path for change in changes(program, before, step.state)],
        }
        for index, before, step in trace.numbered
    ]


def _place(blame: Blame) -> dict[str, Any]:
    return {
        "text": blame.text,
        "path": blame.span.source.path,
        **blame.span.region,
        "bindings": dict(blame.bindings),
        "values": dict(blame.values),
    }


def violation_json(program: Program, violation: Violation) -> dict[str, Any]:
    """One violation with its trace and its blame."""
    trace = violation.trace
    return {
        "kind": violation.kind,
        "property": violation.name,
        "steps": len(trace.steps) if trace is not None else None,
        "trace": trace_json(program, trace) if trace is not None else None,
        "because": _place(violation.blame) if violation.blame is not None else None,
        "condition": list(violation.condition),
        "bounds": list(violation.bounds),
        "loop": trace.loop if trace is not None else None,
        "fairness": [
            {"condition": p.condition, "kept": p.kept.value, "at": p.at} for p in violation.fairness
        ],
        "notes": list(violation.notes),
        "abstract": _abstract_json(violation.abstract) if violation.abstract is not None else None,
    }


def _abstract_json(step: AbstractStep) -> dict[str, Any]:
    """A step in the refined spec, and why each of its actions does not allow it."""
    return {
        "spec": step.program.spec,
        "before": state_json(step.program, step.before) if step.before is not None else None,
        "after": state_json(step.program, step.after),
        "actions": [
            {
                "action": obstacle.action,
                "guards": [_place(guard) for guard in obstacle.guards],
                "differs": [{"variable": v, "action": a, "image": b} for v, a, b in obstacle.differs],
            }
            for obstacle in step.obstacles
        ],
    }


def _coverage(outcome: Outcome) -> list[dict[str, Any]]:
    """Every point with its count; `decided` points are determined by the constants and not counted."""
    # A reader must not mistake the 0 of a point that is never counted for one that is never reached.
    live = live_points(outcome.program)
    points = zip(outcome.program.points, outcome.coverage, strict=True)
    return [
        {
            "kind": point.kind,
            "in": point.owner,
            "label": point.label,
            "at": point.span.where,
            "count": count,
            "decided": index not in live,
            "by_order": index in outcome.by_order,
        }
        for index, (point, count) in enumerate(points)
    ]


def _walks(program: Program, walks: WalkCounts) -> dict[str, Any]:
    actions = zip(program.actions, walks.taken, strict=True)
    return {
        "ended": walks.ended,
        "failed": walks.failed,
        "taken": {action.name: count for action, count in actions},
    }


def run_json(outcome: Outcome, exit_code: int) -> dict[str, Any]:
    """The object that `specchk run --json` prints."""
    program, verdict, numbers = outcome.program, outcome.verdict, outcome.statistics
    violations = [violation_json(program, violation) for violation in violations_of(verdict)]
    first: Mapping[str, Any] = violations[0] if violations else {}
    return {
        "schema": SCHEMA,
        "spec": program.path,
        **model_json(program),
        "engine": outcome.engine,
        "symmetry": numbers.symmetry,
        "verdict": name_of(verdict),
        "bounds": list(verdict.bound) if isinstance(verdict, HoldsWithin) else [],
        "reason": verdict.reason if isinstance(verdict, Inconclusive) else None,
        "certificate": outcome.certificate,
        # The first violation again, outside of the list: most readers want one.
        "property": first.get("property"),
        "steps": first.get("steps"),
        "trace": first.get("trace"),
        "loop": first.get("loop"),
        "violations": violations,
        "checked": {
            **selected(program),
            "deadlock": not allows_any_end(program),
            "left_out": list(program.left_out),
            "switched_off": list(switched_off(program)),
        },
        "witnesses": {name: trace_json(program, trace) for name, trace in outcome.witnesses},
        "states_distinct": numbers.distinct,
        "states_generated": numbers.generated,
        "depth": numbers.depth,
        "levels": list(numbers.levels),
        "horizon_cuts": numbers.horizon_cuts,
        "ignored": [program.variables[slot].name for slot in program.ignored],
        "skipped": numbers.skipped,
        "owed_at_horizon": numbers.owed_at_horizon,
        "symbolic": to_builtins(numbers.symbolic) if numbers.symbolic is not None else None,
        "seconds": round(numbers.seconds, 6),
        "seed": outcome.seed,
        "walks": _walks(program, numbers.walks) if numbers.walks is not None else None,
        "coverage": _coverage(outcome),
        "warnings": list(outcome.warnings),
        "exit_code": exit_code,
    }


def scenario_json(program: Program, result: ScenarioResult) -> dict[str, Any]:
    """The result of a scenario as JSON."""
    failure = result.failure
    return {
        "scenario": result.name,
        "model": result.model,
        "passed": failure is None,
        "message": failure.message if failure else None,
        "at": failure.span.where if failure else None,
        "because": _place(failure.blame) if failure and failure.blame else None,
        "trace": trace_json(program, failure.trace) if failure and failure.trace else None,
    }
