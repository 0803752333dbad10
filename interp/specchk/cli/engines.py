"""Running a program on the engine that the user asked for.

The native engine is the default.  It is loaded only when it runs (LLVM is a large library); what it
cannot compile is said on standard error and in the warnings, and explored by the reference engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, TypeVar

import click

from specchk.cli.output import echo, is_terminal
from specchk.core.budget import Progress
from specchk.core.search import Options, search
from specchk.core.verdict import Outcome
from specchk.ir.program import Program
from specchk.report.progress import TerminalProgress

F = TypeVar("F", bound=Callable[..., Any])

ENGINES = ("native", "reference")


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine by name, with what only the native one takes."""

    name: str
    workers: int = 0  # 0: one for each core
    compact: bool = False


def engine_options(function: F) -> F:
    """`--engine`, `--workers`, `--compact`."""
    decorators = [
        click.option("--engine", type=click.Choice(ENGINES), default=ENGINES[0], show_default=True),
        click.option("--workers", type=click.IntRange(min=1), default=None, metavar="N",
                     help="Threads of the native engine; one for each core by default."),
        click.option("--compact", is_flag=True,
                     help="Native: keep 64-bit fingerprints, not states; the verdict has a probability."),
    ]  # fmt: skip
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def chosen_engine(engine: str, workers: int | None, *, compact: bool) -> Engine:
    """The engine of the options above; options that it does not take are a usage error."""
    if engine != "native" and (workers is not None or compact):
        raise click.UsageError("--workers and --compact are for the native engine")
    return Engine(engine, workers or 0, compact)


def explore(program: Program, options: Options, *, engine: Engine, quiet: bool) -> Outcome:
    """Search a program, with progress on standard error when that is a terminal."""
    progress = TerminalProgress(sys.stderr) if is_terminal(sys.stderr) and not quiet else None
    try:
        if engine.name == "native":
            return _native(program, options, engine, progress)
        return search(program, options, progress)
    finally:
        if progress is not None:
            progress.clear()


def _native(
    program: Program, options: Options, engine: Engine, progress: Callable[[Progress], None] | None
) -> Outcome:
    native = import_module("specchk.native.engine")
    taken = native.Options(
        budget=options.budget,
        symmetry=options.symmetry,
        keep_going=options.keep_going,
        strict=options.strict,
        workers=engine.workers,
        compact=engine.compact,
    )
    try:
        outcome: Outcome = native.run(program, taken, progress)
    except native.Unsupported as reason:
        note = f"the native engine cannot run this model ({reason}); the reference engine did"
        echo(f"note: {note}", err=True)
        outcome = search(program, options, progress)
        return replace(outcome, warnings=(note, *outcome.warnings))
    return outcome
