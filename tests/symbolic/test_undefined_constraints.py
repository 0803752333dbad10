"""A constraint without a value is a violation for proofs, too; one behind a false one is not evaluated."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from zoned import program_of

from specchk.ir.program import Program, without_ends
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Verdict, Violated
from specchk.symbolic import confirmation
from specchk.symbolic.certificates.checker import CertificateChecker
from specchk.symbolic.induction import bmc, prove
from specchk.symbolic.induction.encode.program import System

SPEC = """\
spec bounded
type Offset = nat upto 1
var x : 0..{most} = 0
var y : 0..2 = 0
var a : Offset = 0
action up():
    require x < {most}
    x' = x + 1
action turn():
    y' = if y == 2 then 0 else y + 1
action go():
    a' = a + 1
{constraints}
invariant low: x >= 0
deadlock ok
model one:
    expect holds
"""
TESTS = ("{v} < 2", "{v} != {n}", "6 // ({v} - {n}) != 9", "6 // ({n} - {v}) < 7", "x + y < 4",
         "{v} == {n} or 4 // ({v} - {n}) < 9", "4 // (x + y - {n}) != 7")  # fmt: skip


def violations(verdict: Verdict) -> list[tuple[str, str, int]]:
    found = verdict.violations if isinstance(verdict, Violated) else ()
    return sorted((v.kind, v.name, len(v.trace.steps) if v.trace else -1) for v in found)


def is_refused(program: Program) -> bool:
    return bool(CertificateChecker(without_ends(program)).invariants().problems)


def drawn(seed: int) -> str:
    """One to three constraints, any of which may be undefined."""
    random = Random(seed)
    texts = [random.choice(TESTS).format(v=random.choice("xy"), n=random.randrange(4))
             for _ in range(random.randint(1, 3))]  # fmt: skip
    lines = [f"constraint c{number}: {text}" for number, text in enumerate(texts)]
    return SPEC.format(most=3, constraints="\n".join(lines))


def wrong(seeds: range, folder: Path) -> list[int]:
    """The seeds for which a proof, an unrolling or the check of a certificate contradicts a search."""
    found = []
    for seed in seeds:
        program = program_of(drawn(seed), folder)
        expected = violations(reference.search(program, Options(symmetry=False)).verdict)
        try:
            unrolled = violations(bmc.bounded(program, 7, Options().budget).verdict)
            proved = prove.prove(program, prove.ProofOptions(workers=1)).proved
        except ReplayFailed:
            found.append(seed)
            continue
        # An unrolling ends with one of the shortest ones.
        is_other = bool(unrolled) != bool(expected) or not set(unrolled) <= set(expected)
        if is_other or (expected and (proved or not is_refused(program))):
            found.append(seed)
    return found


def test_a_constraint_that_is_undefined_far_away_is_no_proof(tmp_path):
    """Farther than a confirmation by the reference reaches."""
    text = SPEC.format(most=900, constraints="constraint far: 6 // (900 - x) > -1")
    proof = prove.prove(program_of(text, tmp_path), prove.ProofOptions(workers=1))
    assert proof.proved == ()
    assert violations(proof.verdict) in ([], [("undefined", "far", 900)])


def test_a_constraint_behind_a_false_one_is_not_evaluated(tmp_path):
    """As with `and`: the unrolling finds nothing, the proof and the certificate hold."""
    text = SPEC.format(most=3, constraints="constraint near: x < 3\nconstraint two: 6 // (3 - x) > -1")
    program = program_of(text, tmp_path)
    assert violations(bmc.bounded(program, 5, Options().budget).verdict) == []
    assert prove.prove(program, prove.ProofOptions(workers=1)).proved == ("low",)
    assert not is_refused(program)


def test_drawn_constraints_are_undefined_where_the_reference_finds_them_to_be(tmp_path):
    """Each in its order, in the initial state and after steps."""
    assert wrong(range(40), tmp_path) == []


@pytest.mark.parametrize("planted", [lambda *_: [], lambda system, state: [
    (prop, system.unclear(prop, state)) for prop in system.program.constraints
]])  # fmt: skip
def test_a_planted_flaw_is_detected(planted, tmp_path, monkeypatch):
    """Constraints that are always defined, and ones without an order."""
    monkeypatch.setattr(confirmation, "confirm", lambda *_: None)
    monkeypatch.setattr(prove, "confirm", lambda *_: None)
    monkeypatch.setattr(bmc, "confirm", lambda *_: None)
    monkeypatch.setattr(System, "unclear_constraints", planted)
    assert wrong(range(40), tmp_path)
