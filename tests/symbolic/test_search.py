"""The search over zones: it has the findings of enumeration, and those that no enumeration can have."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from offset_specs import offset_spec
from zone_lists import zone_with
from zoned import contradictions, differences, program_of, said, zone_engine
from zoned import search_zones as search

from laws.sources import ROOT
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning import open_numbers
from specchk.search.budget import Budget
from specchk.search.engine import explore
from specchk.search.verdict import Holds, Inconclusive, Violated
from specchk.symbolic.recording import trees
from specchk.symbolic.zones import covering, precision, zones
from specchk.symbolic.zones.engine import ZoneOptions
from specchk.symbolic.zones.zones import Reach

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
SPEC = ROOT / "spec" / "replication.spec"
ALONE = ZoneOptions(workers=1)


def model(file: Path, name: str | None, **constants: str) -> Program:
    return instantiate(check(str(file)), name, constants).program


@settings(max_examples=25, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10**9), keep_going=st.booleans())
def test_with_horizons_the_zones_have_exactly_the_reachable_states(seed, keep_going, tmp_path):
    """Random specs about offsets: the same states, verdict, depth, lengths and witnesses."""
    assert not differences(program_of(offset_spec(Random(seed)), tmp_path), 2, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10**9), keep_going=st.booleans())
def test_with_horizons_the_zones_of_many_specs_have_the_reachable_states(seed, keep_going, tmp_path):
    """The same for more specs."""
    assert not differences(program_of(offset_spec(Random(seed)), tmp_path), 2, keep_going=keep_going)


@settings(max_examples=12, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10**9))
@example(seed=239)  # a step invariant of a step that has chosen an offset
def test_what_is_found_within_a_horizon_is_found_without_one(seed, tmp_path):
    """A violation at the same length or a shorter one, and every witness."""
    assert not contradictions(program_of(offset_spec(Random(seed), 3), tmp_path))


@pytest.mark.parametrize(
    ("file", "name", "constants", "horizon"),
    [
        ("two_round_fetch.spec", None, {}, 3), ("kafka/kip101.spec", None, {}, 2),
        ("replication.spec", "two_brokers", {"MaxOffset": "1", "MaxCrashes": "0"}, 1),
        ("replication.spec", "b3_fast_failover", {"MaxOffset": "1"}, 1),
    ],
)  # fmt: skip
def test_models_have_the_same_states_with_their_horizons(file, name, constants, horizon):
    """Of the specs in spec/, small ones of each kind."""
    assert differences(model(ROOT / "spec" / file, name, **constants), horizon, keep_going=False) == {}


@pytest.mark.parametrize(
    ("name", "steps"),
    [("b1_truncate_to_hw", 9), ("b3_fast_failover", 8), ("b9_diverging_fetch_counts", 7),
     ("b14_committed_isr_only", 7), ("b14_optimistic_shrink", 2), ("b17_page_cache", 5), ("b22_acks_one", 3),
     ("b31_never_truncates", 5)],
)  # fmt: skip
def test_a_flaw_of_the_ledger_is_found_at_its_length(name, steps):
    """Without a horizon as within one, with real offsets, replayed by the reference."""
    verdict = search(model(SPEC, name), ALONE).verdict
    assert isinstance(verdict, Violated)
    assert verdict.violations[0].trace is not None
    assert len(verdict.violations[0].trace.steps) == steps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"),
    [("b2_truncate_to_hw_diverges", 10), ("b4_undefined_epoch", 11), ("b8_foreign_acknowledgement", 11),
     ("b12_hw_before_truncation", 11), ("b16_unclean_election", 7), ("b17_unnoticed_restart", 8),
     ("b19_no_compare_and_set", 10), ("b30_joins_below_hw", 7), ("b11_committed_by_one", 6),
     ("b24_fenced_member", 11), ("b18_fetch_of_a_former_life", 13), ("b11_last_replica_standing", 10),
     ("b29_deposed_leader_is_read", 11), ("b6_missed_epoch", 12), ("b7_stale_leader_answers", 13),
     ("b5_joins_before_epoch_start", 15)],
)  # fmt: skip
def test_a_deeper_flaw_of_the_ledger_is_found_at_its_length(name, steps):
    """Without a horizon as within one."""
    verdict = search(model(SPEC, name)).verdict
    assert isinstance(verdict, Violated)
    assert verdict.violations[0].trace is not None
    assert len(verdict.violations[0].trace.steps) == steps


@pytest.mark.slow
def test_todays_rules_hold_for_every_length_of_the_logs():
    """Two brokers, one election: a fixpoint without a bound on offsets."""
    outcome = search(model(SPEC, "two_brokers", MaxCrashes="0"))
    assert isinstance(outcome.verdict, Holds)
    assert outcome.statistics.symbolic is not None
    assert outcome.statistics.symbolic.refinements == 0


def test_two_round_fetch_holds_for_every_length():
    assert isinstance(search(model(ROOT / "spec" / "two_round_fetch.spec", None), ALONE).verdict, Holds)


def test_a_flaw_that_needs_ten_thousand_records_is_found_with_the_fewest():
    """A lag threshold of 10 000 messages: three steps, and the smallest offsets that do it."""
    program = model(ROOT / "spec" / "examples" / "lag.spec", "message_lag", lag_max="10000")
    verdict = search(program, ALONE).verdict
    assert isinstance(verdict, Violated)
    (violation,) = verdict.violations
    assert violation.trace is not None
    assert [str(step) for step in violation.trace.steps] == ["produce()", "shrink()", "fail_over()"]
    assert max(violation.trace.last) == 10_001
    assert violation.condition == ("hw == leo", "leo >= 10001")


@pytest.mark.system
def test_any_number_of_workers_gives_the_same_answer():
    """Zones, levels, verdict and counterexample."""
    program = model(SPEC, "b9_diverging_fetch_counts")
    found = []
    for workers in (1, 2, 3):
        engine = zone_engine(program, ZoneOptions(workers=workers))
        outcome = explore(engine)
        found.append((said(outcome), outcome.statistics.levels, outcome.verdict, engine.nodes))
    assert found[0] == found[1] == found[2]


def test_without_coverage_there_are_more_zones():
    """Dropping covered zones is what keeps the search small; the answer is the same."""
    program = model(ROOT / "spec" / "examples" / "lag.spec", "today")
    covered, all_ = (search(program, ZoneOptions(workers=1, covering=on)) for on in (True, False))
    assert type(covered.verdict) is type(all_.verdict)
    assert covered.statistics.distinct < all_.statistics.distinct


def test_what_is_too_coarse_is_begun_again(tmp_path):
    """A difference of two matters here: the order alone permits too much, and is not trusted."""
    text = """\
spec gap
type Offset = nat upto 9
var a : Offset = 0
var b : Offset = 0
action ahead():
    require a == b
    a' = a + 1
action along():
    require b < a
    b' = b + 1
deadlock ok
invariant close: a <= b + 1
model one:
    expect holds
"""
    program = program_of(text, tmp_path)
    outcome = search(program, ALONE)
    assert isinstance(outcome.verdict, Holds)
    assert outcome.statistics.symbolic is not None
    assert outcome.statistics.symbolic.refinements >= 1


def _weak_order(monkeypatch):
    monkeypatch.setattr(open_numbers.Term, "__lt__", lambda self, other: self <= other)


def _lost_plus(monkeypatch):
    monkeypatch.setattr(
        open_numbers.Term, "__add__", lambda self, other: open_numbers.Term(self.path, self.symbol, self.plus)
    )


def _reversed_coverage(monkeypatch):
    mask = covering._mask
    monkeypatch.setattr(covering, "_mask", lambda zone, limits: ~mask(zone, limits))


def _one_sided(monkeypatch):
    monkeypatch.setattr(trees.Recorder, "choose", lambda self, count: 0)


def _wrong_projection(monkeypatch):
    whole = zones.zone_at

    def zone(*given):
        right = whole(*given)
        return zone_with(right.shape, [(number, 0) for number, _ in right.classes], right.bounds)

    monkeypatch.setattr(precision, "zone_at", zone)


def _forgetful(monkeypatch):
    whole = zones.zone_at

    def zone(shape, at, rows, reach):
        return whole(shape, at, rows, reach or Reach(0, 0))

    monkeypatch.setattr(precision, "zone_at", zone)


def _early_pruning(monkeypatch):
    """Planted: what one zone of a shape cannot do is assumed for all zones."""
    monkeypatch.setattr(trees.Tree, "only", property(lambda self: _first_leaf(self.top)))


def _first_leaf(node):
    while isinstance(node, trees.TreeNode):
        node = next((one for one in node.after if one is not None), None)
    return node


def _first_come(monkeypatch):
    """Planted: the first zone's answers are used for all."""
    ask = trees.Recorder.at_most

    def at_most(self, i, j, bound):
        (c, d), (e, f) = self._classes[i], self._classes[j]
        rows = self._guide.rows
        return bound - d + f >= rows[c][e] or (
            ask(self, i, j, bound) if rows[e][c] >= d - f - bound else False
        )

    monkeypatch.setattr(trees.Recorder, "at_most", at_most)


@pytest.mark.system
@pytest.mark.parametrize(
    "plant",
    [
        _weak_order,
        _lost_plus,
        _reversed_coverage,
        _one_sided,
        _wrong_projection,
        _forgetful,
        _early_pruning,
        _first_come,
    ],
)
def test_a_planted_bug_is_found(plant, monkeypatch, tmp_path):
    """Each makes the states of some random spec differ, or the search fail."""
    plant(monkeypatch)
    assert any(_differs(seed, tmp_path) for seed in range(40))


def _differs(seed: int, folder: Path) -> bool:
    program = program_of(offset_spec(Random(seed)), folder)
    try:
        return bool(differences(program, 2, keep_going=True))
    except Exception:
        return True


def test_a_search_that_a_budget_ends_is_no_success():
    outcome = search(model(SPEC, "two_brokers"), ZoneOptions(budget=Budget(max_states=50), workers=1))
    assert isinstance(outcome.verdict, Inconclusive)
    assert outcome.verdict.budget
