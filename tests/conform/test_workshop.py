"""Copies of an implementation in which a mistake is planted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from hang import HANG_S
from specchk.conform.adapter.link import Launch
from specchk.conform.adapter.workshop import workshop
from specchk.conform.contract.known_bad import BadFile


def answer_of_copy(folder: Path, now: str) -> str:
    """The output of a program whose module has a mistake planted."""
    command = (sys.executable, "main.py")
    launch = Launch(command, folder, {"PYTHONDONTWRITEBYTECODE": ""})
    mistake = BadFile("mistake", "answer.py", "ANSWER = 1", now, "small")
    made = workshop(launch, (), ("*.py",), HANG_S, mistake)
    os.utime(made.launch.folder / "answer.py", (1_000_000_000, 1_000_000_000))  # as if in the same second
    done = subprocess.run(
        made.launch.command, cwd=made.launch.folder, env={**os.environ, **made.launch.environment},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_planted_mistake_is_not_kept_as_bytecode(tmp_path: Path):
    """Python takes modules of one second and one size for the same; then the next control is the last one."""
    (tmp_path / "answer.py").write_text("ANSWER = 1\n", encoding="utf-8")
    (tmp_path / "main.py").write_text("import answer\nprint(answer.ANSWER, end='')\n", encoding="utf-8")
    (tmp_path / "__pycache__").mkdir()
    assert [answer_of_copy(tmp_path, f"ANSWER = {number}") for number in (2, 3)] == ["2", "3"]
    assert list((tmp_path / "__pycache__").iterdir()) == []
