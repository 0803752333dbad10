"""spec/elr.spec: the promises of eligible leader replicas, and how each of their rules fails alone.

Lengths are the shortest.  B15 has the one that the published TLA+ specification of KIP-966 gives; for the
others there are no published figures.
"""

from __future__ import annotations

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.lang.frontend import choose_model
from specchk.native import engine
from specchk.search.expect import unmet
from specchk.search.reference import search
from specchk.search.verdict import HoldsWithin, Outcome
from specs.spec_runs import lengths, spec

slow = pytest.mark.slow
SMALL = [
    ("b15_hw_below_minimum", "eligible_complete", 3),
    ("minimum_changed_leaderless", "somebody_may_lead", 3),
]
LARGER = [
    ("unclean_stays_eligible", "eligible_complete", 9),
    ("change_without_elr", "leader_complete", 13),
    ("overlap", "eligible_beside_isr", 6),
    ("minimum_lowered_unnoticed", "eligible_complete", 4),
    ("minimum_raised_unnoticed", "eligible_complete", 5),
    ("last_leader_lost_its_cache", "leader_complete", 14),
]
HOLD = (
    "last_replica_standing", "all_are_killed", "stops_in_good_order", "slow_and_eligible", "lower_minimum",
    "higher_minimum",
)  # fmt: skip


def is_met(outcome: Outcome, model: str) -> bool:
    return unmet(outcome, choose_model(spec("elr"), model, {}).expects) == []


@pytest.mark.parametrize(("model", "law", "steps"), SMALL)
def test_a_rule_of_elr_that_is_missing_fails_in_its_shortest_run(model: str, law: str, steps: int) -> None:
    """One rule turned back violates the property named, first in the length measured."""
    outcome = search(instantiate(spec("elr"), model).program)
    assert lengths(outcome) == {law: steps}
    assert is_met(outcome, model)


@slow
@pytest.mark.parametrize(("model", "law", "steps"), LARGER)
def test_a_rule_of_elr_that_is_missing_fails_on_the_native_engine(model: str, law: str, steps: int) -> None:
    """The same, with thousands of states."""
    outcome = engine.search(instantiate(spec("elr"), model).program)
    assert lengths(outcome) == {law: steps}
    assert is_met(outcome, model)


@slow
@pytest.mark.parametrize("model", HOLD)
def test_the_rules_of_elr_hold(model: str) -> None:
    """Millions of states each: a power loss, kills of all, clean stops, lagging replicas, another minimum."""
    outcome = engine.search(instantiate(spec("elr"), model).program)
    assert isinstance(outcome.verdict, HoldsWithin)
    assert is_met(outcome, model)


def test_every_model_is_checked_here() -> None:
    """A model that is added is a flaw with its length, or it holds."""
    assert {*(one[0] for one in (*SMALL, *LARGER)), *HOLD} == set(spec("elr").spec.models)


def test_every_worked_example_runs_as_written() -> None:
    """Each scenario takes its steps, is refused where stated, and its assertions hold."""
    for scenario in spec("elr").spec.scenarios.values():
        result = run_scenario(instantiate(spec("elr"), scenario.model.full), scenario)
        assert result.failure is None, f"{scenario.name}: {result.failure}"
