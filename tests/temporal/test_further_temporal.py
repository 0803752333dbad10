"""Temporal properties of specs with the whole language: the engines, and fair cycles of the listed graph."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement.both import optimise_after, program_of, said
from specchk.ir.footprint import steps_list_horizon
from specchk.ir.program import Program
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.meaning.properties import NoAnswer
from specchk.meaning.undefined import Faulty, Undefined
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Unsupported
from specchk.search.liveness import regions
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Outcome, Violated
from temporal.fair_cycles import FairCycles
from temporal.further_temporal import further_temporal

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
RANDOMS = st.randoms(use_true_random=False)
FEW = Budget(max_states=300)


def told(outcome: Outcome) -> dict[str, object]:
    """Everything that both engines report, with loops, warnings and obligations at a horizon."""
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    return {
        **said(outcome, coverage=True),
        "loops": [violation.trace and violation.trace.loop for violation in violations],
        "warnings": [text for text in outcome.warnings if not text.startswith("compact:")],
        "owed": outcome.statistics.owed_at_horizon,
    }


def wrong_with(program: Program) -> tuple[list[str], Counter[str]]:
    """The differences of engines and fair cycles, and the kinds of answers; none for many states."""
    wrong, kinds = list[str](), Counter[str]()
    expected = reference.search(program, Options(FEW, keep_going=True))
    if expected.stopped is not None:
        return wrong, kinds
    try:
        for workers, compact in ((1, False), (2, False), (2, True)):
            way = native.NativeOptions(
                keep_going=True, workers=workers, compact=compact, optimise_after=optimise_after(program, 6)
            )
            found, whole = told(native.search(program, way)), told(expected)
            wrong += [f"{key}: {whole[key]} | {found[key]}" for key in whole if whole[key] != found[key]]
            kinds["native"] += 1
    except Unsupported:
        kinds["not compiled"] += 1
    # Numbers beyond a horizon may enable a step, which the listed graph does not have.
    if not steps_list_horizon(program) and sum(expected.statistics.levels):
        wrong += _judged(program, expected, kinds)
    return wrong, kinds


def _judged(program: Program, outcome: Outcome, kinds: Counter[str]) -> list[str]:
    """The temporal properties whose answer differs from that of fair cycles."""
    cycles, wrong = FairCycles(program), list[str]()
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    for liveness in program.liveness:
        found = next((v for v in violations if v.name == liveness.name), None)
        try:
            clause = next((c for c in liveness.clauses if cycles.is_violated(c)), None)
        except (NoAnswer, Undefined, Faulty):
            kinds["undefined"] += 1
            continue
        if found is not None and found.kind == "undefined":
            kinds["undefined"] += 1
        elif (found is None) != (clause is None):
            wrong.append(f"{liveness.name}: {found} | {clause}")
        elif found is None or clause is None:
            kinds["holds"] += 1
        else:
            assert found.trace is not None
            wrong += [f"{liveness.name}: {text}" for text in cycles.wrong_with(clause, found.trace)]
            rest = len(found.trace.steps) if found.trace.loop == len(found.trace.steps) else None
            wrong += [f"{liveness.name}: rest in {rest} steps"] * (rest != cycles.nearest_rest(clause))
            kinds["loop" if rest is None else "rest"] += 1
    return wrong


def check_some(random: Random, folder: Path) -> Counter[str]:
    program = program_of(further_temporal(random), folder)
    wrong, kinds = wrong_with(program) if program is not None else ([], Counter[str]())
    assert not wrong
    return kinds


@settings(max_examples=6, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_engines_agree_with_fair_cycles_on_further_specs(random: Random, tmp_path: Path) -> None:
    """Verdict, counts, lengths, warnings; each lasso is a fair behaviour that violates its clause."""
    check_some(random, tmp_path)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_engines_agree_with_fair_cycles_on_many_further_specs(random: Random, tmp_path: Path) -> None:
    """The same for more."""
    check_some(random, tmp_path)


def test_all_kinds_of_answers_are_among_them(tmp_path: Path) -> None:
    """Of these seven: a property that holds, a rest and a loop."""
    kinds = sum((check_some(Random(seed), tmp_path) for seed in range(7)), Counter[str]())
    assert all(kinds[kind] for kind in ("native", "holds", "rest", "loop"))


def without_weak(fair: FairSteps, program: Program, **given: bool) -> None:
    """Planted: a checker that ignores weak conditions, so that unfair loops and rests are fair."""
    begun(fair, program, **given)
    fair.weak = 0


def without_loops(*_: object) -> list[list[int]]:
    """Planted: a checker that finds no loops."""
    return []


begun = FairSteps.__init__


@pytest.mark.parametrize(
    ("place", "name", "flaw"),
    [(FairSteps, "__init__", without_weak), (regions, "fair_components", without_loops)],
    ids=["weak", "loops"],
)
def test_a_flaw_of_the_checker_is_noticed(
    place: object, name: str, flaw: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of both engines, or of one; one of twenty specs shows the first, these three and five others do."""
    monkeypatch.setattr(place, name, flaw)
    programs = [program_of(further_temporal(Random(seed)), tmp_path) for seed in (25, 37, 42, *range(5))]
    assert any(is_noticed(program) for program in programs if program is not None)


def is_noticed(program: Program) -> bool:
    try:
        return bool(wrong_with(program)[0])
    except ReplayFailed:
        return True
