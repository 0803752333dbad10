"""The gate kills the mutants planted in replog, and detects the defects planted in itself.

That a binding that lies is reported, by each kind of lie, is shown in docs/mutation.md, which tests/docs run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from laws.sources import ROOT
from specchk.conform.mutation.mutants import load

BINDING = str(ROOT / "conformance" / "binding.py")
FOLDER = ROOT / "conformance" / "mutants"
FILES = sorted(path.name for path in FOLDER.glob("*.toml"))
# Killed within a second by one member, which needs no suite computed beforehand.
QUICK = (
    "leader-hw-is-own-end", "leader-hw-falls", "acknowledged-by-the-response", "hw-not-after-fetch",
    "ack-before-hw", "never-truncates",
)  # fmt: skip


def mutate(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "specchk", "mutate", BINDING, "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, found


def only(names: Iterable[str]) -> list[str]:
    return [word for name in names for word in ("--only", name)]


@pytest.fixture(scope="module")
def quick() -> dict[str, Any]:
    """A few mutants, checked by random walks over one model."""
    _, found = mutate("--no-cache", "--no-control", "--members", "walks three_epochs", *only(QUICK))
    return {one["id"]: one for one in found["mutants"]}


@pytest.mark.parametrize("name", QUICK)
def test_a_mutant_is_killed_by_two_tests(quick, name):
    """Two different tests fail, each with a divergence from the spec."""
    assert quick[name]["verdict"] == "killed"
    assert len({kill["test"] for kill in quick[name]["kills"]}) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_sample_of_each_file_is_killed_by_two_tests(name):
    """By all members of the gate; the whole campaign takes minutes, and its score is in the lock."""
    sample = ["--sample", "3", "--seed", "2"]
    code, found = mutate("--no-control", *sample, *only(one.id for one in load(FOLDER, name)))
    assert [one["id"] for one in found["mutants"] if one["verdict"] not in ("killed", "equivalent")] == []
    assert (code, len(found["mutants"])) == (0, 3)


@pytest.mark.slow
def test_every_mutant_of_the_harness_is_noticed():
    """A harness that overlooks differences reports it itself: at least ten kinds, all of them."""
    code, found = mutate("--harness")
    assert [one["id"] for one in found["mutants"] if one["verdict"] != "killed"] == []
    assert code == 0
    assert found["counted"] >= 10
