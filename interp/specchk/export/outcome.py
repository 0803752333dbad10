"""The small tables of an export: the report of a run, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

import pyarrow as pa
from msgspec.structs import replace

from specchk import kept
from specchk.export.columns import column_of
from specchk.export.packed import Written
from specchk.export.schemas import COVERAGE, LEVELS, RUN, VIOLATIONS, traces_schema, variable_columns
from specchk.ir.program import Program
from specchk.meaning.values import State, show
from specchk.search.verdict import HoldsWithin, Inconclusive, Outcome, Trace, name_of, violations_of

Names = Callable[[list[State]], Sequence[int | None]]


def fingerprint(program: Program) -> str:
    """A digest of the lowered spec, with the model's constants and its properties."""
    return kept.name_of(replace(program, path="", folds=(), ignored=()))


def rows_of_run(outcome: Outcome, written: Written) -> list[dict[str, Any]]:
    """The one row of `run`."""
    program, counts = outcome.program, outcome.statistics
    states, expanded = written.states.total(), written.expanded.total()
    return [{
        "spec": program.spec, "path": program.path, "model": program.model,
        "constants": [(constant.name, show(constant.value, constant.type)) for constant in program.constants],
        "fingerprint": fingerprint(program), "engine": outcome.engine, "symmetry": counts.symmetry,
        "verdict": name_of(outcome.verdict), "reason": _reason(outcome),
        "complete": expanded == states and not isinstance(outcome.verdict, Inconclusive),
        "states": states, "expanded": expanded, "initial": written.states[1], "edges": written.edges.total(),
        "generated": counts.generated, "depth": counts.depth, "seconds": counts.seconds,
        "version": version("specchk"),
    }]  # fmt: skip


def _reason(outcome: Outcome) -> str | None:
    match outcome.verdict:
        case Inconclusive(reason=reason):
            return reason
        case HoldsWithin(bound=bound):
            return "within " + ", ".join(bound)
    return None


def rows_of_levels(written: Written) -> list[dict[str, Any]]:
    """A row for each level."""
    return [
        {"level": level, "states": count, "expanded": written.expanded[level], "edges": written.edges[level]}
        for level, count in sorted(written.states.items())
    ]


def rows_of_coverage(outcome: Outcome) -> list[dict[str, Any]]:
    """A row for each place whose execution is counted."""
    return [
        {"kind": point.kind, "owner": point.owner, "label": point.label, "place": point.span.where,
         "text": " ".join(point.span.text.split()), "count": count}
        for point, count in zip(outcome.program.points, outcome.coverage, strict=True)
    ]  # fmt: skip


def rows_of_violations(outcome: Outcome) -> list[dict[str, Any]]:
    """A row for each violation."""
    return [
        {"kind": violation.kind, "property": violation.name,
         "steps": len(violation.trace.steps) if violation.trace is not None else None,
         "place": violation.blame.span.where if violation.blame is not None else None,
         "text": violation.blame.text if violation.blame is not None else None}
        for violation in violations_of(outcome.verdict)
    ]  # fmt: skip


def rows_of_traces(outcome: Outcome, names: Names) -> list[dict[str, Any]]:
    """A row for each state of each trace; traces to witnesses have the kind `reachable`."""
    traces = [(v.kind, v.name, v.trace) for v in violations_of(outcome.verdict) if v.trace is not None]
    traces += [
        ("reachable", name, trace) for name, trace in sorted(outcome.witnesses, key=lambda pair: pair[0])
    ]
    return [
        row
        for kind, name, trace in traces
        for row in _rows_of_trace(outcome.program, kind, name, trace, names)
    ]


def _rows_of_trace(
    program: Program, kind: str, name: str, trace: Trace, names: Names
) -> Iterator[dict[str, Any]]:
    names_of_columns = variable_columns(program)
    columns = [column_of(variable.type) for variable in program.variables]
    steps = [(None, None), *((step.action, list(step.args)) for step in trace.steps)]
    states = list(trace.states)
    for number, ((action, args), state, own) in enumerate(zip(steps, states, names(states), strict=True)):
        values = {
            name: column.plain(value)
            for name, column, value in zip(names_of_columns, columns, state, strict=True)
        }
        yield {
            "kind": kind,
            "property": name,
            "step": number,
            "action": action,
            "args": args,
            "id": own,
        } | values


def small_tables(outcome: Outcome, written: Written, names: Names) -> Iterator[tuple[str, pa.Table]]:
    """All tables except `states` and `edges`."""
    for table, rows, schema in (
        ("run", rows_of_run(outcome, written), RUN),
        ("levels", rows_of_levels(written), LEVELS),
        ("coverage", rows_of_coverage(outcome), COVERAGE),
        ("violations", rows_of_violations(outcome), VIOLATIONS),
        ("traces", rows_of_traces(outcome, names), traces_schema(outcome.program)),
    ):
        yield table, pa.Table.from_pylist(rows, schema=schema)
