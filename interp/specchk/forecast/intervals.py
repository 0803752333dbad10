"""A forecast: states, memory and time of a search, as intervals, and where to run it.

Memory is what the engines lay out: a state's words, and a table of 8-byte slots that doubles when it
is `LOAD` full.  Time is the sample's rate over the interval of states; the upper end allows for
states that cost twice as much once tables have outgrown the caches.
"""

from __future__ import annotations

import math
from pathlib import Path

from msgspec import Struct

# Of `native.store`, which is above this room and cannot be imported.
LOAD = 0.625
SLOWER = 2.0
SHARE_OF_FREE = 0.8
PARTITION_BYTES = 1 << 30

Interval = tuple[float, float]


class Forecast(Struct, frozen=True):
    """A forecast of a search: 90 % of such intervals contain the result.

    `sampled` states in `levels` whole levels were seen, and `models` smaller models searched to their
    end.  `is_exact`: the sample was the whole search.  `free_bytes`: memory that this machine has left.
    """

    low: int
    likely: int
    high: int
    sampled: int
    levels: int
    models: int
    state_bytes: int
    rate: float
    free_bytes: int
    is_exact: bool = False

    def holds(self, states: int) -> bool:
        """Whether this many states are within the interval."""
        return self.low <= states <= self.high

    @property
    def memory(self) -> Interval:
        """The memory of a search on one machine, in bytes."""
        return table_bytes(self.low, self.state_bytes), table_bytes(self.high, self.state_bytes)

    @property
    def seconds(self) -> Interval:
        """The time of a search on one machine, in seconds."""
        return self.low / self.rate, self.high / self.rate * (1.0 if self.is_exact else SLOWER)

    @property
    def fits(self) -> bool:
        """Whether this machine has memory for the upper end of the interval."""
        return self.memory[1] <= SHARE_OF_FREE * self.free_bytes

    @property
    def partitions(self) -> int:
        """The number of partitions that keeps each one's table below a gigabyte, at the upper end."""
        return max(2, math.ceil(self.memory[1] / PARTITION_BYTES))


def table_bytes(states: int, state_bytes: int) -> int:
    """The memory for this many states and the table over them."""
    # As `native.store`: 2^14 at least, doubled when `LOAD` full.
    slots = 1 << max(14, math.ceil(math.log2(max(1.0, states / LOAD))))
    return states * state_bytes + 8 * slots


def free_bytes(system: Path = Path("/")) -> int:
    """The memory available without displacing other data; 0 if the system does not report it.

    In a container with a limit of its own, no more than that leaves.
    """
    try:
        lines = (system / "proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    found = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    free = 1024 * int(next(found, "0"))
    for folder, *names in _GROUPS:
        left = _left(system / "sys/fs/cgroup" / folder, *names)
        if left is not None:
            free = min(free, left)
    return free


_GROUPS = (  # of Linux's control groups, versions 2 and 1: limit, use, files in memory, those only there
    ("", "memory.max", "memory.current", "file", "shmem"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem"),
)


def _left(group: Path, limit: str, used: str, files: str, only: str) -> int | None:
    """The memory left by a control group's limit; None if there is no limit."""
    try:
        most, now = (group / limit).read_text(encoding="ascii"), (group / used).read_text(encoding="ascii")
        text = (group / "memory.stat").read_text(encoding="ascii")
        parts = {name: int(value) for name, value in (line.split() for line in text.splitlines())}
        # Pages of files count as used, but are given back when memory is wanted; those that are memory's
        # own (`shmem`) are not.
        return max(0, int(most) - int(now) + parts.get(files, 0) - parts.get(only, 0))
    except (OSError, ValueError):  # no such group, or `max`
        return None
