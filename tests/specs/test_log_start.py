"""spec/log_start.spec: records are deleted without loss of others, and how each of its rules fails alone.

Not here: restarts, which are the subject of store.spec, and proposals in flight, replication.spec's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import CheckedSpec, check, choose_model
from specchk.native import engine
from specchk.search.expect import unmet
from specchk.search.reference import search
from specchk.search.verdict import HoldsWithin, Outcome
from specs.spec_runs import SPECS, lengths, spec

slow = pytest.mark.slow

FLAWS = [
    ("deleted_above_hw", "well_formed", 2),
    ("answered_at_once", "deleted_stays_deleted", 7),
    ("joins_without_start", "deleted_stays_deleted", 9),
    ("hw_below_start", "well_formed", 12),
    ("start_of_another_time", "start_below_hw_in_responses", 8),
    ("epoch_of_start_forgotten", "candidates_complete", 14),
    pytest.param("start_not_adopted", "requests_answered", 11, marks=slow),
    pytest.param("epochs_do_not_move", "fetch_goes_on", 13, marks=slow),
]
HOLD = [
    ("two_brokers", 10_041),
    ("three_epochs", 13_680),
    pytest.param("slow_follower", 37_592, marks=slow),
    pytest.param("false_suspicion", 24_366, marks=slow),
    pytest.param("unclean", 121_551, marks=slow),
    pytest.param("fetches_go_on", 37_592, marks=slow),
    pytest.param("empty_reply_forgets", 19_064, marks=slow),
]
MUTANTS = [  # what a rule states, what a flawed one states, a model of today, the law that fails first
    ("if end < of.start then empty_from(end)", "if false then empty_from(end)", "unclean", "well_formed"),
    ("some t: t.start >= to", "some t: t.leo >= to", "two_brokers", "deleted_stays_deleted"),
    ("else { max(earlier) }", "else { min(earlier) }", "two_brokers", "well_formed"),
    ("if s.start > leo(of) then empty_from", "if false then empty_from", "fetches_go_on", "fetch_goes_on"),
]


def found(model: str, given: Mapping[str, str] | None = None, of: CheckedSpec | None = None) -> Outcome:
    program = instantiate(of or spec("log_start"), model, dict(given or {})).program
    return engine.search(program, engine.NativeOptions(symmetry=False))


@pytest.mark.parametrize(("model", "law", "steps"), FLAWS)
def test_a_rule_that_is_missing_fails_in_its_shortest_run(model: str, law: str, steps: int) -> None:
    """One rule turned back violates the property named, first in the length measured."""
    outcome = found(model)
    assert lengths(outcome) == {law: steps}
    assert unmet(outcome, choose_model(spec("log_start"), model, {}).expects) == []


@pytest.mark.parametrize(("model", "states"), HOLD)
def test_the_rules_hold(model: str, states: int) -> None:
    """Elections, lagging replicas, false suspicions, unclean elections, and every fetch is finally served."""
    outcome = found(model)
    assert isinstance(outcome.verdict, HoldsWithin)
    assert outcome.statistics.distinct == states
    assert unmet(outcome, choose_model(spec("log_start"), model, {}).expects) == []


def test_the_reference_engine_reaches_the_same_states() -> None:
    """With one record and one election."""
    given = {"MaxOffset": "1"}
    program = instantiate(spec("log_start"), "two_brokers", given).program
    assert search(program).statistics.distinct == found("two_brokers", given).statistics.distinct


@pytest.mark.parametrize(("right", "wrong", "model", "law"), MUTANTS)
def test_each_rule_is_needed(right: str, wrong: str, model: str, law: str, tmp_path: Path) -> None:
    """A rule that is stated wrongly violates a property: none is redundant."""
    text = (SPECS / "log_start.spec").read_text(encoding="utf-8")
    assert text.count(right) == 1
    path = tmp_path / "log_start.spec"
    path.write_text(text.replace(right, wrong), encoding="utf-8")
    assert law in lengths(found(model, of=check(str(path))))


def test_the_worked_examples_run() -> None:
    """A follower that restarts, a client that waits, and a log that is cut below its start."""
    scenarios = spec("log_start").spec.scenarios.values()
    assert len(scenarios) == 3
    for scenario in scenarios:
        result = run_scenario(instantiate(spec("log_start"), scenario.model.full), scenario)
        assert result.failure is None, f"{scenario.name}: {result.failure}"
