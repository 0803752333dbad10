"""Ctrl-C before a command begins and after it has ended: the process ends at once, without a traceback.

    begin()    while modules are imported: one line, and exit code 21
    command()  `KeyboardInterrupt`, Python's own answer, from which searches and `ends` make a report
    leave()    while the interpreter ends: the signal ends the process

An exception would not do in the first: raised in a callback of Python's import locks, it is printed and lost.
Nothing has begun there that needs an orderly end.  In the last, no code would catch it.

With `--json`, standard output has an object also where there is no report (`ended`).
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

INTERRUPTED = "it was interrupted"


def begin() -> None:
    """Have Ctrl-C print a line and exit, unless it is ignored, as in the background of a script."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def command() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt`, if `begin` changed that."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave() -> None:
    """Have Ctrl-C end the process, unless it is ignored."""
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def ended(reason: str, code: int) -> str:
    """The JSON of a command that ended without a report; empty without `--json`."""
    # Without options that are parsed, and without the module `json`: it may not be there yet.
    if "--json" not in sys.argv:
        return ""
    members = ('"schema": "specchk.ended/1"', '"verdict": "inconclusive"', f'"reason": "{reason}"')
    return "{\n  " + ",\n  ".join([*members, f'"exit_code": {code}']) + "\n}\n"


def _end(_signal: int, _frame: FrameType | None) -> None:
    try:
        os.write(2, b"\ninterrupted\n")
        os.write(1, ended(INTERRUPTED, 21).encode())
    finally:
        os._exit(21)
