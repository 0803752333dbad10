"""Detection of implementation calls in this process that do not return: reported as failures.

A timer interrupts the process now and then and looks for the method of a binding that is running.  One that
is found at more ticks than its binding's `timeout_s` allows is ended by `Hang`, raised where it is.  Ticks
count, and not time that passed: a process that was stopped has none.

A call into C that does not return is not interrupted; an implementation that may do that needs its own
process (`adapter`).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from specchk.conform.contract.binding import Binding
from specchk.conform.contract.failures import Hang, exits_raised

TICK_S = 1.0


@contextmanager
def contained(report: Callable[[str], object] = lambda _: None) -> Iterator[None]:
    """Turn exits (`exits_raised`) and hangs of an implementation in this process into failures."""
    with exits_raised(report), _hangs_raised():
        yield


@contextmanager
def _hangs_raised() -> Iterator[None]:
    # A process has one such timer: of an outer `contained`, or of another user such as pytest-timeout.
    # Forked processes inherit the handler, but no timer.
    handler = signal.getsignal(signal.SIGALRM)
    is_free = (
        threading.current_thread() is threading.main_thread()
        and (handler is signal.SIG_DFL or isinstance(handler, _Watch))
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )
    if not is_free:
        yield
        return
    signal.signal(signal.SIGALRM, _Watch())
    signal.setitimer(signal.ITIMER_REAL, TICK_S, TICK_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # discards a tick that waits for a thread
        signal.signal(signal.SIGALRM, handler)


class _Watch:
    """The handler of the timer: counts the ticks during which the same call runs."""

    def __init__(self) -> None:
        self._call: FrameType | None = None
        self._ticks = 0

    def __call__(self, _: int, frame: FrameType | None) -> None:
        call = _call_of_binding(frame)
        if call is None or call is not self._call:
            self._call, self._ticks = call, 0
            return
        self._ticks += 1
        limit = _owner(call).timeout_s
        # Counting continues: an exception caught by the implementation is raised again.
        if frame is not None and self._ticks * TICK_S >= limit:
            place = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            raise Hang(f"no return after {limit:g} s; it is in `{frame.f_code.co_name}` ({place})")


def _call_of_binding(frame: FrameType | None) -> FrameType | None:
    """The outermost running method of a user's binding; None in a debugger, where people pause."""
    found = None
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name in ("bdb", "pdb"):
            return None
        if not name.startswith("specchk.") and isinstance(_owner(frame), Binding):
            found = frame
        frame = frame.f_back
    # One that drives a process has a limit for each request.
    return None if found is None or _owner(found).runs_elsewhere else found


def _owner(frame: FrameType) -> Any:
    """The first argument of a function, such as `self`."""
    code = frame.f_code
    return frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
