"""spec/raft: etcd's raft is safe and live by its rules, and each that is missing fails alone."""

from __future__ import annotations

import pytest

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import choose_model
from specchk.native import engine
from specchk.search.expect import unmet, wants_counts
from specchk.search.verdict import Holds
from specchk.symbolic.induction.prove import ProofOptions, prove
from specs.spec_runs import declared, failure_of_scenario, spec

NAMES = (
    "raft/etcd_raft", "raft/etcd_raft_membership", "raft/etcd_raft_lease", "raft/etcd_raft_liveness",
)  # fmt: skip
SLOW = {"two_terms", "transferred", "tentative", "large", "two_at_once"}  # 3 to 25 s each
# For scenarios and recordings.
WALKED = {"counts_older_entries", "four_terms", "recordings", "three_terms", "elected_at_once"}
MODELS = [
    pytest.param(name, model, marks=[pytest.mark.slow] if model in SLOW else [])
    for name in NAMES
    for model in declared("model", name)
    if model not in WALKED
]


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_a_model_is_as_expected(name: str, model: str) -> None:
    """Its rules suffice; without one of them the property named fails, first in the length measured."""
    expects = choose_model(spec(name), model, {}).expects
    assert expects
    outcome = engine.search(
        instantiate(spec(name), model).program, engine.NativeOptions(symmetry=not wants_counts(expects))
    )
    assert unmet(outcome, expects) == []


@pytest.mark.parametrize(
    ("name", "scenario"), [(name, scenario) for name in NAMES for scenario in declared("scenario", name)]
)
def test_a_walk_through_goes_as_written(name: str, scenario: str) -> None:
    """Among them figure 3.7 of Ongaro's thesis, with the rule and without it."""
    assert failure_of_scenario(name, scenario) is None


@pytest.mark.slow
def test_reads_by_a_lease_are_proved_if_nobody_transfers() -> None:
    """By induction; with transfers the last invariants fail, and the proof with them."""
    program = instantiate(spec("raft/etcd_raft_lease"), "answers").program
    assert isinstance(prove(program, ProofOptions()).verdict, Holds)
    transferred = instantiate(spec("raft/etcd_raft_lease"), "answers", {"Transfers": "1"}).program
    assert not isinstance(prove(transferred, ProofOptions()).verdict, Holds)
