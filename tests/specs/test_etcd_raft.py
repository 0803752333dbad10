"""spec/raft/etcd_raft.spec: etcd's raft is safe by its rules, and each that is missing fails alone."""

from __future__ import annotations

import pytest

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import choose_model
from specchk.native import engine
from specchk.search.expect import unmet, wants_counts
from specs.spec_runs import declared, failure_of_scenario, spec

NAME = "raft/etcd_raft"
SLOW = {"two_terms", "transferred", "tentative"}  # 8 to 25 s each
WALKED = {
    "counts_older_entries",
    "four_terms",
    "recordings",
}  # for scenarios and recordings
MODELS = [
    pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
    for name in declared("model", NAME)
    if name not in WALKED
]


@pytest.mark.parametrize("model", MODELS)
def test_a_model_is_as_expected(model: str) -> None:
    """The rules are safe; without one of them the property named fails, first in the length measured."""
    expects = choose_model(spec(NAME), model, {}).expects
    assert expects
    outcome = engine.search(
        instantiate(spec(NAME), model).program, engine.NativeOptions(symmetry=not wants_counts(expects))
    )
    assert unmet(outcome, expects) == []


@pytest.mark.parametrize("scenario", declared("scenario", NAME))
def test_a_walk_through_goes_as_written(scenario: str) -> None:
    """Among them figure 3.7 of Ongaro's thesis, with the rule and without it."""
    assert failure_of_scenario(NAME, scenario) is None
