"""Numbers that fit their place only because of a horizon: without it, they are checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoned import search_zones as search

from agreement.both import program_of
from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Outcome, Violated
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.zones.engine import ZoneOptions

COUNTED = """spec counted
type Offset = nat upto {most}
type Note = {{ at: Offset }}
var s : set[Offset] = {{}}
var notes : set[Note] = {{}}
var n : Offset = 0
var f : bool = true
var c : 0..3 = 0
action add():
    require n < 6
    n' = n + 1
    s' = s union {{ n }}
    notes' = notes union {{ {{ at: n }} }}
action count():
    c' = {count}
{more}
deadlock ok
model m:
    expect holds
"""
NUMBERED = """spec numbered
type Offset = nat upto 3
type Pair = { at: 0..3, second: bool }
var n : Offset = 0
var f : bool = true
var c : 0..3 = 0
var p : Pair = { at: 0, second: false }
action up():
    n' = n + 1
action keep():
    require c < 3
    %s
invariant i: f
deadlock ok
model m:
    expect holds
"""


def program(text: str, folder: Path) -> Program:
    found = program_of(text, folder)
    assert found is not None
    return found


def findings(outcome: Outcome) -> list[tuple[str, str, int]]:
    assert isinstance(outcome.verdict, Violated)
    return [(v.kind, v.name, len(v.trace.steps)) for v in outcome.verdict.violations if v.trace is not None]


@pytest.mark.parametrize("more", ["", "invariant three: c <= 3"])
@pytest.mark.parametrize(
    "count", ["card(s)", "card(notes)", "sum(1 for o in s)", "if c == 3 then c + 1 else card(s)"]
)
def test_a_count_that_only_a_horizon_bounds_is_checked(count: str, more: str, tmp_path: Path) -> None:
    """Zones find the fault that a higher horizon shows."""
    low, high = (program(COUNTED.format(most=most, count=count, more=more), tmp_path) for most in (2, 6))
    expected = reference.search(high, Options(symmetry=False))
    assert findings(expected) == [("undefined", "count", 4)]
    assert findings(search(low, ZoneOptions(workers=1))) == [("undefined", "count", 4)]


@pytest.mark.parametrize(
    "assignment",
    ["c' = n", "c' = if f then n else c + 1", "p'.at = n", "p' = { at: n, second: c + 1 > 2 }",
     "p' = { p with at: if f then n else c + 1 }"],
)  # fmt: skip
def test_an_offset_in_a_place_of_bounded_type_is_checked(assignment: str, tmp_path: Path) -> None:
    """In a branch or a field, too, where the other ones have checks of their own."""
    found = program(NUMBERED % assignment, tmp_path)
    assert findings(bounded(found, 5, Budget())) == [("undefined", "keep", 4)]
    proof = prove(found, ProofOptions())
    assert not proof.proved
    assert {failure.name for failure in proof.failures} == {"keep"}


DIVIDED = """spec divided
type Offset = nat upto 4
var a : Offset = 0
var f : bool = false
action up():
    a' = a + 1
action use():
    f' = %s or true
invariant ok: %s or true
deadlock ok
"""


@pytest.mark.parametrize(
    ("division", "steps"), [("10 // (a - 5) == 3", 5), ("10 % (5 - a) == 3", 5), ("1 // (a - 6) == 1", 6)]
)
def test_a_divisor_that_a_horizon_keeps_from_zero_is_checked(
    division: str, steps: int, tmp_path: Path
) -> None:
    """`x or true` is true only where x has a value, and here it has one as far as the horizon goes."""
    found = program(DIVIDED % (division, division), tmp_path)
    assert not isinstance(reference.search(found, Options()).verdict, Violated)
    assert findings(bounded(found, 8, Budget()))[0] == ("undefined", "ok", steps)
    proof = prove(found, ProofOptions())
    assert proof.proved == ()
    assert {(failure.kind, failure.name) for failure in proof.failures} >= {("undefined", "ok")}
    with pytest.raises(SpecError, match="divided by an offset"):
        search(found, ZoneOptions(workers=1))
