"""Disks that fail while the log is open, directories that are taken, and processes that die."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from replog.sim.disks.disk import CrashedError, SimFs
from replog.store.checkpoints.checkpoint import CLEAN_SHUTDOWN_FILE, EPOCH_FILE, parse_partition_name
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import (
    CorruptBatchError,
    CorruptFileError,
    DirectoryInUseError,
    ForeignVersionError,
    OffsetOutOfRangeError,
    StorageOfflineError,
)
from replog.store.files.fs import OsFs, read_file, replace_file
from replog.store.partition import PartitionLog
from replog.store.segments.batch import BatchHeader, iterate_headers
from replog.store.segments.records import Record, decode_batch, encode_batch

KEY = ("t", 0)
BATCH = encode_batch([Record(b"value" * 10)])
CONFIG = LogConfig(segment_bytes=1000, flush_messages=1)


def opened(config: LogConfig = CONFIG) -> tuple[SimFs, LogDirectory, PartitionLog]:
    fs = SimFs()
    directory = LogDirectory.open(fs, "data", config)
    return fs, directory, directory.log(*KEY)


def append_until_failure(log: PartitionLog) -> int:
    """Append until the store refuses; return how many appends were acknowledged."""
    for acknowledged in range(1000):
        try:
            log.append_as_leader(BATCH, 0)
        except StorageOfflineError:
            return acknowledged
    raise AssertionError("the fault never struck")


def assert_offline(directory: LogDirectory, log: PartitionLog) -> None:
    """Check that every request to the directory fails with error 56, and that it cannot stop cleanly."""
    for attempt in (
        lambda: log.append_as_leader(BATCH, 0),
        lambda: log.read(0, 10),
        log.flush,
        lambda: log.truncate_to(0),
        lambda: log.assign_epoch(9, 9),
        lambda: log.store_epochs([(9, 9)]),
        lambda: list(log.headers()),
        lambda: log.reset(7),
        lambda: log.append_as_follower(b""),
        log.seal,
        lambda: directory.checkpoint({}),
        lambda: directory.log("other", 1),
        lambda: directory.shut_down({}),
    ):
        with pytest.raises(StorageOfflineError):
            attempt()


def test_a_full_disk_takes_the_directory_offline_and_loses_nothing_acknowledged() -> None:
    """The append that hits the end fails with 56; after a re-open every acknowledged record is there."""
    for capacity in range(600, 1800, 37):
        fs, directory, log = opened()
        fs.faults.capacity_bytes = capacity
        acknowledged = append_until_failure(log)
        assert_offline(directory, log)
        fs.faults.capacity_bytes = None
        fs.process_crash()
        again = LogDirectory.open(fs, "data", CONFIG)
        assert acknowledged <= again.logs[KEY].log_end <= acknowledged + 1
        assert not again.was_clean
        assert again.logs[KEY].append_as_leader(BATCH, 0).base_offset == again.logs[KEY].log_end - 1


@pytest.mark.parametrize("after", range(12))
def test_an_fsync_error_is_never_forgotten(after: int) -> None:
    """The append is refused, later ones too, and a power loss keeps what was acknowledged."""
    fs, directory, log = opened()
    fs.faults.fail_fsync_in = after
    acknowledged = append_until_failure(log)
    assert log.flushed <= acknowledged
    assert_offline(directory, log)
    fs.power_loss(Random(after).randrange)
    again = LogDirectory.open(fs, "data", CONFIG).logs[KEY]
    assert acknowledged <= again.log_end <= acknowledged + 1


@pytest.mark.parametrize("occasion", range(8))
def test_what_a_failed_fsync_left_in_the_page_cache_is_not_believed(occasion: int) -> None:
    """The process dies, a start reads the bytes and syncs them, the power fails: all are kept."""
    fs, directory, log = opened()
    log.append_as_leader(BATCH, 0)
    directory.checkpoint({})
    fs.faults.fail_fsync_in = occasion
    append_until_failure(log)
    fs.process_crash()
    again = LogDirectory.open(fs, "data", CONFIG)
    end = again.logs[KEY].flushed
    again.checkpoint({})
    fs.power_loss(lambda _: 0)
    directory = LogDirectory.open(fs, "data", CONFIG)
    assert (directory.damaged, directory.logs[KEY].log_end) == ({}, end)


@pytest.mark.parametrize("as_leader", [True, False])
def test_a_whole_batch_that_a_crash_leaves_is_kept_with_its_epoch(as_leader: bool) -> None:
    """Its epoch is known by then, at whatever moment the process died: a start does not treat it as torn."""
    for moment in range(16):
        fs, _, log = opened()
        log.append_as_leader(BATCH, 0)
        fs.faults.crash_in = moment
        with suppress(CrashedError):
            if as_leader:
                log.append_as_leader(BATCH, 3)
            else:
                log.append_as_follower(encode_batch([Record(b"v")], base_offset=1, leader_epoch=3))
        fs.process_crash()
        sizes = [h.size_bytes for _, h in iterate_whole(read_file(fs, f"data/t-0/{0:020d}.log"))]
        assert LogDirectory.open(fs, "data", CONFIG).logs[KEY].log_end == len(sizes)


def iterate_whole(data: bytes) -> list[tuple[int, BatchHeader]]:
    """Return the whole batches at the beginning of a file."""
    found: list[tuple[int, BatchHeader]] = []
    with suppress(CorruptBatchError):
        found.extend(iterate_headers(data))
    return found


def test_a_torn_write_is_cut_on_the_next_opening() -> None:
    """A write that failed in the middle leaves no partial batch."""
    fs, directory, log = opened(LogConfig())
    fs.faults.fail_write_in = 4
    acknowledged = append_until_failure(log)
    assert_offline(directory, log)
    fs.process_crash()
    recovered = LogDirectory.open(fs, "data").logs[KEY]
    assert (recovered.log_end, recovered.recovery.cut_bytes) == (acknowledged, len(BATCH) // 2)


def test_a_directory_in_use_is_refused_by_name(tmp_path: Path) -> None:
    """A second opener gets a clear message; the first is not disturbed; a release lets the next one in."""
    for fs, path in ((OsFs(), str(tmp_path / "data")), (SimFs(), "data")):
        first = LogDirectory.open(fs, path)
        with pytest.raises(DirectoryInUseError, match="in use by another process"):
            LogDirectory.open(fs, path)
        first.log(*KEY).append_as_leader(BATCH, 0)
        first.shut_down({}, 1)
        assert LogDirectory.open(fs, path).logs[KEY].log_end == 1


def test_a_failed_opening_releases_the_lock() -> None:
    """After an error at opening the directory can be repaired and opened."""
    fs, directory, _ = opened()
    directory.abandon()
    replace_file(fs, "data/t-0", EPOCH_FILE, b"1\n0\n")
    for _ in range(2):
        with pytest.raises(ForeignVersionError):
            LogDirectory.open(fs, "data")
    fs.unlink(f"data/t-0/{EPOCH_FILE}")
    assert LogDirectory.open(fs, "data").logs[KEY].log_end == 0


def test_a_path_that_cannot_be_a_directory_is_a_clear_error(tmp_path: Path) -> None:
    """A file in the way is reported with its path."""
    (tmp_path / "file").write_text("x")
    for path in ("file", "file/below"):
        with pytest.raises(StorageOfflineError, match=r"opening .*file"):
            LogDirectory.open(OsFs(), str(tmp_path / path))


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("orders-3", ("orders", 3)),
        ("a-b-0", ("a-b", 0)),
        ("orders", None),
        ("-1", None),
        ("orders-03", None),
        ("orders-x", None),
        ("or/ders-1", None),
    ],
)
def test_partition_directories_are_told_by_their_names(name: str, key: tuple[str, int] | None) -> None:
    """Topic, dash, number without leading zeros."""
    assert parse_partition_name(name) == key


@pytest.mark.parametrize("topic", ["", "..", "a/b", "x" * 250])
def test_topics_that_are_no_file_names_are_refused(topic: str) -> None:
    """No topic reaches outside the directory."""
    _, directory, _ = opened()
    if topic == "..":
        assert directory.log(topic, 0).log_end == 0, "..-0 is a plain name"
    else:
        with pytest.raises(CorruptFileError):
            directory.log(topic, 0)


def test_os_files_report_and_keep_what_the_protocol_says(tmp_path: Path) -> None:
    """OsFs: append, overwrite, truncate, read past the end, rename, list, missing names."""
    fs, base = OsFs(), str(tmp_path)
    file = fs.create(f"{base}/a")
    file.append(b"hello")
    file.pwrite(b"J", 0)
    file.append(memoryview(b" world"))
    file.truncate(8)
    file.append(b"!")
    file.fsync()
    assert (file.pread(100, 0), file.size()) == (b"Jello wo!", 9)
    file.close()
    file.close()
    fs.rename(f"{base}/a", f"{base}/b")
    fs.mkdir(f"{base}/d")
    assert fs.listdir(base) == ("b", "d")
    assert fs.is_dir(f"{base}/d")
    fs.rmdir(f"{base}/d")
    again = fs.open(f"{base}/b")
    again.append(b"?")
    assert again.pread(3, 8) == b"!?"
    fs.unlink(f"{base}/b")
    with pytest.raises(FileNotFoundError):
        fs.open(f"{base}/b")
    with pytest.raises(FileNotFoundError):
        fs.lock(f"{base}/none/lock")


WRITER = """
import sys
from replog.store.files.config import LogConfig
from replog.store.directory import LogDirectory
from replog.store.files.fs import OsFs, replace_file
from replog.store.segments.records import Record, encode_batch
config = LogConfig(segment_bytes=20_000, flush_messages=int(sys.argv[2]))
directory = LogDirectory.open(OsFs(), sys.argv[1], config)
log = directory.log("t", 0)
number, written = log.log_end, 0
while True:
    log.append_as_leader(encode_batch([Record(b"%d" % number + b"." * (number % 700))]), number // 500)
    number, written = number + 1, written + 1
    if number % 37 == 0:
        directory.checkpoint({("t", 0): log.flushed})
    if written % 29 == 0:
        number -= 3
        print(number, flush=True)
        log.truncate_to(number)
    print(number, flush=True)
"""


def kill_at_random_moments(path: Path, kills: int, random: Random) -> int:
    """Kill a writer `kills` times; all acknowledged records must exist. Returns the records written."""
    highest = 0
    for _ in range(kills):
        command = [sys.executable, "-c", WRITER, str(path), str(random.choice([1, 3, 10]))]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline() for _ in range(random.randint(20, 60))]
            time.sleep(random.random() * 0.005)
            os.kill(writer.pid, signal.SIGKILL)
            lines += writer.stdout.readlines()
        acknowledged = int([line for line in lines if line.endswith(b"\n")][-1])
        directory = LogDirectory.open(OsFs(), str(path), LogConfig(segment_bytes=20_000))
        log = directory.logs["t", 0]
        assert not directory.was_clean
        assert acknowledged <= log.log_end <= acknowledged + 3, "the process died, not the page cache"
        check_contents(log)
        directory.abandon()
        highest = max(highest, log.log_end)
    return highest


def test_a_stop_whose_last_sync_fails_leaves_no_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The marker has its name when the sync of that name fails."""
    fs, directory, log = opened()
    log.append_as_leader(BATCH, 0)
    marker = f"data/{CLEAN_SHUTDOWN_FILE}"
    sync = SimFs.fsync_dir

    def fails(self: SimFs, path: str) -> None:
        if self.exists(marker):
            raise OSError(5, "injected fsync error")
        sync(self, path)

    monkeypatch.setattr(SimFs, "fsync_dir", fails)
    with pytest.raises(StorageOfflineError, match="injected"):
        directory.shut_down({})
    assert not fs.exists(marker)
    assert not LogDirectory.open(fs, "data", CONFIG).was_clean


@pytest.mark.parametrize("size", [-1, 0, 1])
def test_a_wrong_argument_takes_nothing_offline(size: int) -> None:
    """At least one batch, however few bytes; an offset below 0 is out of range."""
    _, directory, log = opened()
    log.append_as_leader(BATCH, 0)
    assert log.read(0, size) == log.read(0, 10_000)
    for attempt in (lambda: log.read(-1, 10), lambda: log.truncate_to(-1), lambda: log.read(2, 10)):
        with pytest.raises(OffsetOutOfRangeError):
            attempt()
    assert directory.health.reason is None
    assert log.log_end == 1


def check_contents(log: PartitionLog) -> None:
    """Every record is the one that was written at its offset, in its epoch."""
    for header in log.headers():
        (record,) = decode_batch(log.read(header.base_offset, 1))
        number = header.base_offset
        assert record.value == b"%d" % number + b"." * (number % 700)
        assert header.leader_epoch >= number // 500


@pytest.mark.system
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """A real process, SIGKILL at random moments, reopened each time (a sample)."""
    assert kill_at_random_moments(tmp_path / "data", 8, Random(1)) > 8 * 15


@pytest.mark.slow
def test_a_writer_killed_200_times_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """The same, 200 times in one directory."""
    assert kill_at_random_moments(tmp_path / "data", 200, Random(2)) > 200 * 15
