"""The end of a command as an exit code: the one place that catches everything.

A command ends with its own exit code; a usage error is 2, and an unexpected exception is an internal
error (70) with details to report.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path
from typing import NoReturn

import click

from specchk.cli import output, starting
from specchk.processes import Starved, own_needs

NO_MEMORY = "out of memory before there was a verdict"


def exit_code(command: Callable[[], object]) -> int:
    """The exit code of a command that returns; the others raise `SystemExit`, which is passed on."""
    try:
        with own_needs():
            result = command()
    except (KeyboardInterrupt, click.Abort):
        output.echo("interrupted", err=True)
        return _ended(starting.INTERRUPTED, 21)
    except click.ClickException as error:
        shown = StringIO()  # click itself does not fit a terminal
        error.show(shown)
        output.echo(shown.getvalue(), nl=False, err=True)
        return 2
    # In addition to a search, whose verdict states it: while a spec is compiled, or a report is written.
    except MemoryError as error:
        reason = str(error) if isinstance(error, Starved) else NO_MEMORY
        output.echo(f"inconclusive: {reason}", err=True)
        return _ended(reason, 20)
    # Not `BaseException`: commands leave with `SystemExit`.
    except Exception as error:
        if isinstance(error, FileNotFoundError) and not _has_directory():
            output.echo("Error: the current directory was removed: change to another one", err=True)
            return 2
        output.echo("specchk: internal error; this is a bug of specchk, not of your spec.", err=True)
        output.echo("Please report it with the command, the spec and these lines:\n", err=True)
        output.echo(traceback.format_exc(), err=True)
        return 70
    return result if isinstance(result, int) else 0


def _has_directory() -> bool:
    """Whether this process is in a directory; another process may have removed it."""
    try:
        return Path.cwd().is_dir()
    except FileNotFoundError:
        return False


def leave_at_limit(limit: str) -> NoReturn:
    """Exit at a limit that was reached where there is nothing to report, as while a spec is compiled."""
    output.echo(f"inconclusive: {limit}", err=True)
    sys.exit(_ended(limit, 20))


def end_at_limit(limit: str) -> NoReturn:
    """As `leave_at_limit`, from another thread than the one that works and does not end.

    What was printed so far may be a part of a line; files that were begun stay as they are.
    """
    lead = "\n" if output.is_terminal(sys.stderr) else ""  # after a line of progress
    with suppress(OSError):
        os.write(2, f"{lead}inconclusive: {limit}\n".encode())
        if not output.has_written():
            os.write(1, starting.ended(limit, 20).encode())
    os._exit(20)


def _ended(reason: str, code: int) -> int:
    """The exit code of a command that ends without a verdict; its JSON is printed unless a report was."""
    text = starting.ended(reason, code)
    if text and not output.has_written():
        output.echo(text, nl=False)
    return code
