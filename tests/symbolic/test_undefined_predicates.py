"""Predicates without a value: symbolic search finds them where the reference engine does."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoned import search_zones as search

from agreement.both import program_of
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.verdict import Violated
from specchk.symbolic.zones.engine import ZoneOptions

SPEC = """spec undefined
type Offset = nat upto 9
var x : 0..3 = 0
var n : Offset = 0
action inc():
    require x < 3
    x' = x + 1
    n' = n + 1
{prop}
invariant i: x <= 3
deadlock ok
model m:
    expect undefined
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "prop",
    [
        "constraint c: 10 // (2 - x) != 3",
        "constraint c: n < 9\nconstraint d: 10 // (2 - x) != 3",
        "reachable w: 10 // (2 - x) > 0",
        "reachable w: n > 0 and 10 // (2 - x) > 0",
    ],
)
def test_a_constraint_or_a_witness_without_a_value_is_a_violation(
    prop: str, workers: int, tmp_path: Path
) -> None:
    """Also of a witness that was reached before."""
    program = program_of(SPEC.format(prop=prop), tmp_path)
    assert program is not None
    for keep_going in (False, True):
        expected = reference.search(program, Options(keep_going=keep_going)).verdict
        found = search(program, ZoneOptions(workers=workers, keep_going=keep_going)).verdict
        assert isinstance(expected, Violated)
        assert isinstance(found, Violated)
        assert [(v.kind, v.name, v.trace) for v in found.violations] == [
            (v.kind, v.name, v.trace) for v in expected.violations
        ]
