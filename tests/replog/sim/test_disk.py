"""The simulated disk: what a crash keeps, what it may lose, and that a seed determines which."""

from collections.abc import Callable
from errno import EIO, ENOSPC
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replog.sim.disks.disk import CrashedError, SimFile, SimFs

Changes = list[tuple[str, int, bytes]]
changes = st.lists(
    st.tuples(st.sampled_from(["append", "pwrite", "truncate"]), st.integers(0, 30), st.binary(max_size=10)),
    max_size=8,
)
seeds = st.integers(0, 2**32)


def keep_nothing(_count: int) -> int:
    return 0


def keep_all(count: int) -> int:
    return count - 1


def synced(content: bytes) -> SimFs:
    """Make a disk with one durable file `f`."""
    fs = SimFs()
    file = fs.create("f")
    file.append(content)
    file.fsync()
    fs.fsync_dir("")
    return fs


def images(fs: SimFs, todo: Changes) -> list[bytes]:
    """Apply changes to `f`; return its content before, between and after them."""
    file = fs.open("f")
    seen = [file.pread(1000, 0)]
    for kind, number, data in todo:
        if kind == "append":
            file.append(data)
        elif kind == "pwrite":
            file.pwrite(data, number)
        else:
            file.truncate(number)
        seen.append(file.pread(1000, 0))
    return seen


def content(fs: SimFs, path: str = "f") -> bytes:
    file = fs.open(path)
    return file.pread(file.size(), 0)


@given(st.binary(max_size=20), changes)
def test_a_process_crash_keeps_every_byte(start: bytes, todo: Changes) -> None:
    """The page cache belongs to the kernel: written data are read back by the next process."""
    fs = synced(start)
    last = images(fs, todo)[-1]
    fs.process_crash()
    assert content(fs) == last


@given(st.binary(max_size=20), changes, seeds)
def test_a_power_loss_keeps_a_prefix_of_the_changes(start: bytes, todo: Changes, seed: int) -> None:
    """The result is one of the former contents, with the next write torn, and zeros for lost data."""
    fs = synced(start)
    seen = images(fs, todo)
    fs.power_loss(Random(seed).randrange)
    left = content(fs)
    longest = max(len(image) for image in seen)
    assert len(left) <= longest
    assert left in seen or any(is_mixture(left, before, after) for before, after in pairwise(seen))


def is_mixture(left: bytes, before: bytes, after: bytes) -> bool:
    """Return whether each byte is one of the two images' (or a zero beyond one of them)."""
    return all(byte in (*before[i : i + 1], *after[i : i + 1], 0) for i, byte in enumerate(left))


@given(st.binary(max_size=20), changes, changes, seeds)
def test_what_was_synced_survives_any_power_loss(
    start: bytes, before: Changes, after: Changes, seed: int
) -> None:
    """Bytes below the last synced length stay unless a later change touched them."""
    fs = synced(start)
    durable = images(fs, before)[-1]
    fs.open("f").fsync()
    appended = [("append", 0, data) for _, _, data in after]
    images(fs, appended)
    fs.power_loss(Random(seed).randrange)
    assert content(fs)[: len(durable)] == durable


@given(st.binary(max_size=20), changes, seeds)
def test_the_same_choices_leave_the_same_disk(start: bytes, todo: Changes, seed: int) -> None:
    """A power loss is a function of the disk and the chooser's seed."""
    left = []
    for _ in range(2):
        fs = synced(start)
        images(fs, todo)
        fs.power_loss(Random(seed).randrange)
        left.append(content(fs))
    assert left[0] == left[1]


def test_a_disk_names_the_operation_in_which_its_machine_died() -> None:
    """With the path, also for a file that was opened earlier, and for each kind of change."""
    calls: list[tuple[str, Callable[[SimFs, SimFile], object]]] = [
        ("write of 3 bytes at 2 of d/a", lambda _, file: file.append(b"new")),
        ("truncate to 1 bytes d/a", lambda _, file: file.truncate(1)),
        ("fsync of d/a", lambda _, file: file.fsync()),
        ("create d/b", lambda fs, _: fs.create("d/b")),
        ("rename d/a to d/c", lambda fs, _: fs.rename("d/a", "d/c")),
        ("unlink d/a", lambda fs, _: fs.unlink("d/a")),
        ("fsync of the folder d", lambda fs, _: fs.fsync_dir("d")),
    ]
    for name, call in calls:
        fs = SimFs()
        fs.mkdir("d")
        file = fs.create("d/a")
        file.append(b"ab")
        fs.faults.crash_in = 0
        with pytest.raises(CrashedError):
            call(fs, file)
        assert fs.died_in == name


def test_names_are_durable_only_after_the_directory_was_synced() -> None:
    """A creation, a rename and a removal can each be lost, in order; a synced one cannot."""
    fs = synced(b"old")
    new = fs.create("new")
    new.append(b"new")
    new.fsync()
    fs.rename("new", "f")
    lost = fs.snapshot()
    fs.power_loss(keep_nothing)
    assert content(fs) == b"old"
    fs.restore(lost)
    fs.power_loss(keep_all)
    assert content(fs) == b"new"
    fs.restore(lost)
    fs.fsync_dir("")
    fs.power_loss(keep_nothing)
    assert content(fs) == b"new"
    fs.unlink("f")
    fs.power_loss(keep_nothing)
    assert fs.exists("f")


def test_a_rename_without_a_sync_of_the_file_can_leave_it_empty() -> None:
    """The classic: the name is durable, the content is not."""
    fs = synced(b"old")
    fs.create("new").append(b"new")
    fs.rename("new", "f")
    fs.fsync_dir("")
    fs.power_loss(keep_nothing)
    assert content(fs) in (b"", bytes(3)), "the content was never synced"


def test_a_failed_fsync_drops_the_pages_and_a_second_one_does_not_bring_them_back() -> None:
    """As on Linux: still readable, never durable; later writes land behind a hole of zeros."""
    fs = synced(b"abc")
    file = fs.open("f")
    file.append(b"def")
    fs.faults.fail_fsync_in = 0
    with pytest.raises(OSError, match="injected") as caught:
        file.fsync()
    assert caught.value.errno == EIO
    file.append(b"ghi")
    file.fsync()
    assert content(fs) == b"abcdefghi"
    fs.power_loss(keep_all)
    assert content(fs) == b"abc\0\0\0ghi"
    assert fs.faults.fired == 1


def test_a_full_disk_takes_what_fits_and_says_so() -> None:
    """ENOSPC after a prefix; space is free again when files are removed."""
    fs = synced(b"abc")
    fs.faults.capacity_bytes = 5
    with pytest.raises(OSError, match="no space") as caught:
        fs.open("f").append(b"defg")
    assert (caught.value.errno, content(fs), fs.used_bytes) == (ENOSPC, b"abcde", 5)
    fs.unlink("f")
    fs.fsync_dir("")
    fs.create("g").append(b"12345")
    assert fs.used_bytes == 5


def test_a_failed_write_leaves_half() -> None:
    """EIO with a torn write behind it, once."""
    fs = synced(b"")
    fs.faults.fail_write_in = 1
    file = fs.open("f")
    file.append(b"ab")
    with pytest.raises(OSError, match="injected"):
        file.append(b"cdef")
    file.append(b"!")
    assert content(fs) == b"abcd!"


@pytest.mark.parametrize(
    "act",
    [
        lambda fs: fs.open("f").append(b"x"),
        lambda fs: fs.open("f").truncate(0),
        lambda fs: fs.open("f").fsync(),
        lambda fs: fs.create("g"),
        lambda fs: fs.rename("f", "g"),
        lambda fs: fs.unlink("f"),
        lambda fs: fs.mkdir("d"),
        lambda fs: fs.fsync_dir(""),
    ],
)
def test_the_machine_can_die_inside_every_change(act: Callable[[SimFs], object]) -> None:
    """Armed with 0, any change kills it; until a restart every call raises, and not an `OSError`."""
    fs = synced(b"abc")
    fs.faults.crash_in = 0
    with pytest.raises(CrashedError):
        act(fs)
    for call in (lambda: fs.open("f"), lambda: fs.exists("f"), lambda: fs.listdir("")):
        with pytest.raises(CrashedError):
            call()
    fs.power_loss(keep_nothing)
    assert content(fs) == b"abc"


def test_handles_and_locks_die_with_the_process() -> None:
    """A handle of the last process is refused; its lock is free."""
    fs = synced(b"abc")
    file = fs.open("f")
    lock = fs.lock("lock")
    with pytest.raises(BlockingIOError):
        fs.lock("lock")
    fs.process_crash()
    with pytest.raises(OSError, match="process"):
        file.pread(1, 0)
    again = fs.lock("lock")
    lock.close()
    with pytest.raises(BlockingIOError):
        fs.lock("lock")
    again.close()
    fs.lock("lock")


@given(changes, changes, seeds)
def test_a_restored_snapshot_is_the_disk_it_was_taken_of(before: Changes, after: Changes, seed: int) -> None:
    """Whatever happens in between, contents, pending changes and handles are as they were."""
    fs = synced(b"start")
    images(fs, before)
    file = fs.open("f")
    snapshot = fs.snapshot()
    seen = content(fs)
    images(fs, after)
    fs.create("g")
    fs.process_crash()
    fs.restore(snapshot)
    assert (content(fs), file.pread(1000, 0), fs.listdir("")) == (seen, seen, ("f",))
    fs.power_loss(Random(seed).randrange)
    left = content(fs)
    fs.restore(snapshot)
    fs.power_loss(Random(seed).randrange)
    assert content(fs) == left


def test_directories_are_names_like_others() -> None:
    """Missing parents, taken names, full directories: the usual errors; an unsynced directory can vanish."""
    fs = synced(b"")
    fs.mkdir("d")
    fs.mkdir("d")
    fs.create("d/g").append(b"1")
    assert (fs.is_dir("d"), fs.is_dir("f"), fs.listdir("d")) == (True, False, ("g",))
    with pytest.raises(FileNotFoundError):
        fs.create("missing/g")
    with pytest.raises(FileExistsError):
        fs.mkdir("f")
    with pytest.raises(IsADirectoryError):
        fs.open("d")
    with pytest.raises(OSError, match="not empty"):
        fs.rmdir("d")
    fs.unlink("d/g")
    fs.rmdir("d")
    fs.mkdir("e")
    fs.power_loss(keep_nothing)
    assert fs.listdir("") == ("f",)
