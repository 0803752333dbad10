"""`specchk conform` for several bindings: one process for each, forked after the common imports.

Each prints its output, and returns its exit code, as if it ran alone.  The reports
are printed in the order of the bindings, each as soon as the previous ones are complete.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from specchk.cli.common import print_json
from specchk.cli.crews import of_ended
from specchk.cli.ends import exit_code
from specchk.cli.exits import Exit
from specchk.cli.output import echo
from specchk.conform.work.pool import Ended, Say, Task, run_all
from specchk.processes import cores

Commands = Mapping[str, Callable[[], object]]  # by the binding that each is for


class Printed(Struct, frozen=True):
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str


def run_each(commands: Commands, *, as_json: bool) -> int:
    """Run all commands to their ends, print their outputs, and return their common exit code.

    It is 13 where some implementation diverges, else that of the first that is not 0.
    """
    with TemporaryDirectory(prefix="specchk-") as folder:
        reports = _Reports(Path(folder), list(commands), as_json=as_json)
        tasks = [reports.task(number, command) for number, command in enumerate(commands.values())]
        run_all(tasks, cores(), done=reports.ended)
        return reports.finish()


class _Reports:
    """The output of the finished commands, printed in the order of all commands."""

    def __init__(self, folder: Path, names: Sequence[str], *, as_json: bool) -> None:
        self._folder = folder
        self._names = names
        self._as_json = as_json
        self._ended: dict[int, Printed] = {}
        self._printed = 0

    def task(self, number: int, command: Callable[[], object]) -> Task:
        """The task of a command, writing to files."""
        return partial(_run, command, self._file(number, "out"), self._file(number, "err"))

    def _file(self, number: int, stream: str) -> Path:
        return self._folder / f"{number}.{stream}"

    def ended(self, number: int, ended: Ended) -> None:
        """Note the end of a command, and print the reports that are next in order."""
        out, err = (_text(self._file(number, stream)) for stream in ("out", "err"))
        if ended.said:
            self._ended[number] = Printed(ended.said[0], out, err)
        elif ended.code is None:
            self._ended[number] = Printed(int(Exit.INTERNAL), "", f"{out}{err}{ended.why}")
        else:
            code, about = of_ended(ended.code)
            # Its output so far is not a report, but is not lost.
            said = json.dumps(about) if self._as_json else f"{about['verdict']}: {about['reason']}"
            self._ended[number] = Printed(code, said, out + err)
        while self._printed in self._ended and not self._as_json:
            self._print(self._printed)
            self._printed += 1

    def _print(self, number: int) -> None:
        written = self._ended[number]
        echo(f"== {self._names[number]}")
        for text, is_error in ((written.out, False), (written.err, True)):
            if text:
                echo(text.rstrip("\n"), err=is_error)

    def finish(self) -> int:
        """Print the summary, or everything as JSON; return the exit code."""
        codes = [self._ended[number].code for number in range(len(self._names))]
        first = next((code for code in codes if code), int(Exit.OK))
        code = int(Exit.DIVERGED) if Exit.DIVERGED in codes else first
        if self._as_json:
            print_json({
                "schema": "specchk.several/1", "bindings": [*map(self._json, range(len(codes)))],
                "exit_code": code,
            })  # fmt: skip
            return code
        failed = [f"{name} ({code})" for name, code in zip(self._names, codes, strict=True) if code]
        echo(f"== {len(codes)} bindings, {', '.join(failed) or 'none'} failed")
        return code

    def _json(self, number: int) -> dict[str, Any]:
        written = self._ended[number]
        try:
            report = json.loads(written.out)
        except ValueError:
            # What no command reports as JSON: an error of usage, an internal one.
            report = None
        name = self._names[number]
        return {"binding": name, "exit_code": written.code, "report": report, "errors": written.err}


def _run(command: Callable[[], object], out: Path, err: Path, say: Say) -> None:
    """Run one process; both streams go to files, including output that bypasses Python."""
    for stream, path in ((sys.stdout, out), (sys.stderr, err)):
        if stream is not None:
            stream.flush()
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream.fileno())
    try:
        code: object = exit_code(command)
    except SystemExit as left:
        code = left.code
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    say(code if isinstance(code, int) else int(code is not None))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="backslashreplace") if path.exists() else ""
