"""A guard of replog that is broken manually does not pass the gate, and the report names the error."""

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
from specchk.conform.work.lock_file import read

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
    """A copy of the files that the gate uses."""
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


STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
[ -z "$BLOCKED" ] || mkdir -p "$BLOCKED"
case "$*" in *"$FAILS"*) exit 13;; esac
"""


def made(tmp_path: Path, fails: str, blocked: str = "") -> tuple[int, str, list[str]]:
    """The exit code of `make gate` if a command with these words fails, its report, and all commands."""
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    (tmp_path / ".tested").touch()
    for name in ("specchk", "replog", "python"):
        (programs / name).write_text(STUB)
        (programs / name).chmod(0o755)
    line = ["make", "--no-print-directory", "--old-file=pyproject.toml", f"VENV={tmp_path}", "gate"]
    # As `make system` runs this test, which would be a make within another one.
    env = {
        **os.environ,
        "LOG": str(log),
        "FAILS": fails,
        "BLOCKED": blocked,
        "MAKEFLAGS": "",
        "MAKELEVEL": "0",
    }
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, env=env)
    return done.returncode, done.stdout, log.read_text().splitlines()


def test_no_part_and_no_report_are_red(tmp_path: Path):
    """A gate that runs nothing was green, "0 runs, none failed", and one whose report cannot be written."""
    line = ["make", "--no-print-directory", "gate", "PARTS="]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no part of the gate in PARTS: replication store " in done.stderr
    assert made(tmp_path, "nothing fails", blocked=str(tmp_path / "gate" / "report.txt"))[0] == 2


def test_the_gate_holds_every_lock(tmp_path: Path):
    """Each binding with a lock, and `make test` includes the gate: a failed gate fails `make test`."""
    code, report, commands = made(tmp_path, "nothing fails")
    assert code == 0, report
    assert report.endswith("== gate: 4 runs, none failed\n")
    every = set((ROOT / "conformance").rglob("specchk.lock"))
    accepted = {lock for lock in every if read(lock).behaviour is not None}
    assert accepted
    for lock in every - accepted:
        binding = lock.with_name("binding.py").relative_to(ROOT)
        assert any(
            f" {binding} " in one and one.endswith(f" --tier gate --lock --junit {tmp_path}/gate")
            for one in commands
        )
    for lock in accepted:
        runs = lock.with_name("behaviours.py")
        assert any(line.startswith(f"specchk behaviour {runs} --lock ") for line in commands)
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "tests gate-report; failed=$$?; cat $(REPORTS)/report.txt; exit $$failed" in recipe


@pytest.mark.parametrize(
    ("fails", "run"),
    [
        ("conform conformance/binding.py", "bindings"), ("conformance/store/", "bindings"),
        ("conformance/on_files.py", "files"), ("sim --seeds", "recordings"), ("validate", "recordings"),
        ("/behaviours.py --lock", "behaviour"),
    ],
)  # fmt: skip
def test_a_run_that_fails_makes_the_gate_fail(fails: str, run: str, tmp_path: Path):
    """The others run to their ends nevertheless."""
    code, report, commands = made(tmp_path, fails)
    assert code == 2
    assert report.endswith(f"== gate: 4 runs, {run} (13) failed\n")
    words = "conform conformance/binding.py", "on_files.py", "sim --seeds", "/behaviours.py --lock"
    assert all(any(word in command for command in commands) for word in words)
