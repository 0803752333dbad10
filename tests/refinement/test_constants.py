"""Constants and initial values of the other spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.verdict import Violated
from specchk.symbolic.induction.prove import ProofOptions, prove
from temporal.checked import program_of, verdict

SEAT = """
spec seat
sort Guest
const host : Guest{default}
var at : Guest? = none
action sit(g: Guest):
    require at == none
    at' = some(g)
action leave():
    require at == some(host)
    at' = none
"""
CHAIR = """
sort Person
var at : Person? = none
action sit(p: Person):
    require at == none
    at' = some(p)
action leave():
    require at != none
    at' = none
refines seat with {{ Guest = Person, {host}at = at }}
model m:
    Person = 3
"""
FIRST = "choose g in {}: true"


@pytest.mark.parametrize(
    ("default", "host"), [("", f"host = {FIRST.format('Person')}, "), (f" = {FIRST.format('Guest')}", "")]
)
def test_a_constant_of_the_other_spec_names_an_element(default: str, host: str, tmp_path: Path) -> None:
    """Only the host may leave, which differs from the other elements: renamings keep it."""
    (tmp_path / "seat.spec").write_text(SEAT.format(default=default), encoding="utf-8")
    program = program_of("spec chair\n" + CHAIR.format(host=host), tmp_path)
    found = [reference.search(program, Options(symmetry=wanted)) for wanted in (True, False)]
    assert found[0].statistics.symmetry == "on (2 renamings)"
    for outcome in found:
        assert isinstance(outcome.verdict, Violated), outcome.verdict
        (violation,) = outcome.verdict.violations
        assert violation.trace is not None
        assert len(violation.trace.steps) == 2


SWITCH = """
spec switch
var at : 0..2 in { n // 2 for n in { 0, 1, 4 } }
var on : bool = exists n in 0..2: n > 1
action press():
    on' = not on
"""
LAMP = """
spec lamp
var at : 0..2 = {at}
var lit : 0..2 = 2
action press():
    lit' = 2 - lit
refines switch with {{ at = {image}, on = lit > 1 }}
model m:
    expect holds
"""


@pytest.mark.parametrize("image", ["at", "min(at, 2)"])
@pytest.mark.parametrize(("at", "expected"), [("0", "holds"), ("1", "violated"), ("2", "holds")])
def test_names_in_initial_values_are_none_of_the_mapping(
    at: str, image: str, expected: str, tmp_path: Path
) -> None:
    """A computed image is a name in the claim, as is a name bound by a set comprehension."""
    (tmp_path / "switch.spec").write_text(SWITCH, encoding="utf-8")
    program = program_of(LAMP.format(at=at, image=image), tmp_path)
    assert verdict(reference.search(program)) == expected


@pytest.mark.parametrize("start", ["= 5", "in { 0, 5 }", "in { 5 }"])
def test_an_initial_value_above_a_horizon_of_the_other_spec_is_undefined(start: str, tmp_path: Path) -> None:
    """As in a run of the other spec itself, and like one that is out of range."""
    (tmp_path / "up.spec").write_text(
        f"spec up\nvar n : nat upto 2 {start}\naction grow():\n    n' = n + 1\n", encoding="utf-8"
    )
    program = program_of(
        "spec same\nvar n : 0..2 = 0\naction grow():\n    require n < 2\n    n' = n + 1\n"
        "refines up with { n = n }\ndeadlock ok\nmodel m:\n    expect holds\n",
        tmp_path,
    )
    for found in (reference.search(program).verdict, prove(program, ProofOptions()).verdict):
        assert isinstance(found, Violated), found
        assert [(v.kind, v.name) for v in found.violations] == [("undefined", "up")]
