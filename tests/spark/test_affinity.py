"""On several executors tables are where their partitions are, and there is one of each.

Counted, not timed: an executor has a directory of its own, also where all are on one machine.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hang import HANG_S
from spark.cluster import children, command, standalone, wait_for
from spark.small import program
from specchk.native import engine as native
from specchk.spark.reasons import NO_JAVA, has_java

SEARCH = """\
import json, sys
from spark.cluster import wait_for
from spark.small import program
from specchk.spark import engine, homes
from specchk.spark.session import session

def nobody(context):
    raise AttributeError("_jsc")

master, ledger, file, partitions, many, names = sys.argv[1:7]
settings = (
    ("spark.executor.memory", "512m"), ("spark.driver.memory", "512m"), ("spark.ui.enabled", "false"),
    ("spark.driver.host", "127.0.0.1"),
)
options = engine.SparkOptions(symmetry=False, handover=1, partitions=int(partitions), ledger=ledger)
notes = []
with session(master, dict(settings)) as context:
    # Partitions move to an executor that joins later, as they should.
    wait_for(lambda: len(homes.executors(context)) == int(many))
    if names == "without names":
        homes.executors = nobody
    found = engine.search(program(file, "small"), options, lambda progress: notes.append(progress.note))
print(json.dumps([found.statistics.levels, found.warnings, [note for note in notes if note]]))
"""
FILE = "kafka/kip320.spec"


class Searching:
    """A search on executors of this machine, in a process of its own."""

    def __init__(
        self, master: str, executors: int, ledger: Path, partitions: int = 6, names: str = "with names"
    ) -> None:  # fmt: skip
        tests = Path(__file__).resolve().parents[1]
        env = {
            **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": f"{tests}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        }  # fmt: skip
        numbers = (str(partitions), str(executors))
        line = [sys.executable, "-c", SEARCH, master, str(ledger), FILE, *numbers, names]
        self.ledger = ledger
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)

    def executors(self) -> list[int]:
        """The processes of the executors."""
        return [pid for pid in below(self.process.pid) if "CoarseGrainedExecutorBackend" in command(pid)]

    def answer(self) -> tuple[list[int], list[str], str]:
        """Sizes of levels, warnings, and the last note."""
        out, errors = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode == 0, errors.decode()
        levels, warnings, notes = json.loads(out)
        return levels, warnings, notes[-1]


def below(pid: int) -> list[int]:
    """The processes that a process started, and their children."""
    try:
        own = children(pid)
    except OSError:
        return []
    return [*own, *(found for child in own for found in below(child))]


def counted(note: str) -> tuple[int, int, float]:
    """The rebuilt slices, all slices, and the number of tables for each."""
    found: Any = re.search(r"(\d+) of (\d+) slices with a table rebuilt, tables ([\d.]+)x", note)
    return int(found[1]), int(found[2]), float(found[3])


def levels() -> list[int]:
    """The sizes of levels, from the native engine."""
    return list(native.search(program(FILE, "small"), native.NativeOptions(symmetry=False)).statistics.levels)


@contextmanager
def master_of(kind: str, executors: int, folder: Path) -> Iterator[str]:
    """A master whose applications have this many executors, with a core each."""
    if kind == "standalone":
        with standalone(folder, executors) as cluster:
            yield cluster.master
    else:
        yield f"local-cluster[{executors},1,512]"


@pytest.mark.slow
@pytest.mark.parametrize("executors", [2, 4, 8])
@pytest.mark.parametrize("kind", ["local-cluster", "standalone"])
def test_tables_stay_where_they_are(kind: str, executors: int, tmp_path: Path) -> None:
    """Without failures no table is built twice, so that the memory for them grows with executors."""
    assert has_java(), NO_JAVA
    with master_of(kind, executors, tmp_path) as master:
        sizes, _, note = Searching(master, executors, tmp_path / "ledger", partitions=16).answer()
    rebuilt, slices, tables = counted(note)
    assert sizes == levels()
    assert slices == 16 * len(sizes)
    assert rebuilt <= slices * 0.05
    assert tables <= 1.2


@pytest.mark.slow
def test_a_lost_executor_s_tables_are_made_again_elsewhere(tmp_path: Path) -> None:
    """Only once: the answer is the same, and each moved partition has a home again."""
    assert has_java(), NO_JAVA
    searching = Searching("local-cluster[2,1,512]", 2, tmp_path / "ledger")
    wait_for(lambda: any((tmp_path / "ledger").glob("run-*/00002/*")))
    os.kill(searching.executors()[0], signal.SIGKILL)
    sizes, _, note = searching.answer()
    rebuilt, slices, tables = counted(note)
    assert sizes == levels()
    # Three partitions lost their home, and may have it again in the one that took its place.
    assert 3 <= rebuilt <= slices / 2
    assert tables <= 2


@pytest.mark.slow
def test_without_names_of_executors_the_search_is_the_same(tmp_path: Path) -> None:
    """Spark places the tasks, tables are rebuilt where they land, and a note states it."""
    assert has_java(), NO_JAVA
    searching = Searching("local-cluster[2,1,512]", 2, tmp_path / "ledger", names="without names")
    sizes, warnings, _ = searching.answer()
    assert sizes == levels()
    assert sum("does not name its executors" in warning for warning in warnings) == 1
