"""Running a program on the engine that the user selected.

The native engine is the default.  A model that it cannot compile is reported on standard error and in the
warnings, and is explored by the reference engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import click
from msgspec import Struct
from msgspec.structs import replace

from specchk.cli.common import ended, print_json, reject, rejections
from specchk.cli.exits import Exit
from specchk.cli.groups import Seconds, option
from specchk.cli.output import echo, is_terminal
from specchk.cli.written import OutputFolder
from specchk.ir.program import Program
from specchk.lang.text.diagnostics import Diagnostic
from specchk.processes import require_space
from specchk.search.budget import Progress
from specchk.search.engine import OnProgress, Options, Unavailable, Unsupported, Unusable
from specchk.search.engines import ENGINES, NAMES, engine_named
from specchk.search.reference import search
from specchk.search.refined import claim
from specchk.search.verdict import Outcome

SPARK = "spark"
COMPILING = ("specchk.native.", "specchk.symbolic.")  # what loads LLVM or Z3


class EngineSettings(Struct, frozen=True):
    """An engine by name, with the values of its specific options."""

    name: str
    settings: Mapping[str, Any] = {}

    def set(self, **settings: Any) -> EngineSettings:
        """The engine with more of its options set."""
        return replace(self, settings={**self.settings, **settings})


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The chosen engine, and its share of the machine."""

    engine: str = option(
        "--engine", type=click.Choice(NAMES), default=NAMES[0],
        help="; ".join(f"{entry.name}: {entry.about}" for entry in ENGINES) + ".",
    )  # fmt: skip
    workers: int | None = option(
        "--workers", help="Threads (native) or processes (symbolic); by default one per core."
    )
    compact: bool = option(
        "--compact", help="Native: keep 64-bit hashes instead of states; the verdict is probabilistic."
    )

    def chosen(self) -> EngineSettings:
        """The engine with these options; a usage error for options that it does not accept."""
        if self.compact and self.engine != "native":
            raise click.UsageError("--compact is for the native engine")
        if self.workers is not None and self.engine not in ("native", "symbolic"):
            raise click.UsageError("--workers is for the native and the symbolic engine")
        # Set only if given: not every engine has these options, and those that have them have defaults.
        given = {"workers": self.workers, "compact": self.compact}
        return EngineSettings(self.engine, {name: value for name, value in given.items() if value})


@dataclass(frozen=True, slots=True)
class CheckpointChoice:
    """Where a long search keeps its states."""

    heading: ClassVar[str] = "Long searches"
    checkpoint: str | None = option(
        "--checkpoint", metavar="DIR", help="Native: write checkpoints to DIR, for --resume."
    )
    every: float = option(
        "--every", type=Seconds(or_zero=True), default=60.0, metavar="S", help="Seconds between checkpoints."
    )
    resume: bool = option("--resume", help="Continue from the checkpoint or the ledger.")
    spill: str | None = option(
        "--spill", type=OutputFolder(), metavar="DIR", help="Native: store states beyond --max-memory in DIR."
    )

    def applied(self, engine: EngineSettings) -> EngineSettings:
        """The engine with these options; a usage error for options that it does not accept."""
        if engine.name != "native" and (self.checkpoint or self.spill):
            raise click.UsageError("--checkpoint and --spill are for the native engine")
        if self.resume and not self.checkpoint and engine.name != SPARK:
            raise click.UsageError("--resume needs --checkpoint DIR, the checkpoint to continue from")
        if not (self.checkpoint or self.spill):
            return engine
        return engine.set(
            checkpoint=Path(self.checkpoint) if self.checkpoint else None,
            checkpoint_every_s=self.every, resume=self.resume, spill=Path(self.spill) if self.spill else None,
        )  # fmt: skip


def loaded(module: str, missing: str | None = None) -> Any:
    """A module with a large library, imported on demand.

    `missing`: the usage error where that library is not installed; None for a library that always is.
    """
    if module.startswith(COMPILING):
        require_space()
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        # A module of specchk that is missing is an error of specchk; installing a library would not help.
        if missing is None or (error.name is not None and error.name.startswith("specchk")):
            raise
        raise click.UsageError(f"{missing} (there is no {error.name})") from None


def explore(program: Program, options: Options, *, engine: EngineSettings, quiet: bool) -> Outcome:
    """Search a program, with progress on standard error if that is a terminal.

    `quiet` where the output is JSON: then a rejection is JSON, too.
    """
    with shown_progress() as progress:
        entry = engine_named(engine.name)
        if not entry.is_temporal:
            refuse_temporal(program, f"the {entry.name} engine", as_json=quiet)
        missing = f"the engine `{entry.name}` is not installed: pip install 'specchk[{entry.extra}]'"
        module = loaded(entry.module, missing if entry.extra else None)
        common = {name: getattr(options, name) for name in Options.__struct_fields__}
        common |= engine.settings
        try:
            with rejections(as_json=quiet):
                outcome: Outcome = module.search(program, getattr(module, entry.options)(**common), progress)
        except Unavailable as reason:
            raise click.UsageError(str(reason)) from None
        except Unusable as reason:
            raise click.UsageError(f"--{entry.kept}: {reason}") from None
        except Unsupported as reason:
            note = f"the {entry.name} engine cannot run this model ({reason}); "
            note += "the reference engine was used instead"
            # Of the engine's settings only those of the reference engine: an export, which has no engine.
            options = replace(options, on_end=engine.settings.get("on_end"))
            return instead(note, lambda: search(program, options, progress))
        return outcome


@contextmanager
def shown_progress() -> Iterator[OnProgress | None]:
    """Shows progress in a line of standard error if that is a terminal, and removes it at the end."""
    if not is_terminal(sys.stderr):
        yield None
        return
    # A carriage return is among the characters that the stream would write as escapes.
    stream, width = getattr(sys.stderr, "exact", sys.stderr), 0

    def show(progress: Progress) -> None:
        nonlocal width
        text = progress_line(progress)
        # Padded to the last line's width, or its end would stay visible.
        stream.write("\r" + text.ljust(width))
        stream.flush()
        width = len(text)

    try:
        yield show
    finally:
        if width:
            stream.write("\r" + " " * width + "\r")
            stream.flush()


def progress_line(progress: Progress) -> str:
    """The states, rate, depth, frontier, memory and time of a search, and what may lie ahead of it."""
    rate = progress.states / progress.seconds if progress.seconds > 0 else 0
    more = f"; {progress.note}" if progress.note else ""
    if (ahead := progress.expected) is not None:
        more += f"; {'about' if ahead.is_near else 'perhaps'} {_short(ahead.states)} states in all"
    return (
        f"{progress.states} states ({rate:.0f}/s), depth {progress.depth}, frontier {progress.frontier}, "
        f"{progress.memory_bytes / (1 << 20):.0f} MB, {progress.seconds:.0f} s{more}"
    )


def _short(number: int) -> str:
    """A number in few digits: `950`, `12.3 k`, `4.5 M`, `7e+09`."""
    for unit, size in ((" M", 1_000_000), (" k", 1000)):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return str(number)


@contextmanager
def spark_failures(*kinds: type[Exception], as_json: bool) -> Iterator[None]:
    """A context in which Spark may fail: the reason is printed, and the command ends without an answer."""
    try:
        yield
    except (Unavailable, Unusable) as reason:
        raise click.UsageError(str(reason)) from None
    except kinds as reason:
        why = f"Spark failed: {reason}"
        echo(f"Error: {why}", err=True)
        if as_json:
            print_json(ended("inconclusive", why, Exit.INCONCLUSIVE))
        sys.exit(Exit.INCONCLUSIVE)


def instead(note: str, run: Callable[[], Outcome]) -> Outcome:
    """The outcome of a run on another engine than the chosen one; `note` is shown, and is a warning."""
    echo(f"note: {note}", err=True)
    outcome = run()
    return replace(outcome, warnings=(note, *outcome.warnings))


def refuse_temporal(program: Program, where: str, *, as_json: bool) -> None:
    """Reject the temporal properties of a program for an engine that does not check them."""
    hint = "run them with --engine native, or select other properties with --property"
    diagnostics = [
        Diagnostic(
            "S702", f"{where} does not check {claim(prop)}, nor other temporal properties", prop.span, hint
        )
        for prop in program.temporal
    ]
    if diagnostics:
        reject(diagnostics, as_json=as_json)
