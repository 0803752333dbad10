"""Visited sets, in memory and in files: all committed states, and no others, whatever happens to them."""

from __future__ import annotations

import errno
import itertools
import mmap
import os
from pathlib import Path
from shutil import copytree

import pytest

from spark.small import program
from specchk.native.compiler import exchange_code, load_exchange
from specchk.native.exchange import address_of, exchange_worker
from specchk.native.machine import mapped
from specchk.native.machine.layout import StateLayout, layout_of
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.mapped import MappedFile
from specchk.spark.visited import Busy, Visited

CHECKED = program("kafka/kip320.spec", "small")
LAYOUT: StateLayout = layout_of(CHECKED)
SIZE = 8 * LAYOUT.words


@pytest.fixture(scope="module")
def kernel() -> Loaded:
    return load_exchange(CHECKED, LAYOUT, [], exchange_code(CHECKED, LAYOUT, []))


def packed(numbers: range) -> bytearray:
    """Different states, only the bits of which matter here."""
    return bytearray(b"".join(n.to_bytes(SIZE, "little") for n in numbers))


def written(view: memoryview) -> None:
    """States that are added without a look."""
    view[:] = packed(range(30_000))


def absorb(visited: Visited, numbers: range) -> int:
    """The number of new states, without committing them."""
    worker, data = exchange_worker(CHECKED, LAYOUT), packed(numbers)
    try:
        visited.begin()
        runs = visited.absorb(worker, address_of(data), len(numbers)) + worker.end_run()
        return sum(count for _, count in runs)
    finally:
        worker.release()


def test_a_set_grows_and_is_taken_over(kernel: Loaded, tmp_path: Path) -> None:
    """The next process has all committed states, in a table that grew meanwhile."""
    first = Visited(tmp_path, LAYOUT.words, kernel)
    assert absorb(first, range(40_000)) == 40_000
    first.commit()
    first.close()
    second = Visited(tmp_path, LAYOUT.words, kernel)
    assert (second.levels, second.used) == (1, 40_000)
    assert absorb(second, range(30_000, 50_000)) == 10_000
    second.close()


def test_what_a_worker_leaves_of_its_chunk_is_no_state(kernel: Loaded, tmp_path: Path) -> None:
    """Each level has a separate worker, and the states of all of them are without gaps."""
    visited = Visited(tmp_path, LAYOUT.words, kernel)
    for level in range(3):
        assert absorb(visited, range(10 * level + 1, 10 * level + 11)) == 10
        visited.commit()
        assert visited.used == 10 * (level + 1)
    assert absorb(visited, range(1)) == 1, "memory that was never written was taken for a state"
    visited.close()


def test_work_that_was_not_committed_is_forgotten(kernel: Loaded, tmp_path: Path) -> None:
    """After a process that ended in the middle, its states are new again."""
    first = Visited(tmp_path, LAYOUT.words, kernel)
    absorb(first, range(100))
    first.commit()
    absorb(first, range(30_000))
    first.close()
    second = Visited(tmp_path, LAYOUT.words, kernel)
    assert absorb(second, range(200)) == 100
    second.close()


def known_of(place: Path, kernel: Loaded) -> tuple[int, int]:
    """Levels of a set, and how many of the first hundred states it treats as new."""
    visited = Visited(place, LAYOUT.words, kernel)
    levels = visited.levels
    new = absorb(visited, range(100))
    visited.close()
    return levels, new


FILES = ("head", "states", "slots-8192")


@pytest.mark.parametrize("at_work", [False, True])
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_set_is_made_anew(kernel: Loaded, tmp_path: Path, file: str, at_work: bool) -> None:
    """For each file and damage: it has all committed states, or reports that it has no level at all."""
    whole = tmp_path / "whole"
    visited = Visited(whole, LAYOUT.words, kernel)
    absorb(visited, range(100))
    visited.commit()
    if at_work:
        absorb(visited, range(50, 300))
    visited.close()
    data = (whole / file).read_bytes()
    size = min(len(data), 100 * SIZE)
    ones = [at for at in range(size) if data[at]]
    for number, change in enumerate((
        *(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in ones[:: len(ones) // 9]),
        bytes(len(data)), data[: size // 2], b"", data[:8] + data[:-8], None,
    )):  # fmt: skip
        place = tmp_path / f"{number}" / "whole"
        copytree(whole, place)
        (place / file).unlink() if change is None else (place / file).write_bytes(change)
        assert known_of(place, kernel) in ((1, 0), (0, 100))


def test_sets_in_each_other_s_place_are_not_believed(kernel: Loaded, tmp_path: Path) -> None:
    """Though undamaged: a directory names its owner."""
    for name in ("00000", "00001"):
        visited = Visited(tmp_path / name, LAYOUT.words, kernel)
        absorb(visited, range(100))
        visited.commit()
        visited.close()
    assert known_of(tmp_path / "00000", kernel) == (1, 0)
    (tmp_path / "00001").rename(tmp_path / "00002")
    assert known_of(tmp_path / "00002", kernel) == (0, 100)


@pytest.mark.parametrize("fails_at", range(1, 5))
def test_a_full_disk_is_told_and_loses_nothing(
    kernel: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    """Whichever file cannot grow: the error is passed on, and committed states are kept."""
    visited, calls = Visited(tmp_path, LAYOUT.words, kernel), itertools.count(1)
    absorb(visited, range(100))
    visited.commit()

    def take(file: int, first: int, size: int) -> None:
        if next(calls) == fails_at:
            raise OSError(errno.ENOSPC, "no space")
        os.ftruncate(file, first + size)

    with monkeypatch.context() as full:
        full.setattr(os, "posix_fallocate", take)
        with pytest.raises(OSError, match="no space"):
            absorb(visited, range(50_000))
        visited.close()
    again = Visited(tmp_path, LAYOUT.words, kernel)
    assert absorb(again, range(50_000)) == 49_900
    again.close()


@pytest.mark.parametrize(("number", "told"), [(errno.EFAULT, errno.ENOSPC), (errno.EIO, errno.EIO)])
def test_pages_that_cannot_be_had_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: int
) -> None:
    """If space cannot be reserved: an error when the file is created, not the end of the process."""

    class Full(mmap.mmap):
        def madvise(self, *_: int) -> None:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(mapped.mmap, "mmap", Full)
    with pytest.raises(OSError) as error:  # noqa: PT011 - its number is looked at
        MappedFile(tmp_path / "file", 1 << 16)
    assert error.value.errno == told


def test_an_older_system_maps_files_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the advice, pages come one at a time."""
    monkeypatch.setattr(mapped, "POPULATE_WRITE", 99)
    file = MappedFile(tmp_path / "file", 1 << 16)
    assert bytes(file.view(0, 8)) == bytes(8)
    file.close()


def test_two_processes_never_have_one_set(kernel: Loaded, tmp_path: Path) -> None:
    """The second is told so, and the first is not disturbed."""
    first = Visited(tmp_path, LAYOUT.words, kernel)
    with pytest.raises(Busy):
        Visited(tmp_path, LAYOUT.words, kernel)
    first.close()
    Visited(tmp_path, LAYOUT.words, kernel).close()
