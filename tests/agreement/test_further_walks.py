"""Random walks through specs with the whole language, compared with a search of all their states."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spec_texts import timeless

from agreement.both import program_of
from agreement.further_specs import further_spec
from agreement.gathered_specs import gathered_spec
from agreement.walked import wrong_walks
from specchk.explore.simulate import Walks
from specchk.explore.simulate import simulate as interpreted
from specchk.ir.program import Program
from specchk.native.walking.memory import WalkMemory
from specchk.native.walking.simulation import StepChoice, simulate
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Unsupported
from specchk.search.verdict import Outcome, Violated

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
RANDOMS = st.randoms(use_true_random=False)
FEW = Options(Budget(max_states=500), symmetry=False, keep_going=True)
WALKS, STEPS = 80, 10


def found_in(outcome: Outcome) -> dict[tuple[str, str], int]:
    """The violated and reached properties, with the lengths of their traces."""
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    found = {(one.kind, one.name): len(one.trace.steps) for one in violations if one.trace is not None}
    return {**found, **{("witness", name): len(trace.steps) for name, trace in outcome.witnesses}}


def wrong_with(program: Program, seed: int) -> list[str]:
    """The differences of walks from their meaning, from each other, and from a search."""
    try:
        wrong = wrong_walks(program, seed, 8, STEPS)
        runs = [
            simulate(program, Walks(seed, WALKS, STEPS), workers, choice=choice)
            for choice in StepChoice for workers in (1, 2, 3)
        ]  # fmt: skip
    except Unsupported:
        return []
    for first in (0, 3):
        alone = timeless(runs[first])
        wrong += ["other walks" for run in runs[first + 1 : first + 3] if timeless(run) != alone]
    whole = reference.search(program, FEW)
    if whole.stopped is None:
        runs.append(interpreted(program, Walks(seed, WALKS, STEPS)))
        known = found_in(whole)
        for run in runs:
            for what, steps in found_in(run).items():
                wrong += [f"{what} in {steps} steps"] * (known.get(what, STEPS + 1) > steps)
    return wrong


def check_some(random: Random, folder: Path, seed: int) -> None:
    program = program_of(random.choice((further_spec, further_spec, gathered_spec))(random), folder)
    assert program is None or not wrong_with(program, seed)


@settings(max_examples=5, suppress_health_check=SHARED)
@given(random=RANDOMS, seed=st.integers(0, 2**64 - 1))
def test_walks_through_further_specs_find_what_a_search_finds(
    random: Random, seed: int, tmp_path: Path
) -> None:
    """No shorter, and nothing else; the same on any number of workers."""
    check_some(random, tmp_path, seed)


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=SHARED)
@given(random=RANDOMS, seed=st.integers(0, 2**64 - 1))
def test_walks_through_many_further_specs_find_what_a_search_finds(
    random: Random, seed: int, tmp_path: Path
) -> None:
    """The same for more specs."""
    check_some(random, tmp_path, seed)


def test_walks_that_depend_on_the_workers_are_noticed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Planted: each number of workers starts with another seed."""
    set_walks = WalkMemory.set_walks

    def by_workers(memory: WalkMemory, seed: int, steps: int) -> None:
        set_walks(memory, seed + len(memory.workers), steps)

    monkeypatch.setattr(WalkMemory, "set_walks", by_workers)
    programs = [program_of(gathered_spec(Random(seed)), tmp_path) for seed in range(3)]
    assert any(wrong_with(program, 1) for program in programs if program is not None)


def test_a_finding_that_no_search_has_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Planted: a search that reports nothing."""
    monkeypatch.setattr(reference, "search", lambda program, _: simulate(program, Walks(0, 0, 1), 1))
    programs = [program_of(further_spec(Random(seed)), tmp_path) for seed in range(6)]
    assert any(wrong_with(program, 1) for program in programs if program is not None)
