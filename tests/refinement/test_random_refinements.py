"""Refinements of random specs: the predicate that engines check, and the steps of the other spec."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from random import Random

import pytest

from refinement.random_refinements import random_refinement
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program, Refinement
from specchk.ir.types import cardinality
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.evaluate import Evaluator, misfit
from specchk.meaning.initial import initial_states
from specchk.meaning.properties import Refining
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty, Undefined
from specchk.meaning.values import State, universe
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Outcome, Violated

STATES = 3
MAX_VALUES = 1000


def programs(seed: int, folder: Path) -> tuple[Program, Program] | None:
    """The refining and the refined spec, each on its own; None if the text is illegal."""
    whole, part = random_refinement(Random(seed))
    (folder / "whole.spec").write_text(whole, encoding="utf-8")
    (folder / "part.spec").write_text(part, encoding="utf-8")
    try:
        return tuple(instantiate(check(str(folder / f"{name}.spec"))).program for name in ("part", "whole"))
    except SpecError:
        return None


def states_of(program: Program, random: Random) -> list[State]:
    """Some states, with values of their types or those of initial states."""
    try:
        initial = initial_states(program)
    except Undefined:
        return []
    pools = []
    for slot, variable in enumerate(program.variables):
        pool = {state[slot] for state in initial[:2]}
        if cardinality(variable.type) <= MAX_VALUES:
            pool |= set(random.sample(values := sorted(universe(variable.type)), min(2, len(values))))
        pools.append(sorted(pool))
    return [*initial[:2], *[tuple(map(random.choice, pools)) for _ in range(STATES)]]


def pairs_of(part: Program, whole: Program, random: Random) -> Iterator[tuple[State, State]]:
    """Pairs of states, including steps of one or the other spec."""
    states = states_of(part, random)
    yield from product(states, repeat=2)
    for program in (part, whole):
        stepper = Stepper(program)
        for state in states:
            with suppress(Faulty):
                yield from ((state, after) for _, _, after in stepper.successors(state)[:4])


def answer(claim: Refinement, size: int) -> tuple[object, object]:
    """The two evaluators of a claim on steps, each as a function of an environment."""
    return Evaluator(size).compile(claim.body), Refining(claim, size).allows


def outcome_of(test: object, env: list[object]) -> object:
    try:
        return bool(test(env))  # type: ignore[operator]
    except Undefined:
        return None


def naive(whole: Program, before: State, after: State) -> bool | None:
    """Whether the other spec, run on its own, has the step; None if that has no answer."""
    kinds = [variable.type for variable in whole.variables]
    if any(misfit(kind)(value) is not None for kind, value in zip(kinds * 2, (*before, *after), strict=True)):
        return None  # no states of it
    if before == after:
        return True
    stepper = Stepper(whole)
    try:
        found = any(state == after for _, _, state in stepper.successors(before))
    except Faulty:
        return None
    # Behind a horizon nothing of a step is evaluated; of a refinement all is, and may have a fault.
    return None if stepper.horizon_cuts else found


def compare(seeds: range, folder: Path) -> Counter[object]:
    kinds: Counter[object] = Counter()
    for seed in seeds:
        found = programs(seed, folder)
        if found is None:
            continue
        part, whole = found
        (claim,) = part.refinements
        size = len(part.variables)
        predicate, steps = answer(claim, size)
        for before, after in pairs_of(part, whole, Random(seed)):
            env = [*before, *after, *([0] * (claim.locals + 1))]
            allowed = outcome_of(steps, env)
            assert outcome_of(predicate, list(env)) == allowed, (seed, before, after)
            expected = naive(whole, before, after)
            # A value out of range is a fault of the other spec, but of no refinement: it has no image.
            assert expected is None or expected == allowed, (seed, before, after)
            kinds[allowed] += 1
    return kinds


def test_the_predicate_allows_the_steps_of_the_other_spec(tmp_path: Path) -> None:
    """On pairs of states, steps or not, with their faults."""
    kinds = compare(range(5), tmp_path)
    assert min(kinds[True], kinds[False], kinds[None]) > 5


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_many_predicates_allow_the_steps_of_the_other_spec(part: int, tmp_path: Path) -> None:
    """The same for 400 more pairs of specs."""
    compare(range(1000 + 100 * part, 1100 + 100 * part), tmp_path)


def shown(outcome: Outcome) -> object:
    """The results on which the engines agree: verdict, properties, lengths and counts."""
    verdict = outcome.verdict
    counts = outcome.statistics.distinct, outcome.statistics.generated
    if not isinstance(verdict, Violated):
        return verdict, counts
    return [(v.kind, v.name, v.trace and len(v.trace.steps)) for v in verdict.violations], counts


def agree(seeds: range, folder: Path) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for seed in seeds:
        found = programs(seed, folder)
        if found is None:
            continue
        options = {"budget": Budget(max_states=3000), "keep_going": True}
        expected = reference.search(found[0], Options(**options))  # type: ignore[arg-type]
        if expected.statistics.distinct >= 3000:
            continue
        outcome = native.search(found[0], native.NativeOptions(workers=1, **options))  # type: ignore[arg-type]
        assert shown(outcome) == shown(expected), seed
        names = (
            [v.name for v in expected.verdict.violations] if isinstance(expected.verdict, Violated) else []
        )
        kinds["refinement" if "w" in names else "other"] += 1
    return kinds


def test_compiled_code_finds_the_violated_refinements_of_the_reference(tmp_path: Path) -> None:
    """With the same lengths and counts."""
    agree(range(3), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_compiled_code_finds_many_violated_refinements(part: int, tmp_path: Path) -> None:
    """The same for 80 more pairs of specs."""
    kinds = agree(range(3000 + 40 * part, 3040 + 40 * part), tmp_path)
    assert min(kinds["refinement"], kinds["other"]) > 0
