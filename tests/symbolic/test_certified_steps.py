"""Steps that the check of a certificate decides once agree in everything relevant."""

from __future__ import annotations

import pytest
from test_certificates import problems
from zoned import program_of

from specchk.symbolic.certificates.format import CertifiedPart

ONCE = """\
spec once
type Offset = nat upto 3
var a : Offset = 0
var x : bool = false
var y : bool = false
action step():
    a' = a + 1
action first():
    require a <= 2
    x' = true
action second():
    require a <= BOUND
    OTHER' = true
deadlock ok
model one:
    expect holds
"""
ANY, UP_TO_TWO = (((((1, -1),), 0),), ((((1, -1),), 0), (((1, 1),), 2)))


@pytest.mark.parametrize(("bound", "other", "proved"), [(2, "x", True), (3, "x", False), (2, "y", False)])
def test_steps_with_one_value_are_different_steps(bound, other, proved, tmp_path):
    """By the guard, and by the variable that has it afterwards."""
    text = ONCE.replace("BOUND", str(bound)).replace("OTHER", other)
    text = text.replace("a' = a + 1", "require not x and not y\n    a' = a + 1")
    program = program_of(text, tmp_path)
    parts = [CertifiedPart((None, 0, 0), ANY), CertifiedPart((None, 1, 0), UP_TO_TWO)]
    assert (problems(program, parts) == []) == proved
