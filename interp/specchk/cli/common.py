"""Common parts of the commands: loading with diagnostics, budgets, sizes, output."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

import click
from msgspec import DecodeError
from msgspec.json import format as format_json
from msgspec.structs import replace as replace_fields

from specchk.cli.ends import end_at_limit, leave_at_limit
from specchk.cli.exits import Exit
from specchk.cli.groups import argument, option
from specchk.cli.output import echo, echo_report, is_terminal
from specchk.compile.instantiate import Instance, instantiate
from specchk.kept import replace
from specchk.lang.frontend import CheckedSpec, check
from specchk.lang.text.diagnostics import Diagnostic, SpecError, render
from specchk.lang.text.source import MAX_BYTES
from specchk.lang.text.visible import visible
from specchk.search.budget import Budget, time_limit, watched
from specchk.search.watch import LimitReached

STDIN = "stdin"  # its name in places; specs that it extends are searched in the current directory
MOST_SHOWN = 20  # diagnostics printed as text; --json has all
_SEVERAL = re.compile(r"^[\w.-]+\s*,\s*\w+\s*=(?!=)")  # `2,Other=3`
_UNITS = MappingProxyType({"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40})


class Size(click.ParamType[int]):
    """An option type: a number of bytes, with an optional K, M, G or T."""

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


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The program to which a command applies."""

    file: str = argument()
    model: str | None = option("--model", metavar="M", help="Model to use; by default the file's first.")
    overrides: tuple[str, ...] = option(
        "--set", metavar="C=V", help="Override a constant or the size of a sort; repeatable."
    )
    properties: tuple[str, ...] = option(
        "--property", metavar="P", help="Check only this property; repeatable."
    )

    @property
    def table(self) -> dict[str, str]:
        """The overrides by name; a malformed one is a usage error."""
        return parse_overrides(self.overrides)

    def instance(self, *, as_json: bool, is_verified: bool = True) -> Instance:
        """The program; for a rejected spec, diagnostics and exit code 30."""
        table = self.table
        with rejections(as_json=as_json):
            return instantiate(load(self.file), self.model, table, self.properties, is_verified=is_verified)

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

    heading: ClassVar[str] = "Budget"

    max_states: int | None = option("--max-states", help="Stop after N distinct states.")
    max_seconds: float | None = option("--max-seconds", help="Stop after S seconds.")
    max_memory: int | None = option(
        "--max-memory", type=Size(), metavar="B", help="Stop at B bytes of memory (512M, 4G)."
    )

    @contextmanager
    def watched(self, *, spills: bool = False, is_command: bool = True) -> Iterator[Budget]:
        """The limits as a budget for engines, watched while the context is open.

        Time is that of the command, from the start of the process, or else of the context.  Exits at a limit
        that no search reports.  Searches that move states to a file (`spills`) are not ended by memory.
        """
        memory = None if spills else self.max_memory
        try:
            limits = Budget(self.max_states, self.max_seconds, memory)
            began = click.get_current_context().find_root().obj if is_command else None
            with watched(limits, end_at_limit, began) as budget:
                yield replace_fields(budget, max_memory_bytes=self.max_memory)
        except LimitReached as limit:
            leave_at_limit(str(limit))

    @contextmanager
    def watched_after(self, budget: Budget, least: float) -> Iterator[None]:
        """A context for what follows a watched search: it has the seconds left, but at least some."""
        limit = self.max_seconds
        if limit is None or budget.watch is None:
            yield
            return
        left = max(least, limit - budget.watch.seconds)
        with watched(Budget(max_seconds=left), lambda _: end_at_limit(time_limit(limit))):
            yield


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    """The `C=V` texts of `--set` as a table; a malformed one is a usage error."""
    table = {}
    for text in overrides:
        name, _, value = map(str.strip, text.partition("="))
        if not name or not value:
            raise click.BadParameter(f"{text!r} is not of the form CONSTANT=VALUE", param_hint="--set")
        if _SEVERAL.search(value):
            one, _, other = map(str.strip, text.partition(","))
            raise click.BadParameter(f"one constant each: --set {one} --set {other}", param_hint="--set")
        table[name] = value
    return table


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """The `NAME=VALUE` texts of `--conf` as a table; a malformed one is a usage error."""
    for text in settings:
        if text.find("=") < 1:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--conf")
    return dict(text.split("=", 1) for text in settings)


@contextmanager
def rejections(*, as_json: bool = False) -> Iterator[None]:
    """A context that turns a rejected spec into diagnostics and exit code 30."""
    try:
        yield
    except SpecError as error:
        reject(error.diagnostics, as_json=as_json)


@contextmanager
def refusals(*kinds: type[Exception], about: str = "") -> Iterator[None]:
    """A context that turns an error that a user can correct into a command-line error with prefix `about`."""
    try:
        yield
    except kinds as error:
        raise click.ClickException(f"{about}{error}") from None


def reject(diagnostics: Sequence[Diagnostic], *, as_json: bool) -> NoReturn:
    """Print diagnostics and exit."""
    if as_json:
        reports = [diagnostic.as_json() for diagnostic in diagnostics]
        print_json({"schema": "specchk.rejected/1", "verdict": "rejected", "diagnostics": reports,
                    "exit_code": int(Exit.REJECTED)})  # fmt: skip
    else:
        echo("\n".join(render(diagnostic) for diagnostic in diagnostics[:MOST_SHOWN]), err=True)
        if len(diagnostics) > MOST_SHOWN:
            echo(f"... and {len(diagnostics) - MOST_SHOWN} more", err=True)
        count = len(diagnostics)
        code = diagnostics[0].code
        echo(f"{count} error{'s' * (count > 1)}; see `specchk explain {code}`", err=True)
    sys.exit(Exit.REJECTED)


def spec_files(names: Sequence[str]) -> list[str]:
    """The named files, folders replaced by the spec files in them, sorted; an empty folder is an error."""
    files: list[str] = []
    for name in names:
        path = Path(name)
        if not path.is_dir():
            files.append(name)
            continue
        inside = sorted(str(file) for file in path.rglob("*.spec"))
        if not inside:
            raise click.BadParameter(f"there is no .spec file in {name}", param_hint="FILE")
        files += inside
    return files


def load(file: str) -> CheckedSpec:
    """Load and check a spec; `-` is standard input. Raises `SpecError`."""
    return check(STDIN, stdin_text()) if file == "-" else check(file)


def stdin_text() -> str:
    """The text of standard input, read once per command."""
    # In the root's context, which lasts as long as the command: a pipe can be read only once, and some
    # commands load the same spec twice.
    kept = click.get_current_context().find_root().meta
    if STDIN not in kept:
        try:
            kept[STDIN] = sys.stdin.read(MAX_BYTES + 1) if sys.stdin is not None else ""
        except UnicodeDecodeError as error:
            raise click.ClickException(f"standard input is not UTF-8 text (byte {error.start})") from None
    return str(kept[STDIN])


def ended(verdict: str, reason: str, code: Exit) -> dict[str, Any]:
    """The JSON of a command that ended without a report."""
    return {"schema": "specchk.ended/1", "verdict": verdict, "reason": reason, "exit_code": int(code)}


def print_json(report: Any) -> None:
    """Print one JSON object on standard output."""
    echo(indented_json(report))


def indented_json(report: Any) -> str:
    """The text of a JSON value, with indentation."""
    text = json.dumps(report, ensure_ascii=False)
    try:
        return format_json(text)
    # Of a file's name that is not UTF-8, or a number that JSON has not; this takes four times as long.
    except (UnicodeEncodeError, DecodeError):
        return json.dumps(report, indent=2, ensure_ascii=False)


def leave(code: Exit, *, as_json: bool, json: Callable[[], Any], text: Callable[[], str]) -> NoReturn:
    """Print the result in the requested form, and exit with its code."""
    if as_json:
        print_json(json())
    else:
        echo_report(text())
    sys.exit(code)


def write_json(path: str, report: Any) -> None:
    """Write a JSON file; `-` is standard output."""
    if path == "-":
        print_json(report)
    else:
        write_text(Path(path), indented_json(report) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file; reports success on standard error, or the reason why it cannot be written."""
    replaced(path, visible(text))
    echo(f"wrote {path}", err=True)


def replaced(path: Path | str, text: str) -> None:
    """As `kept.replace`; raises a command-line error if the file cannot be written."""
    try:
        replace(Path(path), text.encode())
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror or error}") from None


def width() -> int:
    """The width of printed lines: the terminal's width, or 80 in a pipe."""
    return shutil.get_terminal_size((80, 24)).columns if is_terminal(sys.stdout) else 80
