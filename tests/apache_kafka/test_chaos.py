"""Real brokers under faults: short runs of the driver in bench."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conformance.apache_kafka.releases import NEWEST

from laws.sources import ROOT

RUN_S = 20


@pytest.mark.slow
@pytest.mark.parametrize("release", [NEWEST.version], indirect=True)
@pytest.mark.parametrize("seed", range(1, 6))
def test_nothing_is_lost_under_faults(release, seed):
    """Folders without a fault, and every acknowledged record once and in order.

    A loss by elections alone (B21) is possible on this release; the output would name the record.
    """
    line = [sys.executable, str(ROOT / "bench" / "kafka" / "chaos.py"), "--release", release.version]
    line += ["--seconds", str(RUN_S), "--runs", "1", "--seed", str(seed)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong: nothing" in done.stdout
