"""Fairness of the other spec where numbers above its horizon may enable an action, or certainly do."""

from __future__ import annotations

from pathlib import Path

import pytest

from temporal.checked import on_reference, program_of, verdict

PICK = """
spec pick
type N = nat upto 2
var n : 0..1 = 0
action take(k: {param}):
    require {guard}
    n' = 1
fair take
"""
STAY = """
spec stay
var n : 0..1 = 0
action rest():
    skip
refines pick with { n = n }
model m:
    expect holds
"""


@pytest.mark.parametrize(
    ("param", "guard", "expected"),
    [
        ("N", "k * k == 7", "holds_within"),  # which open numbers do not decide
        ("set[N]", "card(k) < 0", "holds_within"),
        ("N", "k == 5 and 1 // (n - n) == 1", "holds_within"),  # undefined above the horizon
        ("N", "k == 5", "violated"),
        ("N", "k == 5 and k < 5", "holds_within"),
    ],
)
def test_a_behaviour_owes_what_is_certainly_enabled(
    param: str, guard: str, expected: str, tmp_path: Path
) -> None:
    """Unknown behaviour of the other spec above its horizon is not a counterexample."""
    (tmp_path / "pick.spec").write_text(PICK.format(param=param, guard=guard), encoding="utf-8")
    assert verdict(on_reference(program_of(STAY, tmp_path))) == expected
