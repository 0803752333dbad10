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
from typing import Any

from msgspec import Struct

from specchk.cli.common import print_json
from specchk.cli.crews import of_ended
from specchk.cli.ends import exit_code
from specchk.cli.exits import Exit
from specchk.cli.output import echo
from specchk.conform.work.forks import Ended, Say, run_all
from specchk.guardian import temporary_folder
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
    names = list(commands)
    reports: dict[int, Printed] = {}
    due = 0
    with temporary_folder() as folder:
        places = [Path(folder, str(number)) for number in range(len(names))]

        def note(number: int, ended: Ended) -> None:
            """Note the end of a command, and print the reports that are next in order."""
            nonlocal due
            reports[number] = _printed(ended, *_written(places[number]), as_json=as_json)
            while due in reports and not as_json:
                _print(names[due], reports[due])
                due += 1

        pairs = zip(commands.values(), places, strict=True)
        run_all([partial(_run, *pair) for pair in pairs], cores(), done=note)
    return _summarized([(name, reports[number]) for number, name in enumerate(names)], as_json=as_json)


def _printed(ended: Ended, out: str, err: str, *, as_json: bool) -> Printed:
    """The output of a command that has ended."""
    if ended.said:
        return Printed(ended.said[0], out, err)
    if ended.code is None:
        return Printed(int(Exit.INTERNAL), "", f"{out}{err}{ended.why}")
    code, about = of_ended(ended.code)
    # Its output so far is not a report, but is not lost.
    said = json.dumps(about) if as_json else f"{about['verdict']}: {about['reason']}"
    return Printed(code, said, out + err)


def _print(name: str, written: Printed) -> None:
    echo(f"== {name}")
    for text, is_error in ((written.out, False), (written.err, True)):
        if text:
            echo(text.rstrip("\n"), err=is_error)


def _summarized(reports: Sequence[tuple[str, Printed]], *, as_json: bool) -> int:
    """Print the summary, or everything as JSON; return the exit code."""
    codes = [written.code for _, written in reports]
    first = next((code for code in codes if code), int(Exit.OK))
    code = int(Exit.DIVERGED) if Exit.DIVERGED in codes else first
    if as_json:
        print_json({
            "schema": "specchk.several/1", "bindings": [_json(*report) for report in reports],
            "exit_code": code,
        })  # fmt: skip
        return code
    failed = [f"{name} ({written.code})" for name, written in reports if written.code]
    echo(f"== {len(codes)} bindings, {', '.join(failed) or 'none'} failed")
    return code


def _json(name: str, written: Printed) -> dict[str, Any]:
    try:
        report = json.loads(written.out)
    except ValueError:
        # What no command reports as JSON: an error of usage, an internal one.
        report = None
    return {"binding": name, "exit_code": written.code, "report": report, "errors": written.err}


def _run(command: Callable[[], object], place: Path, say: Say) -> None:
    """Run one process; both streams go to files, including output that bypasses Python."""
    for stream, suffix in ((sys.stdout, ".out"), (sys.stderr, ".err")):
        if stream is not None:
            path = place.with_suffix(suffix)
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


def _written(place: Path) -> list[str]:
    """The texts of both streams."""
    files = [place.with_suffix(suffix) for suffix in (".out", ".err")]
    return [path.read_text("utf-8", "backslashreplace") if path.exists() else "" for path in files]
