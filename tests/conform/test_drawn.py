"""Correct implementations of random specs conform, wrong ones do not, and covered steps were taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn import Call, Implementation, TooLarge
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement.both import program_of
from agreement.further_specs import further_spec
from agreement.random_specs import spec_with_maps, wider_spec
from specchk.conform.covers.cases import SuiteCase
from specchk.conform.covers.classes import Classifier
from specchk.conform.covers.cover import build_suite
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.runner import Runner, run_suite
from specchk.conform.replay.suites import SuiteResult, SuiteWalks, run_product, run_walks
from specchk.ir.footprint import steps_list_horizon
from specchk.ir.program import Program
from specchk.meaning.initial import initial_states
from specchk.meaning.tracing import Tracer
from specchk.meaning.values import State
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Violated

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
RANDOMS = st.randoms(use_true_random=False)
FEW = Options(Budget(max_states=150), symmetry=False, keep_going=True)


def drawn(random: Random, folder: Path) -> Implementation | None:
    """A correct implementation of a random spec of a few states, all of whose steps are defined."""
    program = program_of(random.choice((further_spec, spec_with_maps, wider_spec))(random), folder)
    if program is None or steps_list_horizon(program):
        return None
    whole = reference.search(program, FEW)
    undefined = isinstance(whole.verdict, Violated) and any(
        one.kind == "undefined" for one in whole.verdict.violations
    )
    if whole.stopped is not None or whole.statistics.distinct < 2 or undefined:
        return None
    return Implementation(program)


def flawed(
    random: Random, right: Implementation, taken: list[Call], refused: list[Call]
) -> Implementation | None:
    """The implementation with another result of one of its calls: a refusal, another state, or a step."""
    calls = random.choice([one for one in (taken, refused) if one])
    call = random.choice(calls)
    state: State | None = None
    if calls is refused or random.random() < 0.5:
        at = random.randrange(len(right.program.variables))
        before = right.result(call) or call[0]
        state = (*before[:at], random.choice(taken or refused)[0][at], *before[at + 1 :])
        if state in right.allowed(call):
            return None
    return Implementation(right.program, (call, state))


def product(implementation: Implementation) -> SuiteResult:
    return run_product(Replayer(implementation.binding()))


def classes(implementation: Implementation) -> SuiteResult:
    return run_suite(Replayer(implementation.binding()), build_suite(implementation.program, "classes"))


def ids_of(program: Program, taken: list[tuple[Call, State]]) -> set[str]:
    """The classes of the accepted steps."""
    tracer = Tracer(program)
    classifier = Classifier(tracer)
    return {
        classifier.described((at, way.marks, classifier.effect(at, args, before, after))).id
        for (before, at, args), after in set(taken)
        for looked in tracer.instances(at, before)
        for way in looked.reached
        if looked.args == args and way.after == after
    }


def check(random: Random, folder: Path) -> Counter[str]:
    """The correct implementation conforms in all suites, up to four flawed ones do not."""
    kinds = Counter[str]()
    right = drawn(random, folder)
    if right is None:
        return kinds
    try:
        taken, refused = right.calls()
    except TooLarge:
        return kinds
    whole = product(right)
    walks = run_walks(Replayer(right.binding()), SuiteWalks(1, 20, 10))
    right.taken.clear()
    suite = classes(right)
    assert [one.divergence for one in (whole, walks, suite)] == [None] * 3
    assert whole.steps == len(taken)
    assert suite.coverage is not None
    covered = {suite.coverage.classes[at].id for at in suite.coverage.covered}
    assert covered <= ids_of(right.program, right.taken)
    assert suite.steps <= len(right.taken)
    chosen = len(initial_states(right.program)) > 1 or any(len(right.allowed(call)) > 1 for call in taken)
    assert chosen or len(covered) == len(suite.coverage.classes)
    for _ in range(4 if taken else 0):
        wrong = flawed(random, right, taken, refused)
        if wrong is None:
            continue
        assert product(wrong).divergence is not None, wrong.flaw
        kinds["product"] += 1
        # Where the spec leaves no choice, each step is on the path of a case.
        if not chosen:
            assert classes(wrong).divergence is not None, wrong.flaw
            kinds["classes"] += 1
    return kinds


@settings(max_examples=20, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_a_wrong_step_of_a_drawn_spec_diverges(random: Random, tmp_path: Path) -> None:
    """And a correct implementation conforms; steps counted as covered were taken."""
    check(random, tmp_path)


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_a_wrong_step_of_many_drawn_specs_diverges(random: Random, tmp_path: Path) -> None:
    """The same for more."""
    check(random, tmp_path)


def without_probes(_: Replayer[Any], __: object, calls: Sequence[object]) -> list[bool]:
    """Planted: a comparison that tries no forbidden step."""
    return [True] * len(calls)


def covering_all(runner: Runner[Any], case: SuiteCase) -> int:
    """Planted: a runner that counts the classes of a case before its steps are taken."""
    runner.done.covered |= {number for classes in case.classes for number in classes}
    return take(runner, case)


take = Runner._take


@pytest.mark.parametrize(
    ("place", "name", "flaw"),
    [(Replayer, "probe", without_probes), (Runner, "_take", covering_all)],
    ids=["probes", "covered"],
)
def test_a_flaw_of_the_comparison_is_noticed(
    place: type, name: str, flaw: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of 26 specs 16 show the first, two the second, and this one both."""
    check(Random(39), tmp_path)
    monkeypatch.setattr(place, name, flaw)
    with pytest.raises(AssertionError):
        check(Random(39), tmp_path)
