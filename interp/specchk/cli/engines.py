"""Running a program on the engine that the user asked for."""

from __future__ import annotations

import sys

from specchk.cli.output import is_terminal
from specchk.core.search import Options, search
from specchk.core.verdict import Outcome
from specchk.ir.program import Program
from specchk.report.progress import TerminalProgress

ENGINES = ("reference",)


def explore(program: Program, options: Options, *, engine: str, quiet: bool) -> Outcome:
    """Search a program, with progress on standard error when that is a terminal."""
    assert engine in ENGINES
    progress = TerminalProgress(sys.stderr) if is_terminal(sys.stderr) and not quiet else None
    try:
        return search(program, options, progress)
    finally:
        if progress is not None:
            progress.clear()
