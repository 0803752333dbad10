"""A watch over the limits of a command, which ends its work wherever that is.

Engines look at their budget as often as they can (`Meter.exceeded`), and end with all that they know.  An
evaluation, a query to a solver or a compilation may not look for minutes, so that a watch does, too:

    at the limit      work that looks ends by itself
    TICK_S later      `LimitReached` is raised in the main thread wherever it is, as after Ctrl-C
    then              solvers are interrupted, after which that is raised before their answer is read
    GRACE ticks later the process ends (`end`): the work is in code that nothing interrupts

A thread looks at the limits, and sends the main thread a signal when one is reached.  The handler of the
signal only raises: a handler that imports a module, as reading a text does, breaks an import that it
interrupts.  Worker processes end with the work, or with the process.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

TICK_S = 0.1
GRACE = 5  # ticks, which take longer on a machine that is busy

Reason = Callable[
    [float], str | None
]  # after some seconds: the limit that is reached, in the verdict's words


class LimitReached(KeyboardInterrupt):
    """The limit that ends the work, raised where that is; its text is the limit, in the words of the verdict.

    A kind of `KeyboardInterrupt`, so that all that is orderly after Ctrl-C is orderly here.
    """


class LimitWatch:
    """The watch over one piece of work, from `began` (of `time.monotonic`) on; used as a context.

    Only the first watch of the main thread raises exceptions there: a signal has one handler.  A copy in
    another process is None.
    """

    def __init__(self, reason: Reason, end: Callable[[str], object], began: float) -> None:
        self.began = began
        self._reason, self._end = reason, end
        self._reached = ""  # the limit that is reached
        self._interrupts: list[Callable[[], object]] = []
        # By interrupts; and what ctypes makes of any exception while it converts an argument.
        self._caused: tuple[type[Exception], ...] = (ctypes.ArgumentError,)
        self._is_seen = False  # the work ends, and is not disturbed
        self._resting = 0  # contexts of `resting` that are open
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="limits", daemon=True)
        self._main = threading.main_thread().ident or 0
        self._before: Any = None
        self._hook = sys.unraisablehook

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def __enter__(self) -> LimitWatch:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL:
            self._before = signal.signal(signal.SIGALRM, self._tick)
            sys.unraisablehook = self._lost
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self._is_seen = True
        self._over.set()
        self._thread.join()
        if self._before is not None:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # discards a signal that waits
            signal.signal(signal.SIGALRM, self._before)
            sys.unraisablehook = self._hook
        if isinstance(error, self._caused) and (reason := self._reason(self.seconds)) is not None:
            raise LimitReached(reason) from error

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self.began

    def also(self, interrupt: Callable[[], object], *caused: type[Exception]) -> None:
        """Have something interrupted at the limit, now and then, from another thread.

        An exception that is `caused` by that is raised as the limit at the end of the context.
        """
        self._interrupts.append(interrupt)
        self._caused += caused

    def see(self) -> None:
        """Note that the work has seen the limit, and ends by itself."""
        self._is_seen = True

    @contextmanager
    def resting(self) -> Iterator[None]:
        """A context in which the limit waits: a result is written.  It waits for good if it was seen."""
        self._resting += 1
        try:
            yield
        finally:
            if not self._is_seen:
                self._resting -= 1

    def _tick(self, _: int, _frame: FrameType | None) -> None:
        """Raise the limit in the main thread, once."""
        if not (self._is_seen or self._resting):
            self._is_seen = True
            raise LimitReached(self._reached)

    def _lost(self, lost: sys.UnraisableHookArgs) -> None:
        """Raise the limit again at the next tick: finalizers and callbacks pass no exception on."""
        if self._reached and isinstance(lost.exc_value, (LimitReached, *self._caused)):
            self._is_seen = False
        else:
            self._hook(lost)

    def _run(self) -> None:
        """Raise the limit, interrupt solvers, and end the process; beside code that is not Python."""
        ticks = 0  # since the limit was found to be reached
        while not self._over.wait(TICK_S):
            reason = None if self._resting else self._reason(self.seconds)
            if reason is None:
                ticks = 0
                continue
            self._reached = reason
            if ticks:  # the first is for work that looks
                if self._before is not None and not self._is_seen:
                    signal.pthread_kill(self._main, signal.SIGALRM)
                for interrupt in self._interrupts:
                    interrupt()
            ticks += 1
            if ticks > GRACE and not self._over.is_set():
                self._end(reason)
