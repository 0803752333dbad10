"""Budgets: the resources that a search may use before it must end as inconclusive."""

from __future__ import annotations

import time
from pathlib import Path
from resource import RUSAGE_SELF, getpagesize, getrusage

from msgspec import Struct

from specchk.search.extrapolate import ExpectedSize

MEMORY_EVERY_S = 0.05


class Budget(Struct, frozen=True):
    """Limits of a run; None means unlimited. Memory is the resident set of the process, in bytes."""

    max_states: int | None = None
    max_seconds: float | None = None
    max_memory_bytes: int | None = None


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
        self._memory_asked = -MEMORY_EVERY_S

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.started

    def exceeded(self, states: int) -> str | None:
        """The limit that is reached, in the words of the verdict, or None."""
        budget = self.budget
        # In the order of their cost, since this is checked for every state.
        if budget.max_states is not None and states >= budget.max_states:
            return f"the limit of {budget.max_states} states (--max-states) was reached"
        if budget.max_seconds is not None and self.seconds >= budget.max_seconds:
            return f"the limit of {budget.max_seconds:g} s (--max-seconds) was reached"
        if budget.max_memory_bytes is not None and self._too_large(budget.max_memory_bytes):
            return f"the limit of {budget.max_memory_bytes} bytes of memory (--max-memory) was reached"
        return None

    def _too_large(self, limit: int) -> bool:
        """Whether memory is over the limit; measured only now and then, because measuring is slow."""
        if self.seconds - self._memory_asked < MEMORY_EVERY_S:
            return False
        self._memory_asked = self.seconds
        return resident_bytes() >= limit


def resident_bytes() -> int:
    """The resident memory of the process; its peak where the system does not report the current size."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return getrusage(RUSAGE_SELF).ru_maxrss * 1024
    return pages * getpagesize()
