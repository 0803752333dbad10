"""Ctrl-C before a command begins and after it has ended: the process ends at once, without a traceback.

    begin()    while modules are imported: one line, and exit code 21
    command()  `KeyboardInterrupt`, Python's own answer, from which searches and `ends` make a report
    leave()    while the interpreter ends: the signal ends the process

An exception would not do in the first: raised in a callback of Python's import locks, it is printed and lost.
Nothing has begun there that needs an orderly end.  In the last, no code would catch it.
"""

from __future__ import annotations

import os
import signal
from types import FrameType


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


def _end(_signal: int, _frame: FrameType | None) -> None:
    try:
        os.write(2, b"\ninterrupted\n")
    finally:
        os._exit(21)
