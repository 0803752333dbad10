"""The tables of a campaign: recordings, unexplained events, kinds of events and corrupted copies.

Columns are named with plain words for their types, so that the writer of the files chooses a format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from specchk.conform.recordings.explanation import render
from specchk.conform.recordings.result import RecordingResult

Row = dict[str, Any]
TABLES: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType({
    "recordings": (
        ("recording", "text"), ("verdict", "text"), ("reason", "text"), ("events", "int"),
        ("consumed", "int"), ("candidates", "int"), ("candidates_most", "int"), ("silent", "int"),
        ("acted", "int"), ("idle", "bool"), ("seconds", "float"), ("events_per_second", "float"),
    ),
    "unexplained": (
        ("recording", "text"), ("number", "int"), ("writer", "text"), ("event", "text"), ("calls", "texts"),
        ("candidates", "int"), ("steps", "texts"), ("guards", "texts"), ("fields", "texts"),
        ("reason", "text"), ("line", "text"), ("report", "text"),
    ),
    "coverage": (("recording", "text"), ("event", "text"), ("count", "int")),
    "copies": (("recording", "text"), ("kind", "text"), ("change", "text"), ("rejected", "bool")),
})  # fmt: skip


def verdict_of(result: RecordingResult) -> str:
    """`explained`, `diverges`, or `none` for a recording that is unreadable or was given up."""
    return "none" if result.bad else "explained" if result.accepted else "diverges"


def rows_of(place: str, result: RecordingResult) -> dict[str, list[Row]]:
    """The rows of each table for a recording; `place` is its path or URI."""
    rate = result.consumed / result.seconds if result.seconds else None
    return {
        "recordings": [{
            "recording": place, "verdict": verdict_of(result), "reason": result.bad or None,
            "events": result.events, "consumed": result.consumed, "candidates": result.total,
            "candidates_most": result.most, "silent": result.silent, "acted": result.acted,
            "idle": result.is_idle, "seconds": result.seconds, "events_per_second": rate,
        }],
        "unexplained": _unexplained(place, result),
        "coverage": [{"recording": place, "event": kind, "count": n}
                     for kind, n in sorted(result.kinds.items())],
        "copies": [{"recording": place, "kind": copy.kind, "change": copy.what, "rejected": copy.rejected}
                   for copy in result.copies],
    }  # fmt: skip


def _unexplained(place: str, result: RecordingResult) -> list[Row]:
    if result.blocked is None:
        return []
    blocked = result.blocked
    return [{
        "recording": place, "number": blocked.number, "writer": str(blocked.event.get("at")),
        "event": str(blocked.event.get("event")), "calls": list(blocked.calls),
        "candidates": blocked.candidates, "steps": [str(miss["step"]) for miss in blocked.misses],
        "guards": [guard["text"] for miss in blocked.misses for guard in miss["guards"]],
        "fields": [one["field"] for miss in blocked.misses for one in miss["fields"]],
        "reason": blocked.reason or None, "line": json.dumps(blocked.event, ensure_ascii=False),
        "report": render(result.name, result.events, blocked),
    }]  # fmt: skip
