"""Actions of the other spec that write two places of one variable: which steps they allow, and no value."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import differences
from specchk.search.verdict import Holds, Violated
from temporal.checked import Runs, alone, on_reference, program_of

PAIRS = """
spec pairs
type Place = { at: 0..2, by: 0..2 }
var m : 0..2 -> 0..2 = { p: 0 for p in 0..2 }
var last : Place = { at: 0, by: 0 }
action both(a: 0..2, b: 0..2):
    require WHEN
    m'[a] = 1
    m'[b] = 2
    last'.at = a
    last'.by = b
"""
TWO = """
spec two
type Place = { at: 0..2, by: 0..2 }
var m : 0..2 -> 0..2 = { p: 0 for p in 0..2 }
var last : Place = { at: 0, by: 0 }
action both():
    any n in 0..2:
        require WHEN
        m' = { m with [0]: 1, [n]: VALUE }
        last' = { at: 0, by: n }
refines pairs with { m = m, last = last }
deadlock ok
"""
STEPS = (
    ("a != b", "n != 0", "2", ""),
    ("a != b", "n != 0", "n", "refinement"),
    ("a != b", "true", "2", "refinement"),
    # With one place twice its step has no value, whichever step is asked about.
    ("true", "n != 0", "2", "undefined"),
    ("a != b or m[a] == 0", "true", "2", "undefined"),
)


@pytest.mark.parametrize("run", [on_reference, alone])
@pytest.mark.parametrize(("allowed", "when", "value", "wrong"), STEPS)
def test_a_step_is_compared_in_both_places(
    allowed: str, when: str, value: str, wrong: str, run: Runs, tmp_path: Path
) -> None:
    (tmp_path / "pairs.spec").write_text(PAIRS.replace("WHEN", allowed), encoding="utf-8")
    program = program_of(TWO.replace("WHEN", when).replace("VALUE", value), tmp_path)
    verdict = run(program).verdict
    assert isinstance(verdict, Violated if wrong else Holds)
    assert [one.kind for one in getattr(verdict, "violations", ())] == [wrong] * bool(wrong)
    assert differences(program) == {}
