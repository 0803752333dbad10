"""Assignments that certainly concern one place: S404 compares the meanings of their texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specchk.lang.text.diagnostics import Diagnostic

Findings = Callable[[str], tuple[Diagnostic, ...]]
SHARED = """spec places
type Phase = enum { idle, busy }
var seen : Phase -> 0..2 = { p: 0 for p in Phase }
helper action here(p: Phase):
    let busy = p
    seen'[busy] = 1
helper action there(p: Phase):
    seen'[p] = 1
"""


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("here(idle)\n    seen'[busy] = 1", []),
        ("here(busy)\n    seen'[busy] = 1", []),
        ("any busy in {idle}: seen'[busy] = 1\n    seen'[busy] = 2", []),
        ("seen'[busy] = 2\n    any busy in {idle}: seen'[busy] = 1", []),
        ("any busy in {idle}:\n        seen'[busy] = 1\n        seen'[busy] = 2", ["S404"]),
        ("let busy = idle\n    there(busy)\n    seen'[busy] = 2", ["S404"]),
        ("there(busy)\n    let busy = idle\n    seen'[busy] = 2", []),
        ("there(busy)\n    seen'[busy] = 2", ["S404"]),
    ],
)
def test_a_local_name_is_not_the_enum_member_of_that_name(
    body: str, codes: list[str], findings: Findings
) -> None:
    """Two places with equal texts are one place only if the names in them have the same meaning."""
    assert [d.code for d in findings(f"{SHARED}action a():\n    {body}\n")] == codes
