"""`replog dump` and `replog repair` where a start refuses a directory: they end, and name the file."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from replog.cli import run
from replog.store.checkpoints.registry import REGISTRY_FILE
from replog.store.checkpoints.root import LOCK_FILE, OFFSET_FILES
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import StoreError
from replog.store.files.fs import OsFs
from replog.store.segments.records import Record, encode_batch

FILES = (
    ".kafka_cleanshutdown", *OFFSET_FILES, REGISTRY_FILE,
    *[f"t-0/{name}" for name in ("log-manifest", "leader-epoch-checkpoint", "00000000000000000000.log",
                                 "00000000000000000000.index", "00000000000000000000.timeindex")],
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of two partitions that was stopped cleanly."""
    place = tmp_path / "data"
    directory = LogDirectory.open(OsFs(), str(place), LogConfig(segment_bytes=400))
    for partition in (0, 1):
        log = directory.log("t", partition)
        for value in range(9):
            log.append_as_leader(encode_batch([Record(b"%d" % value)]), 3)
    directory.shut_down({("t", 0): 9, ("t", 1): 9})
    return place


def starts(folder: Path) -> bool:
    """Whether a start opens all partitions."""
    try:
        directory = LogDirectory.open(OsFs(), str(folder))
    except StoreError:
        return False
    directory.abandon()
    return not directory.damaged


def put_folder(path: Path) -> None:
    path.mkdir()
    (path / "other").write_text("other", encoding="utf-8")


def put_socket(path: Path) -> None:
    # By a short name: that of a socket has a limit.
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(path.name)
    finally:
        os.chdir(here)


KINDS: dict[str, Callable[[Path], None]] = {
    "folder": put_folder,
    "pipe": os.mkfifo,
    "socket": put_socket,
    "link to itself": lambda path: path.symlink_to(path),
    "link to nothing": lambda path: path.symlink_to(path.parent / "nothing"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_no_file_is_named_and_set_aside(
    kind: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without waiting for who writes a pipe; kept under another name, so that a start succeeds."""
    (folder / name).unlink()
    KINDS[kind](folder / name)
    run(["dump", str(folder)])
    assert run(["repair", str(folder)]) == 1
    assert f"! {name}: not a file" in capsys.readouterr().out
    assert run(["repair", str(folder), "--apply", "--adopt"]) == 0
    assert f"{name}: kept as " in capsys.readouterr().out
    assert starts(folder)
    assert run(["repair", str(folder)]) == 0


@pytest.mark.parametrize("kind", ["folder", "socket", "link to itself"])
def test_a_lock_that_is_no_file_is_named(
    kind: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """Nothing is done without the lock."""
    (folder / LOCK_FILE).unlink()
    KINDS[kind](folder / LOCK_FILE)
    assert not starts(folder)
    for arguments in ([], ["--apply"]):
        assert run(["repair", str(folder), *arguments]) == 1
        assert LOCK_FILE in capsys.readouterr().err


@pytest.mark.parametrize("name", [".kafka_cleanshutdown", *OFFSET_FILES, "t-0/leader-epoch-checkpoint"])
def test_another_version_is_named_and_stays(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    """A start refuses it, so that a repair is not done: newer software may have written it."""
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content.replace(b"0", b"7", 1))
    assert not starts(folder)
    for arguments in ([], ["--apply"], ["--apply", "--adopt"]):
        assert run(["repair", str(folder), *arguments]) == 1
        printed = capsys.readouterr()
        assert f"{Path(name).name}: version 7 is not supported" in printed.out + printed.err
    assert (folder / name).read_bytes() == content.replace(b"0", b"7", 1)


@pytest.mark.parametrize("loss", ["missing", "changed"])
def test_a_partition_without_folder_and_list_is_not_forgotten(
    loss: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The checkpoints have its name: it stays closed, where an empty log would hide that it is lost."""
    shutil.rmtree(folder / "t-1")
    if loss == "missing":
        (folder / REGISTRY_FILE).unlink()
    else:
        (folder / REGISTRY_FILE).write_bytes((folder / REGISTRY_FILE).read_bytes()[:-3])
    assert run(["repair", str(folder)]) == 1
    assert "t-1                              damaged\n  ! its folder is missing" in capsys.readouterr().out
    directory = LogDirectory.open(OsFs(), str(folder))
    assert list(directory.damaged) == [("t", 1)]
    assert "its folder is missing, but records up to 9 were synced" in directory.damaged["t", 1]
    assert list(directory.logs) == [("t", 0)]
    directory.abandon()
    assert run(["repair", str(folder), "--apply"]) == 0
    assert starts(folder)
