"""The memory that a machine, or a container on it, has left."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.spark.states.memory import free_bytes


def system(folder: Path, **files: str) -> Path:
    """A system with 8 GB that are free, and files of its control group; `/` in names is `__`."""
    for name, text in {"proc__meminfo": "MemTotal: 9 kB\nMemAvailable: 8388608 kB\n", **files}.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
    return folder


GB = 1 << 30


@pytest.mark.parametrize(
    ("limit", "free"), [("max", 8 * GB), (str(4 * GB), 3 * GB), (str(64 * GB), 8 * GB), (str(GB // 2), 0)]
)
def test_a_container_s_limit_counts(tmp_path: Path, limit: str, free: int) -> None:
    """Minus the used part, except for files that the system only caches."""
    group = {
        "memory.max": limit,
        "memory.current": str(2 * GB),
        "memory.stat": f"anon 1\nfile {GB + 7}\nshmem 7",
    }
    files = {f"sys__fs__cgroup__{name}": f"{text}\n" for name, text in group.items()}
    assert free_bytes(system(tmp_path, **files)) == free


def test_the_older_kind_of_limit_counts_too(tmp_path: Path) -> None:
    """Control groups of version 1."""
    group = {"limit_in_bytes": str(4 * GB), "usage_in_bytes": str(GB), "stat": "total_cache 0\n"}
    files = {f"sys__fs__cgroup__memory__memory.{name}": text for name, text in group.items()}
    assert free_bytes(system(tmp_path, **files)) == 3 * GB


def test_without_limits_the_machine_s_own_memory_counts(tmp_path: Path) -> None:
    """And no limit is reported if the system does not provide one."""
    assert free_bytes(system(tmp_path)) == 8 * GB
    assert free_bytes(tmp_path / "nowhere") == 0
