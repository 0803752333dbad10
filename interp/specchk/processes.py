"""Processes: how many can run in parallel, and how they end with the process that created them.

A command that is stopped as a whole, by a build that is cancelled or for want of memory, says nothing to its
processes; they would go on with work that nobody reads.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
INTERRUPTS = frozenset((signal.SIGINT, signal.SIGALRM))
LEAST_SPACE = 512 << 20  # bytes; the default engine needs half of it, two symbolic processes 320 MB
SAFE_PATH = "PYTHONSAFEPATH"  # as the option -P


class Starved(MemoryError):
    """The system gave no descriptor, process or memory: to specchk, not to the code under test."""


def require_space() -> None:
    """Raise `Starved` where LLVM and Z3 have too little address space; they fail, or end the process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_SPACE:
        raise Starved(
            f"LLVM and Z3 need {LEAST_SPACE >> 20} MB of address space, and have {limit >> 20} (`ulimit -v`)"
        )


@contextmanager
def own_needs() -> Iterator[None]:
    """A context whose calls to the system are specchk's own; raises `Starved` where these lack something."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM):
            raise Starved(
                f"{error.strerror} before there was a verdict (`ulimit -a` lists limits)"
            ) from error
        raise


def cores() -> int:
    """The number of processes or threads that can run in parallel: the cores available to this process."""
    # A container or `taskset` may have fewer than the machine; not every system has the call.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def safe_paths() -> Iterator[None]:
    """A context in which a new Python does not import from the current directory.

    Given a program as text (`-c`), it would: there may be files named `signal.py` or `threading.py`.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE_PATH]
        else:
            os.environ[SAFE_PATH] = before


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """A context in which Ctrl-C and limits (`search.watch`) wait, also in a process that is forked there.

    A fork calls functions of modules, and Python prints what they raise, and goes on.
    """
    waiting: list[int] = []
    handlers: dict[signal.Signals, Any] = {}
    # Blocked for this thread and its processes.  Another thread, such as one of Z3, may still get a signal,
    # which Python handles in the main thread.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
    if threading.current_thread() is threading.main_thread():
        given = [(number, signal.getsignal(number)) for number in INTERRUPTS]
        handlers = {number: handler for number, handler in given if callable(handler)}
        for number in handlers:
            signal.signal(number, lambda met, _: waiting.append(met))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for met in waiting:
            signal.raise_signal(met)


def unblock_interrupts() -> None:
    """Have signals reach this process, which was forked while they were blocked."""
    # The handlers are those that make signals wait; a fork has no timer, and may begin one of its own.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)


def can_fork() -> bool:
    """Whether this process can be forked: a lock that another thread holds would never be released there."""
    return hasattr(os, "fork") and threading.active_count() == 1


def end_with(parent: int) -> None:
    """Have this process killed when its parent ends, for any reason; on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        # The parent may have ended before the call, and then no signal comes.
        if os.getppid() != parent:
            os._exit(1)
