"""A sample of bench/engines/campaigns.py: every engine on random specs, and changes of their texts."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_specs import linear_spec
from spec_texts import small_spec

from agreement.every_engine import compare
from agreement.gathered_specs import gathered_spec
from agreement.metamorphic import CHANGES, Relation, Said, broken
from agreement.open_specs import open_spec
from agreement.pairs import disagreement
from agreement.random_specs import random_spec
from specchk.search.replay import ReplayFailed
from specchk.symbolic.induction.encode import exprs

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
GENERATORS = (open_spec, random_spec, small_spec, linear_spec)
SEEDS = st.integers(0, 10**9)


def check_every_engine(seed: int, folder: Path, *, symmetry: bool, keep_going: bool) -> None:
    random = Random(seed)
    text = random.choice((open_spec, linear_spec, gathered_spec))(random)
    found = compare(text, folder, symmetry=symmetry, keep_going=keep_going)
    assert found is None or not found.wrong


def check_change(seed: int, change: str, folder: Path, *, engine: str, keep_going: bool) -> None:
    random = Random(seed)
    text = random.choice(GENERATORS)(random)
    changed = CHANGES[change](random, text)
    if changed is not None:
        texts, relation = (text, changed[0]), changed[1]
        assert not disagreement(engine, texts, relation, folder, symmetry=True, keep_going=keep_going)


@settings(max_examples=3, suppress_health_check=SHARED)
@given(seed=SEEDS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_owe_each_other_answers_on_open_specs(seed, symmetry, keep_going, tmp_path):
    """Reference, native, zones with and without horizons, --depth and --prove."""
    check_every_engine(seed, tmp_path, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=SHARED)
@given(seed=SEEDS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_owe_each_other_answers_on_many_open_specs(seed, symmetry, keep_going, tmp_path):
    """The same for more specs."""
    check_every_engine(seed, tmp_path, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.system
def test_equal_offsets_that_are_summed_twice_are_noticed(monkeypatch, tmp_path):
    """As --prove and --depth once failed to; one of fifty gathered specs shows it, the second of these."""
    monkeypatch.setattr(exprs, "distinct", lambda listing: listing.items)
    assert any(is_noticed(gathered_spec(Random(seed)), tmp_path) for seed in (97, 98))


def is_noticed(text: str, folder: Path) -> bool:
    try:
        found = compare(text, folder, symmetry=False, keep_going=False)
    except ReplayFailed:
        return True
    return found is not None and bool(found.wrong)


@pytest.mark.parametrize("change", sorted(CHANGES))
@settings(max_examples=6, suppress_health_check=SHARED)
@given(seed=SEEDS, keep_going=st.booleans())
def test_a_change_that_must_not_matter_does_not(change, seed, keep_going, tmp_path):
    """For the reference, against which the others are checked."""
    check_change(seed, change, tmp_path, engine="reference", keep_going=keep_going)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["native", "symbolic", "depth"])
@pytest.mark.parametrize("change", sorted(CHANGES))
@settings(max_examples=10, suppress_health_check=SHARED)
@given(seed=SEEDS, keep_going=st.booleans())
def test_a_change_that_must_not_matter_does_not_to_other_engines(engine, change, seed, keep_going, tmp_path):
    """For the engines that are not the meaning."""
    check_change(seed, change, tmp_path, engine=engine, keep_going=keep_going)


SAID = Said(
    "Violated", frozenset({("invariant", "safe", 3)}), frozenset({("wit", 2)}), (1, 2, 2), 9, {"go": 4}
)


@pytest.mark.parametrize(
    "other",
    [
        Said("Holds", frozenset(), SAID.witnesses, SAID.levels, 9, SAID.taken),
        Said("Violated", frozenset({("invariant", "safe", 4)}), SAID.witnesses, SAID.levels, 9, SAID.taken),
        Said("Violated", SAID.violations, frozenset(), SAID.levels, 9, SAID.taken),
        Said("Violated", SAID.violations, SAID.witnesses, (1, 2, 3), 9, SAID.taken),
        Said("Violated", SAID.violations, SAID.witnesses, SAID.levels, 10, SAID.taken),
    ],
)
def test_a_relation_that_does_not_hold_is_noticed(other):
    """One error in each part of the results is enough."""
    assert not broken(SAID, SAID, Relation())
    assert broken(SAID, other, Relation())


def test_a_later_violation_within_a_further_horizon_is_noticed():
    """A finding within a horizon is a finding within a further one, and no later."""
    later = Said("Violated", frozenset({("invariant", "safe", 4)}), SAID.witnesses, (1, 2, 3), 12, SAID.taken)
    assert broken(SAID, later, Relation(grows=True))
    assert not broken(later, SAID, Relation(grows=True))


@pytest.mark.parametrize("make", GENERATORS)
def test_every_change_has_its_places(make):
    """Some of a generator's first hundred specs can be changed in nearly all ways, and all can be changed."""
    done = set()
    for seed in range(100):
        text = make(Random(seed))
        for name, change in CHANGES.items():
            found = change(Random(seed), text)
            if found is not None:
                assert found[0] != text
                done.add(name)
    assert len(done) >= len(CHANGES) - 3
