"""Both engines agree on random specs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from spec_texts import small_specs

from agreement.both import check_agreement, differences, of_seed, program_of, states_found
from agreement.random_specs import random_spec
from specchk.search import reference
from specchk.search.engine import Options, Search, explore

RANDOMS = st.randoms(use_true_random=False)
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)


@settings(max_examples=8, suppress_health_check=SHARED)
@given(random=RANDOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_random_specs(
    random: Random, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """Verdict, counts, coverage, horizons and trace lengths are equal."""
    check_agreement(random_spec(random), tmp_path, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=SHARED)
@given(random=RANDOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_many_random_specs(
    random: Random, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """Verdict, counts, coverage, horizons and trace lengths are equal."""
    check_agreement(random_spec(random), tmp_path, symmetry=symmetry, keep_going=keep_going)


@settings(max_examples=12, suppress_health_check=SHARED)
@given(text=small_specs(), symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_specs_that_move(
    text: str, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """The same for specs with tens to hundreds of states and every kind of end."""
    program = program_of(text, tmp_path)
    assume(program is not None)  # some assign a place twice, which is refused
    assert program is not None
    assert not differences(program, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=SHARED)
@given(text=small_specs(), symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_many_specs_that_move(
    text: str, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """The same for many of them."""
    program = program_of(text, tmp_path)
    assume(program is not None)  # some assign a place twice, which is refused
    assert program is not None
    assert not differences(program, symmetry=symmetry, keep_going=keep_going)


def test_most_random_specs_are_accepted_and_some_move(tmp_path: Path) -> None:
    """The generator's specs are well typed, and not all of them end at once.

    It is wide rather than deep: every type and operator, most often with something undefined soon;
    the specs that move are those of the two tests above.
    """
    programs = [program for seed in range(40) if (program := of_seed(seed, tmp_path)) is not None]
    assert len(programs) > 30
    found = [reference.search(program, Options(keep_going=True)) for program in programs]
    assert sum(outcome.statistics.distinct > 1 for outcome in found) > 8


@pytest.mark.parametrize("seed", [6, 20, 21, 42, 79, 109])
def test_engines_find_the_same_states(seed: int, tmp_path: Path) -> None:
    """Not only the number of states is equal: unpacked, they are the same states."""
    program = of_seed(seed, tmp_path)
    assert program is not None
    search = reference.ReferenceEngine(Search(program, Options(symmetry=False, keep_going=True)))
    explore(search)
    assert len(search.parents) > 3
    assert states_found(program) == set(search.parents)
