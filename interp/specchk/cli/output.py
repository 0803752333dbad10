"""Writing to the standard streams, even after their readers have closed them.

A reader that goes away (`| head -1`) changes neither the exit code nor what else is done; a stream
that was closed before the program began gets nothing.  Characters that a terminal's encoding lacks, or
that it would obey, are written as escapes.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import Any, TextIO, cast

import click

from specchk.lang.text.visible import visible

# At the beginning of a line of a report.
_COLOURS = (
    (re.compile(r"^(holds|proved|conforms|ok)\b", re.MULTILINE), "green"),
    (re.compile(r"^(violated|diverges|FAILED)\b", re.MULTILINE), "red"),
    (re.compile(r"^( *warning|inconclusive|vacuous)\b", re.MULTILINE), "yellow"),
)
_WHOLE = re.compile(r" *\d* \| |next: ")  # an excerpt of a spec and its carets; a command to copy


@contextmanager
def survived() -> Iterator[None]:
    """A context in which both streams accept every character, outlive their readers, and are flushed.

    Not only for `echo`: click writes usage errors, `--help` and a line after Ctrl-C itself, and leaves with 1
    where that fails.
    """
    streams = sys.stdout, sys.stderr
    if sys.stdout is not None:
        sys.stdout = cast(TextIO, _Survivor(sys.stdout, BrokenPipeError))
    if sys.stderr is not None:  # there is nowhere else to report why it failed
        sys.stderr = cast(TextIO, _Survivor(sys.stderr, OSError))
    try:
        yield
    finally:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            try:
                # Where Python's own flush fails at its end, the exit code becomes 120.
                stream.flush()
            except OSError:
                _silence(stream)
        sys.stdout, sys.stderr = streams


class _Survivor:
    """A stream that discards all output after an error of some kind."""

    def __init__(
        self, stream: TextIO, survives: type[OSError], shown: Callable[[str], str] = visible
    ) -> None:
        self._stream, self._survives, self._shown = stream, survives, shown
        self.has_written = False
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        """Delegate all other attributes to the stream."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or discard it."""
        self.has_written = True
        try:
            return self._stream.write(self._shown(text))
        except self._survives:
            _silence(self._stream)
            return len(text)

    @property
    def exact(self) -> _Survivor:
        """The stream for text whose every character is written as it is."""
        return _Survivor(self._stream, self._survives, str)

    def flush(self) -> None:
        """Flush the buffered output, or do nothing."""
        try:
            self._stream.flush()
        except self._survives:
            _silence(self._stream)


def echo(text: str, *, err: bool = False, nl: bool = True, is_exact: bool = False) -> None:
    """Write a text and flush; raises `ClickException` if the device rejects it."""
    stream: Any = sys.stderr if err else sys.stdout
    try:
        if is_exact:
            click.echo(text, getattr(stream, "exact", stream), nl=nl, color=True)  # click removes colours
        else:
            shown = visible(text)
            click.echo(_fitted(shown) if err and is_terminal(stream) else shown, stream, nl=nl)
    except OSError as error:
        # Before the reason is shown, which may go to the same device.
        _silence(sys.stdout)
        raise click.ClickException(f"cannot write the output: {error.strerror or error}") from None


def echo_report(text: str) -> None:
    """Write a report; on a terminal its lines fit, and its verdicts have colours, unless NO_COLOR is set."""
    if not is_terminal(sys.stdout):
        echo(text)
        return
    coloured = _fitted(visible(text))
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        echo(coloured)
        return
    for words, colour in _COLOURS:
        coloured = words.sub(click.style(r"\g<0>", fg=colour, bold=True), coloured)
    echo(coloured, is_exact=True)


def _fitted(text: str) -> str:
    """The text with long lines broken to fit the terminal, except for excerpts and commands."""
    # A narrower terminal breaks them itself: nearly every word would have a line.
    columns = max(40, shutil.get_terminal_size((80, 24)).columns)
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip(" ")))
        is_kept = len(line) <= columns or _WHOLE.match(line)
        lines += [line] if is_kept else wrap(
            line.strip(), columns, initial_indent=indent, subsequent_indent=f"{indent}    ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return "\n".join(lines)


def has_written() -> bool:
    """Whether a part of the output, perhaps all of it, was written to standard output."""
    return isinstance(sys.stdout, _Survivor) and sys.stdout.has_written


def rewrite_line(text: str, *, is_last: bool) -> None:
    """Replace the previous text by another one, on standard error if that is a terminal."""
    if is_terminal(sys.stderr):
        echo(f"\r\033[K{visible(text)}", err=True, nl=is_last, is_exact=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether the stream is a terminal."""
    return stream is not None and stream.isatty()


def _silence(stream: TextIO) -> None:
    """Discard all further output."""
    # The descriptor and not the stream: buffered data can then be written, and does not fail
    # again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
