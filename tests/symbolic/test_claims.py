"""Single invariants proved by hulls are true, and are proved beside others that fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_hulls import ORDERED, SHARED, spec_of
from zoned import program_of
from zoned import search_zones as exact

from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.search.budget import Budget
from specchk.search.verdict import Violated
from specchk.symbolic.joins import claims
from specchk.symbolic.joins import search as joins_search
from specchk.symbolic.joins.claims import proved
from specchk.symbolic.legality import check
from specchk.symbolic.zones.engine import ZoneOptions

FEW = (300, 1)  # hulls, and processes
# With an invariant that no split of hulls is needed for.
BESIDE = ORDERED.replace(
    "action advance",
    """\
var low : Offset = 0
var high : Offset = 0
action rise():
    high' = high + 1
action climb():
    require low < high
    low' = low + 1
invariant lower: low <= high
action advance""",
)
UNDEFINED = "if first < 3 then first + 1 else min({ x for x in { first } if x < 0 })"


def wrongly_proved(seed: int, folder: Path) -> frozenset[str]:
    """The invariants of a random spec that hulls prove, and the exact search violates."""
    try:
        program = program_of(spec_of(seed), folder)
        check(program)
    except SpecError:
        return frozenset()
    outcome = exact(program, ZoneOptions(Budget(max_states=120), keep_going=True, workers=1))
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    return proved(program, *FEW) & {violation.name for violation in violations}


@given(st.integers(0, 10**6))
@settings(suppress_health_check=SHARED, max_examples=40)
def test_what_hulls_prove_beside_others_is_true(tmp_path, seed):
    """No invariant that they prove is violated, whatever else is."""
    assert wrongly_proved(seed, tmp_path) == frozenset()


@pytest.mark.system
def test_claims_that_are_not_tried_again_are_detected(tmp_path, monkeypatch):
    """Planted: claims that had not failed when a search ended count as proved."""
    whole, known = claims._failing, list[frozenset[str] | None]()

    def once(program: Program, *options: int) -> frozenset[str] | None:
        known.append(frozenset() if known and known[-1] else whole(program, *options))
        return known[-1]

    monkeypatch.setattr(claims, "_failing", once)
    assert any(wrongly_proved(seed, tmp_path) for seed in range(60))


def test_hulls_prove_what_needs_no_split_beside_what_does(tmp_path, monkeypatch):
    """With one round only those that need no split are left."""
    program = program_of(BESIDE, tmp_path)
    assert proved(program, *FEW) == {"one_of_them", "least", "lower"}
    monkeypatch.setattr(joins_search, "MAX_ROUNDS", 1)
    assert proved(program, *FEW) == {"lower"}


def test_nothing_is_proved_behind_an_undefined_step(tmp_path):
    """Hulls do not have the states after it."""
    text = ORDERED.replace("first' = first + 1", f"first' = {UNDEFINED}")
    assert proved(program_of(text, tmp_path), *FEW) == frozenset()


def test_a_search_without_room_proves_nothing(tmp_path):
    """A search ended by a budget has not reached every state."""
    program = program_of(ORDERED, tmp_path)
    assert proved(program, 1, 1) == frozenset()


@pytest.mark.parametrize("init", ["known and not known", "0 < min({ x for x in { 1 } if known and x < 0 })"])
def test_nothing_is_proved_of_no_states(tmp_path, init):
    """A spec without initial states, or with unknown ones, has no hull that fails."""
    text = ORDERED.replace("action advance", f"var known : bool\ninit: {init}\naction advance")
    assert proved(program_of(text, tmp_path), *FEW) == frozenset()


def test_the_answer_is_the_same_for_any_number_of_processes(tmp_path):
    """Which invariants are dropped depends on levels, not on where a process has done its slice."""
    program = program_of(BESIDE.replace("both <= max", "both + 1 <= max"), tmp_path)
    answers = [proved(program, 300, count) for count in (1, 2)]
    assert answers == [frozenset({"one_of_them", "lower"})] * 2
