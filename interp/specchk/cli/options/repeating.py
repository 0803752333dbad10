"""`--watch`: a command again whenever one of its specs or recordings changes, until Ctrl-C.

Each run is a process of its own, which a change ends, so that its output and exit code are those without the
option.  Only a recording that grows lets it end first: more lines may come at any time.  Files are asked for
their times: any editor and any file system has those.
"""

from __future__ import annotations

import re
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
OTHERS = (".py", ".ndjson", ".json", ".log")  # tracings and recordings
RECORDINGS = "*.ndjson"
_SPEC = re.compile(r"""["']([^"'\n]+\.spec)["']""")


def watched(command: F) -> F:
    """A decorator that adds the option to a command whose other options are groups or its own."""
    return click.option(
        WATCH, is_flag=True, expose_value=False, callback=_begin,
        help="Run again whenever a file changes that is read, or a spec beside it; Ctrl-C ends it.",
    )(command)  # fmt: skip


def _begin(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    words = [word for word in sys.argv[1:] if word != WATCH]
    names = [word for word in words if word.endswith((".spec", *OTHERS)) or Path(word).is_dir()]
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
                    echo(f"watching {counted(len(before), 'file')}; Ctrl-C ends it", err=True)
                time.sleep(TICK_S)
            changed = sorted(str(path) for path, _ in now.items() ^ before.items())
            if any(name.endswith((".spec", ".py")) for name in changed):
                running.terminate()
            running.wait()
            echo(f"\n{changed[0]} changed", err=True)
            time.sleep(TICK_S)  # an editor may write a file in several steps
    except KeyboardInterrupt:  # which the running command has had, too
        return 0 if running is None else running.wait()


def _read(names: Sequence[str]) -> set[Path]:
    """The files and folders that are named, and the specs that they read or have."""
    read = set(map(Path, names))
    tracings = [path for path in read if path.suffix == ".py" and path.exists()]
    texts = [(path.parent, path.read_text(encoding="utf-8", errors="replace")) for path in tracings]
    mapped = [str(folder / name) for folder, text in texts for name in _SPEC.findall(text)]
    folders = [name for name in names if Path(name).is_dir() and not any(Path(name).glob(RECORDINGS))]
    for name in [*spec_files([*folders, *(name for name in names if name.endswith(".spec"))]), *mapped]:
        spec = load(name, Report())
        read |= {Path(name), *(Path(source.path) for source in (spec.all_sources() if spec else ()))}
    return read


def _times(read: Iterable[Path]) -> dict[Path, int]:
    """The times of the last change of files, of specs beside them, and of recordings in folders."""
    specs = {spec for folder in {path.parent for path in read} for spec in folder.glob("*.spec")}
    recordings = {file for path in read if path.is_dir() for file in path.glob(RECORDINGS)}
    return {path: path.stat().st_mtime_ns for path in specs | recordings | set(read) if path.is_file()}
