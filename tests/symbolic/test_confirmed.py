"""Results for all offsets are confirmed on some states, so that a wrong encoding is detected."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoned import search_zones as search

from agreement.both import program_of
from specchk.ir.program import Program
from specchk.search import replay
from specchk.search.budget import Budget
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Holds, Inconclusive, Verdict, Violated
from specchk.symbolic import confirmation
from specchk.symbolic.confirmation import confirm
from specchk.symbolic.induction.bmc import Unrolling, bounded
from specchk.symbolic.induction.induct import Induction
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.zones.engine import ZoneEngine, ZoneOptions

SPEC = """spec ends
var end : nat upto 5 = 0
var copy : nat upto 5 = 0
action append():
    end' = end + 1
action fetch():
    require copy < end
    copy' = copy + 1
invariant behind: copy <= {most}
invariant near: end + 1 > copy
model m:
    expect holds
"""


@pytest.fixture
def wrong(tmp_path: Path) -> Program:
    """`behind` fails after six steps."""
    found = program_of(SPEC.format(most=2), tmp_path)
    assert found is not None
    return found


@pytest.fixture
def right(tmp_path: Path) -> Program:
    found = program_of(SPEC.format(most="end"), tmp_path)
    assert found is not None
    return found


def by_induction(program: Program) -> Verdict:
    return prove(program, ProofOptions(workers=1)).verdict


def by_unrolling(program: Program) -> Verdict:
    return bounded(program, 7, Budget()).verdict


def by_zones(program: Program) -> Verdict:
    return search(program, ZoneOptions(workers=1)).verdict


def test_what_is_right_is_confirmed(right: Program) -> None:
    """Each engine has the same results as before."""
    assert isinstance(by_induction(right), Holds)
    assert isinstance(by_unrolling(right), Inconclusive)
    assert isinstance(by_zones(right), Holds)


def test_a_proof_that_asks_nothing_is_noticed(wrong: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each obligation had been met."""
    assert not isinstance(by_induction(wrong), Holds)
    monkeypatch.setattr(Induction, "check", lambda *_: None)
    with pytest.raises(ReplayFailed, match="`behind` fails after 6 steps where the solver found it to hold"):
        by_induction(wrong)


def test_a_depth_that_asks_nothing_is_noticed(wrong: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no state of a level could be wrong."""
    assert isinstance(by_unrolling(wrong), Violated)
    monkeypatch.setattr(Unrolling, "wrong", lambda _: False)
    with pytest.raises(ReplayFailed, match="`behind` fails after 6 steps"):
        by_unrolling(wrong)
    # What fails behind the depth is no disagreement.
    assert isinstance(bounded(wrong, 5, Budget()).verdict, Inconclusive)


def test_zones_that_miss_a_violation_are_noticed(wrong: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no candidate were real."""
    assert isinstance(by_zones(wrong), Violated)
    monkeypatch.setattr(ZoneEngine, "_confirm", lambda *_: None)
    with pytest.raises(ReplayFailed, match="`behind` fails after 6 steps"):
        by_zones(wrong)


def test_only_what_is_claimed_is_searched(wrong: Program) -> None:
    """An open property may fail beside a proved one."""
    proof = prove(wrong, ProofOptions(workers=1))
    assert proof.proved == ("near",)


def test_states_are_few_and_initial_ones_too(wrong: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search of as many states as the sample has; none where the initial states alone are too many."""
    with pytest.raises(ReplayFailed):
        confirm(wrong)
    with monkeypatch.context() as few:
        few.setattr(confirmation, "CONFIRMING", 5)
        confirm(wrong)
    monkeypatch.setattr(replay, "BEGINNINGS", -1)
    confirm(wrong)
