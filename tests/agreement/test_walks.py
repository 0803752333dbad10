"""Random walks by compiled code: the walks of a seed, their findings, and their distribution."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from spec_texts import first, instance_of, small_spec, small_specs, timeless

from agreement.both import program_of
from agreement.random_specs import random_spec
from agreement.sparse_specs import random_sparse_spec
from agreement.walked import CALM, GROW, RARE, WALK, surprise, walking, wrong_walks
from specchk.explore.simulate import Followed, Walks
from specchk.explore.simulate import simulate as interpreted
from specchk.ir.program import Program
from specchk.meaning.step import Stepper
from specchk.native.compiler import KernelSource
from specchk.native.machine.loaded import Loaded
from specchk.native.tiers import Optimiser
from specchk.native.walking import memory, simulation
from specchk.native.walking.simulation import StepChoice, simulate, weights, without_loops
from specchk.search.budget import Budget, Meter, Progress
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Inconclusive, Outcome, Violated

SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
RANDOMS = st.randoms(use_true_random=False)


def wander(program: Program, seed: int, workers: int = 1, walks: int = 300, **given: object) -> Outcome:
    return simulate(program, Walks(seed, walks, 20), workers, **given)  # type: ignore[arg-type]


@settings(max_examples=8, suppress_health_check=SHARED)
@given(text=small_specs(), seed=st.integers(0, 2**64 - 1))
def test_walks_through_specs_that_move_are_walks_of_their_meaning(
    text: str, seed: int, tmp_path: Path
) -> None:
    """Steps, ends, coverage, horizons and distinct states are those of the reference on the same path."""
    program = program_of(text, tmp_path)
    assert program is None or not wrong_walks(program, seed, 12, 15)


@settings(max_examples=5, suppress_health_check=SHARED)
@given(random=RANDOMS, seed=st.integers(0, 2**64 - 1), sparse=st.booleans())
def test_walks_through_random_specs_are_walks_of_their_meaning(
    random: Random, seed: int, sparse: bool, tmp_path: Path
) -> None:
    """The same for every type and operator, and for sets that list their items."""
    program = program_of(random_sparse_spec(random) if sparse else random_spec(random), tmp_path)
    assert program is None or not wrong_walks(program, seed, 6, 8)


@pytest.mark.slow
@settings(max_examples=60, suppress_health_check=SHARED)
@given(random=RANDOMS, seed=st.integers(0, 2**64 - 1), kind=st.sampled_from(["any", "sparse", "moves"]))
def test_walks_through_many_specs_are_walks_of_their_meaning(
    random: Random, seed: int, kind: str, tmp_path: Path
) -> None:
    """The same for more of them."""
    from_seed = {"any": random_spec, "sparse": random_sparse_spec}
    text = from_seed[kind](random) if kind in from_seed else small_spec(random)
    program = program_of(text, tmp_path)
    assert program is None or not wrong_walks(program, seed, 20, 20)


def test_long_walks_through_a_small_spec_visit_all_of_it() -> None:
    """States, coverage points and actions that a search reaches are reached by walks, and no others."""
    program = instance_of(CALM).program
    whole, walked = search(program, Options(symmetry=False)), wander(program, 3)
    assert walked.statistics.distinct == whole.statistics.distinct
    assert [bool(count) for count in walked.coverage] == [bool(count) for count in whole.coverage]
    assert list(dict(walked.witnesses)) == list(dict(whole.witnesses))


@pytest.mark.parametrize("text", [WALK, CALM, WALK.replace("x < 3", "x < 4")])
@pytest.mark.parametrize("choice", StepChoice)
def test_the_same_seed_has_one_outcome_on_any_number_of_workers(text: str, choice: StepChoice) -> None:
    """Verdict, counts, coverage, witnesses and trace do not depend on the workers, nor on timing."""
    program = instance_of(text).program
    alone = wander(program, 7, choice=choice)
    assert [timeless(wander(program, 7, n, choice=choice)) for n in (2, 3)] == 2 * [timeless(alone)]
    assert timeless(alone) != timeless(wander(program, 8, choice=choice))


def test_optimised_code_takes_the_same_walks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that switches its code has the outcome of one that does not."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    program = instance_of(CALM).program
    quick = wander(program, 5, 2)
    kernels: list[Loaded | None] = []

    class AtOnce(Optimiser):
        def __init__(self, source: KernelSource) -> None:
            Optimiser.__init__(self, source, 1)

        @property
        def is_done(self) -> bool:
            return self._process is not None and self._process.wait() == 0

        def kernel(self) -> Loaded | None:
            kernels.append(Optimiser.kernel(self))
            return kernels[-1]

    monkeypatch.setattr(simulation, "Optimiser", AtOnce)
    assert timeless(wander(program, 5, 2)) == timeless(quick)
    assert [kernel is not None and kernel.is_optimised for kernel in kernels] == [True]


def test_a_walk_is_decided_by_its_number() -> None:
    """Of two simulations with one seed the shorter one is the beginning of the longer one."""
    with walking(instance_of(CALM).program, 2) as memory_:
        assert memory_ is not None
        memory_.set_walks(9, 10)
        memory_.set_round(0, 40)
        memory_.work(lambda: False)
        whole = {walk: memory_.path(walk, steps) for walk, _, steps in memory_.ends()}
        memory_.set_round(25, 5)
        memory_.work(lambda: False)
        assert {walk: memory_.path(walk, steps) for walk, _, steps in memory_.ends()} == {
            walk: whole[walk] for walk in range(25, 30)
        }


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_a_step_is_chosen_uniformly(steps: int) -> None:
    """The states after some steps are as frequent as uniform choices make them; the seed is fixed."""
    assert surprise(steps) < 4


def test_the_meaning_of_a_walk_has_the_same_distribution() -> None:
    """Interpreted and compiled walks take each action equally often, except for chance."""
    program = instance_of(CALM).program
    counts = []
    for outcome in (wander(program, 2), interpreted(program, Walks(2, 300, 20))):
        assert outcome.statistics.walks is not None
        assert outcome.statistics.walks.ended == 300
        counts.append(outcome.statistics.walks.taken)
    for one, other in zip(*counts, strict=True):
        assert abs(one - other) <= 5 * (one + other) ** 0.5


def test_guided_walks_take_rare_actions() -> None:
    """A step that is one of forty is preferred by every second walk, once it is known to be rare."""
    program = instance_of(RARE.format(limit=41)).program
    shares = []
    for choice in StepChoice:
        outcome = wander(program, 1, 1, 2000, choice=choice)
        counts = outcome.statistics.walks
        assert counts is not None
        shares.append(counts.taken[1] / sum(counts.taken))
        assert list(dict(outcome.witnesses)) == ["late"]
    assert shares[0] == pytest.approx(1 / 40, rel=0.2)
    assert 0.3 < shares[1] < 0.6
    assert weights((0, 9, 99)) == (100, 10, 1)


@pytest.mark.parametrize(
    ("line", "kind", "name"),
    [
        ("invariant no: 1 // (1 - x) > -9", "undefined", "no"),
        ("invariant no: x < 2 or p == none", "invariant", "no"),
        ("step invariant no: x' >= x", "step invariant", "no"),
        ("step invariant no: 1 // (x' - x) > -9", "undefined", "no"),
        ("reachable no: 1 // (1 - x) > 9", "undefined", "no"),
        ("reachable no: 6 // (1 - x) > 5", "undefined", "no"),
        ("constraint no: 1 // (1 - x) > -9", "undefined", "no"),
        ("var z : 0..3 = 4", "undefined", "init"),
        ("action no():\n    x' = 4", "undefined", "no"),
        ("action last():\n    require x == 3\n    x' = 3\n    p' = some(choose a in R: false)",
         "undefined", "last"),
    ],
)  # fmt: skip
def test_each_planted_error_is_found_with_its_trace(line: str, kind: str, name: str) -> None:
    """The first failing walk is reported, and its trace consists of steps of the reference stepper."""
    program = instance_of(CALM.replace("invariant small: x < 4", line)).program
    violation = first(wander(program, 3, 2))
    assert (violation.kind, violation.name) == (kind, name)
    meant = first(interpreted(program, Walks(3, 300, 20)))
    assert (meant.kind, meant.name) == (kind, name)
    if violation.trace is not None:
        stepper, states = Stepper(program), violation.trace.states
        for before, after in pairwise(states):
            assert after in [successor for _, _, successor in stepper.successors(before)]


def test_an_undefined_witness_hides_no_other() -> None:
    """A witness that is first true where an earlier one is undefined is reached, on whichever worker."""
    lines = "reachable no: 6 // (1 - x) > 9\nreachable also: x == 1"
    program = instance_of(CALM.replace("invariant small: x < 4", lines)).program
    for outcome in (wander(program, 3, 2), interpreted(program, Walks(3, 300, 20))):
        violation = first(outcome)
        assert (violation.kind, violation.name) == ("undefined", "no")
        assert dict(outcome.witnesses)["also"].last[0] == 1


def test_a_trace_has_no_loops() -> None:
    """Paths from a state back to it are left out, except for the last step."""
    assert without_loops([(0,), (1,), (0,), (0,), (2,), (1,), (2,), (3,)]) == [(0,), (2,), (3,)]
    assert without_loops([(0,), (1,), (0,)]) == [(0,), (1,), (0,)]
    assert without_loops([(0,), (0,)]) == [(0,), (0,)]
    assert without_loops([(0,)]) == [(0,)]
    states = first(wander(instance_of(WALK).program, 4)).trace
    assert states is not None
    assert len(set(states.states[:-1])) == len(states.states) - 1


def test_a_deadlock_ends_a_walk_where_no_horizon_does() -> None:
    """A walk without a next step is a violation, except if numbers beyond the list would enable a step."""
    text = "spec s\nconst Most : int\ntype Offset = nat upto Most\nvar a : Offset = 0\naction go():\n"
    text += "    any p in Offset:\n        require p {}\n        a' = p\nmodel m:\n    Most = 3\n"
    stuck = wander(instance_of(text.format("> a and p < 3")).program, 1)
    assert first(stuck).kind == "deadlock"
    bounded = wander(instance_of(text.format("> a")).program, 1)
    assert isinstance(bounded.verdict, Inconclusive)


def test_the_violation_of_the_first_walk_is_reported() -> None:
    """Of a round's violations that of the first walk counts, and every walk of its round is counted."""
    program = instance_of(WALK).program
    found = wander(program, 4, 2)
    assert found.statistics.walks is not None
    assert found.statistics.walks.ended == simulation.FIRST_ROUND
    assert isinstance(found.verdict, Violated)
    assert found.statistics.walks.failed is not None
    fewer = wander(program, 4, 2, found.statistics.walks.failed)
    assert fewer.verdict == found.verdict
    none = (
        wander(program, 4, 2, found.statistics.walks.failed - 1)
        if found.statistics.walks.failed > 1
        else None
    )
    assert none is None or isinstance(none.verdict, Inconclusive)


def test_a_walk_that_is_not_confirmed_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one of its round is tried, with a warning; if none is confirmed, that is an error."""
    program, whole, calls = instance_of(WALK).program, simulation.follow, list[object]()
    unconfirmed = {1, 2}

    def follows(*args: Any) -> Followed:
        calls.append(args)
        if len(calls) in unconfirmed:
            raise ReplayFailed(f"planted {len(calls)}")
        return whole(*args)

    monkeypatch.setattr(simulation, "follow", follows)
    found, expected = wander(program, 4, 2), wander(program, 4, 2)
    assert first(found).name in ("small", "kept", "broken")
    failed = [outcome.statistics.walks and outcome.statistics.walks.failed for outcome in (expected, found)]
    assert (failed[0] or 0) < (failed[1] or 0)
    bug = "a violation was not confirmed, which is a bug of specchk: planted"
    assert [warning for warning in found.warnings if "bug" in warning] == [f"{bug} 1", f"{bug} 2"]
    calls.clear()
    unconfirmed.update(range(1000))
    with pytest.raises(ReplayFailed, match="planted 1"):
        wander(program, 4, 2)
    assert len(calls) == simulation.MOST_UNCONFIRMED


def test_the_confirmation_of_a_long_walk_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code takes a thousand times as many steps a second as the stepper that confirms them."""
    text = "spec s\nvar x : 0..500 = 0\naction go():\n    x' = x + 1\ninvariant low: x < 250\nmodel m:\n"
    monkeypatch.setattr(simulation, "CONFIRMED_EVERY", 100)
    notes: list[str] = []
    program = instance_of(f"{text}    expect holds\n").program
    outcome = simulate(program, Walks(1, 1, 1000), 1, lambda progress: notes.append(progress.note))
    assert first(outcome).name == "low"
    confirming = [note for note in notes if "confirming" in note]
    assert confirming == [f"confirming walk 1: {taken} of 250 steps" for taken in (100, 200)]


def climbing(more: str) -> Program:
    text = "spec s\nvar x : 0..500 = 0\naction go():\n    x' = x + 1\n"
    return instance_of(f"{text}{more}\nmodel m:\n    expect holds\n").program


@pytest.mark.parametrize(
    ("more", "finding"),
    [
        ("invariant low: x < 250", "a violation"),
        ("reachable high: x == 250", "the witness of `high`"),
    ],
    ids=["violation", "witness"],
)
def test_a_budget_ends_the_confirmation_of_a_long_walk(
    more: str, finding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding not confirmed in time is not reported as a violation or witness, but the verdict names it."""
    monkeypatch.setattr(simulation, "CONFIRMED_EVERY", 100)
    limit = Budget(max_seconds=3600)

    def end_the_budget(progress: Progress) -> None:
        if "confirming walk 1: 200" in progress.note:
            monkeypatch.setattr(Meter, "seconds", 3600)

    outcome = simulate(climbing(more), Walks(1, 1, 400, limit), 1, end_the_budget)
    assert isinstance(outcome.verdict, Inconclusive)
    reason = f"the limit of 3600 s (--max-seconds) was reached before {finding} in walk 1 was confirmed"
    hint = "a larger limit and the same --seed confirm it"
    assert outcome.verdict.reason == f"{reason}: 200 of 250 steps; {hint}"
    assert outcome.verdict.budget
    assert outcome.witnesses == ()


def test_a_violation_stands_if_the_budget_ends_at_a_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was confirmed before; that a witness was not is reported in addition."""
    monkeypatch.setattr(simulation, "CONFIRMED_EVERY", 100)
    program = climbing("invariant low: x < 350\nreachable high: x == 250")
    ended: list[str] = []

    def end_the_budget(progress: Progress) -> None:
        ended.append(progress.note)
        if ended.count("confirming walk 1: 200 of 250 steps"):
            monkeypatch.setattr(Meter, "seconds", 3600)

    outcome = simulate(program, Walks(1, 1, 400, Budget(max_seconds=3600)), 1, end_the_budget)
    assert first(outcome).name == "low"
    assert outcome.stopped is not None
    assert "before the witness of `high` in walk 1 was confirmed" in outcome.stopped.reason


def test_a_set_without_room_restarts_the_walks() -> None:
    """Sets that grow past the first guess are walked with more slots, and no earlier result counts."""
    outcome = simulate(instance_of(GROW).program, Walks(1, 70, 150), 2)
    violation = first(outcome)
    assert violation.trace is not None
    assert len(violation.trace.steps) == 90
    assert outcome.statistics.walks is not None
    assert outcome.statistics.walks.ended == 64


def test_a_budget_ends_a_walk() -> None:
    """A long walk checks the clock, not only its number of steps."""
    outcome = simulate(instance_of(CALM).program, Walks(1, 1, 10**9, Budget(max_seconds=0.05)), 1)
    assert isinstance(outcome.verdict, Inconclusive)
    assert "--max-seconds" in outcome.verdict.reason
    assert outcome.statistics.walks is not None
    assert outcome.statistics.walks.ended == 0
    assert outcome.statistics.depth - 1 == outcome.statistics.generated > 0


def test_a_limit_of_states_ends_a_round() -> None:
    """It is compared between rounds, so that the outcome is the same on any number of workers."""
    program, walks = instance_of(CALM).program, Walks(1, 5000, 20, Budget(max_states=5))
    outcomes = [simulate(program, walks, workers) for workers in (1, 2)]
    assert timeless(outcomes[0]) == timeless(outcomes[1])
    assert isinstance(outcomes[0].verdict, Inconclusive)
    assert "--max-states" in outcomes[0].verdict.reason


def test_an_interrupt_reports_the_walks_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control-C ends the walks with their counts so far."""

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    outcome = simulate(instance_of(CALM).program, Walks(1, 10**6, 10**6), 2, interrupt)
    assert isinstance(outcome.verdict, Inconclusive)
    assert not outcome.verdict.budget
    assert outcome.statistics.generated > 0


def test_states_are_counted_in_a_table_that_grows_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count does not depend on the table's sizes; past the limit a warning states that it is a limit."""
    program = instance_of(RARE.format(limit=41)).program
    whole = simulate(program, Walks(1, 300, 100), 2)
    monkeypatch.setattr(memory, "FIRST_SLOTS", 4)
    assert timeless(simulate(program, Walks(1, 300, 100), 2)) == timeless(whole)
    for module in (memory, simulation):
        monkeypatch.setattr(module, "COUNTED", 100)
    limited = simulate(program, Walks(1, 300, 100), 2)
    assert limited.statistics.distinct == 100
    assert any("counted up to 100" in warning for warning in limited.warnings)
    counts = replace(limited.statistics, distinct=whole.statistics.distinct)
    assert timeless(replace(limited, statistics=counts, warnings=whole.warnings)) == timeless(whole)
