"""The memory of a Python worker, by counters of the kernel: 64 MB at most beside the tables of its task."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from spark.small import program
from specchk.codegen.images import Image, image_of, processor_name
from specchk.codegen.objects import initialize, optimised
from specchk.meaning.initial import initial_states
from specchk.native import compiler
from specchk.native.compiler import exchange_code
from specchk.native.exchange import Buckets, address_of, exchange_worker
from specchk.native.machine.frames import CHUNK
from specchk.native.machine.layout import layout_of
from specchk.native.machine.loaded import Loaded, in_memory
from specchk.native.machine.memory import Region, Words
from specchk.native.machine.slots import LOAD
from specchk.native.visited import FIRST_SLOTS
from specchk.spark.homes import MOST
from specchk.spark.parcel import Parcel, host_of
from specchk.spark.reasons import NO_JAVA, has_java
from specchk.spark.worker.archives import without_archives, without_java

CHECKED = program("kafka/kip320.spec", "small")
LAYOUT = layout_of(CHECKED)
BOUND = 64 << 20
PARTITIONS = 1600
OWN_DAEMON, SPARKS_DAEMON = "specchk.spark.worker.daemon", "pyspark.daemon"
has_images = pytest.mark.skipif(not processor_name(), reason="images are for Linux on x86-64")
# What no task of a search needs: compilers, parsers, solvers, and file systems of other machines.
HEAVY = ("llvmlite", "lark", "z3", "pyarrow", "duckdb", "click", "specchk.native.compiler", "specchk.compile")
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
def test_a_worker_has_64_mb_beside_its_tables(daemon: str, tmp_path: Path) -> None:
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
    """LLVM alone has 45 MB, pyarrow 27: what Spark calls by name imports neither."""
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


@has_images
def test_an_image_does_what_linked_code_does() -> None:
    """Code placed without LLVM has the same functions."""
    code = exchange_code(CHECKED, LAYOUT, [])
    assert code.image is not None
    placed = in_memory(code)
    assert placed is not None
    linked = successors(compiler.load_exchange(CHECKED, LAYOUT, [], code))
    assert successors(placed) == linked
    assert len(linked) > 20


@has_images
def test_an_image_is_for_its_processor(tmp_path: Path) -> None:
    """On another one the code is linked or compiled by LLVM: instructions may be missing."""
    own = exchange_code(CHECKED, LAYOUT, [])
    foreign = replace(own, image=Image(b"\xcc" * 64, dict.fromkeys(own.image.at, 0)), processor="another")
    assert in_memory(foreign) is None
    assert in_memory(replace(own, image=None)) is None
    parcel = Parcel("run", CHECKED, [], foreign, 2, str(tmp_path), None, 1)
    assert successors(host_of(parcel.packed()).kernel) == successors(in_memory(own))


TWO = """\
define i64 @one(i64 %x) noinline section ".text.unlikely." {{ %y = mul i64 %x, 3 ret i64 %y }}
define i64 @two(i64 %x) {{ %y = call i64 @one(i64 %x) {more} ret i64 %y }}
{also}
"""
FEATURES = {
    "a function of a library": (
        "%z = call i64 @labs(i64 %y) call void @abort()", "declare i64 @labs(i64)\ndeclare void @abort()"
    ),
    "a variable": ("store i64 %y, ptr @v", "@v = global i64 5"),
    "a table": ("%p = getelementptr i64, ptr @t, i64 %x %z = load i64, ptr %p store volatile i64 %z, ptr %p",
                "@t = external global [4 x i64]"),
}  # fmt: skip


@has_images
def test_only_plain_code_has_an_image() -> None:
    """Code that needs a linker is left to one, and so is anything that is not object code."""
    initialize()
    plain = image_of(optimised(TWO.format(more="", also="")), ["one", "two"])
    assert plain is not None
    room = Region.of_code(plain.code)
    two = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(room.address + plain.at["two"])
    assert two(5) == 15  # by a call from one section to another
    room.release()
    for more, also in FEATURES.values():
        assert image_of(optimised(TWO.format(more=more, also=also)), ["one", "two"]) is None
    whole = optimised(TWO.format(more="", also=""))
    assert image_of(whole, ["three"]) is None
    assert image_of(b"", []) is None
    assert image_of(b"\xcf\xfa\xed\xfe" + whole[4:], ["one"]) is None  # of a Mac
    assert image_of(whole[:18] + b"\xb7" + whole[19:], ["one"]) is None  # of another kind of processor


def test_a_path_loses_only_what_is_elsewhere(tmp_path: Path) -> None:
    """Spark's classes always; its zip files if the package that they contain is installed."""
    (tmp_path / "site" / "pyspark" / "python" / "lib").mkdir(parents=True)
    zipped = f"{tmp_path}/site/pyspark/python/lib/pyspark.zip"
    java, others = f"{tmp_path}/jars/spark-core_2.13-4.0.1.jar", f"{tmp_path}/else/python/lib/pyspark.zip"
    mine = f"{tmp_path}/mine.zip"
    assert without_java([zipped, java, mine]) == [zipped, mine]
    site = f"{tmp_path}/site"
    assert without_archives([zipped, java, mine, site]) == [zipped, mine, site]  # py4j is not installed
    (tmp_path / "site" / "py4j").mkdir()
    assert without_archives([zipped, java, others, mine, site]) == [others, mine, site]
    assert without_archives([zipped, java, mine]) == [zipped, mine]  # nothing is installed there
