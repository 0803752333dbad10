"""Failures of an implementation: exceptions of broken code; processes that end, hang or break the protocol.

Not here: turning them into divergences (`replay`), driving processes (`adapter`).
"""

from __future__ import annotations

import errno
import os
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import NoReturn

# The exceptions of broken code, whatever their origin.
FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, OSError, RuntimeError,
            TypeError, ValueError)  # fmt: skip
DIED, HUNG, GARBLED, UNREPEATABLE = "died", "hung", "garbled", "unrepeatable"
EXITED = 13  # the exit code of a process that a thread of an implementation ends: that of a divergence
LOST = (DIED, HUNG, GARBLED)  # kinds of a failure after which the process must be started again


class Hang(BaseException):
    """Raised in a call that does not return; not an `Exception`, which the implementation might catch."""


# What may leave a binding's method: see `is_implementations`.  `sys.exit` in an implementation would end
# specchk, and with exit code 0.
LEAVING = (Exception, SystemExit, Hang)


@contextmanager
def exits_raised(report: Callable[[str], object] = lambda _: None) -> Iterator[None]:
    """Make `os._exit` in this process raise `SystemExit`, so that it is reported like `sys.exit`.

    It would end specchk at once, without output and with the implementation's exit code.  Not in processes
    forked from here, whose end is detected; nor for an exit from C, which needs a separate process.  From
    another thread it does end the process, after a `report` and with the exit code of a failure.
    """
    leave, here, thread = os._exit, os.getpid(), threading.get_ident()

    def raise_exit(status: int) -> NoReturn:
        if os.getpid() != here:
            leave(status)
        if threading.get_ident() != thread:
            # Raised there, it would end only that thread, without any report.
            try:
                report(f"os._exit({status}) was called in a thread, which ends the process")
            finally:
                leave(EXITED)
        raise SystemExit(status)

    os._exit = raise_exit
    try:
        yield
    finally:
        os._exit = leave


class ImplementationFailure(Exception):
    """The failure of an implementation's process, with the kind of divergence and the last output."""

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        self.reason = reason
        super().__init__(f"{kind}: {reason}")

    # Exceptions are pickled by their `args`, which is one text here.
    def __reduce__(self) -> tuple[type[ImplementationFailure], tuple[object, ...]]:
        return type(self), (self.kind, self.reason)


def is_implementations(error: BaseException) -> bool:
    """Whether an exception from a method of a binding is a failure of the implementation."""
    # An implementation has its own classes, which derive from `Exception` alone.  Ours are a binding's
    # reports, or faults of specchk; and memory and descriptors belong to the whole process.
    ours = type(error).__module__.startswith("specchk.") or isinstance(error, MemoryError)
    ours = ours or (isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM))
    return isinstance(error, ImplementationFailure | Hang) or not ours


def described(error: BaseException) -> tuple[str, str]:
    """The kind of divergence, and the reason, for a failure."""
    if isinstance(error, ImplementationFailure):
        return error.kind, error.reason
    if isinstance(error, Hang):
        return HUNG, str(error)
    return "raised", f"{type(error).__name__}: {error}{_raised_at(error)}"


def _raised_at(error: BaseException) -> str:
    """Where the user's code raised an exception, or called what did: `, in `add` (bound.py:8)`."""
    library = sysconfig.get_path("stdlib")
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        file = Path(frame.f_code.co_filename)
        if not (frame.f_globals.get("__name__", "").startswith("specchk.") or file.is_relative_to(library)):
            return f", in `{frame.f_code.co_name}` ({file.name}:{line})"
    return ""
