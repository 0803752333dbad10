"""Proofs that were once false, or missed something undefined: each by the smallest spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import program_of
from specchk.search.engine import Options
from specchk.search.proof import Proof
from specchk.search.reference import search
from specchk.search.verdict import Holds, Violated
from specchk.symbolic.induction.prove import ProofOptions, prove

EQUAL = """spec equal
type Offset = nat upto 4
var low : Offset = 0
var high : Offset = 1
action up():
    require low < 3
    low' = low + 1
invariant claimed: {claim}
deadlock ok
"""


def proved(text: str, folder: Path) -> Proof:
    found = program_of(text, folder)
    assert found is not None
    return prove(found, ProofOptions())


@pytest.mark.parametrize(
    ("claim", "is_true"),
    [("sum(1 for x in {low, high}) == 2", False), ("sum(1 for x in {low, high}) == card({low, high})", True),
     ("sum(x for x in {low, high}) == low + high", False)],
)  # fmt: skip
def test_offsets_that_may_be_equal_are_one_item_of_a_sum(claim: str, is_true: bool, tmp_path: Path) -> None:
    """They differ at first and are equal after a step."""
    proof = proved(EQUAL.format(claim=claim), tmp_path)
    assert proof.proved == (("claimed",) if is_true else ())
    assert isinstance(proof.verdict, Holds if is_true else Violated)


LISTED = """spec listed
var x : 0..2000000 = 5
action up():
    require x in 0..x + {more}
    x' = 6
invariant small: x < 7
deadlock ok
"""


@pytest.mark.parametrize(("more", "is_undefined"), [(1048569, False), (1048570, True)])
def test_a_range_with_too_many_numbers_is_undefined(more: int, is_undefined: bool, tmp_path: Path) -> None:
    """As for the reference: 2 ** 20 of them can be listed, and in state 6 the second one has one more."""
    found = program_of(LISTED.format(more=more), tmp_path)
    assert found is not None
    verdicts = [prove(found, ProofOptions()).verdict, search(found, Options()).verdict]
    assert [isinstance(verdict, Violated) for verdict in verdicts] == [is_undefined] * 2


# Sequences whose length the encoding keeps as a number: one of many, or the sum of two.
LENGTHS = """spec lengths
var s : seq[0..1] upto 7 = []
var n : 0..20 = 0
action put(x: 0..1):
    require len(s) < 7
    s' = append(s, x)
action count():
    require n < 20
    n' = n + 1
invariant claimed: len(s) > 0 and 0 < n and n <= len(s) implies {claim}
deadlock ok
"""


@pytest.mark.parametrize(
    ("claim", "is_true"),
    [("card({ prefix(s, n) }) == 0", False), ("s ++ s not in { s ++ s }", False),
     ("card({ prefix(s, n) }) == 1", True), ("s ++ s in { s ++ s }", True)],
)  # fmt: skip
def test_a_set_has_sequences_of_any_length(claim: str, is_true: bool, tmp_path: Path) -> None:
    """Also where their values are too many to list."""
    proof = proved(LENGTHS.format(claim=claim), tmp_path)
    assert isinstance(proof.verdict, Holds) is is_true
    assert proof.proved == (("claimed",) if is_true else ())
