"""Rows about places in specs in the Static Analysis Results Interchange Format 2.1.0, for code hosts.

Columns count characters from 1, as everywhere; a region ends before its end column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from specchk.lang.text.diagnostics import Diagnostic
from specchk.lang.text.source import REGION

_NAMES = ("startLine", "startColumn", "endLine", "endColumn")


class Finding(Struct, frozen=True):
    """A row: `level` is `error`, `warning` or `note`; `region` as that of a span, without ends if unknown."""

    rule: str
    level: str
    text: str
    path: str
    region: Mapping[str, int]


def finding(diagnostic: Diagnostic) -> Finding:
    """An error in a spec as a row, with its hint."""
    hint = f"; hint: {diagnostic.hint}" if diagnostic.hint else ""
    span = diagnostic.span
    return Finding(
        diagnostic.code, "error", diagnostic.message + hint,
        span.source.path if span else diagnostic.path, span.region if span else {},
    )  # fmt: skip


def sarif(tool: str, version: str, rules: Mapping[str, str], findings: Sequence[Finding]) -> dict[str, Any]:
    """A log with one run of a tool: its rules, by id with a title, and what it reports."""
    driver = {
        "name": tool,
        "version": version,
        "rules": [{"id": rule, "shortDescription": {"text": title}} for rule, title in rules.items()],
    }
    results = [_result(row) for row in findings]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _result(row: Finding) -> dict[str, Any]:
    path = Path(row.path)
    place: dict[str, Any] = {
        "artifactLocation": {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}
    }
    if row.region:
        place["region"] = {
            new: row.region[old] for old, new in zip(REGION, _NAMES, strict=True) if old in row.region
        }
    return {
        "ruleId": row.rule, "level": row.level, "message": {"text": row.text},
        "locations": [{"physicalLocation": place}],
    }  # fmt: skip
