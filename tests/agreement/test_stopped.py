"""A search that is stopped anywhere has the answer of one that is not: verdict, counts, coverage, traces."""

from __future__ import annotations

from pathlib import Path
from random import Random
from shutil import rmtree

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from spec_texts import small_spec

from agreement.both import program_of
from agreement.further_specs import further_spec
from agreement.gathered_specs import gathered_spec
from agreement.stopped import one_by_one, stop, stopped_and_resumed, told
from agreement.test_ignored import ignoring
from specchk.ir.program import Program
from specchk.native.checkpoint import Checkpoints, Saved
from specchk.native.engine import NativeOptions, search
from specchk.native.store import Store
from specchk.search.budget import Budget
from specchk.search.engine import Unsupported
from specchk.search.replay import ReplayFailed
from temporal.random_temporal import random_temporal

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
SPECS = (small_spec, random_temporal, gathered_spec, further_spec)
FEW = Budget(max_states=300)


def drawn(random: Random, folder: Path) -> Program | None:
    """A random program, which may ignore some variables."""
    program = program_of(random.choice(SPECS)(random), folder)
    if program is not None and random.random() < 0.2:
        return ignoring(random, program) or program
    return program


def wrong_with(program: Program, random: Random, folder: Path) -> list[str] | None:
    """The differences of a stopped search; None if a spec has too few states, or too many."""
    way = {name: random.random() < 0.5 for name in ("symmetry", "keep_going", "compact")}
    try:
        whole = search(program, NativeOptions(FEW, workers=2, **way))  # type: ignore[arg-type]
    except Unsupported:
        return None
    if whole.stopped is not None or sum(whole.statistics.levels) < 6:
        return None
    rmtree(folder / "checkpoint", ignore_errors=True)
    a, b = told(whole), told(stopped_and_resumed(program, random, folder, **way))
    return [f"{key}: {a[key]} | {b[key]}" for key in a if a[key] != b[key]]


def check(random: Random, folder: Path) -> None:
    with one_by_one(folder):
        program = drawn(random, folder)
        assume(program is not None)
        assert program is not None
        assert not wrong_with(program, random, folder)


@settings(max_examples=6, suppress_health_check=SHARED)
@given(random=st.randoms(use_true_random=False))
def test_a_search_that_is_stopped_anywhere_has_the_same_answer(random: Random, tmp_path: Path) -> None:
    """Up to three times, between two states or while a checkpoint is written."""
    check(random, tmp_path)


@pytest.mark.slow
@settings(max_examples=120, suppress_health_check=SHARED)
@given(random=st.randoms(use_true_random=False))
def test_many_searches_that_are_stopped_have_the_same_answer(random: Random, tmp_path: Path) -> None:
    """The same for more programs."""
    check(random, tmp_path)


SEVERAL = """spec several
var x : 0..3
init: true
var y : 0..1 = 0
action up():
    y' = 1
invariant low: y == 0
deadlock ok
"""


def test_the_smallest_of_what_workers_found_is_reported_after_a_checkpoint(tmp_path: Path) -> None:
    """Each of two workers had found a state of the open level; the second one's replaced the first one's."""
    program = program_of(SEVERAL, tmp_path)
    assert program is not None
    with one_by_one(tmp_path):
        options = NativeOptions(workers=2, checkpoint=tmp_path / "checkpoint", checkpoint_every_s=0.0)
        stop(program, options, "save", 2)
        resumed = search(program, replace(options, resume=True))
        assert told(resumed) == told(search(program, NativeOptions(workers=2)))
    (violation,) = resumed.verdict.violations
    assert violation.trace.last == (0, 1)


def without_first(store: Store) -> list[tuple[int, int]]:
    """Planted: the states to be expanded, without one worker's piece."""
    return unexpanded(store)[1:]


def without_found(checkpoints: Checkpoints, store: Store, saved: Saved) -> None:
    """Planted: a checkpoint without the earlier findings."""
    save(checkpoints, store, replace(saved, found=[]))


unexpanded, save = Store.unexpanded, Checkpoints.save


@pytest.mark.parametrize(
    ("place", "name", "flaw"),
    [(Store, "unexpanded", without_first), (Checkpoints, "save", without_found)],
    ids=["states", "findings"],
)
def test_a_checkpoint_that_leaves_something_out_is_noticed(
    place: type, name: str, flaw: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """States to be expanded, or earlier findings; four of ten specs show it."""
    programs = [(seed, drawn(Random(seed), tmp_path)) for seed in (16, 30)]
    monkeypatch.setattr(place, name, flaw)
    with one_by_one(tmp_path):
        assert any(is_noticed(program, seed, tmp_path) for seed, program in programs if program is not None)


def is_noticed(program: Program, seed: int, folder: Path) -> bool:
    try:
        return bool(wrong_with(program, Random(seed), folder))
    except ReplayFailed:
        return True
