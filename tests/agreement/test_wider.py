"""The engines agree on values of several machine words, and on parameters of all kinds of types."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement.both import check_agreement, differences, program_of
from agreement.random_specs import wider_spec
from specchk.native.engine import NativeOptions
from specchk.native.engine import search as native
from specchk.search.engine import Options
from specchk.search.reference import search as reference
from specchk.search.verdict import Violated

RANDOMS = st.randoms(use_true_random=False)
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)

# The key is known only when the search runs; the table is a number of 100 bits.
TABLE = """\
spec table
type Key = 0..19
const weights : Key -> 0..31
const order : seq[Key] upto 20
var key : Key = 0
action next():
    require key < len(order)
    key' = order[key]
invariant light: weights[key] != 12
deadlock ok
model one:
    weights = { k: k for k in Key }
    order = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
"""
# Of a number of 100 bits the highest 85 are 0.
LATE = """\
spec late
type Key = 0..19
const weights : Key -> 0..31
var key : Key = 0
var weight : 0..31 = 0
action next():
    require key < 19
    key' = key + 1
    weight' = weights[key]
invariant light: weight == 0
deadlock ok
model one:
    weights = { k: if k == 17 then 7 else 0 for k in Key }
"""
# Numbers of 8 bits each; sets of 129 bits and of 256.
SETS = """\
spec sets
var a : set[0..128] = {}
var b : set[0..255] = {}
var n : 0..128 = 0
action next():
    require n < 128
    n' = n + 1
    a' = a union {n}
    b' = b union {n}
invariant same: a == b and a subset b
invariant few: card(a intersect b) < 100
deadlock ok
"""
PLANS = """\
spec plans
sort Node
var plan : Node -> 0..1 = { n: 0 for n in Node }
var last : seq[0..1] upto 2 = []
var held : set[bag[Node] upto 2] = {}
action replan(p: Node -> 0..1):
    require p != plan
    plan' = p
action say(s: seq[0..1] upto 2):
    require len(s) > len(last)
    last' = s
action hold(b: bag[Node] upto 2):
    require b not in held and card(held) < 2
    held' = held union {b}
fair hold(_)
invariant few: card(held) < 3
liveness held_one: eventually held != {}
model two:
    Node = 2
"""


@settings(max_examples=8, suppress_health_check=SHARED)
@given(random=RANDOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_wider_specs(
    random: Random, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """Verdict, counts, coverage, horizons and trace lengths are equal."""
    check_agreement(wider_spec(random), tmp_path, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SHARED)
@given(random=RANDOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_many_wider_specs(
    random: Random, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """Verdict, counts, coverage, horizons and trace lengths are equal."""
    check_agreement(wider_spec(random), tmp_path, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.parametrize("optimise_after", [0, 1 << 40])
def test_a_constant_may_be_longer_than_a_word(optimise_after: int, tmp_path: Path) -> None:
    """A value read at a key that is not known beforehand is that of the constant."""
    program = program_of(TABLE, tmp_path)
    assert program is not None
    found = native(program, NativeOptions(optimise_after=optimise_after))
    assert isinstance(found.verdict, Violated)
    assert found.verdict == reference(program, Options()).verdict
    assert len(found.verdict.violations[0].trace.steps) == 12


@pytest.mark.parametrize(("text", "steps"), [(LATE, 18), (SETS, 100)])
def test_a_value_is_as_wide_as_its_type(text: str, steps: int, tmp_path: Path) -> None:
    """Whatever its highest bits are, and whatever the width of the value beside it."""
    program = program_of(text, tmp_path)
    assert program is not None
    assert differences(program) == {}
    (violation,) = reference(program, Options()).verdict.violations
    assert len(violation.trace.steps) == steps


def test_parameters_are_maps_sequences_and_bags(tmp_path: Path) -> None:
    """An instance for each of their values: 3 other maps, the longer sequences, 6 bags."""
    program = program_of(PLANS, tmp_path)
    assert program is not None
    assert not differences(program, keep_going=True)
    outcome = reference(program, Options())
    # 4 maps, 7 sequences, and of 6 bags those sets that have at most two.
    assert outcome.statistics.distinct == 4 * 7 * (1 + 6 + 15)
