"""Real brokers under faults: short runs of the driver in bench."""

from __future__ import annotations

import runpy
import struct
import subprocess
import sys

import pytest
from conformance.apache_kafka.batches import Producer, batch_of
from conformance.apache_kafka.releases import NEWEST

from hang import HANG_S
from laws.sources import ROOT

RUN_S = 20
CHAOS = ROOT / "bench" / "kafka" / "chaos.py"


@pytest.mark.parametrize(
    ("numbers", "wrong"),
    [
        ([0, 1, 2], []),
        ([0, 1], ["broker 1 has None at offset 2, where b'record 2' was acknowledged"]),
        ([0, 1, 3], ["broker 1 has b'record 3' at offset 2, where b'record 2' was acknowledged"]),
        ([0, 1, 2, 2], ["broker 1 has b'record 2' more than once"]),
        ([0, 1, 2, 4, 3], ["broker 1 has records out of order"]),
    ],
)
def test_what_is_lost_is_named(numbers, wrong, tmp_path, monkeypatch):
    """Three records were acknowledged; one may be missing, another, there twice, or not in order."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    batches = [batch_of([b"record %d" % number], Producer(), 1000) for number in numbers]
    data = b"".join(struct.pack(">q", offset) + batch[8:] for offset, batch in enumerate(batches))
    (tmp_path / "00000000000000000000.log").write_bytes(data)
    acked = {number: b"record %d" % number for number in range(3)}
    assert runpy.run_path(str(CHAOS))["lost"](tmp_path, 1, acked) == wrong


@pytest.mark.slow
@pytest.mark.parametrize("release", [NEWEST.version], indirect=True)
@pytest.mark.parametrize("seed", range(1, 6))
def test_nothing_is_lost_under_faults(release, seed):
    """Folders without a fault, and every acknowledged record once and in order.

    A loss by elections alone (B21) is possible on this release; the output would name the record.
    """
    line = [sys.executable, str(CHAOS), "--release", release.version]
    line += ["--seconds", str(RUN_S), "--runs", "1", "--seed", str(seed)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong: nothing" in done.stdout
