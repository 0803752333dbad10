"""The tests of compiled walks detect wrong kernels: each plants one error, which must be detected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from spec_texts import instance_of

from agreement.walked import CALM, surprise, wrong_walks
from specchk.ir.program import Program
from specchk.native.kernel import predicates
from specchk.native.kernel.predicates import Predicates
from specchk.native.walking.kernel import Walk


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an empty cache, so that no kernel of other code is found or kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def without_last(self: Walk, count: Any, number: Any) -> Any:
    """Never choose the last of several."""
    return REAL_CHOICE(self, self.asm.max(1, self.asm.sub(count, 1)), number)


def one_stream(self: Walk, count: Any, number: Any) -> Any:
    """Use the same number for all steps of a walk."""
    return REAL_CHOICE(self, count, 0)


def half_copied(self: Walk, source: Any, target: Any) -> None:
    """Copy only the first variable of a state."""
    asm = self.asm
    asm.store(asm.band(asm.load(source, 0), 3), target, 0)


REAL_CHOICE = Walk._choice


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("_choice", without_last), ("_choice", one_stream), ("_copy", half_copied)],
)
def test_a_wrong_walk_is_noticed(name: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: choices that are not uniform, and states that are not the chosen ones."""
    monkeypatch.setattr(Walk, name, wrong)
    program = instance_of(CALM).program
    assert wrong_walks(program, 1, 5, 10) or surprise(2) > 100


STEPS = "spec s\nvar x : 0..3 = 0\naction go():\n    require x < 3\n    any y in 0..3:\n        x' = y\n"


def no_end(new: Any, program: Program) -> Any:
    return REAL_MAY_END(new, replace(program, deadlock_ok=None))


REAL_MAY_END = predicates.emit_may_end


@pytest.mark.parametrize(
    ("owner", "name", "wrong", "line"),
    [
        (Predicates, "check_each", lambda *_, **__: None, "invariant low: x != 2"),
        (predicates, "emit_check_step", lambda *_: None, "step invariant up: x' > x"),
        (predicates, "emit_may_end", no_end, "deadlock ok when x == 3"),
    ],
)
def test_a_property_that_is_not_checked_is_noticed(
    owner: object, name: str, wrong: object, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: walks that check no invariant, no step invariant, or allow no end."""
    program = instance_of(f"{STEPS}{line}\nmodel m:\n    expect holds\n").program
    monkeypatch.setattr(owner, name, wrong)
    assert wrong_walks(program, 1, 20, 20)
