"""A review as a table, as JSON, and as SARIF."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import Any

from specchk.report.sarif import Finding, sarif
from specchk.report.text import counted, wrapped
from specchk.review.review import Review
from specchk.review.rows import KINDS, ReviewRow

SCHEMA = "specchk.review/1"


def render(review: Review, width: int) -> str:
    """The rows by kind, each with the next thing to do; the numbers last."""
    lines: list[str] = []
    for kind, rows in groupby(review.rows, lambda row: row.kind):
        of_kind = list(rows)
        lines += [f"{KINDS[kind]}{' (notes)' if all(row.is_note for row in of_kind) else ''}"]
        previous = ""
        for row in of_kind:
            lines += wrapped(f"{row.at}: {row.text}", width, 2)
            if row.next != previous:
                lines += wrapped(f"next: {row.next}", width, 6)
            previous = row.next
        lines.append("")
    return "\n".join(
        [*lines, *wrapped(summary(review), width, 0), *[f"note: {text}" for text in review.limits]]
    )


def summary(review: Review) -> str:
    """The numbers of a review in one line."""
    results = Counter(result.result for result in review.tried)
    weak = sum(not row.is_note for row in review.rows)
    changes = len(review.tried) - results["equal"] - results["rejected"]
    share = f"; properties notice {results['noticed']} of {counted(changes, 'change')}" if changes else ""
    weaknesses = f"{weak} weakness{'es' * (weak != 1)}"
    return f"{weaknesses}, {counted(len(review.rows) - weak, 'note')}{share}"


def as_json(review: Review, code: int) -> dict[str, Any]:
    """The review as plain values."""
    results = Counter(result.result for result in review.tried)
    return {
        "schema": SCHEMA,
        "spec": review.path,
        "rows": [
            {"kind": row.kind, "note": row.is_note, "at": row.at, "text": row.text, "next": row.next}
            for row in review.rows
        ],
        "models": [
            {"model": model.name, "states": model.outcome.statistics.distinct, "complete": not model.is_cut}
            for model in review.models
        ],
        "changes": {name: results[name] for name in ("noticed", "unnoticed", "equal", "rejected")},
        "limits": list(review.limits),
        "exit_code": code,
    }


def as_sarif(review: Review, version: str) -> dict[str, Any]:
    """The review as SARIF."""
    return sarif("specchk review", version, KINDS, [_finding(row) for row in review.rows])


def _finding(row: ReviewRow) -> Finding:
    path, line, column = row.at.rsplit(":", 2)
    level = "note" if row.is_note else "warning"
    region = {"line": int(line), "column": int(column)}
    return Finding(row.kind, level, f"{row.text}; next: {row.next}", path, region)
