"""Clearest counterexamples, and the explorer's: steps that another spec does not have."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.cli.clarity import clearer
from specchk.compile.instantiate import Instance, instantiate
from specchk.explore.walk import Walker
from specchk.lang.frontend import check
from specchk.search.reference import search
from specchk.search.verdict import Violated

BOTH = """
spec both
sort Lamp
var lit : set[Lamp] = {{}}
action press(l: Lamp):
    lit' = lit union {{l}}{more}
"""
LAMPS = """
spec lamps
sort Lamp
var lit : set[Lamp] = {}
action press(l: Lamp):
    lit' = lit union {l}
action off(l: Lamp):
    require card(lit) == 2
    lit' = {}
fair press
refines both with { Lamp = Lamp, lit = lit }
model m:
    Lamp = 2
"""


def lamps(folder: Path, more: str = "") -> Instance:
    (folder / "both.spec").write_text(BOTH.format(more=more), encoding="utf-8")
    (folder / "lamps.spec").write_text(LAMPS, encoding="utf-8")
    return instantiate(check(str(folder / "lamps.spec")))


@pytest.mark.parametrize(
    ("more", "kind"), [("", "refinement"), ("\n    require 2 // (2 - card(lit)) > 0", "undefined")]
)
def test_all_shortest_ways_to_a_wrong_step_are_compared(more: str, kind: str, tmp_path: Path) -> None:
    """Each order of the lamps; the last step leads back to an earlier state."""
    instance = lamps(tmp_path, more)
    outcome = clearer(instance, search(instance.program), 9)
    assert isinstance(outcome.verdict, Violated)
    found = outcome.verdict.violations
    assert [violation.kind for violation in found] == [kind] * 2
    assert len({str(violation.trace) for violation in found}) == 2
    assert [violation.abstract is not None for violation in found] == [kind == "refinement"] * 2


def test_the_explorer_finds_wrong_steps_alone(tmp_path: Path) -> None:
    """Fairness of behaviours to the other spec is not visible in a state."""
    trace = Walker(lamps(tmp_path)).find("both", 60.0)
    assert trace is not None
    assert len(trace.steps) == 3
    fair = Walker(lamps(tmp_path, "\naction off():\n    require card(lit) == 2\n    lit' = {}\nfair press"))
    assert fair.find("both", 60.0) is None
