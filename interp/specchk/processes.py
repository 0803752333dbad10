"""Processes: how many can run in parallel, and how they end with the process that created them.

A command that is stopped as a whole, by a build that is cancelled or for want of memory, says nothing to its
processes; they would go on with work that nobody reads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


def cores() -> int:
    """The number of processes or threads that can run in parallel: the cores available to this process."""
    # A container or `taskset` may have fewer than the machine; not every system has the call.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """A context in which Ctrl-C waits, also in a process that is forked there.

    A fork calls functions of modules in the new process, and Python prints what they raise, and goes on.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def unblock_interrupts() -> None:
    """Have Ctrl-C reach this process, which was forked while it was blocked."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def end_with(parent: int) -> None:
    """Have this process killed when its parent ends, for any reason; on Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
        # The parent may have ended before the call, and then no signal comes.
        if os.getppid() != parent:
            os._exit(1)
