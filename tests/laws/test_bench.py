"""The scripts of bench/ start: they are run by hand, rarely, and import what moves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hang import HANG_S
from laws.sources import ROOT

SCRIPTS = sorted(path.name for path in (ROOT / "bench").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_explains_itself(script: str) -> None:
    """`--help` imports all that the script needs, and measures nothing."""
    line = [sys.executable, str(ROOT / "bench" / script), "--help"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage:" in done.stdout
