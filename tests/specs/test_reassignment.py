"""spec/reassignment.spec: replicas are replaced without loss, and how each of its rules fails alone.

Counts and lengths are also those of a plain search, written from the rules (`reassignment_searches`), where
the models are small.  B25 has the length that a published TLA+ specification gives: 12 steps, 13 states as
TLC counts them.

Not here: restarts, lost page caches and the order of truncation, which are the subjects of elr.spec and
replication.spec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import check, choose_model
from specchk.native import engine
from specchk.search.expect import unmet
from specchk.search.reference import search
from specchk.search.verdict import HoldsWithin, Outcome, Violated
from specs.reassignment_searches import (
    Rules,
    State,
    count,
    lacks_a_record_in_isr,
    lacks_a_record_in_leader,
    steps_to,
)
from specs.spec_runs import SPECS, lengths, spec

SPEC = SPECS / "reassignment.spec"
slow = pytest.mark.slow
BOTH, ONE = frozenset({0, 1}), frozenset({0})
TWO_BROKERS = Rules(2, BOTH, reassignments=2)

FLAWS = [
    ("b25_remembered_follower", "candidates_complete", 12),
    ("same_epoch", "candidates_complete", 11),
    ("removed_is_eligible", "leader_complete", 5),
    ("override_never_ends", "reassignment_ends", 12),
    pytest.param("added_in_sync", "committed_on_enough", 10, marks=slow),
    pytest.param("cancelled_out_of_isr", "leader_complete", 13, marks=slow),
    pytest.param("cancelled_below_minimum", "on_enough_if_cancelled", 14, marks=slow),
    pytest.param("override_ignored", "ends_at_target", 7, marks=slow),
]
COUNTED_TWICE = [  # model, its rules, states, depth
    ("removed_and_added", TWO_BROKERS, 4439, 23),
    ("b25_must_fetch", Rules(2, BOTH, reassignments=2, reset_remote=False), 4697, 23),
    ("b25_is_forgotten", Rules(2, BOTH, reassignments=2, expands_on_fetch=False), 4757, 24),
    pytest.param("two_replicas", Rules(3, BOTH), 24508, 30, marks=slow),
    pytest.param("one_replica", Rules(3, ONE), 50810, 36, marks=slow),
]
ELIGIBLE = Rules(
    2, BOTH, reassignments=2, min_isr=2, fences=1, removed_leave_elr=False, first_partition=False
)
FAILS_TWICE = [
    (Rules(2, BOTH, reassignments=2, reset_remote=False, expands_on_fetch=False), lacks_a_record_in_isr, 12),
    (Rules(2, BOTH, reassignments=2, removal_bumps_epoch=False), lacks_a_record_in_isr, 11),
    (ELIGIBLE, lacks_a_record_in_leader, 5),
]
LARGER = (
    "two_must_have_it", "false_suspicion", "other_leader", "overridden", "removed_while_fenced",
    "other_partition", "without_elr", "ends_at_last", "ends_after_fencing",
)  # fmt: skip
RULES = {
    "completes_when", "removal_bumps_epoch", "expands_on_fetch", "reset_remote", "cancel_needs_isr",
    "removed_leave_elr", "override_replaces",
}  # fmt: skip

MUTANTS = [  # what a rule states, what a flawed one states, a model of today, the law that fails first
    ("reached >= hw[l] and reached >= start", "reached >= start", "one_replica", "candidates_complete"),
    ("knows(l).isr union get(alter[l], {})", "knows(l).isr", "one_replica", "quorum_superset"),
    ("isr: m.isr - m.removing, adding: {}", "isr: m.isr, adding: {}", "one_replica", "in_assignment"),
    ("then staying(m) else m.adding) subset", "then {} else m.adding) subset", "two_must_have_it",
     "committed_on_enough"),
    ("{ first } else old.isr - old.adding", "{ first } else old.isr", "one_replica", "in_assignment"),
    ("knows(l).epoch == m.epoch and f in", "f in", "removed_and_added", "candidates_complete"),
    ("require applied[l] == now and old.leader", "require old.leader", "removed_and_added", "in_assignment"),
    ("let anew = n != old.leader or", "let anew = false or", "other_leader", "metadata_is_a_log"),
    ("if f == l then end else get(known[f])", "end", "two_replicas", "candidates_complete"),
]  # fmt: skip


def found(model: str, given: Mapping[str, str] | None = None, *, symmetry: bool = True) -> Outcome:
    program = instantiate(spec("reassignment"), model, dict(given or {})).program
    return engine.search(program, engine.NativeOptions(symmetry=symmetry))


def is_met(outcome: Outcome, model: str) -> bool:
    return unmet(outcome, choose_model(spec("reassignment"), model, {}).expects) == []


@pytest.mark.parametrize(("model", "law", "steps"), FLAWS)
def test_a_rule_that_is_missing_fails_in_its_shortest_run(model: str, law: str, steps: int) -> None:
    """One rule turned back violates the property named, first in the length measured."""
    outcome = found(model)
    assert lengths(outcome) == {law: steps}
    assert is_met(outcome, model)


@pytest.mark.parametrize(("model", "rules", "states", "depth"), COUNTED_TWICE)
def test_a_model_has_the_states_of_a_plain_search(model: str, rules: Rules, states: int, depth: int) -> None:
    """The rules hold, and two searches written independently reach as many states in as many levels."""
    outcome = found(model, symmetry=False)
    assert is_met(outcome, model)
    statistics = outcome.statistics
    assert (statistics.distinct, statistics.depth) == count(rules) == (states, depth)


@pytest.mark.parametrize(("rules", "fails", "steps"), FAILS_TWICE)
def test_a_plain_search_finds_the_same_lengths(
    rules: Rules, fails: Callable[[State], bool], steps: int
) -> None:
    """B25, a fetch from before the removal, and an eligible replica without records."""
    assert steps_to(rules, fails) == steps


@slow
@pytest.mark.parametrize("model", LARGER)
def test_the_rules_hold(model: str) -> None:
    """Lagging replicas, fencings, elections, overriding requests, and that a reassignment ends."""
    outcome = found(model)
    assert isinstance(outcome.verdict, HoldsWithin)
    assert is_met(outcome, model)


@pytest.mark.parametrize(("rule", "flaw", "model", "law"), MUTANTS)
def test_a_flawed_rule_is_detected(rule: str, flaw: str, model: str, law: str) -> None:
    """The properties have power: a rule changed in one place violates one of them in a small model."""
    text = SPEC.read_text()
    assert text.count(rule) == 1
    verdict = search(instantiate(check(str(SPEC), text.replace(rule, flaw)), model).program).verdict
    assert isinstance(verdict, Violated)
    assert law in {violation.name for violation in verdict.violations}


def test_every_model_is_checked_here() -> None:
    """A model that is added is a flaw with its length, or it holds."""
    rows = [case.values if hasattr(case, "values") else case for case in (*FLAWS, *COUNTED_TWICE)]
    assert {*(str(row[0]) for row in rows), *LARGER} == set(spec("reassignment").spec.models)


def test_models_that_hold_change_no_rule() -> None:
    """Models that hold are checked under the defaults; the two of B25 show that either rule is enough."""
    for model in {*LARGER, "removed_and_added", "two_replicas", "one_replica"}:
        assert not set(choose_model(spec("reassignment"), model, {}).bindings) & RULES, model


def test_every_worked_example_runs_as_written() -> None:
    """Each scenario takes its steps, is refused where stated, and its assertions hold."""
    for scenario in spec("reassignment").spec.scenarios.values():
        result = run_scenario(instantiate(spec("reassignment"), scenario.model.full), scenario)
        assert result.failure is None, f"{scenario.name}: {result.failure}"
