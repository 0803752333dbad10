"""A guard of replog that is broken by hand does not get past the gate, and the report says what is wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from docs.blocks import blocks
from hang import HANG_S
from laws.sources import ROOT

TWO_BROKERS = ("--model", "two_brokers", "--set", "MaxOffset=1")  # suites of the gate
THREE_EPOCHS = ("--model", "three_epochs")
GUARDS = {
    "a_leader_sees_that_logs_diverge": (
        "broker/leader.py", "end.epoch < request.last_fetched_epoch or end.end_offset < request.fetch_offset",
        "end.epoch < request.last_fetched_epoch", TWO_BROKERS, "serve_fetch(b2, b1)",
    ),
    "a_leader_fences_old_epochs": (
        "broker/leader.py", "epoch != NO_EPOCH and epoch < state.leader_epoch", "False", THREE_EPOCHS,
        "serve_fetch(b",
    ),
    "a_follower_takes_only_the_answer_that_it_waits_for": (
        "broker/follower.py", "if not is_mine and state.protocol.checks_response:", "if False:", TWO_BROKERS,
        "apply_response(b",
    ),
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the gate runs on."""
    for name in ("impl", "conformance", "spec"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def broken(tree: Path, name: str, was: str, now: str) -> None:
    path = tree / "impl" / "replog" / "core" / name
    text = path.read_text(encoding="utf-8")
    assert text.count(was) == 1
    path.write_text(text.replace(was, now), encoding="utf-8")


def gate(tree: Path, suite: tuple[str, ...]) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(tree / "impl"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "specchk", "conform", "conformance/binding.py", *suite]
    done = subprocess.run(
        command, cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        timeout=HANG_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("guard", GUARDS)
def test_a_broken_guard_does_not_get_past_the_gate(tree: Path, guard: str):
    """13, and a report that ends with the step and the places that differ."""
    name, was, now, suite, step = GUARDS[guard]
    broken(tree, name, was, now)
    code, text = gate(tree, suite)
    assert code == 13, text
    ending = [line for line in text.splitlines() if line.startswith("!! ")]
    assert ending[0].startswith("!! diverges: the implementation")
    assert step in ending[1]
    assert len(ending) > 2


@pytest.mark.slow
def test_the_report_in_the_documents_is_what_is_printed(tree: Path):
    """docs/ci-gate.md shows the end of the report for the first of the guards."""
    name, was, now, suite, _ = GUARDS["a_leader_sees_that_logs_diverge"]
    broken(tree, name, was, now)
    text = (ROOT / "docs" / "ci-gate.md").read_text(encoding="utf-8")
    (shown,) = (block for block in blocks(text) if block.language == "text")
    assert gate(tree, suite)[1].rstrip().endswith("\n".join(shown.lines))


def test_make_test_runs_the_gate_with_its_lock():
    """A red gate is a red `make test`, whatever pytest says."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "GATE   := $(BIN)/specchk conform conformance/binding.py --tier gate --lock" in recipe
    assert "tests gate-beside; failed=$$?; cat $(VENV)/gate.txt; exit $$failed" in recipe
    assert "gate-beside:\n\t@$(GATE) >$(VENV)/gate.txt 2>&1\n" in recipe
    assert (ROOT / "conformance" / "specchk.lock").exists()
