"""Specs on which engines once disagreed, each the smallest of its kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.every_engine import compare

HEAD = """spec choosing
const H : int
type Offset = nat upto H
var a : Offset = 0
var b : Offset = 2
var s : set[Offset] = {}
var x : 0..3 = 0
"""
FOOT = """
model one:
    H = 2
"""
SPECS = {
    "a number in a set beside an open one that is equal": """
action up():
    require a < 3
    a' = a + 1
action put():
    require card(s) < 2
    s' = s union { a + 1 } union { 2 }
invariant one: card({ 1, a + 1 }) == (if a == 0 then 1 else 2)
deadlock ok
""",
    "an initial state outside a constraint": """
action up():
    x' = min(x + 1, 3)
constraint near: b < 2
reachable moved: x == 1
deadlock ok
""",
    "steps out of a state in which another step has no meaning": """
action down():
    a' = a - 1
action up():
    x' = min(x + 1, 3)
invariant low: x < 3
deadlock ok
""",
    "two actions without a meaning in one state": """
action down():
    a' = a - 1
action under(p: Offset):
    require p <= a
    a' = p - 1
deadlock ok
""",
    "a choice that no state keeps": """
action far(p: Offset):
    require p >= a + 2
    x' = min(x + 1, 3)
invariant low: x < 2
deadlock ok
""",
    "a choice that no state keeps, after which there is none": """
action far():
    any p in Offset:
        require p > b + 7 and x < 2
        x' = x + 1
""",
    "an invariant that fails where a step has no meaning": """
action down():
    a' = a - 1
invariant positive: a > 0
deadlock ok
""",
    "a witness without a value outside a constraint": """
action up():
    a' = a + 1
constraint near: a < 1
reachable odd: min(s) == a
deadlock ok
""",
    "an item among those of nothing": """
type Pair = { k: 0..3, l: 0..3 }
var p : Pair = { k: 0, l: 0 }
action up():
    x' = min(x + 1, 3)
invariant absent: p not in { v for v in {} if v == p }
deadlock ok
""",
    "a deadlock that only whole numbers show": """
action half(p: Offset):
    require p > 0 and p % 2 == 0 and p <= 1
    x' = 1
""",
    "an end that has no answer": """
action up():
    require a < 1
    a' = a + 1
deadlock ok when min(s) == a
""",
}


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize("name", sorted(SPECS))
def test_all_engines_give_the_answers_they_owe(name: str, keep_going: bool, tmp_path: Path) -> None:
    """Verdicts, lengths and states, within horizons and without."""
    found = compare(HEAD + SPECS[name] + FOOT, tmp_path, symmetry=False, keep_going=keep_going)
    assert found is not None
    assert not found.wrong
    assert found.compared["native"] == found.compared["symbolic"] == 1
