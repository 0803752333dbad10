"""The scripts of bench/ start: they are run manually, rarely, and import modules that move."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hang import HANG_S
from laws.sources import ROOT

BENCH = ROOT / "bench"
# The module beside a list of flaws is of the list, and no script.
SCRIPTS = sorted(str(path.relative_to(BENCH)) for path in BENCH.rglob("*.py") if path.name != "members.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_explains_itself(script: str) -> None:
    """`--help` imports everything that the script needs, and measures nothing."""
    line = [sys.executable, str(BENCH / script), "--help"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage:" in done.stdout
