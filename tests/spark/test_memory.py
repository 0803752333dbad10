"""A search that is larger than any worker: the system refuses a worker more than its share of the whole.

`ulimit -v` bounds the address space of every Python worker, mapped tables and all, which is stricter
than a bound of what is resident.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark.small import SPEC
from specchk.spark.reasons import NO_JAVA, has_java

pytestmark = pytest.mark.slow

THREE = ("--no-symmetry", "--set", "Replicas=3", "--set", "MaxRecords=3")  # 1 694 476 states of 16 bytes
# Kilobytes beyond a worker that is idle.  In eight partitions one partition's table has 37 MB while it grows,
# buckets have 8, Spark's archives some 30 (`spark.worker.archives`), and there are the block, the rows and
# what PySpark loads with a first task.  In one partition the table alone has more.
ROOM = 84 << 10
LEAN = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}  # what they reserve differs by machine
IDLE = """\
import re
import pyspark.daemon, pyspark.worker
import specchk.spark.tasks
try: import numpy  # which PySpark takes where it is installed
except ImportError: pass
print(re.search(r"VmPeak:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
"""


def idle_kilobytes() -> int:
    """The address space of a worker that has its modules and nothing to do."""
    line = [sys.executable, "-c", IDLE]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env={**os.environ, **LEAN})
    return int(done.stdout)


def searched(folder: Path, partitions: int) -> tuple[int, dict[str, Any]]:
    """Exit code and answer of a search by workers limited to `ROOM`."""
    limited = folder / "python"
    kilobytes = idle_kilobytes() + ROOM
    limited.write_text(f'#!/bin/sh\nulimit -v {kilobytes}\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    limited.chmod(0o755)
    line = [
        sys.executable, "-m", "specchk", "run", str(SPEC / "kafka" / "kip320.spec"), *THREE,
        "--engine", "spark", "--handover", "100000", "--partitions", str(partitions), "--json",
        "--conf", "spark.ui.enabled=false",
    ]  # fmt: skip
    env = {**os.environ, **LEAN, "PYSPARK_PYTHON": str(limited)}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=env)
    assert re.match(r"\s*\{", done.stdout), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, answer


def test_a_search_larger_than_a_worker_finishes(tmp_path: Path) -> None:
    """In eight partitions all states are found, though no worker could map the tables of all."""
    assert has_java(), NO_JAVA
    code, answer = searched(tmp_path, 8)
    assert code == 0, answer.get("reason", answer)
    assert answer["states_distinct"] == 1_694_476


def test_one_partition_does_not_fit_the_same_workers(tmp_path: Path) -> None:
    """The limit is effective: with all states in one table the search ends, and reports the reason."""
    assert has_java(), NO_JAVA
    code, answer = searched(tmp_path, 1)
    assert code == 21, answer
    assert "Spark failed at level" in json.dumps(answer)
