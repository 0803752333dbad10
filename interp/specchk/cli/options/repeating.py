"""`--watch`: a command again whenever one of its specs changes, until Ctrl-C.

Each run is a process of its own, which a change ends, so that its output and exit code are those without the
option.  Files are asked for their times: any editor and any file system has those.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from specchk.cli.common import spec_files
from specchk.cli.exits import Exit
from specchk.cli.output import echo
from specchk.lang.load import load
from specchk.lang.text.diagnostics import Report
from specchk.report.text import counted

F = TypeVar("F", bound=Callable[..., Any])
WATCH = "--watch"
TICK_S = 0.2


def watched(command: F) -> F:
    """A decorator that adds the option to a command whose other options are groups or its own."""
    return click.option(
        WATCH, is_flag=True, expose_value=False, callback=_begin,
        help="Run again whenever a spec changes that is read, or one beside it; Ctrl-C ends it.",
    )(command)  # fmt: skip


def _begin(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    words = [word for word in sys.argv[1:] if word != WATCH]
    names = [word for word in words if word.endswith(".spec") or Path(word).is_dir()]
    if is_given and not names:
        raise click.UsageError(f"{WATCH} needs a spec file, or a folder of them", ctx)
    if is_given:
        sys.exit(_repeated([sys.executable, "-m", "specchk", *words], names))


def _repeated(line: list[str], names: list[str]) -> int:
    """The exit code of the last run: that of a usage error, which ends it, or the one before Ctrl-C."""
    running = None
    try:
        while True:
            read = _read(names)
            before = _times(read)
            running = subprocess.Popen(line)  # noqa: S603 - ourselves
            is_told = False
            while (now := _times(read)) == before:
                if running.poll() == Exit.USAGE:
                    return Exit.USAGE
                if running.returncode is not None and not is_told:
                    is_told = True
                    echo(f"watching {counted(len(before), 'spec')}; Ctrl-C ends it", err=True)
                time.sleep(TICK_S)
            running.terminate()
            running.wait()
            changed = sorted(str(path) for path, _ in now.items() ^ before.items())
            echo(f"\n{changed[0]} changed", err=True)
            time.sleep(TICK_S)  # an editor may write a file in several steps
    except KeyboardInterrupt:  # which the running command has had, too
        return 0 if running is None else running.wait()


def _read(names: Sequence[str]) -> set[Path]:
    """The specs that some files, or those of some folders, read."""
    read = {Path(name) for name in names if not Path(name).is_dir()}
    for name in spec_files(names):
        spec = load(name, Report())
        read |= {Path(name), *(Path(source.path) for source in (spec.all_sources() if spec else ()))}
    return read


def _times(read: Iterable[Path]) -> dict[Path, int]:
    """The times of the last change of files and of the specs beside them: an import may be still to come."""
    found = {spec for folder in {path.parent for path in read} for spec in folder.glob("*.spec")}
    return {path: path.stat().st_mtime_ns for path in found | set(read) if path.exists()}
