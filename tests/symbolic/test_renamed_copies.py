"""Renamed copies of an action: a proof that leaves them out is the proof that checks them all."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from agreement.both import program_of
from seeded import few_of
from specchk.ir.program import Program
from specchk.search.proof import Proof
from specchk.search.reference import search
from specchk.search.verdict import Violated
from specchk.symbolic.induction import prove as proofs
from specchk.symbolic.induction.prove import ProofOptions, prove, representatives

HEAD = """spec copies
sort Node
const A : Node
const B : Node
type Weights = Node -> 0..9
var x : 0..9 = 0
var y : 0..1 = 0
var v : Node -> 0..2 = { n: 0 for n in Node }
"""
TAIL = """deadlock ok
model m:
    Node = {a, b}
    A = a
    B = b
"""
BY_A_MAP = """def weight(): Weights = { A: y, B: y + 5 }
action act(n: Node):
    x' = weight()[n]
invariant low: x < 3 and y == 0
"""
# In the order of the elements: act(b) may be undefined, and act(a) is not, for its first item decides.
BY_A_FAULT = """action act(n: Node):
    require forall m in Node: m != n and 2 // (1 - v[m]) > 0
    x' = x
invariant low: x < 3
"""
GUARDS = (
    "v[n] < 2", "n == A", "forall m in Node: m == n or v[m] < 2", "(choose m in Node: v[m] < 2) == n",
    "forall m in Node: m != n and 2 // (1 - v[m]) > 0", "exists m in Node: m == n or 2 // (1 - v[m]) > 0",
)  # fmt: skip
VALUES = (
    "v[n]",
    "v[A]",
    "weight()[n]",
    "sum(weight()[k] for k in Node if k == n)",
    "sum(v[k] for k in Node)",
)


def program(body: str, folder: Path) -> Program:
    found = program_of(HEAD + body + TAIL, folder)
    assert found is not None
    return found


def in_full(found: Program, monkeypatch: pytest.MonkeyPatch) -> Proof:
    """The proof that checks every instance of every action."""
    instances = [
        (index, position)
        for index, action in enumerate(found.actions)
        for position in range(len(proofs.arguments(found, action, "")))
    ]
    with monkeypatch.context() as patched:
        patched.setattr(proofs, "representatives", lambda _: (instances, 0))
        return prove(found, ProofOptions())


def test_a_map_literal_names_its_keys(tmp_path: Path) -> None:
    """Its values stand in the order of the keys, so an action that reads it has no renamed copy."""
    found = program(BY_A_MAP, tmp_path)
    assert isinstance(search(found).verdict, Violated)
    assert representatives(found) == ([(0, 0), (0, 1)], 0)
    assert isinstance(prove(found, ProofOptions()).verdict, Violated)


def test_the_first_item_that_decides_hides_faults_after_it(tmp_path: Path) -> None:
    """Elements are distinguished by the order in which a quantifier reaches them."""
    found = program(BY_A_FAULT, tmp_path)
    assert representatives(found)[1] == 0


def random_body(random: Random) -> str:
    """An action that may name elements or be undefined, and a bound that some of its instances may keep."""
    return f"""
def weight(): Weights = {{ A: {random.choice("12y")}, B: {random.choice("12y")} }}
action act(n: Node):
    require {random.choice(GUARDS)}
    x' = {random.choice(VALUES)}
invariant bound: x <= {random.randint(0, 4)}
"""


@pytest.mark.parametrize("block", few_of(range(4)))
def test_leaving_out_copies_changes_no_proof(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is proved, refuted and open is the same, whether or not copies are checked."""
    left_out = 0
    for seed in range(block * 25, block * 25 + 25):
        found = program(random_body(Random(seed)), tmp_path)
        left_out += representatives(found)[1]
        fewer, every = prove(found, ProofOptions()), in_full(found, monkeypatch)
        assert (type(fewer.verdict), fewer.proved) == (type(every.verdict), every.proved), f"seed {seed}"
    assert left_out > 0
