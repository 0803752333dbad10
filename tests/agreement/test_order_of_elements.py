"""Symmetry where the order of elements matters: the findings with it are the findings without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import program_of
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Violated
from specchk.symbolic.zones import engine as zones

SPEC = """spec ordered
sort Node
var v : Node -> 0..1 = {{ n: 0 for n in Node }}
action up(n: Node):
    require {guard}
    v'[n] = 1
{prop}
deadlock ok
model m:
    Node = 2
    expect holds
"""
ALL_ZERO = "forall m in Node: v[m] == 0"
# Where the first element decides there is a value, where the second one does there is none.
PARTIAL = "exists k in Node: 10 // (1 - v[k]) == 10"
DECISIVE = [
    (ALL_ZERO, f"invariant i: {PARTIAL}"),
    (ALL_ZERO, "invariant i: not (forall n in Node: 10 // (1 - v[n]) != 10)"),
    (ALL_ZERO, f"constraint c: {PARTIAL}"),
    (f"{ALL_ZERO} or not ({PARTIAL})", "invariant i: true"),
]
HARMLESS = [
    (ALL_ZERO, "invariant i: forall n in Node: 10 // (2 - v[n]) > 0"),
    (ALL_ZERO, "invariant i: forall n in Node: v[n] == 0 implies 10 // (1 - v[n]) == 10"),
]


@pytest.mark.parametrize(("guard", "prop"), DECISIVE)
def test_a_fault_behind_the_item_that_decides_is_found(guard: str, prop: str, tmp_path: Path) -> None:
    """All renamings of a state must be searched if some have a value and others none."""
    program = program_of(SPEC.format(guard=guard, prop=prop), tmp_path)
    assert program is not None
    for outcome in (
        reference.search(program, Options()),
        native.search(program, native.NativeOptions(workers=1)),
        zones.search(program, zones.ZoneOptions(workers=1)),
    ):
        assert isinstance(outcome.verdict, Violated), outcome.statistics.engine
        assert [v.kind for v in outcome.verdict.violations] == ["undefined"]


@pytest.mark.parametrize(("guard", "prop"), HARMLESS)
def test_order_that_changes_no_answer_costs_no_symmetry(guard: str, prop: str, tmp_path: Path) -> None:
    """A `forall` that must be true is a violation in any order."""
    program = program_of(SPEC.format(guard=guard, prop=prop), tmp_path)
    assert program is not None
    assert Symmetry(program).order == 2
