"""Both engines agree on random specs whose sets list their items."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement.both import differences, first_levels, of_seed, program_of
from agreement.sparse_specs import random_sparse_spec
from specchk.ir.types import Room
from specchk.native.machine.rooms import is_roomy
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Unsupported

RANDOMS = st.randoms(use_true_random=False)
# From the room that is guessed down to one item, and with lists for all sets of more than one value.
ROOMS = st.sampled_from((None, Room(3, 256), Room(1, 1), Room(2, 2), Room(8, 1)))
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
LIMIT = Budget(max_states=1500)


@settings(max_examples=4, suppress_health_check=SHARED)
@given(random=RANDOMS, room=ROOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_message_passing(
    random: Random, room: Room | None, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """Verdict, counts, coverage and trace lengths of the first levels, for any initial number of slots."""
    check_message_passing(random, room, tmp_path, symmetry=symmetry, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=SHARED)
@given(random=RANDOMS, room=ROOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_much_message_passing(
    random: Random, room: Room | None, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """The same for more of them."""
    check_message_passing(random, room, tmp_path, symmetry=symmetry, keep_going=keep_going)


def check_message_passing(
    random: Random, room: Room | None, folder: Path, *, symmetry: bool, keep_going: bool
) -> None:
    program = program_of(random_sparse_spec(random), folder)
    assert program is not None
    try:
        found = first_levels(
            program, symmetry=symmetry, keep_going=keep_going, workers=(2,), most=150, room=room
        )
    except Unsupported:
        return
    assert found is None or not found.wrong


@settings(max_examples=8, suppress_health_check=SHARED)
@given(seed=st.integers(0, 10_000), room=ROOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_where_every_set_is_listed(
    seed: int, room: Room | None, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """The random specs of the other suite, of every type and operator, with lists instead of bits."""
    program = of_seed(seed, tmp_path)
    if program is not None:
        assert not differences(program, symmetry=symmetry, keep_going=keep_going, room=room)


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=SHARED)
@given(seed=st.integers(0, 100_000), room=ROOMS, symmetry=st.booleans(), keep_going=st.booleans())
def test_engines_agree_on_many_where_every_set_is_listed(
    seed: int, room: Room | None, symmetry: bool, keep_going: bool, tmp_path: Path
) -> None:
    """The same for many."""
    program = of_seed(seed, tmp_path)
    if program is not None:
        assert not differences(program, symmetry=symmetry, keep_going=keep_going, room=room)


def test_most_of_these_specs_are_accepted_and_move(tmp_path: Path) -> None:
    """The generator's specs list sets, and have more than a few states."""
    programs = [p for seed in range(12) if (p := program_of(random_sparse_spec(Random(seed)), tmp_path))]
    assert len(programs) > 8
    assert all(map(is_roomy, programs))
    found = [reference.search(program, Options(LIMIT, keep_going=True)) for program in programs]
    assert sum(outcome.statistics.distinct > 10 for outcome in found) > len(programs) // 2
