"""A search without findings is confirmed on a sample of its states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from native.deep import deep, misread_constants
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native.engine import NativeOptions, search
from specchk.native.kernel.steps import Steps
from specchk.native.machine.runs import spread
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Holds, Violated


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # no kernel with a flaw is kept
    return instantiate(check("deep.spec", deep())).program


@pytest.mark.parametrize("compact", [False, True])
def test_a_search_that_is_right_is_confirmed(program: Program, compact: bool) -> None:
    """All successors in the sample are among the kept states, also as hashes."""
    outcome = search(program, NativeOptions(compact=compact))
    assert isinstance(outcome.verdict, Holds)
    assert outcome.statistics.distinct == 820


@pytest.mark.usefixtures("program")
def test_a_property_that_is_misjudged_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when constants of several words were read wrongly."""
    wrong = instantiate(check("deep.spec", deep("if k < 6 then 31 else k"))).program
    assert isinstance(search(wrong, NativeOptions()).verdict, Violated)
    misread_constants(monkeypatch)
    with pytest.raises(ReplayFailed, match="`light` fails where the search found nothing wrong"):
        search(wrong, NativeOptions(workers=1))  # numbers its states always alike


def test_a_step_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch, program: Program) -> None:
    """The successor is not among the kept states."""
    real = Steps._action

    def only_next(self: Steps, index: int, action: Any) -> None:
        if action.name == "next":
            real(self, index, action)

    monkeypatch.setattr(Steps, "_action", only_next)
    with pytest.raises(ReplayFailed, match="a step leads to a state that the search did not keep"):
        search(program, NativeOptions())


def test_a_sample_is_spread_over_all_runs() -> None:
    """Numbers from all runs, in ascending order; all of them if there are few."""
    assert spread([(10, 2), (50, 1)], 100) == [10, 11, 50]
    assert spread([(0, 6), (100, 6)], 4) == [0, 3, 100, 103]
    assert spread([(7, 1000)], 1) == [7]
    assert spread([], 5) == []
