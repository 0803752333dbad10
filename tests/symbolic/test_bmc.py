"""Bounded model checking: shortest counterexamples over unbounded offsets, and no claim beyond the bound."""

from __future__ import annotations

from pathlib import Path

import pytest

from agreement.both import of_seed, program_of
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.verdict import Inconclusive, Violated
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.induction.encode.scope import Unencodable

SPEC = Path(__file__).parents[2] / "spec"
LAG = """spec lag
type Offset = nat upto 3
var end : Offset = 0
var copy : Offset = 0
action append(size: Offset):
    require size > 0
    end' = end + size
action copy_all():
    copy' = end
invariant close: end - copy <= 10000
model m:
    expect holds
"""
ENDS = """spec ends
var n : nat upto 9 = 0
action go():
    require n < 2
    n' = n + 1
{}model m:
    expect holds
"""


def program(name: str, model: str | None = None) -> Program:
    return instantiate(check(str(SPEC / name)), model).program


def steps_of(found: Program, depth: int) -> int | None:
    verdict = bounded(found, depth, Budget()).verdict
    if not isinstance(verdict, Violated):
        return None
    trace = verdict.violations[0].trace
    assert trace is not None
    return len(trace.steps)


def test_a_flaw_beyond_every_horizon_is_found(tmp_path: Path) -> None:
    """More than ten thousand records behind: one step, where enumeration would never end."""
    found = program_of(LAG, tmp_path)
    assert found is not None
    verdict = bounded(found, 3, Budget()).verdict
    assert isinstance(verdict, Violated)
    trace = verdict.violations[0].trace
    assert trace is not None
    assert [str(step) for step in trace.steps] == [f"append({trace.last[0]})"]
    assert trace.last[0] > 10000


@pytest.mark.parametrize(
    ("name", "model", "length"),
    [
        pytest.param("replication.spec", "b14_optimistic_shrink", 2, marks=pytest.mark.system),
        pytest.param("replication.spec", "b22_acks_one", 3, marks=pytest.mark.slow),
        pytest.param("replication.spec", "b31_never_truncates", 5, marks=pytest.mark.slow),
    ],
)
def test_historical_flaws_are_found_at_their_length(name: str, model: str, length: int) -> None:
    """The counterexample is as long as the enumerating engines', and with one step less there is none."""
    found = program(name, model)
    assert steps_of(found, length) == length
    assert steps_of(found, length - 1) is None


def test_finding_nothing_is_no_verdict_about_the_spec() -> None:
    """The bound is a budget: inconclusive, and the sentence states this."""
    verdict = bounded(program("two_round_fetch.spec"), 3, Budget()).verdict
    assert isinstance(verdict, Inconclusive)
    assert verdict.budget
    assert "3 steps" in verdict.reason


def test_witnesses_are_reached_by_real_steps() -> None:
    """Both witnesses of two rounds are found within six steps, and replayed."""
    outcome = bounded(program("two_round_fetch.spec"), 6, Budget())
    assert {name for name, _ in outcome.witnesses} == {"two_rounds", "one_round_behind"}


HALVES = """spec halves
type Offset = nat upto 3
var a : Offset = 0
action step(n: Offset):
    require n * 2 == a + 1
    a' = n
model m:
    expect deadlock
"""


def test_a_deadlock_is_a_state_without_steps(tmp_path: Path) -> None:
    """One that the spec does not allow is found, one that it allows is not."""
    stuck = program_of(ENDS.format(""), tmp_path)
    assert stuck is not None
    verdict = bounded(stuck, 5, Budget()).verdict
    assert isinstance(verdict, Violated)
    assert verdict.violations[0].kind == "deadlock"
    allowed = program_of(ENDS.format("deadlock ok\n"), tmp_path)
    assert allowed is not None
    assert isinstance(bounded(allowed, 5, Budget()).verdict, Inconclusive)


def test_a_deadlock_that_open_numbers_cannot_confirm_is_reported(tmp_path: Path) -> None:
    """The solver shows that no number is half of 1; the reference confirms it for those it lists."""
    found = program_of(HALVES, tmp_path)
    assert found is not None
    verdict = bounded(found, 3, Budget()).verdict
    assert isinstance(verdict, Violated)
    assert [(v.kind, v.trace and len(v.trace.steps)) for v in verdict.violations] == [("deadlock", 0)]


def check_against_search(seed: int, folder: Path) -> None:
    found = of_seed(seed, folder)
    if found is None or found.horizons:
        return  # with a horizon the bounded check knows more states
    expected = search(found, Options(Budget(max_states=1500), symmetry=False)).verdict
    try:
        verdict = bounded(found, 3, Budget(), query_seconds=5.0).verdict
    except Unencodable:
        return
    lengths = [len(v.trace.steps) for v in getattr(expected, "violations", ()) if v.trace is not None]
    if isinstance(verdict, Violated):
        trace = verdict.violations[0].trace
        assert trace is not None
        assert lengths, f"seed {seed}: {verdict.violations[0]}"
        assert len(trace.steps) == min(lengths), f"seed {seed}"
    elif isinstance(verdict, Inconclusive) and verdict.budget:
        assert not lengths or min(lengths) > 3, f"seed {seed}"


@pytest.mark.parametrize("seed", range(0, 24, 2))
def test_random_specs_fail_at_the_length_of_the_search(seed: int, tmp_path: Path) -> None:
    """A violation within three steps is found at the same length, and no other is."""
    check_against_search(seed, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_many_random_specs_fail_at_the_length_of_the_search(block: int, tmp_path: Path) -> None:
    """A violation within three steps is found at the same length, and no other is."""
    for seed in range(100 + block * 40, 140 + block * 40):
        check_against_search(seed, tmp_path)


def test_what_is_known_of_the_first_state_is_decided_while_it_is_encoded():
    """Raft's sets of messages are open from the first step on; before it there is nothing to solve."""
    program = instantiate(check(str(SPEC / "examples" / "raft.spec")), None).program
    outcome = bounded(program, 0, Budget())
    assert isinstance(outcome.verdict, Inconclusive)
    assert outcome.statistics.queries == 0
