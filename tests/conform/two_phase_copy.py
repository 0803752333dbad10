"""A copy of docs/two_phase for planting errors, and the programs that check it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner

from hang import HANG_S
from specchk.cli.commands.conform import command

FOLDER = Path(__file__).parents[2] / "docs" / "two_phase"


@dataclass(frozen=True)
class Done:
    """An exit code and the output, both streams together."""

    code: int
    text: str


class Copy:
    """The three files in their own folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for path in FOLDER.glob("*.[ps]*"):
            shutil.copy(path, folder / path.name)

    def edit(self, name: str, was: str, now: str) -> None:
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert text.count(was) == 1, f"{was!r} stands {text.count(was)} times in {name}"
        path.write_text(text.replace(was, now), encoding="utf-8")

    def shorten(self) -> None:
        """Reduce the gate to one small suite, for tests of its other parts."""
        small = 'gate = (At("two", {"MaxCrashes": "0"}),)'
        self.edit("binding.py", 'gate = (At("two"), At("three"))', small)

    def run(self, *command: str) -> Done:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S, check=False,
        )  # fmt: skip
        return Done(done.returncode, done.stdout.decode())

    def conform(self, *options: str) -> Done:
        """Run `specchk conform` in this process, which forgets the modules of other copies first."""
        kept = list(sys.path), sys.dont_write_bytecode
        sys.modules.pop("two_phase", None)
        sys.dont_write_bytecode = True  # an edit within a second would not be seen
        try:
            return self._invoke("binding.py", *options)
        finally:
            sys.path[:], sys.dont_write_bytecode = kept
            sys.modules.pop("two_phase", None)

    def _invoke(self, *arguments: str) -> Done:
        with contextlib.chdir(self.folder):
            done = CliRunner().invoke(command, arguments, standalone_mode=False)
        if isinstance(done.exception, click.ClickException):
            return Done(2, f"{done.output}{done.exception.format_message()}")
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return Done(done.exit_code, done.output)

    def pytest(self, *options: str) -> Done:
        return self.run("pytest", "-W", "error", "-p", "no:cacheprovider", "-q", "--specchk", *options, ".")

    def git(self, *command: str) -> None:
        about = ["-c", "user.name=specchk", "-c", "user.email=specchk@example.org"]
        subprocess.run(["git", *about, *command], cwd=self.folder, check=True, capture_output=True)
