"""The checker against the naive one, on random graphs with weak and strong fairness."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from seeded import few_of
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.verdict import Violated, name_of
from temporal.checked import alone
from temporal.naive_time import matched
from temporal.random_temporal import both_ways, random_temporal, with_undefined_steps


def program_of(text: str, folder: Path) -> Program:
    file = folder / "random.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file))).program


def check_seeds(seeds: range, folder: Path) -> dict[str, int]:
    kinds: dict[str, int] = {}
    for seed in seeds:
        text = random_temporal(Random(seed))
        program = program_of(text, folder)
        kind = matched(program, reference.search(program), f"# seed {seed}\n{text}")
        kinds[kind] = kinds.get(kind, 0) + 1
    return kinds


@pytest.mark.parametrize("part", few_of(range(4)))
def test_random_properties_have_the_naive_verdict(part: int, tmp_path: Path) -> None:
    """Verdict and length of the counterexample, which is replayed before it is reported."""
    kinds = check_seeds(range(50 * part, 50 * part + 50), tmp_path)
    assert min(kinds["holds"], kinds["rest"], kinds["loop"]) >= 5  # all kinds are among them


def agree(seeds: range, folder: Path) -> dict[str, int]:
    """The native engine has the naive verdict and length, and the reference engine's warnings and counts."""
    kinds: dict[str, int] = {}
    for seed in seeds:
        text = random_temporal(Random(seed))
        program = program_of(text, folder)
        outcome, expected = alone(program), reference.search(program)
        kind = matched(program, outcome, f"# seed {seed}\n{text}")
        kinds[kind] = kinds.get(kind, 0) + 1
        assert outcome.warnings == expected.warnings, seed
        assert outcome.statistics.owed_at_horizon == expected.statistics.owed_at_horizon, seed
    return kinds


def test_compiled_code_has_the_naive_verdict(tmp_path: Path) -> None:
    """Verdict, length, rest or loop, warnings, and obligations at the horizon."""
    assert len(agree(range(3000, 3012), tmp_path)) >= 3


def test_one_of_two_actions_is_fair_as_an_action_with_the_ways_of_both(tmp_path: Path) -> None:
    """Verdict, rest or loop, and length; on both engines, of specs of which a good part is violated."""
    kinds: dict[str, int] = {}
    for seed in range(60):
        apart, joined = (program_of(text, tmp_path) for text in both_ways(Random(seed)))
        text = f"# seed {seed}"
        kind = matched(joined, reference.search(joined), text)
        assert matched(apart, reference.search(apart), text) == kind, seed
        if not seed % 12:
            assert matched(apart, alone(apart), text) == kind, seed
        kinds[kind] = kinds.get(kind, 0) + 1
    assert min(kinds["holds"], kinds["rest"], kinds["loop"]) >= 5


# A horizon, a constraint and an undefined step meet in these.
@pytest.mark.parametrize("seed", [39, 48, 117, 144])
def test_an_undefined_step_is_not_cut_off_by_a_horizon(seed: int, tmp_path: Path) -> None:
    """With `--keep-going`: obligations of such a state do not depend on the horizon, on any engine."""
    random = Random(seed)
    program = program_of(with_undefined_steps(random_temporal(random), random), tmp_path)
    expected = reference.search(program, Options(keep_going=True))
    outcome = alone(program, keep_going=True)
    assert isinstance(expected.verdict, Violated)
    assert {violation.kind for violation in expected.verdict.violations} >= {"undefined"}
    assert name_of(outcome.verdict) == "violated"
    assert outcome.warnings == expected.warnings
    assert outcome.statistics.owed_at_horizon == expected.statistics.owed_at_horizon


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_compiled_code_has_many_naive_verdicts(part: int, tmp_path: Path) -> None:
    """The same for 2 000 more specs."""
    agree(range(4000 + 250 * part, 4250 + 250 * part), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_many_random_properties_have_the_naive_verdict(part: int, tmp_path: Path) -> None:
    """The same for 2 000 more specs."""
    check_seeds(range(1000 + 250 * part, 1250 + 250 * part), tmp_path)
