"""Loops with a small limit of visited pairs, and states with an undefined step."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.search.liveness import lassos
from specchk.search.verdict import Violated
from temporal.checked import ENGINES, Runs, program_of

NEAR_WITHOUT_TRIGGER = """
spec ring
var stage : 0..7 = 0
var p : 0..19 = 0
action enter():
    require stage == 0
    stage' = 6
    p' in 0..19
action wait():
    require stage < 5
    stage' = stage + 1
action go():
    require stage == 5
    stage' = 6
action turn():
    require stage == 6
    p' = (p + 1) % 20
fair wait, go, turn
liveness l: stage == 5 leadsto stage == 7
model m:
    expect holds
"""
UNDEFINED = """
spec low
var n : 0..1 = 0
var k : 0..1 = 0
var d : 0..1 = 0
action tick():
    require k == 0
    k' = 1
action bad():
    require k == 1
    d' = 1 // d
fair tick
refines pick with { n = n }
deadlock ok
model m:
    expect holds
"""
PICK = """
spec pick
var n : 0..1 = 0
action take():
    require n == 0
    n' = 1
fair take
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop_that_is_made_up_is_one_that_owes(
    engine: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its states are nearer while nothing is owed yet; a loop from there never contains a trigger."""
    monkeypatch.setattr(lassos, "MAX_PAIRS", 15)
    outcome = engine(program_of(NEAR_WITHOUT_TRIGGER, tmp_path))
    assert isinstance(outcome.verdict, Violated)
    (violation,) = outcome.verdict.violations
    assert violation.trace is not None
    assert violation.trace.loop is not None
    assert any("shorter loop" in warning for warning in outcome.warnings)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_undefined_step_is_no_rest_and_no_cut(engine: Runs, tmp_path: Path) -> None:
    """It ends its behaviour, in which the fairness of the other spec is then not owed."""
    (tmp_path / "pick.spec").write_text(PICK, encoding="utf-8")
    outcome = engine(program_of(UNDEFINED, tmp_path), keep_going=True)
    assert isinstance(outcome.verdict, Violated)
    assert [(one.kind, one.name) for one in outcome.verdict.violations] == [("undefined", "bad")]
    assert not [warning for warning in outcome.warnings if "is fair" in warning]
