"""Claims about all states, after a search that has not seen all: each engine must leave them out.

A state in which a step or a constraint is undefined has no further successors, so with `--keep-going` a
search ends without the states behind it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import program_of
from specchk.ir.program import Program
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.findings import UNSEARCHED
from specchk.search.verdict import Outcome, Violated

BASE = """\
spec cut_short
var x : 0..3 = 0
var y : 0..1 = 0
action go():
    require x == 0
    x' = 1
action later():
    require x == 1
    either:
        x' = 2
    or:
        require y == 1
        x' = 3
reachable two: x == 2
invariant linked: x == 1 implies y == 0
liveness onward: x == 1 leadsto x == 2
fair later
deadlock ok
"""
UNDEFINED_STEP = "action bad():\n    require x == 0\n    y' = 2\n"
UNDEFINED_CONSTRAINT = "constraint small: 1 // x == 1\n"
UNDEFINED_PROPERTY = "invariant divided: x == 0 and 1 // x == 1 or x != 0\n"
PARTLY_FALSE = "invariant parts:\n    x != 1\n    x == 1 implies y == 0\n    x == 3 implies y == 1\n"


def program(text: str, folder: Path) -> Program:
    found = program_of(text, folder)
    assert found is not None
    return found


def outcomes(text: str, folder: Path, *, strict: bool = False) -> list[Outcome]:
    """What the enumerating engines report on a text, with `--keep-going`."""
    given = program(text, folder)
    return [
        reference.search(given, Options(symmetry=False, keep_going=True, strict=strict)),
        native.search(given, native.NativeOptions(symmetry=False, keep_going=True, strict=strict)),
    ]


def kinds(outcome: Outcome) -> list[tuple[str, str]]:
    assert isinstance(outcome.verdict, Violated)
    return sorted((violation.kind, violation.name) for violation in outcome.verdict.violations)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("more", "name"), [(UNDEFINED_STEP, "bad"), (UNDEFINED_CONSTRAINT, "small")])
def test_nothing_is_claimed_of_states_behind_an_undefined_step(
    more: str, name: str, strict: bool, tmp_path: Path
) -> None:
    """No witness is called unreachable, no action never enabled, and no temporal property checked."""
    for outcome in outcomes(BASE + more, tmp_path, strict=strict):
        assert kinds(outcome) == [("undefined", name)]
        assert outcome.stopped == UNSEARCHED
        assert any(UNSEARCHED.reason in warning for warning in outcome.warnings)
        assert not any("never" in warning for warning in outcome.warnings)
        assert any("not checked" in warning and "onward" in warning for warning in outcome.warnings)


def test_an_undefined_property_hides_no_state(tmp_path: Path) -> None:
    """All states are searched, so witnesses and actions are reported; nothing is claimed of the property."""
    text = BASE.replace("x' = 2", "skip").replace("x' = 3", "x' = 2") + UNDEFINED_PROPERTY
    for outcome in outcomes(text, tmp_path):
        assert ("unreachable", "two") in kinds(outcome)
        assert ("undefined", "divided") in kinds(outcome)
        assert outcome.stopped is None
        assert not any("`divided`" in warning for warning in outcome.warnings)


def test_parts_of_a_false_property_are_not_called_unused(tmp_path: Path) -> None:
    """Where an earlier line is false, the antecedent of a later one is not evaluated, though it is true."""
    for outcome in outcomes(BASE + PARTLY_FALSE, tmp_path):
        assert ("invariant", "parts") in kinds(outcome)
        assert not any("`parts`" in warning for warning in outcome.warnings)
