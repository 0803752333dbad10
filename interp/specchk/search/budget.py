"""Budgets: the resources that a search may use before it must end as inconclusive."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from resource import RUSAGE_SELF, getpagesize, getrusage

from msgspec import Struct
from msgspec.structs import replace

from specchk.search.extrapolate import ExpectedSize
from specchk.search.watch import LimitReached, LimitWatch

MEMORY_EVERY_S = 0.05


class Budget(Struct, frozen=True):
    """Limits of a run; None means unlimited.

    Memory is the resident set of the process and of its worker processes, in bytes.  Seconds count from the
    beginning of the run, or of the work that the run is a part of, if that has a `watch` (`watched`).
    """

    max_states: int | None = None
    max_seconds: float | None = None
    max_memory_bytes: int | None = None
    watch: LimitWatch | None = None


@contextmanager
def watched(budget: Budget, end: Callable[[str], object], began: float | None = None) -> Iterator[Budget]:
    """The budget of some work, of which time and memory are watched while the context is open (`LimitWatch`).

    `end`, given the limit, ends the process, in another thread.  The work began at `began`, of
    `time.monotonic`; by default now.
    """
    seconds, memory = budget.max_seconds, ResidentMemory()

    def reason(passed: float) -> str | None:
        if seconds is not None and passed >= seconds:
            return time_limit(seconds)
        if budget.max_memory_bytes is not None and memory.size() >= budget.max_memory_bytes:
            return memory_limit(budget.max_memory_bytes)
        return None

    # In a browser there are neither threads nor timers: only work that looks ends.
    if (seconds is None and budget.max_memory_bytes is None) or sys.platform == "emscripten":
        yield budget
        return
    began = time.monotonic() if began is None else began
    with LimitWatch(reason, end, began) as watch:
        yield replace(budget, watch=watch)


def time_limit(seconds: float) -> str:
    """The limit of time, in the words of the verdict."""
    return f"the limit of {seconds:g} s (--max-seconds) was reached"


def memory_limit(size: int) -> str:
    """The limit of memory, in the words of the verdict."""
    return f"the limit of {size} bytes of memory (--max-memory) was reached"


class Progress(Struct, frozen=True):
    """The progress of a search; `frontier` counts unexpanded states, `note` is an addition of the engine.

    `expected`: how many states the whole search may have, where its levels tell.
    """

    states: int
    generated: int
    depth: int
    frontier: int
    seconds: float
    memory_bytes: int
    note: str = ""
    expected: ExpectedSize | None = None


class Meter:
    """Measures one run against its budget; cheap enough to be checked for every state."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.started = time.monotonic()
        self._memory, self._memory_asked = ResidentMemory(), -MEMORY_EVERY_S

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def within(self, part: Budget) -> Budget:
        """The budget of a part of the run, which ends with the time of the run at the latest."""
        if self.budget.max_seconds is None:
            return part
        left = max(0.0, self.budget.max_seconds - self._counted())
        return replace(part, max_seconds=left if part.max_seconds is None else min(left, part.max_seconds))

    def exceeded(self, states: int) -> str | None:
        """The limit that is reached, in the words of the verdict, or None."""
        budget = self.budget
        reason = None
        # In the order of their cost, since this is checked for every state.
        if budget.max_states is not None and states >= budget.max_states:
            reason = f"the limit of {budget.max_states} states (--max-states) was reached"
        elif budget.max_seconds is not None and self._counted() >= budget.max_seconds:
            reason = time_limit(budget.max_seconds)
        elif budget.max_memory_bytes is not None and self._too_large(budget.max_memory_bytes):
            reason = memory_limit(budget.max_memory_bytes)
        if reason is not None and budget.watch is not None:
            budget.watch.see()
        return reason

    def raise_exceeded(self) -> None:
        """Raise the limit of time or memory, if it is reached, where there is nothing to stop."""
        reason = self.exceeded(0)
        if reason is not None:
            raise LimitReached(reason)

    def _counted(self) -> float:
        """The seconds that count against the budget."""
        watch = self.budget.watch
        return self.seconds if watch is None else max(self.seconds, watch.seconds)

    def _too_large(self, limit: int) -> bool:
        """Whether memory is over the limit; measured only now and then, because measuring is slow."""
        if self.seconds - self._memory_asked < MEMORY_EVERY_S:
            return False
        self._memory_asked = self.seconds
        return self._memory.size() >= limit


class ResidentMemory:
    """The resident memory of this process and of those that it began.

    A process that was forked shares its first pages with this one, so that only what it has more than when
    it was first seen is added.
    """

    def __init__(self) -> None:
        self._first: dict[str, int] = {}

    def size(self) -> int:
        """The memory now, in bytes."""
        total = resident_bytes()
        for child in _children():
            with suppress(OSError, ValueError, IndexError):  # it has ended, or is about to
                size = _resident(child)
                total += max(0, size - self._first.setdefault(child, size))
        return total


def resident_bytes() -> int:
    """The resident memory of this process; its peak where the system does not report the current size."""
    try:
        return _resident("self")
    except (OSError, ValueError, IndexError):
        return getrusage(RUSAGE_SELF).ru_maxrss * 1024


def _resident(process: str) -> int:
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * getpagesize()


def _children() -> Iterator[str]:
    """The numbers of the processes that this one began; none where the system does not list them."""
    with suppress(OSError):
        for thread in Path("/proc/self/task").iterdir():
            yield from (thread / "children").read_text(encoding="ascii").split()
