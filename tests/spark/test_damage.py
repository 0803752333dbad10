"""A sample of the campaigns that damage files on disk (bench/spark/damage.py has all of them)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench" / "spark"


@pytest.mark.parametrize(
    ("kind", "seeds"),
    [
        ("checkpoint", "1000..1029"),
        ("caches", "1000..1003"),
        pytest.param("ledger", "1000..1039", marks=pytest.mark.slow),
        pytest.param("scratch", "1000..1019", marks=pytest.mark.slow),
        pytest.param("sent", "1000..1019", marks=pytest.mark.slow),
    ],
)
def test_no_damage_is_accepted(kind: str, seeds: str) -> None:
    """Refused with a sentence, or the undamaged answer; each failure is a line with its command."""
    line = [sys.executable, str(BENCH / "damage.py"), "--kinds", kind, "--seeds", seeds]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{kind}: " in ended.stdout
    assert ", 0 ACCEPTED, 0 CRASHED; " in ended.stdout


@pytest.mark.slow
def test_searches_that_want_one_place_at_once() -> None:
    """Ledgers, checkpoints and claims by files alone: one gets an answer, and the others are refused."""
    line = [sys.executable, str(BENCH / "ledger.py"), "--together", "20", "--rounds", "1", "--bids", "8"]
    ended = subprocess.run(line, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
