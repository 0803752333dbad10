"""The memory of a Python worker, by counters of the kernel: 200 MB at most beside the tables of its task."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark.small import program
from specchk.meaning.initial import initial_states
from specchk.native.compiler import exchange_code, load_exchange
from specchk.native.exchange import Buckets, address_of, exchange_worker
from specchk.native.machine.frames import CHUNK
from specchk.native.machine.layout import layout_of
from specchk.native.machine.loaded import Loaded, ObjectCode
from specchk.native.machine.memory import Words
from specchk.native.machine.slots import LOAD
from specchk.spark.homes import MOST
from specchk.spark.parcel import Parcel, host_of
from specchk.spark.reasons import NO_JAVA, has_java
from specchk.spark.visited import FIRST_SLOTS

CHECKED = program("kafka/kip320.spec", "small")
LAYOUT = layout_of(CHECKED)
BOUND = 200 << 20
PARTITIONS = 1600
OWN_DAEMON, SPARKS_DAEMON = "specchk.spark.worker.daemon", "pyspark.daemon"
# What no task of a search needs: parsers, solvers, and file systems of other machines.
HEAVY = ("lark", "z3", "pyarrow", "duckdb", "click", "specchk.compile")
IMPORTED = f"""\
import sys
import pyspark.worker
import specchk.spark.tasks, specchk.spark.worker.token
print(*(name for name in {HEAVY} if name in sys.modules))
"""
SEARCH = """\
import json, os, re, sys, threading
from contextlib import suppress
from pathlib import Path
from spark.cluster import children, command
from spark.small import natively, program, said
from specchk.spark import engine
from specchk.spark.session import session

def below(pid):
    for child in children(pid):
        yield child
        yield from below(child)

def workers():
    daemons = [pid for pid in below(os.getpid()) if sys.argv[3] in command(pid).split("\\0")]
    return [pid for daemon in daemons for pid in children(daemon)]

def watch():  # Spark ends a worker that has nothing to do for a minute
    while not over.wait(0.2):
        for pid in workers():
            with suppress(OSError):
                peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path(f"/proc/{pid}/status").read_text())
                peaks[pid] = int(peak[1]) << 10 if peak else peaks.get(pid, 0)

peaks, over = {}, threading.Event()
watching = threading.Thread(target=watch)
model = program("kafka/kip320.spec", "small", Replicas="3", MaxRecords="2", LogSize="2", MaxLeaderEpoch="1")
options = engine.SparkOptions(
    symmetry=False, partitions=int(sys.argv[1]), handover=2000, scratch=sys.argv[2]
)
settings = {"spark.ui.enabled": "false", "spark.python.daemon.module": sys.argv[3]}
with session("local[2]", settings):
    watching.start()
    try:
        outcome = engine.search(model, options)
    finally:
        over.set()
        watching.join()
same = said(outcome) == said(natively(model, options))
print(json.dumps({"same": same, "peaks": list(peaks.values())}))
"""


def printed(*args: str) -> str:
    """The output of a new Python, which can import the tests' modules."""
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tables_of_a_lot(state_bytes: int) -> int:
    """The bytes of all tables that a task maps at once, which are of the first size."""
    return MOST * (8 * FIRST_SLOTS + (int(FIRST_SLOTS * LOAD) + 2 * CHUNK) * state_bytes)


@pytest.mark.slow
@pytest.mark.parametrize("daemon", [OWN_DAEMON, SPARKS_DAEMON])
def test_a_worker_has_200_mb_beside_its_tables(daemon: str, tmp_path: Path) -> None:
    """With 1,600 partitions, Python, libraries and mapped tables included, at any time: the system counts.

    On a cluster the daemon is that of Spark, whose workers begin with 50 MB.  A partition has 25 states; with
    more a task has a lot of one, and buckets that are full, whose budget is the same
    (`test_buckets_keep_to_a_budget`).
    """
    assert has_java(), NO_JAVA
    found = json.loads(printed("-c", SEARCH, str(PARTITIONS), str(tmp_path), daemon))
    assert found["same"]
    assert sum(peak > BOUND // 4 for peak in found["peaks"]) >= 2
    assert max(found["peaks"]) <= BOUND + tables_of_a_lot(8 * LAYOUT.words)


def test_a_worker_imports_what_tasks_need() -> None:
    """Pyarrow alone has 27 MB: what Spark calls by name does not import it."""
    assert printed("-c", IMPORTED).split() == []


def test_words_take_memory_where_they_are_touched() -> None:
    """A task with 64 slices has a list of 4,096 runs for each, and fills a few lines."""
    before = _anonymous()
    many = [Words(1 << 20) for _ in range(64)]
    assert [words[(1 << 20) - 1] for words in many] == [0] * 64
    many[1][5] = 7
    assert (many[1].read(5, 1), many[0][5]) == ((7,), 0)
    assert _anonymous() - before < 1 << 22


def _anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


def successors(kernel: Loaded) -> set[tuple[int, bytes]]:
    """By partition, those of the initial states, and of theirs."""
    found: set[tuple[int, bytes]] = set()
    todo = LAYOUT.packed(list(initial_states(CHECKED)))
    buckets, worker = Buckets(CHECKED, LAYOUT, kernel, 3, 1000), exchange_worker(CHECKED, LAYOUT)
    size = buckets.state_bytes
    try:
        for _ in range(4):
            data = bytearray(todo)
            made = [*buckets.expand(worker, address_of(data), len(data) // size), *buckets.drain()]
            todo = b"".join(block for _, block in made)
            found |= {
                (part, block[at : at + size]) for part, block in made for at in range(0, len(block), size)
            }
        return found
    finally:
        buckets.release()
        worker.release()


def test_code_is_for_its_machine(tmp_path: Path) -> None:
    """On another one it is compiled again: instructions may be missing."""
    own = exchange_code(CHECKED, LAYOUT, [])
    foreign = ObjectCode(b"\xcc" * 64, "another machine")
    parcel = Parcel("run", CHECKED, [], foreign, 2, str(tmp_path), None, 1)
    linked = successors(load_exchange(CHECKED, LAYOUT, [], own))
    assert successors(host_of(parcel.packed()).kernel) == linked
    assert len(linked) > 20
