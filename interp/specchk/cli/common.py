"""Common parts of the commands: loading with diagnostics, budgets, sizes, output."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, NoReturn

import click

from specchk.cli.exits import Exit
from specchk.cli.groups import argument, option
from specchk.cli.output import echo, is_terminal
from specchk.compile.instantiate import Instance, instantiate
from specchk.kept import replace
from specchk.lang.frontend import CheckedSpec, check
from specchk.lang.text.diagnostics import Diagnostic, SpecError, render
from specchk.search.budget import Budget

STDIN = "stdin"  # its name in places; what it extends is searched in the current directory
MOST_SHOWN = 20  # diagnostics printed as text; --json has all
_UNITS = MappingProxyType({"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40})


class Size(click.ParamType[int]):
    """A number of bytes, with an optional K, M, G or T."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """`512M` to 536870912."""
        text = str(value).strip().lower().removesuffix("b").removesuffix("i")
        number, unit = (text[:-1], text[-1]) if text and text[-1] in _UNITS else (text, "")
        try:
            size = int(float(number) * _UNITS[unit])
        except (ValueError, OverflowError):  # `lots`; `inf`
            self.fail(f"{value!r} is not a size; write e.g. 512M or 4G", param, ctx)
        if size <= 0:
            self.fail("a size must be greater than 0", param, ctx)
        return size


class Seconds(click.FloatRange):
    """A number of seconds greater than 0; `nan` is no limit of anything, and is refused."""

    def __init__(self, *, or_zero: bool = False) -> None:
        super().__init__(min=0, min_open=not or_zero)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """`2.5` to 2.5."""
        seconds: float = super().convert(value, param, ctx)
        if isnan(seconds):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The program that a command is about."""

    file: str = argument()
    model: str | None = option("--model", metavar="M", help="Model to use; by default the file's first.")
    overrides: tuple[str, ...] = option(
        "--set", multiple=True, metavar="C=V", help="Override a constant or the size of a sort; repeatable."
    )
    properties: tuple[str, ...] = option(
        "--property", multiple=True, metavar="P", help="Check only this property; repeatable."
    )

    @property
    def table(self) -> dict[str, str]:
        """The overrides by name; a malformed one is a usage error."""
        return parse_overrides(self.overrides)

    def instance(self, *, as_json: bool) -> Instance:
        """The program, or diagnostics and exit 30."""
        table = self.table
        with rejections(as_json=as_json):
            return instantiate(load(self.file), self.model, table, self.properties)

    @property
    def words(self) -> list[str]:
        """The choice as part of a command line."""
        words = [quote(self.file), *(["--model", quote(self.model)] if self.model else [])]
        for override in self.overrides:
            words += ["--set", quote(override)]
        for name in self.properties:
            words += ["--property", quote(name)]
        return words


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget of a search."""

    max_states: int | None = option(
        "--max-states", type=click.IntRange(min=1), metavar="N", help="Stop after N distinct states."
    )
    max_seconds: float | None = option(
        "--max-seconds", type=Seconds(), metavar="S",
        help="Stop after S seconds.",
    )  # fmt: skip
    max_memory: int | None = option(
        "--max-memory", type=Size(), metavar="B", help="Stop at B bytes of memory (512M, 4G)."
    )

    @property
    def budget(self) -> Budget:
        """The limits, as engines take them."""
        return Budget(self.max_states, self.max_seconds, self.max_memory)


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """`C=V` texts to a table; a malformed one is a usage error."""
    found = {}
    for text in overrides:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise click.BadParameter(f"{text!r} is not of the form CONSTANT=VALUE", param_hint="--set")
        found[name.strip()] = value.strip()
    return found


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """The `NAME=VALUE` texts of `--conf` to a table; a malformed one is a usage error."""
    found = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--conf")
        found[name] = value
    return found


@contextmanager
def rejections(*, as_json: bool = False) -> Iterator[None]:
    """Turn a rejected spec into diagnostics and exit code 30."""
    try:
        yield
    except SpecError as error:
        reject(error.diagnostics, as_json=as_json)


@contextmanager
def refusals(*kinds: type[Exception], about: str = "") -> Iterator[None]:
    """Turn what a user can correct into an error of the command line; `about` begins its text."""
    try:
        yield
    except kinds as error:
        raise click.ClickException(f"{about}{error}") from None


def reject(diagnostics: Sequence[Diagnostic], *, as_json: bool) -> NoReturn:
    """Print diagnostics and leave."""
    if as_json:
        found = [diagnostic.as_json() for diagnostic in diagnostics]
        print_json({"schema": "specchk.rejected/1", "verdict": "rejected", "diagnostics": found,
                    "exit_code": int(Exit.REJECTED)})  # fmt: skip
    else:
        echo("\n".join(render(diagnostic) for diagnostic in diagnostics[:MOST_SHOWN]), err=True)
        if len(diagnostics) > MOST_SHOWN:
            echo(f"... and {len(diagnostics) - MOST_SHOWN} more", err=True)
        count = len(diagnostics)
        code = diagnostics[0].code
        echo(f"{count} error{'s' * (count > 1)}; see `specchk explain {code}`", err=True)
    sys.exit(Exit.REJECTED)


def load(file: str) -> CheckedSpec:
    """Load and check a spec, `-` from standard input; raises `SpecError`."""
    return check(STDIN, stdin_text()) if file == "-" else check(file)


def stdin_text() -> str:
    """The text of standard input, which a command reads once."""
    kept = click.get_current_context().find_root().meta
    if STDIN not in kept:
        try:
            kept[STDIN] = sys.stdin.read() if sys.stdin is not None else ""
        except UnicodeDecodeError as error:
            raise click.ClickException(f"standard input is not UTF-8 text (byte {error.start})") from None
    text: str = kept[STDIN]
    return text


def one_output(*, as_json: bool, itf: str | None) -> None:
    """Refuse two outputs to standard output."""
    if as_json and itf == "-":
        raise click.UsageError("--json and --itf - both write to standard output; give --itf a file")


def print_json(found: Any) -> None:
    """One JSON object on standard output."""
    echo(json.dumps(found, indent=2, ensure_ascii=False))


def write_json(path: str, found: Any) -> None:
    """A JSON file; `-` is standard output."""
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    if path == "-":
        echo(text, nl=False)
        return
    write_text(Path(path), text)


def write_text(path: Path, text: str) -> None:
    """A text file; a word where it cannot be written, a line on standard error where it was."""
    replaced(path, text)
    echo(f"wrote {path}", err=True)


def replaced(path: Path | str, text: str) -> None:
    """As `kept.replace`; a word where the file cannot be written."""
    try:
        replace(Path(path), text.encode())
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None


def width() -> int:
    """How wide to print: the terminal's width, 80 in a pipe."""
    return shutil.get_terminal_size((80, 24)).columns if is_terminal(sys.stdout) else 80
