"""The second implementation, docs/two_phase: it conforms, and planted bugs are found on the shortest path."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from specchk.cli.commands.conform import load_binding
from specchk.compile.instantiate import instantiate
from specchk.conform.contract.binding import Binding
from specchk.conform.replay.replay import Replayer
from specchk.conform.replay.suites import SuiteResult, run_product
from specchk.lang.frontend import check

FOLDER = Path(__file__).parents[2] / "docs" / "two_phase"
BUGS = {
    "votes_before_the_disk_has_it": (
        "        self.log.write(state)\n        self.log.force()", "        self.log.write(state)",
        "state", ["prepare(p1)"], "crash(p1)",
    ),
    "half_of_the_votes_are_enough": (
        "self.votes == self.participants", "2 * len(self.votes) >= len(self.participants)",
        "accepted", ["prepare(p1)", "hear(p1)"], "decide_commit()",
    ),
    "gives_up_in_doubt": (
        "self.state == WORKING and self._enter(ABORTED)",
        "self.state in (WORKING, PREPARED) and self._enter(ABORTED)",
        "accepted", ["prepare(p1)"], "give_up(p1)",
    ),
    "aborts_what_was_committed": (
        "        self.abort()", "        self.decision = UNDECIDED\n        self.abort()",
        "state", ["prepare(p1)", "prepare(p2)", "hear(p1)", "hear(p2)", "decide_commit()",
                  "crash_coordinator()"], "restart_coordinator()",
    ),
}  # fmt: skip


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch):
    """The binding class, for the implementation's text with some words replaced."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def make(was: str = "", now: str = "") -> type[Binding[Any]]:
        text = (FOLDER / "two_phase.py").read_text(encoding="utf-8")
        assert text.count(was) == 1 or not was
        module = ModuleType("two_phase")
        exec(text.replace(was, now) if was else text, module.__dict__)
        monkeypatch.setitem(sys.modules, "two_phase", module)
        return load_binding(FOLDER / "binding.py")

    return make


def explored(binding: type[Binding[Any]], model: str = "two") -> SuiteResult:
    program = instantiate(check(str(FOLDER / "two_phase.spec")), model).program
    return run_product(Replayer(binding(program)))


@pytest.mark.parametrize(("model", "states"), [("two", 257), ("three", 1547)])
def test_two_phase_commit_conforms(bound, model: str, states: int):
    """Every step and every refusal of the spec, at two bounds, without a divergence."""
    result = explored(bound(), model)
    assert (result.divergence, result.vacuous, result.complete) == (None, "", True)
    assert result.states == states
    assert not any(result.tally.left.values())


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_on_the_shortest_path(bound, bug: str):
    """Each bug is one line of the implementation; the divergence names the step that shows it."""
    was, now, kind, path, step = BUGS[bug]
    found = explored(bound(was, now)).divergence
    assert found is not None
    assert (found.kind, [str(one) for one in found.trace.steps], str(found.step)) == (kind, path, step)


def test_the_example_is_small():
    """Spec, implementation and binding have fewer than 300 lines together."""
    names = ("two_phase.spec", "two_phase.py", "binding.py")
    texts = [(FOLDER / name).read_text(encoding="utf-8") for name in names]
    assert sum(len(text.splitlines()) for text in texts) < 300
