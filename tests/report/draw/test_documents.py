"""The pictures in docs/pictures are the output of the documented commands, byte by byte."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from report.draw.conftest import ROOT

DOCUMENT = ROOT / "docs" / "pictures.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
COMMANDS = dict(re.findall(r"^specchk draw (.*) -o (\w+\.svg)$", TEXT, re.MULTILINE))
DRAWN = {name: arguments for arguments, name in COMMANDS.items()}
DIVERGENCE = ROOT / "docs" / "pictures" / "divergence.svg"  # of docs/reading-a-divergence.md
needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None and not os.environ.get("CI"), reason="Graphviz is not installed"
)


@needs_dot
@pytest.mark.parametrize("name", DRAWN)
def test_a_picture_in_the_documents_is_drawn_again(name: str, tmp_path: Path, request: pytest.FixtureRequest):
    """The same command gives the same bytes; `--rewrite` draws them again, for review."""
    command = [sys.executable, "-m", "specchk", "draw", *DRAWN[name].split(), "-o", str(tmp_path / name)]
    subprocess.run(command, check=True, cwd=ROOT)
    path = ROOT / "docs" / "pictures" / name
    if request.config.getoption("--rewrite"):
        path.write_bytes((tmp_path / name).read_bytes())
    assert (tmp_path / name).read_bytes() == path.read_bytes()


@needs_dot
def test_the_picture_of_a_divergence_is_drawn_again(tmp_path: Path, request: pytest.FixtureRequest):
    """By `conform --draw`, of the broken two-phase commit."""
    asked = ["docs/two_phase/forgetful.py", "--suite", "product", "--draw", str(tmp_path / "found.svg")]
    done = subprocess.run([sys.executable, "-m", "specchk", "conform", *asked], check=False, cwd=ROOT)
    assert done.returncode == 13
    if request.config.getoption("--rewrite"):
        DIVERGENCE.write_bytes((tmp_path / "found.svg").read_bytes())
    assert (tmp_path / "found.svg").read_bytes() == DIVERGENCE.read_bytes()


def test_every_picture_is_shown_and_has_a_text():
    """Each file is drawn by a command, shown with a description, and described in text."""
    shown = re.findall(r"^!\[(.+)\]\(pictures/(\w+\.svg)\)$", TEXT, re.MULTILINE)
    files = {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert set(DRAWN) == {name for _, name in shown} == files - {DIVERGENCE.name}
    assert all(len(description) > 40 for description, _ in shown)
    for arguments in DRAWN.values():
        assert f"$ specchk draw {arguments}\n" in TEXT
