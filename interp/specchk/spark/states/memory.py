"""The memory that a machine, or a container on it, has left."""

from __future__ import annotations

from pathlib import Path


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
