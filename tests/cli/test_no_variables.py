"""Commands on a spec without variables: it has one state, and no place of a variable to name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CONSTANT = """spec constant
const K : 0..3
action up():
    require K > 0 and K < 3
invariant low: K < {high}
model m:
    K = 2
"""


@pytest.fixture(autouse=True)
def constant(here: Path) -> None:
    (here / "constant.spec").write_text(CONSTANT.format(high=3), encoding="utf-8")


def test_a_proof_is_certified(specchk: Any) -> None:
    said = specchk("run", "constant.spec", "--prove", "--certificate", "proof")
    assert said.code == 0
    said = specchk("recheck", "proof")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("proved: constant.spec, model m")


def test_no_proof_is_one_without_actions(specchk: Any, here: Path) -> None:
    text = CONSTANT.format(high=2).replace("action up():\n    require K > 0 and K < 3\n", "")
    (here / "constant.spec").write_text(text, encoding="utf-8")
    said = specchk("run", "constant.spec", "--prove")
    assert (said.code, said.err) == (10, "")


def test_conditions_of_constants_are_none(specchk: Any) -> None:
    said = specchk("conditions", "constant.spec")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("0 of 0 conditions decide in 1 state: constant, model m\n")


def test_one_of_a_kind_is_counted_in_the_singular(specchk: Any) -> None:
    """In each command that counts."""
    assert specchk("check", "constant.spec").out.startswith("ok: constant.spec: 0 variables, 1 action, ")
    assert ", 1 model, 0 scenarios\n" in specchk("check", "constant.spec").out
    assert ", 1 state, depth 1, " in specchk("test", "constant.spec").out
