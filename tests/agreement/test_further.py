"""The engines agree on specs of random types, with values of any width and the whole language."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement.both import PATIENCE_S, differences, program_of, states_found
from agreement.further_specs import further_spec
from seeded import few_of
from specchk.codegen import ir
from specchk.ir.program import Program
from specchk.ir.types import Room
from specchk.native.machine.asm import Asm, Val, code_type
from specchk.native.tiers import LONG
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, Unsupported, explore
from specchk.search.replay import ReplayFailed

RANDOMS = st.randoms(use_true_random=False)
ROOMS = st.sampled_from((None, None, Room(1, 4), Room(2, 16), Room(4, 64)))
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
FEW = Budget(max_states=1000, max_seconds=PATIENCE_S)


def check_further(
    random: Random, folder: Path, *, symmetry: bool, keep_going: bool, room: Room | None
) -> None:
    """Check that the engines agree on a further spec, if it is valid and has few states."""
    program = program_of(further_spec(random), folder)
    if program is not None:
        way = {"symmetry": symmetry, "keep_going": keep_going}
        assert not differences(program, **way, room=room, limit=FEW)


@settings(max_examples=5, suppress_health_check=SHARED)
@given(random=RANDOMS, symmetry=st.booleans(), keep_going=st.booleans(), room=ROOMS)
def test_engines_agree_on_further_specs(
    random: Random, symmetry: bool, keep_going: bool, room: Room | None, tmp_path: Path
) -> None:
    """Verdict, counts, coverage, horizons and trace lengths are equal."""
    check_further(random, tmp_path, symmetry=symmetry, keep_going=keep_going, room=room)


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=SHARED)
@given(random=RANDOMS, symmetry=st.booleans(), keep_going=st.booleans(), room=ROOMS)
def test_engines_agree_on_many_further_specs(
    random: Random, symmetry: bool, keep_going: bool, room: Room | None, tmp_path: Path
) -> None:
    """The same for more specs."""
    check_further(random, tmp_path, symmetry=symmetry, keep_going=keep_going, room=room)


def states_of(program: Program) -> set[tuple[object, ...]] | None:
    """All states found by the reference; None if there are more than a few."""
    search = reference.ReferenceEngine(Search(program, Options(FEW, symmetry=False, keep_going=True)))
    explore(search)
    return None if search.search.is_stopped else set(search.parents)


@pytest.mark.parametrize("block", few_of(range(12), 1))
def test_engines_find_the_same_states_of_further_specs(block: int, tmp_path: Path) -> None:
    """Not only their number is equal; half of the specs have several states."""
    several = 0
    for seed in range(8 * block, 8 * block + 8):
        program = program_of(further_spec(Random(seed)), tmp_path)
        states = None if program is None else states_of(program)
        if program is not None and states is not None:
            try:
                assert states_found(program) == states
            except Unsupported:
                continue
            several += len(states) > 1
    assert several


def cut(asm: Asm, value: Val, offset: Val, width: int, kind: ir.IntType | None = None) -> Val:
    """The former `Asm.bits`: a constant had as many words as its digits need, not as its type has."""
    if width == 0:
        return 0
    shape = code_type(value.bit_length()) if isinstance(value, int) else kind
    return asm.band(asm.resize(asm.shr(value, offset, shape), code_type(width)), (1 << width) - 1)


@pytest.mark.system
def test_a_constant_that_is_cut_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tables that begin with zeros are among the constants, and are read at keys not known beforehand.

    One of 120 specs shows it, the third of these.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # what is kept has the name of code without the flaw
    programs = [program_of(further_spec(Random(seed)), tmp_path) for seed in range(100, 104)]
    monkeypatch.setattr(Asm, "bits", cut)
    assert any(is_noticed(program) for program in programs if program is not None)


def is_noticed(program: Program) -> bool:
    try:
        return bool(differences(program, keep_going=True, limit=FEW, optimising_after=LONG))
    except (AssertionError, ReplayFailed):
        return True
