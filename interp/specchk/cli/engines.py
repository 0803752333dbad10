"""Running a program on the engine that the user selected.

The native engine is the default.  It is loaded only when it runs (LLVM is a large library); what it
cannot compile is said on standard error and in the warnings, and explored by the reference engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click

from specchk.cli.common import rejections
from specchk.cli.output import echo, is_terminal
from specchk.ir.program import Program
from specchk.report.progress import TerminalProgress
from specchk.search.budget import Progress
from specchk.search.reference import Options, search
from specchk.search.verdict import Outcome

F = TypeVar("F", bound=Callable[..., Any])

ENGINES = ("native", "reference", "symbolic")
SPARK = "spark"


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where a long search keeps its states: a checkpoint to resume from, files for what memory lacks."""

    checkpoint: Path | None
    every_s: float
    resume: bool
    spill: Path | None


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine by name, with what only the native one takes."""

    name: str
    workers: int = 0  # 0: one for each core
    compact: bool = False
    keeping: Keeping | None = None


def engine_options(function: F) -> F:
    """`--engine`, `--workers`, `--compact`."""
    return _options_for(ENGINES, function)


def engine_options_with_spark(function: F) -> F:
    """As `engine_options`, for commands that search on a cluster, too."""
    return _options_for((*ENGINES, SPARK), function)


def _options_for(engines: tuple[str, ...], function: F) -> F:
    decorators = [
        click.option("--engine", type=click.Choice(engines), default=engines[0], show_default=True),
        click.option("--workers", type=click.IntRange(min=1), default=None, metavar="N",
                     help="Threads (native) or processes (symbolic); by default one per core."),
        click.option("--compact", is_flag=True,
                     help="Native: keep 64-bit hashes instead of states; the verdict is probabilistic."),
    ]  # fmt: skip
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def keeping_options(function: F) -> F:
    """`--checkpoint`, `--every`, `--resume`, `--spill`."""
    decorators = [
        click.option("--checkpoint", metavar="DIR", help="Native: write checkpoints to DIR, for --resume."),
        click.option("--every", type=click.FloatRange(min=0), default=60.0, show_default=True, metavar="S",
                     help="Seconds between checkpoints."),
        click.option("--resume", is_flag=True, help="Continue from the checkpoint or the ledger."),
        click.option("--spill", metavar="DIR", help="Native: store states beyond --max-memory in DIR."),
    ]  # fmt: skip
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def kept(engine: Engine, checkpoint: str | None, every: float, spill: str | None, *, resume: bool) -> Engine:
    """The engine with `keeping_options` applied."""
    if (checkpoint or spill) and engine.name != "native":
        raise click.UsageError("--checkpoint and --spill are for the native engine")
    if resume and not checkpoint:
        raise click.UsageError("--resume needs --checkpoint DIR, the checkpoint to continue from")
    return replace(
        engine,
        keeping=Keeping(
            checkpoint=Path(checkpoint) if checkpoint else None,
            every_s=every,
            resume=resume,
            spill=Path(spill) if spill else None,
        ),
    )


def chosen_engine(engine: str, workers: int | None, *, compact: bool) -> Engine:
    """The engine of the options above; options that it does not take are a usage error."""
    if compact and engine != "native":
        raise click.UsageError("--compact is for the native engine")
    if workers is not None and engine not in ("native", "symbolic"):
        raise click.UsageError("--workers is for the native and the symbolic engine")
    return Engine(engine, workers or 0, compact)


def loaded(module: str) -> Any:
    """A module of an engine whose library is large, imported now that it is needed."""
    return import_module(module)


def explore(program: Program, options: Options, *, engine: Engine, quiet: bool) -> Outcome:
    """Search a program, with progress on standard error when that is a terminal."""
    progress = TerminalProgress(sys.stderr) if is_terminal(sys.stderr) and not quiet else None
    try:
        if engine.name == "native":
            return _native(program, options, engine, progress)
        if engine.name == "symbolic":
            return _symbolic(program, options, engine, progress)
        return search(program, options, progress)
    finally:
        if progress is not None:
            progress.clear()


def _symbolic(
    program: Program, options: Options, engine: Engine, progress: Callable[[Progress], None] | None
) -> Outcome:
    symbolic = import_module("specchk.symbolic.zones.search")
    taken = symbolic.Options(
        budget=options.budget,
        symmetry=options.symmetry,
        keep_going=options.keep_going,
        strict=options.strict,
        workers=engine.workers,
    )
    with rejections():
        outcome: Outcome = symbolic.search(program, taken, progress)
    return outcome


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
    keeping = engine.keeping
    if keeping is not None:
        taken = replace(
            taken,
            spill=keeping.spill,
            checkpoint=keeping.checkpoint,
            checkpoint_every_s=keeping.every_s,
            resume=keeping.resume,
        )
    try:
        outcome: Outcome = native.run(program, taken, progress)
    except import_module("specchk.native.identity").Unusable as reason:
        raise click.UsageError(f"--checkpoint: {reason}") from None
    except native.Unsupported as reason:
        note = f"the native engine cannot run this model ({reason}); the reference engine was used instead"
        echo(f"note: {note}", err=True)
        outcome = search(program, options, progress)
        return replace(outcome, warnings=(note, *outcome.warnings))
    return outcome
