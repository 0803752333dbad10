"""Writing to the standard streams, whoever is or is not listening.

A reader that goes away (`| head -1`) changes neither the exit code nor what else is done; a stream
that was closed before the program began gets nothing.  Characters that a terminal's encoding lacks
are written as escapes.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click


def prepare() -> None:
    """Make both streams accept every character."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Write a text and flush; a `ClickException` where the device refuses it."""
    try:
        click.echo(text, err=err, nl=nl)
    except BrokenPipeError:
        _silence(sys.stderr if err else sys.stdout)
    except OSError as error:
        # Before the reason is shown, which may go to the same stream.
        _silence(sys.stderr if err else sys.stdout)
        raise click.ClickException(f"cannot write the output: {error.strerror or error}") from None


def flush() -> None:
    """Flush both streams, so that the interpreter finds nothing left to write at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            # Where Python's own flush fails at its end, the exit code becomes 120.
            if stream is not None:
                stream.flush()
        except OSError:
            _silence(stream)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether someone watches the stream."""
    return stream is not None and stream.isatty()


def _silence(stream: TextIO) -> None:
    """Let what is still written go nowhere."""
    # The descriptor and not the stream: what is in the buffer already can then be written, and does not fail
    # once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
