"""Proofs by induction: valid claims are proved, others never, and a shown step is a step."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from agreement.both import of_seed, program_of
from seeded import few_of
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.step import Stepper
from specchk.report.proof import proof_json, render_proof
from specchk.search import budget
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.proof import Proof
from specchk.search.reference import search
from specchk.search.verdict import Holds, Inconclusive, Violated
from specchk.symbolic.induction import prove as proofs
from specchk.symbolic.induction.encode.scope import Unencodable
from specchk.symbolic.induction.prove import ProofOptions, prove, representatives
from specchk.symbolic.replay import most_in, raised_to

SPEC = Path(__file__).parents[2] / "spec"
COUNTER = """spec counter
type Offset = nat upto 4
var low : Offset = 0
var high : Offset = 0
action up():
    high' = high + {step}
action follow():
    require low < high
    low' = low + {pace}
invariant ordered: low <= high
{more}
model m:
    expect holds
"""


def program(name: str, model: str | None = None) -> Program:
    return instantiate(check(str(SPEC / name)), model).program


def proof_of(folder: Path, *, step: int = 1, pace: int = 1, more: str = "", k: int = 1) -> Proof:
    found = program_of(COUNTER.format(step=step, pace=pace, more=more), folder)
    assert found is not None
    return prove(found, ProofOptions(k=k))


FAR = """spec far
var a : 0..3 = 2
var n : 0..1000000 = 0
action up():
    require a == 2 and n == 0
    a' = 3
action count():
    require n < 1000000
    n' = n + 1
invariant near: a != 3
invariant far: n != 900000
model m:
    expect violates near in 1 steps
"""
TWO_STEPS = """spec two_steps
var x : 0..2 = 0
action up():
    require x < 2
    x' = x + 1
invariant not_one: x != 1
model m:
    expect violates not_one in 1 steps
"""


def test_a_base_that_a_limit_cuts_short_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No two good states follow each other here, so with k = 2 the first two states decide alone.

    Memory is over its limit after the first of them, and below it ever after.
    """
    found = program_of(TWO_STEPS, tmp_path)
    assert found is not None
    sizes = iter([2000])
    monkeypatch.setattr(budget, "resident_bytes", lambda: next(sizes, 0))
    limited = prove(found, ProofOptions(k=2, budget=Budget(max_memory_bytes=1000)))
    assert isinstance(limited.verdict, Inconclusive)
    assert "memory" in limited.verdict.reason
    assert isinstance(prove(found, ProofOptions(k=2)).verdict, Violated)


@pytest.mark.parametrize("model", few_of(["two_replicas", "three_replicas"]))
def test_two_rounds_are_proved_for_any_length(model: str) -> None:
    """All invariants of two_round_fetch.spec hold with two and three replicas, whatever MaxOffset is."""
    proof = prove(program("two_round_fetch_proof.spec", model), ProofOptions())
    assert isinstance(proof.verdict, Holds)
    assert set(proof.proved) >= {"hw_within_leo", "committed_everywhere", "hw_monotonic"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("replication_proof.spec", "two_brokers_two_epochs"),
        ("replication_proof.spec", "three_brokers_two_epochs"),
        ("replication_proof_faults.spec", "slow_follower"),
        ("replication_log_proof.spec", "two_brokers_two_epochs"),  # and refines log.spec
    ],
)
def test_replication_is_proved_for_any_length(name: str, model: str) -> None:
    """All invariants of replication.spec, without faults and with a slow follower, for any MaxOffset."""
    found = program(name, model)
    original = program("replication.spec")
    assert {p.name for p in original.invariants} < {p.name for p in found.invariants}
    proof = prove(found, ProofOptions())
    assert isinstance(proof.verdict, Holds)
    assert len(proof.proved) == len(found.invariants) + len(found.step_invariants)


def test_an_inductive_invariant_is_proved(tmp_path: Path) -> None:
    """`low <= high` follows from itself."""
    assert isinstance(proof_of(tmp_path).verdict, Holds)


def test_a_violation_beyond_any_horizon_is_never_proved_away(tmp_path: Path) -> None:
    """A follower that takes two at a time passes the leader, and the first state of that step is reached."""
    proof = proof_of(tmp_path, pace=2)
    assert isinstance(proof.verdict, Violated)
    trace = proof.verdict.violations[0].trace
    assert trace is not None
    assert [step.action for step in trace.steps] == ["up", "follow"]


def test_an_invariant_that_is_true_but_not_inductive_is_not_proved(tmp_path: Path) -> None:
    """`high` is never 7, since steps are of two; induction has no information on the state before it."""
    proof = proof_of(tmp_path, step=2, more="invariant never_seven: high != 7")
    assert isinstance(proof.verdict, Inconclusive)
    assert not proof.verdict.budget
    assert proof.proved == ("ordered",)
    (failure,) = proof.failures
    assert failure.reached is False
    assert failure.trace.initial[1] == 5  # low, high


FALSE_FRIENDS = """spec friends
type Offset = nat upto 3
var a : Offset = 0
var b : Offset = 0
action grow():
    b' = b + 1
action follow():
    require b > 0
    a' = 1
invariant no_a: a == 0
invariant no_b: b == 0
invariant small: a <= 1
"""


def test_nothing_is_proved_with_the_help_of_what_is_not(tmp_path: Path) -> None:
    """`no_a` follows from `no_b`, and both are false; `small` needs neither."""
    file = tmp_path / "friends.spec"
    file.write_text(FALSE_FRIENDS, encoding="utf-8")
    proof = prove(instantiate(check(str(file)), None).program, ProofOptions())
    assert isinstance(proof.verdict, Violated)
    assert [violation.name for violation in proof.verdict.violations] == ["no_b"]
    assert proof.proved == ("small",)


def test_company_makes_an_invariant_inductive(tmp_path: Path) -> None:
    """With the invariant on `high` the same invariant is proved."""
    more = "invariant never_seven: high != 7\ninvariant even: high % 2 == 0"
    assert isinstance(proof_of(tmp_path, step=2, more=more).verdict, Holds)


def test_longer_induction_proves_more(tmp_path: Path) -> None:
    """No state before 5 is 5 less 2 less 2 less 2 without being negative: four states in a row are enough."""
    more = "invariant never_seven: high != 7\naction rest():\n    require false"
    still = COUNTER.format(step=2, pace=1, more=more).replace(
        "action follow():\n", "action follow():\n    require false\n"
    )
    found = program_of(still, tmp_path)
    assert found is not None
    assert isinstance(prove(found, ProofOptions(k=3)).verdict, Inconclusive)
    assert isinstance(prove(found, ProofOptions(k=4)).verdict, Holds)


def test_an_initial_state_that_fails_is_a_violation(tmp_path: Path) -> None:
    """Initiation that fails is a counterexample of no steps."""
    verdict = proof_of(tmp_path, more="invariant wrong: high > 0").verdict
    assert isinstance(verdict, Violated)
    assert verdict.violations[0].name == "wrong"


def test_an_action_that_may_be_undefined_is_not_proved(tmp_path: Path) -> None:
    """A range that offsets may make unbounded is an obligation like any other."""
    more = "var copy : 0..4 = 0\naction copies():\n    copy' = low"
    proof = proof_of(tmp_path, more=more)
    assert not isinstance(proof.verdict, Holds)
    assert [(failure.kind, failure.name) for failure in proof.failures] == [("undefined", "copies")]
    assert proof.proved == ()


def test_a_step_is_replayed_beyond_the_numbers_of_its_state(tmp_path: Path) -> None:
    """It stores twice as much as any of them before it is undefined: no horizon ends it there."""
    more = "var copy : 0..4 = 0\naction copies():\n    high' = 2 * high\n    copy' = low"
    proof = proof_of(tmp_path, more=more)
    assert [(failure.kind, failure.name) for failure in proof.failures] == [("undefined", "copies")]


def test_a_model_without_invariants_proves_nothing(tmp_path: Path) -> None:
    """Nothing to prove is not a proof."""
    text = COUNTER.format(step=1, pace=1, more="").replace("invariant ordered: low <= high\n", "")
    found = program_of(text, tmp_path)
    assert found is not None
    assert isinstance(prove(found, ProofOptions()).verdict, Inconclusive)


def test_a_counterexample_to_induction_is_a_step_of_the_spec() -> None:
    """The reference interpreter takes the step, and the report says that the state may be unreachable."""
    found = program("two_round_fetch.spec")
    proof = prove(found, ProofOptions())
    assert proof.failures
    for failure in proof.failures:
        before, after = failure.trace.states
        stepper = Stepper(raised_to(found, most_in([before, after]) + 1))
        assert after in {state for _, _, state in stepper.successors(before)}
    text = render_proof(proof, 80)
    assert text.startswith("inconclusive: induction does not prove")
    assert "the first lies beyond the horizons" in text


def test_a_look_that_is_cut_short_says_nothing_of_what_it_did_not_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two first states is the initial one; the other is farther than the search may go."""
    monkeypatch.setattr(proofs, "LOOK", Budget(max_states=10))
    found = program_of(FAR, tmp_path)
    assert found is not None
    proof = prove(found, ProofOptions())
    assert {failure.name: failure.reached for failure in proof.failures} == {"near": True, "far": None}
    assert "`far` is not inductive" in render_proof(proof, 80)
    assert "the first may be unreachable" in render_proof(proof, 80)


ESCROW = """spec escrow
var held : -3..3 = 1
var queue : 0..3 = 0
var signed : 0..3 = 0
action withdraw():
    require queue < 2
    queue' = queue + 1
action sign(n: 1..3):
    require queue >= n and signed < n
    signed' = n
action execute():
    require signed > 0
    held' = held - signed
    queue' = queue - signed
    signed' = 0
invariant non_negative: held >= 0
deadlock ok
model m:
    expect violates non_negative in 4 steps
"""


def test_a_reachable_counterexample_is_a_shortest_one(tmp_path: Path) -> None:
    """Induction fails from a state in which nothing is held, 3 steps after a search does (specl#60)."""
    found = program_of(ESCROW, tmp_path)
    assert found is not None
    verdict = prove(found, ProofOptions()).verdict
    assert isinstance(verdict, Violated)
    assert verdict.violations[0] == search(found, Options()).verdict.violations[0]  # type: ignore[union-attr]
    assert verdict.violations[0].name == "non_negative"


def test_a_counterexample_that_may_be_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look ends after the first state of the failure, and before the failure itself."""
    monkeypatch.setattr(proofs, "LOOK", Budget(max_states=1))
    proof = proof_of(tmp_path, more="invariant wrong: high < 1")
    assert isinstance(proof.verdict, Violated)
    (violation,) = proof.verdict.violations
    assert violation.notes == (proofs.MAY_BE_LONG,)
    assert proofs.MAY_BE_LONG in render_proof(proof, 200)
    assert proof_json(proof, 10)["violations"][0]["notes"] == [proofs.MAY_BE_LONG]


def test_renamed_actions_are_asked_once() -> None:
    """With three replicas, one of which leads, the followers' actions are copies of each other."""
    found = program("two_round_fetch_proof.spec", "three_replicas")
    assert representatives(found) == ([(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)], 2)


@pytest.mark.system
def test_processes_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One and two processes prove the same with the same queries."""
    monkeypatch.setattr(proofs, "EACH", 2)
    found = program("two_round_fetch_proof.spec", "three_replicas")
    one, two = (prove(found, ProofOptions(workers=workers)) for workers in (1, 2))
    assert one.effort.instances > proofs.EACH
    assert (one.proved, one.failures, one.effort.queries) == (two.proved, two.failures, two.effort.queries)


def test_a_solver_that_gives_up_is_named_in_the_verdict(tmp_path: Path) -> None:
    """Too little time for a hard query: its claim is not proved, and nothing is reported as wrong.

    A slow machine has no time for other questions either, so they may be named beside it.
    """
    more = "invariant cubes: low > 0 implies high * high * high != 2 * low * low * low"  # no root is rational
    found = program_of(COUNTER.format(step=1, pace=1, more=more), tmp_path)
    assert found is not None
    proof = prove(found, ProofOptions(query_seconds=0.001))
    assert isinstance(proof.verdict, Inconclusive)
    names = {unanswered.name for unanswered in proof.unanswered}
    assert "cubes" in names
    assert not names & set(proof.proved)
    assert "gave up on `" in proof.verdict.reason
    assert not proof.failures


def test_json_says_what_is_proved_and_what_not(tmp_path: Path) -> None:
    """Programs read the verdict, the names and the counterexamples."""
    proof = proof_of(tmp_path, step=2, more="invariant never_seven: high != 7")
    found = proof_json(proof, 21)
    assert (found["verdict"], found["by"], found["k"]) == ("inconclusive", "induction", 1)
    assert (found["proved"], found["not_proved"]) == (["ordered"], ["never_seven"])
    assert found["counterexamples_to_induction"][0]["trace"][1]["action"] == "up"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(4))
def test_what_is_proved_of_random_specs_is_never_violated(block: int, tmp_path: Path) -> None:
    """A property that the enumerating engine refutes is not among the proved ones."""
    for seed in range(block * 60, block * 60 + 60):
        found = of_seed(seed, tmp_path)
        if found is None or not found.invariants:
            continue
        try:
            proof = prove(found, ProofOptions(query_seconds=5.0))
        except Unencodable:
            continue
        verdict = search(found, Options(Budget(max_states=2000), keep_going=True)).verdict
        broken = {
            v.name for v in getattr(verdict, "violations", ()) if v.kind in ("invariant", "step invariant")
        }
        assert not broken & set(proof.proved), f"seed {seed}"


def test_what_cannot_be_encoded_goes_from_process_to_process(tmp_path: Path) -> None:
    """A worker's exception is recreated by the parent; one that cannot be ends the whole pool."""
    found = program_of(COUNTER.format(step=1, pace=1, more=""), tmp_path)
    assert found is not None
    error = pickle.loads(pickle.dumps(Unencodable(found.actions[0].span, "too large")))
    assert str(error) == f"{found.actions[0].span.where}: too large"
