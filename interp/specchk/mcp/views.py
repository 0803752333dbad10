"""What an answer shows of a report first, and what its verdict means; the rest is read by its handle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from specchk.mcp.jobs import BadRequest, Job
from specchk.mcp.pages import fitted, part

# schema -> members that are read on request: most are long, or are in another member
ON_REQUEST = MappingProxyType({
    "specchk.run/1": frozenset(
        {"trace", "loop", "property", "steps", "coverage", "levels", "sorts", "witnesses"}
    ),
    "specchk.check/1": frozenset({"files"}),
})  # fmt: skip
# (schema, verdict) -> what it means, and what it does not
MEANINGS = MappingProxyType({
    ("specchk.run/1", "holds"): "no reachable state of this model violates the checked properties;"
    " other constants were not searched, and this is no proof for them",
    ("specchk.run/1", "holds_within"): "bounded: no violation within `bounds`; nothing is known beyond them."
    " Name the bounds wherever you report it, and never write `proved`",
    ("specchk.run/1", "violated"): "a counterexample: tools `trace`, `step` and `evaluate` take this handle",
    ("specchk.run/1", "inconclusive"): "no verdict: what was not searched may violate the properties",
    ("specchk.proof/1", "holds"): "the properties in `proved` hold by induction, for all offsets, with this"
    " number of elements in each sort; those in `left_out` and `not_checked` were not considered",
    ("specchk.conform/1", "conforms"): "the implementation agrees with the spec on all cases that were run,"
    " within the model's bounds; other inputs were not tried",
    ("specchk.conform/1", "diverges"): "read `divergence`; tools `trace` and `step` take this handle",
    ("specchk.validate/1", "explained"): "every recording is a behaviour of the spec; behaviour that was"
    " not recorded is not covered",
    ("specchk.validate/1", "vacuous"): "no pass: the recordings prove nothing, and `vacuous` has the reasons",
    ("specchk.review/1", ""): "rows are facts about the searches that were made; those with `note` may be"
    " meant. That there is no row does not show that the spec says everything",
    ("specchk.rejected/1", "rejected"): "correct the text; tool `explain` has a page for each code",
    ("specchk.ended/1", "inconclusive"): "no verdict: it ended before there was a report",
})  # fmt: skip
WALKS = "random walks: that they met no violation proves nothing; search with `run`"
_RUNS = ("specchk.run/1", "specchk.proof/1")


def answer(job: Job, tokens: int) -> str:
    """The first page of a job's report; of one that is running, how to come back."""
    if job.is_running:
        return fitted({"handle": job.handle, "running": True, "next": "poll or cancel this handle"}, tokens)
    report = job.report
    if not isinstance(report, dict) or "schema" not in report:  # a part of another report
        rest = report if isinstance(report, dict) else {"report": report}
        return fitted({"handle": job.handle, **rest}, tokens)
    schema, verdict = str(report.get("schema")), str(report.get("verdict") or "")
    hidden = [name for name in report if name in ON_REQUEST.get(schema, ()) and report[name]]
    shown = {
        name: value for name, value in report.items() if value not in (None, [], {}) and name not in hidden
    }
    head: dict[str, Any] = {"handle": job.handle}
    meaning = MEANINGS.get((schema, verdict), "")
    if report.get("walks") is not None and verdict != "violated":
        meaning = WALKS
    if meaning:
        head["means"] = meaning
    if schema in _RUNS:
        shown |= _summary(report)
    if hidden:
        shown["on_request"] = {"tool": "read", "parts": [f"/{name}" for name in hidden]}
    shown.pop("schema", None)
    return fitted({**head, **shown}, tokens)


def _summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Of a search: violations without their states, the names of witnesses, and what was never taken."""
    summary: dict[str, Any] = {}
    if report.get("violations"):
        summary["violations"] = [_brief(violation) for violation in report["violations"]]
    if report.get("witnesses"):
        summary["reached"] = {name: len(trace) - 1 for name, trace in report["witnesses"].items()}
    if never := unused(report):
        summary["never"] = [f"{row['kind']} {row['label']} ({row['at']})" for row in never]
    return summary


def unused(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of a report's coverage that were never taken, and that the constants do not decide."""
    rows = report.get("coverage") or []
    return [row for row in rows if not row["count"] and not row["decided"] and not row["by_order"]]


def _brief(violation: Mapping[str, Any]) -> dict[str, Any]:
    kept = {
        name: value for name, value in violation.items() if value not in (None, [], {}) and name != "trace"
    }
    if violation.get("trace"):
        kept["trace"] = [_label(entry) for entry in violation["trace"][1:]]
    return kept


def _label(entry: Mapping[str, Any]) -> str:
    return f"{entry['action']}({', '.join(entry['args'])})"


def trace_of(job: Job, path: str) -> tuple[str, list[dict[str, Any]]]:
    """A trace of a report, and its path: that at (or in) a part, or the first; raises `BadRequest`."""
    if path:
        value = part(job.report, path, 0)
        for below in ("", "/trace"):
            inner: Any = value.get("trace") if below and isinstance(value, dict) else value
            if _is_trace(inner):
                return path.rstrip("/") + below, inner
        raise BadRequest(f"there is no trace at {path} of {job.handle}")
    first = next(_traces(job.report, ""), None)
    if first is None:
        reason = job.report.get("reason") if isinstance(job.report, dict) else None
        raise BadRequest(f"there is no trace in {job.handle}: {reason or 'nothing was violated or reached'}")
    return first


def _traces(value: Any, path: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    if _is_trace(value):
        yield path, value
    elif isinstance(value, dict):
        for name in value:
            yield from _traces(value[name], f"{path}/{name}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _traces(item, f"{path}/{number}")


def _is_trace(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and {"state", "action"} <= set(value[0])
    )


def steps_of(trace: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A trace with the whole state once: at each step only the variables that it changed."""
    shown = [{"index": 0, "state": trace[0]["state"]}]
    for before, entry in pairwise(trace):
        changed = {
            name: value for name, value in entry["state"].items() if value != before["state"].get(name)
        }
        shown.append({"index": entry["index"], "step": _label(entry), "now": changed})
    return shown


def step_of(trace: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """One step of a trace: what it changed, and the state that it leads to; raises `BadRequest`."""
    if not 0 <= index < len(trace):
        raise BadRequest(f"the trace has the states 0 to {len(trace) - 1}, and none with the number {index}")
    entry = trace[index]
    if index == 0:
        return {"index": 0, "step": None, "state": entry["state"]}
    before = trace[index - 1]["state"]
    changed = [name for name, value in entry["state"].items() if value != before.get(name)]
    return {
        "index": index, "step": _label(entry), "places": entry["changed"],
        "before": {name: before.get(name) for name in changed},
        "after": {name: entry["state"][name] for name in changed}, "state": entry["state"],
    }  # fmt: skip
