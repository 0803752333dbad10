"""All values of a type with a horizon are not a set of values: results that depend on them have bounds."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoned import search_zones as search

from agreement.both import program_of
from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.verdict import HoldsWithin, Inconclusive, Violated
from specchk.symbolic.induction.encode.scope import Unencodable
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.zones.engine import ZoneOptions

HEAD = """spec listed
const MaxOffset : int
type Offset = nat upto MaxOffset
type Reply = {{ end: Offset }}
var n : 0..9 = 0
{variables}{steps}
invariant small: {invariant}
deadlock ok
model m:
    MaxOffset = 3
"""
OFFSET = "var a : Offset = 0\n"
CONSTANT = "const M : Offset -> bool = { o: true for o in Offset }\n"
FOUR = "var s : set[Offset] = { 0, 1, 2, 3 }\n"
GO = "action go():\n    {}\n"
CHOICES = {
    "an offset": "any p in Offset:\n        a' = p",
    "a record": "any r in Reply:\n        a' = r.end",
    "an option": "any o in Maybe:\n        let p = o else skip\n        a' = p",
}
LISTS = {  # what uses all offsets, and would be false with more of them
    "their greatest": ("", "n' = 1", "n <= max(Offset)"),
    "their number": ("", "n' = 4", "n <= card(Offset)"),
    "membership": (OFFSET, "require a < 3; a' = a + 1", "a in Offset"),
    "their subsets": ("", "any s in subsets(Offset):\n        n' = card(s)", "n <= 4"),
    "a variable's first value": ("var s : set[Offset] = Offset\n", "any p in s:\n        n' = p", "n <= 3"),
    "a variable's choices": ("var a : Offset in Offset\n", "n' = a", "n <= 3"),
    "keys of a map": ("var f : Offset -> bool = { o: false for o in Offset }\n", "n' = 1", "not f[n]"),
    "keys of a constant": (CONSTANT, "n' = 1", "M[n]"),
    "a part of a constant": (CONSTANT, "require M[1]; n' = 1", "n <= 3"),
    "a constant and another": (CONSTANT.replace("M", "K") + CONSTANT, "n' = 1", "M == K"),
    "all but one": ("", "any p in Offset - { 0 }:\n        n' = p", "n <= 3"),
    "a quantifier": ("", "n' = 1", "forall p in Offset: p <= 3"),
    "a sum": ("", "n' = min(9, sum(p for p in Offset))", "n <= 6"),
    "the least": ("", "n' = (choose p in Offset: p >= n)", "n <= 3"),
    "a set of them": ("", "n' = card({ p for p in Offset if p > 0 })", "n <= 3"),
}


def program(folder: Path, variables: str, step: str, invariant: str) -> Program:
    text = HEAD.format(variables=variables, steps=GO.format(step), invariant=invariant)
    found = program_of(text.replace("type Reply", "type Maybe = Offset?\ntype Reply"), folder)
    assert found is not None
    return found


@pytest.mark.parametrize("choice", sorted(CHOICES))
def test_choosing_a_value_with_an_offset_in_it_is_choosing_any(choice, tmp_path):
    """Within the horizon the invariant holds, and the bound is reported; without a horizon it fails."""
    found = program(tmp_path, OFFSET, CHOICES[choice], "a <= 3")
    for outcome in (reference.search(found), native.search(found)):
        assert outcome.verdict == HoldsWithin(("MaxOffset=3",))
    assert isinstance(search(found, ZoneOptions(workers=1)).verdict, Violated)
    try:
        assert not prove(found, ProofOptions()).proved
    except Unencodable:
        assert choice != "an offset"


@pytest.mark.parametrize("use", sorted(LISTS))
def test_what_uses_all_offsets_holds_within_the_horizon_only(use, tmp_path):
    """Engines that enumerate name the horizon; those without one refuse, with the place."""
    found = program(tmp_path, *LISTS[use])
    for outcome in (reference.search(found), native.search(found)):
        assert outcome.verdict == HoldsWithin(("MaxOffset=3",))
    with pytest.raises(SpecError) as refused:
        search(found, ZoneOptions(workers=1))
    assert {one.code for one in refused.value.diagnostics} == {"S701"}
    # What is read of a constant is computed beforehand, so no expression has it.
    if CONSTANT in LISTS[use][0]:
        with pytest.raises(Unencodable):
            prove(found, ProofOptions())


def test_a_set_that_happens_to_have_all_offsets_is_a_set(tmp_path):
    """Four listed numbers are these four, whatever the horizon is."""
    found = program(tmp_path, OFFSET + FOUR, "any p in s:\n        a' = p", "a <= 3")
    assert not isinstance(reference.search(found).verdict, Violated)
    assert not isinstance(search(found, ZoneOptions(workers=1)).verdict, Violated | Inconclusive)
