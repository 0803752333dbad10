"""The path to a witness is as short as any, and of these the easiest to follow."""

from __future__ import annotations

import pytest

from core.test_optimal import switches
from laws.sources import ROOT
from specchk.cli.clarity import clearest
from specchk.compile.instantiate import instantiate
from specchk.explore.view import Viewer
from specchk.explore.walk import Walker
from specchk.lang.frontend import check
from specchk.search.engine import Options
from specchk.search.reference import search

WAYS = [
    ("two_round_fetch.spec", "two_rounds", 1), ("examples/two_phase_commit.spec", "all_commit", 6),
    ("examples/two_phase_commit.spec", "all_abort", 2),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "witness", "fewest"), WAYS)
def test_a_witness_is_drawn_with_few_switches(spec, witness, fewest):
    """Not longer than the one found, a behaviour, and it ends where the witness is true."""
    instance = instantiate(check(str(ROOT / "spec" / spec)))
    found = dict(search(instance.program, Options(symmetry=False)).witnesses)[witness]
    clear = clearest(instance, witness, found, 10_000)
    lanes = Viewer(instance).sort
    assert switches(instance.program, lanes, clear) == fewest <= switches(instance.program, lanes, found)
    assert len(clear.steps) == len(found.steps)
    walker = Walker(instance)
    assert walker.follow(clear.states, [(None, ())] * len(clear.states)).last == clear.last
    again = walker.find(witness, 60)
    assert again is not None
    assert len(again.steps) == len(clear.steps)


def test_a_space_too_large_to_compare_keeps_the_way_found():
    """At most the permitted number of states is compared."""
    instance = instantiate(check(str(ROOT / "spec" / "two_round_fetch.spec")))
    found = dict(search(instance.program, Options(symmetry=False)).witnesses)["two_rounds"]
    assert clearest(instance, "two_rounds", found, 3) == found
