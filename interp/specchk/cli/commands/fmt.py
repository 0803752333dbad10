"""`specchk fmt`: format spec files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

import click

from specchk.cli.common import STDIN, rejections, replaced, spec_files, stdin_text
from specchk.cli.exits import Exit
from specchk.cli.output import echo
from specchk.cli.written import try_file
from specchk.lang.format.formatter import format_source
from specchk.lang.load import read
from specchk.lang.text.diagnostics import Report, SpecError


@click.command("fmt")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--check", "only_check", is_flag=True, help="Change nothing; exit with 10 if a file is not formatted."
)
@click.option(
    "--diff",
    "show_diff",
    is_flag=True,
    help="Change nothing; print the changes, and exit with 1 if there are any.",
)
def command(files: Sequence[str], only_check: bool, show_diff: bool) -> None:
    """Format spec FILES (or folders of them) in place; - reads standard input and prints the result."""
    changed: dict[str, str] = {}
    for file in ["-"] if list(files) == ["-"] else spec_files(files):
        with rejections():
            new = _formatted(file, keep=only_check or show_diff, show_diff=show_diff)
        if new is not None:
            changed[file] = new
    if not (only_check or show_diff):
        for file in changed:  # before the first is written
            try_file(Path(file), "FILES")
        for file, new in changed.items():
            replaced(file, new)
            echo(f"formatted: {file}")
    code = Exit.VIOLATED if only_check else Exit.DIFFERS if show_diff else Exit.OK
    sys.exit(code if changed else Exit.OK)


def _formatted(file: str, *, keep: bool, show_diff: bool) -> str | None:
    """The new text of a file, None if it is the old one or was printed; with `keep` it is reported."""
    old = stdin_text() if file == "-" else _read(file)
    new = format_source(old, STDIN if file == "-" else file)
    if file == "-" and not keep:
        echo(new, nl=False, is_exact=True)  # the user's own file, perhaps for an editor
        return None
    if old == new:
        return None
    if show_diff:
        lines = unified_diff(old.splitlines(True), new.splitlines(True), file, f"{file} (formatted)")
        echo("".join(lines), nl=False)
    elif keep:
        echo(f"not formatted: {file}")
    return new


def _read(file: str) -> str:
    report = Report()
    source = read(Path(file), file, report)
    if source is None:
        raise SpecError(report.found)
    return source.text
