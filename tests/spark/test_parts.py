"""The parts of the search on Spark, one at a time: loss and damage are detected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import convert, to_builtins
from pyarrow import fs
from pyspark import cloudpickle
from pyspark.errors import PySparkException

from spark.small import program
from specchk.export.arrow import ArrowStorage
from specchk.export.places import storage_at
from specchk.export.storage import LocalStorage, Storage, Unwritable
from specchk.native import compiler
from specchk.native.compiler import exchange_code, load_exchange
from specchk.native.exchange import BUDGET, LEAST, Buckets, address_of, capacity, exchange_worker
from specchk.native.machine.layout import StateLayout, layout_of
from specchk.native.machine.loaded import Loaded, ObjectCode
from specchk.native.machine.memory import Region
from specchk.native.machine.runs import gaps
from specchk.native.store import NotedState
from specchk.search.engine import Unusable
from specchk.search.verdict import Inconclusive
from specchk.spark.parcel import Host, Parcel
from specchk.spark.reasons import given_up, root_cause
from specchk.spark.states.rows import HEAD_BYTES, Received, Trailer, block_row, trailer_row
from specchk.spark.states.slices import (
    BrokenSlice,
    Slice,
    Slices,
    SliceTally,
    SpoiledSlice,
)
from specchk.spark.tasks import successors
from specchk.spark.worker.probe import (
    NEEDED,
    WorkerReport,
    complaint,
    digest_of,
    package_files,
    question,
    write_archive,
)

CHECKED = program("kafka/kip320.spec", "small")
LAYOUT: StateLayout = layout_of(CHECKED)
SIZE = 8 * LAYOUT.words


@pytest.fixture(scope="module")
def kernel() -> Loaded:
    return load_exchange(CHECKED, LAYOUT, [], exchange_code(CHECKED, LAYOUT, []))


def packed(numbers: range) -> bytearray:
    """Different states, only the bits of which matter here."""
    return bytearray(b"".join(n.to_bytes(SIZE, "little") for n in numbers))


def rows(*, blocks: int = 2, trailers: tuple[int, ...] = (0, 1)) -> list[bytes]:
    """Two sources that sent two blocks each for partition 5, or less."""
    sent = [block_row(source, 5, bytes(SIZE)) for source in (0, 1) for _ in range(blocks)]
    return [*sent, *(trailer_row(s, Trailer(2, 2 * SIZE, SliceTally(generated=2))) for s in trailers)]


def test_all_that_was_sent_is_taken() -> None:
    """With all blocks and trailers there is no error, and the tallies add up."""
    received = Received(2, rows())
    assert [(partition, row[HEAD_BYTES:]) for partition, row in received.blocks()] == [(5, bytes(SIZE))] * 4
    assert received.tally.generated == 4


@pytest.mark.parametrize("lost", [rows(blocks=1), rows(trailers=(0,)), rows(trailers=()), []])
def test_a_stream_that_ends_early_makes_no_slice(lost: list[bytes]) -> None:
    """A missing block or trailer, or no data at all, is detected before anything is kept."""
    with pytest.raises(BrokenSlice, match="is incomplete"):
        list(Received(2, lost).blocks())


@pytest.mark.parametrize("number", [0, 4])
@pytest.mark.parametrize("at", [0, 4, 8, HEAD_BYTES, -1])
def test_a_row_that_was_damaged_on_the_way_makes_no_slice(number: int, at: int) -> None:
    """A flipped bit in what Spark's shuffle gives, wherever it is in a block or a trailer."""
    sent = rows()
    flipped = bytearray(sent[number])
    flipped[at] ^= 1
    sent[number] = bytes(flipped)
    with pytest.raises(BrokenSlice, match=r"sent from task \d was damaged in transit"):
        list(Received(2, sent).blocks())


def test_what_the_ledger_is_blamed_for_is_the_cause() -> None:
    """A damaged slice and a full disk are reported with their own messages, whatever failed after them."""
    later = "\torg.apache.spark.SparkException: Job aborted\nEOFError\n"
    spoiled = given_up(
        PySparkException(f"specchk.spark.states.slices.SpoiledSlice: /x.slice is truncated\n{later}"), 7
    )
    assert spoiled == Inconclusive("the ledger is damaged: /x.slice is truncated", budget=False)
    full = given_up(PySparkException(f"specchk.export.storage.Unwritable: /x: No space left\n{later}"), 7)
    assert full == Inconclusive("the ledger cannot be written (/x: No space left)", budget=True)
    assert given_up(ConnectionRefusedError(), 7).reason == "Spark failed at level 7 (its process ended)"


def test_of_an_error_with_its_traces_the_cause_is_told() -> None:
    """Names of Java's classes say `Error`, too."""
    text = (
        "org.apache.spark.SparkException: Job aborted: Traceback (most recent call last):\n"
        '  File "storage.py", line 5, in write_fully\nOSError: [Errno 28] No space left on device\n\n'
        "\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally$(SparkErrorUtils.scala:83)\n"
    )
    assert root_cause(text) == "OSError: [Errno 28] No space left on device"
    assert root_cause("all gone") == "all gone"


def test_gaps_are_what_is_in_no_run() -> None:
    """Runs and gaps together are the whole range, without overlap."""
    assert gaps([(7, 2), (3, 1)], 2, 12) == [(2, 1), (4, 3), (9, 3)]


def test_the_description_of_a_slice_has_its_whole_tally() -> None:
    """Written and read again, counts and records are the same."""
    noted = NotedState(3, (1, 2), (3, 4))
    about = Slice(3, 5, 7, 1, 96, SliceTally(9, 2, (0, 4, 5), (noted,)), 77, 12, 1)
    assert convert(json.loads(json.dumps(to_builtins(about))), Slice) == about


def test_regions_share_a_library() -> None:
    """Each library creates its own class for functions, and a task may have hundreds of regions."""
    first, second = Region(8), Region(8)
    try:
        assert first._libc is second._libc
    finally:
        first.release()
        second.release()


def test_recipes_install_the_libraries_that_executors_need() -> None:
    """A packed environment and an image, as the document has them, are what the probe accepts."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    lines = [line.split("install ")[1].split() for line in text.splitlines() if "bin/pip install " in line]
    lines += [line.split("--no-cache-dir ")[1].split() for line in text.splitlines() if "RUN pip" in line]
    assert lines == [list(NEEDED)] * 2


def test_an_empty_slice_is_not_opened(tmp_path: Path, kernel: Loaded) -> None:
    """Of many partitions most have no states of a small level."""
    slices = Slices(LocalStorage(tmp_path, durable=False), "run", SIZE)
    parcel = Parcel("run", CHECKED, [], ObjectCode("", b""), 2, str(tmp_path), None, 1)
    host = Host(parcel, LAYOUT, kernel, slices, tmp_path, 0)
    with host.worker() as worker:
        assert list(successors(host, worker, [Slice(4, partition, 0, 0) for partition in (0, 1)])) == []
        with pytest.raises(SpoiledSlice, match="is missing"):
            list(successors(host, worker, [Slice(4, 0, 1, 0)]))


@pytest.fixture(params=["local", "arrow"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return LocalStorage(tmp_path)
    return ArrowStorage(fs.LocalFileSystem(), str(tmp_path))


def test_a_slice_says_what_was_written(storage: Storage) -> None:
    """States and all facts about them are read back, from any storage."""
    found = (NotedState(3, (1, 2), (3, 4)),)
    about = Slice(4, 1, 2, 1, 96, SliceTally(5, 1, (2, 0, 3), found))
    slices = Slices(storage, "run", SIZE)
    slices.write(about, [packed(range(2)), packed(range(2, 3))])
    states = bytearray(3 * SIZE)
    with slices.open(4, 1) as opened:
        assert opened.about == about
        opened.fill(memoryview(states))
    assert states == packed(range(3))


def test_a_durable_file_has_its_names_synced_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a new slice the content, then, under its name, every folder down to the ledger's own."""
    events: list[str] = []
    sync, rename = os.fsync, os.replace

    def synced(file: int) -> None:
        events.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        sync(file)

    def renamed(draft: Path, target: Path) -> None:
        events.append("rename")
        rename(draft, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    LocalStorage(tmp_path).write("run-x/00001/00000.slice", [b"states"])
    content, *names = events
    assert content.startswith(f"{tmp_path}/run-x/00001/.")
    assert names == ["rename", f"{tmp_path}/run-x/00001", f"{tmp_path}/run-x", str(tmp_path)]


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b[:-1], lambda b: b[SIZE:], lambda b: b"", lambda b: b + b"x",
        lambda b: bytes(len(b)), lambda b: bytes(len(b) - 8) + b[-8:], lambda b: b[:-20] + bytes(12) + b[-8:],
    ],
)  # fmt: skip
def test_a_broken_slice_is_noticed(change: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Cut off at either end, empty, zeroes or with something after it: it is no slice."""
    slices = Slices(LocalStorage(tmp_path), "run", SIZE)
    slices.write(Slice(0, 0, 3, 0), [packed(range(3))])
    path = tmp_path / slices.path(0, 0)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BrokenSlice, match=r"0\.slice"):
        slices.done(0, 0)


def test_what_fails_while_it_is_written_is_not_there(storage: Storage) -> None:
    """A file is whole or absent."""

    def parts():
        yield b"some"
        raise OSError("no space")

    with pytest.raises(Unwritable, match="a: no space"):
        storage.write("levels/a", parts())
    assert not storage.exists("levels/a")


def test_a_place_that_nobody_knows_is_refused() -> None:
    """It is not treated as a path."""
    with pytest.raises(Unusable, match="nowhere"):
        storage_at("nowhere://host/dir")


@pytest.mark.parametrize("states", [1, 50_000])
@pytest.mark.parametrize("partitions", [1, 3, 8])
def test_states_are_dealt_to_all_partitions_once(kernel: Loaded, partitions: int, states: int) -> None:
    """Every state is in exactly one bucket, also in one that is too small; no partition gets much more."""
    buckets = Buckets(CHECKED, LAYOUT, kernel, partitions, states)
    worker = exchange_worker(CHECKED, LAYOUT)
    data, shares = packed(range(50_000)), [b""] * partitions
    for target, block in [*buckets.deal(worker, address_of(data), 50_000), *buckets.drain()]:
        shares[target] += block
    states = sorted(s[i : i + SIZE] for s in shares for i in range(0, len(s), SIZE))
    assert states == sorted(bytes(data[i : i + SIZE]) for i in range(0, len(data), SIZE))
    assert max(map(len, shares)) < 1.1 * len(data) / partitions
    buckets.release()
    worker.release()


@pytest.mark.parametrize("partitions", [1, 16, 1600, 1 << 16])
def test_buckets_keep_to_a_budget(partitions: int) -> None:
    """Whatever their number, all together have no more than it, or the least possible."""
    every = partitions * SIZE * capacity(partitions, SIZE, 1 << 40)
    assert every <= max(BUDGET, partitions * SIZE * LEAST)
    assert capacity(partitions, SIZE, 100) <= 100


def test_code_of_another_machine_is_compiled_again(kernel: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Object code is used only with the LLVM and CPU for which it was compiled."""
    foreign = ObjectCode(b"not for here", "another machine")
    assert load_exchange(CHECKED, LAYOUT, [], foreign).call.keys() == kernel.call.keys()
    own = exchange_code(CHECKED, LAYOUT, [])
    monkeypatch.setattr(compiler, "optimised", None)
    assert load_exchange(CHECKED, LAYOUT, [], own).call.keys() == kernel.call.keys()


def test_a_worker_s_lack_is_one_sentence() -> None:
    """No package, another version, a library less: each names the host; equal workers are fine."""
    good = WorkerReport("h1", "3.11.2", (), "abc")
    assert complaint([good, good], "abc") is None
    assert "h2 (Python 3.11.2) has no package" in str(
        complaint([good, WorkerReport("h2", "3.11.2", (), "")], "abc")
    )
    assert "another version" in str(complaint([good], "abd"))
    assert "lacks llvmlite" in str(complaint([WorkerReport("h3", "3.11.2", ("llvmlite",), "abc")], "abc"))


def test_the_shipped_package_is_this_package(tmp_path: Path) -> None:
    """Queried from the zip file and from the installed package, a worker answers with the driver's digest."""
    files = package_files()
    write_archive(tmp_path / "specchk.zip", files)
    assert complaint([WorkerReport(*answer) for answer in question()([0])], digest_of(files)) is None
    (tmp_path / "ask.py").write_text(
        "import pickle, sys\nfrom pyspark import cloudpickle\n"
        "print(*list(cloudpickle.loads(sys.stdin.buffer.read())([0]))[0][3:])",
        encoding="utf-8",
    )
    asked = subprocess.run(
        [sys.executable, str(tmp_path / "ask.py")], input=cloudpickle.dumps(question()),
        capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(tmp_path / "specchk.zip")},
    )  # fmt: skip
    assert asked.stdout.decode().strip() == digest_of(files)
