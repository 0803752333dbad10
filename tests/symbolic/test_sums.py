"""Search with offsets in sums: valid claims, failures in the fewest steps, and far thresholds."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_specs import linear_spec
from sums import APART, BROKEN, SPECS, THRESHOLDS, spec
from zoned import contradictions, differences, program_of, said, zone_engine
from zoned import search_zones as search

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning import linear, paths
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, explore
from specchk.search.verdict import Holds, Inconclusive, Outcome, Violated
from specchk.symbolic.joins.engine import JoinOptions
from specchk.symbolic.joins.engine import search as joined
from specchk.symbolic.recording import solver
from specchk.symbolic.zones.engine import FIRST_REACH, ZoneOptions

REPLICATION = Path(__file__).parents[2] / "spec" / "replication.spec"
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
ALONE = ZoneOptions(Budget(max_states=3000), workers=1)
STEPS = {"window": 1, "lease": 3, "chain": 5, "segment": 1}
NEAR = 7  # a horizon within which every changed spec fails, and enumeration is quick


def searched(body: str, folder, horizon: int = NEAR) -> Outcome:
    return search(program_of(spec("sums", body, horizon), folder), ALONE)


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_with_sums_holds_for_every_offset(name, tmp_path):
    """And within growing horizons, where all numbers are enumerated."""
    body = SPECS[name][0]
    outcome = searched(body, tmp_path)
    assert isinstance(outcome.verdict, Holds)
    assert outcome.statistics.symbolic is not None
    assert outcome.statistics.symbolic.solver_checks > 0
    for horizon in (1, 3, 5):
        within = reference.search(program_of(spec("sums", body, horizon), tmp_path), Options())
        assert not isinstance(within.verdict, Violated | Inconclusive)


def share_of_z3(outcome: Outcome) -> float:
    counts = outcome.statistics.symbolic
    assert counts is not None
    assert counts.questions > 50
    return counts.solver_checks / counts.questions


@pytest.mark.parametrize(
    ("model", "constants"),
    [
        ("b9_diverging_fetch_counts", {}),
        pytest.param("two_brokers", {"MaxCrashes": "0"}, marks=pytest.mark.system),
        pytest.param("three_epochs", {}, marks=pytest.mark.slow),
    ],
)
def test_less_than_one_comparison_in_a_hundred_of_replication_is_a_query(model, constants, tmp_path):
    """The matrix decides them or the step forks; a spec of sums has a query for every fifth one."""
    program = instantiate(check(str(REPLICATION)), model, constants).program
    assert share_of_z3(joined(program, JoinOptions(workers=1))) < 0.01
    assert share_of_z3(searched(SPECS["sum_below"][0], tmp_path)) > 0.1


@pytest.mark.parametrize("name", [name for name in SPECS if name != "segment"])
def test_a_changed_spec_fails_in_as_few_steps_as_enumeration_finds(name, tmp_path):
    """The same violation, with a behaviour of real numbers."""
    body, old, new = SPECS[name]
    assert old in body
    changed = body.replace(old, new)
    found = searched(changed, tmp_path).verdict
    expected = reference.search(program_of(spec("sums", changed, NEAR), tmp_path), Options()).verdict
    assert isinstance(found, Violated)
    assert isinstance(expected, Violated)
    assert [(one.kind, one.name) for one in found.violations] == [
        (one.kind, one.name) for one in expected.violations
    ]
    lengths = [one.violations[0].trace and len(one.violations[0].trace.steps) for one in (found, expected)]
    assert lengths[0] == lengths[1]


def test_any_number_of_workers_gives_the_same_answer(tmp_path):
    """Predicates have one order, whichever process recorded their comparisons."""
    program = program_of(spec("sums", SPECS["majority"][0], NEAR), tmp_path)
    found = []
    for workers in (1, 2, 3):
        engine = zone_engine(program, ZoneOptions(workers=workers))
        outcome = explore(engine)
        found.append((said(outcome), outcome.statistics.levels, engine.nodes))
    assert found[0] == found[1] == found[2]


def test_the_smallest_numbers_break_a_far_threshold(tmp_path):
    """A segment of one byte too many, in one step."""
    body, old, new = SPECS["segment"]
    (violation,) = searched(body.replace(old, new), tmp_path).verdict.violations
    assert violation.trace is not None
    assert violation.trace.last == (0, 1025)


CHOSEN = """\
var a : Offset = 0
var b : Offset = 2
action grow():
    any n in Offset:
        require n > 0 and a + n <= b
        a' = a + n
"""


def test_a_deadlock_depends_on_what_can_be_chosen_in_a_sum(tmp_path):
    """No action is enabled if no n is small enough; in the fewest steps, as enumeration finds."""
    text = f"spec sums\ntype Offset = nat upto {NEAR}\n{CHOSEN}model one:\n    expect deadlock\n"
    program = program_of(text, tmp_path)
    found, expected = search(program, ALONE).verdict, reference.search(program, Options()).verdict
    for verdict in (found, expected):
        assert isinstance(verdict, Violated)
        assert [violation.kind for violation in verdict.violations] == ["deadlock"]
        assert verdict.violations[0].trace is not None
        assert len(verdict.violations[0].trace.steps) == 1


@pytest.mark.parametrize("name", THRESHOLDS)
def test_far_thresholds_need_no_more_zones_than_near_ones(name, tmp_path):
    """Ten, a thousand and a million: the threshold is kept, not the numbers below it."""
    outcomes = [searched(THRESHOLDS[name].format(far=far), tmp_path) for far in (10, 1_000, 1_000_000)]
    assert all(isinstance(outcome.verdict, Holds) for outcome in outcomes)
    assert len({outcome.statistics.distinct for outcome in outcomes}) == 1


def test_far_thresholds_from_below_need_no_further_reach(tmp_path):
    """Offsets that stay apart: the order of offsets and thresholds is enough, as where they stay near."""
    for far in (10, 1_000):
        outcome = searched(APART.format(far=far), tmp_path, 2 * far)
        assert isinstance(outcome.verdict, Holds)
        assert outcome.statistics.symbolic is not None
        assert outcome.statistics.symbolic.reach == FIRST_REACH.lower


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_far_threshold_is_found_in_the_fewest_steps(name, tmp_path):
    """With steps of any size: as many as enumeration finds for a near one; nothing is listed."""
    near = reference.search(program_of(spec("sums", BROKEN[name].format(far=5), 11), tmp_path), Options())
    for far in (5, 10, 1_000, 1_000_000, 10**12):
        for outcome in (near, searched(BROKEN[name].format(far=far), tmp_path)):
            assert isinstance(outcome.verdict, Violated)
            (violation,) = outcome.verdict.violations
            assert violation.trace is not None
            assert len(violation.trace.steps) == STEPS[name]


def test_a_chain_of_windows_with_steps_of_any_size_holds(tmp_path):
    """A comparison of a chosen number is one of the offset in which the step stores it."""
    body = BROKEN["chain"].replace("{far} + 1", "{far}")
    assert body != BROKEN["chain"]
    assert isinstance(searched(body.format(far=1_000), tmp_path).verdict, Holds)


def test_the_condition_of_a_violation_says_what_sums_must_be(tmp_path):
    """For all offsets with which the same steps break the invariant, not for one example only."""
    body = """\
var a : Offset = 0
var b : Offset = 0
var c : Offset = 0
action jump():
    any x in Offset:
        any y in Offset:
            any z in Offset:
                require x + y > 2 * z + 3
                a' = x
                b' = y
                c' = z
invariant small: a + b <= 2 * c
"""
    (violation,) = searched(body, tmp_path).verdict.violations
    assert "a + b >= 2*c + 4" in violation.condition


@pytest.mark.parametrize(
    ("value", "message"),
    [("a * b", "two offsets are multiplied"), ("a // b", "divided by an offset"),
     ("3 % b", "divided by an offset")],
)  # fmt: skip
def test_what_is_not_linear_is_refused_with_its_place(value, message, tmp_path):
    """Before anything is searched."""
    body = f"var a : Offset = 1\nvar b : Offset = 1\naction go(): a' = {value}\n"
    with pytest.raises(SpecError, match=message):
        searched(body, tmp_path)


@settings(max_examples=15, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_what_is_found_within_a_horizon_is_found_without_one(seed, tmp_path):
    """Random specs with linear arithmetic: each violation at the same length or a shorter one."""
    assert not contradictions(program_of(linear_spec(Random(seed), 3), tmp_path))


@settings(max_examples=15, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10**9), keep_going=st.booleans())
def test_with_horizons_the_zones_have_exactly_the_reachable_states(seed, keep_going, tmp_path):
    """The same states, verdict, depth, lengths and witnesses as the reference."""
    text = linear_spec(Random(seed), 2, ranges=False)
    assert not differences(program_of(text, tmp_path), 2, keep_going=keep_going)


def _rounded_up(monkeypatch):
    """2x <= 5 becomes x <= 3."""
    whole = paths.primitive

    def primitive(form):
        terms, factor, plus = whole(form)
        return terms, factor, plus - plus % factor

    monkeypatch.setattr(paths, "primitive", primitive)


def _truncating(monkeypatch):
    """-1 // 2 is 0."""
    whole = linear.divided
    monkeypatch.setattr(
        "specchk.meaning.open_numbers.divided", lambda form, by: whole((form[0], form[1] + 1), by)
    )


def _believing(monkeypatch):
    """Planted: what Z3 finds possible is treated as certain."""
    whole = solver.LinearSolver.decided
    monkeypatch.setattr(
        solver.LinearSolver,
        "decided",
        lambda self, *asked: True if whole(self, *asked) is None else whole(self, *asked),
    )


def _without_factors(monkeypatch):
    """Planted: the solver is given sums without their factors."""
    whole = solver.LinearSolver._sum
    monkeypatch.setattr(
        solver.LinearSolver,
        "_sum",
        lambda self, form: whole(self, (tuple([(part, 1) for part, _ in form[0]]), form[1])),
    )


@pytest.mark.system
@pytest.mark.parametrize("plant", [_rounded_up, _truncating, _believing, _without_factors])
def test_a_planted_bug_is_found(plant, monkeypatch, tmp_path):
    """Each makes some random spec differ, or the search fail."""
    plant(monkeypatch)
    assert any(_differs(seed, tmp_path) for seed in range(40))


def _differs(seed: int, folder) -> bool:
    within = program_of(linear_spec(Random(seed), 2, ranges=False), folder)
    beyond = program_of(linear_spec(Random(seed), 3), folder)
    try:
        return bool(differences(within, 2, keep_going=True) or contradictions(beyond))
    except Exception:
        return True
