"""Temporary folders: none is left by a process, however it ends."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from laws.sources import ROOT
from specchk.guardian import temporary_folder

HOLDING = """
import sys
from pathlib import Path
from specchk.guardian import temporary_folder
with temporary_folder() as folder:
    Path(folder, "file").write_text("text")
    print(folder, flush=True)
    sys.stdin.read()
"""
# The private copy of an implementation ends with an object, and has a guardian of its own.
OTHERS = {"guardian.py", "workshop.py"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, None])
def test_a_folder_does_not_outlive_its_process(number: signal.Signals | None, tmp_path: Path) -> None:
    """Killed, interrupted, or at its end."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, env=environment,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        folder = Path(running.stdout.readline().strip())
        assert (folder / "file").read_text() == "text"
        if number is not None:
            running.send_signal(number)
        running.communicate()
        while folder.exists():
            os.sched_yield()
    assert not list(tmp_path.iterdir())


def test_a_folder_that_was_removed_is_no_error() -> None:
    """By its user, for example."""
    with temporary_folder() as folder:
        Path(folder).rmdir()


def test_every_temporary_folder_has_a_guardian() -> None:
    """No module makes one in another way; files without a name need none."""
    makers = {
        path.name
        for path in (ROOT / "interp" / "specchk").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name | ast.Attribute)
        and getattr(node, "id", getattr(node, "attr", "")) in {
            "mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile"
        }
    }  # fmt: skip
    assert makers == OTHERS
