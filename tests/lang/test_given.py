"""Files that a user names: pipes are read, and nothing waits or reads without an end."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from hang import HANG_S
from specchk.lang.text import given
from specchk.lang.text.given import check_regular, is_regular, opened, read

LONG = 5 * given.BLOCK // 2


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def after(command: str, path: Path) -> bytes:
    """The bytes read from a pipe to which a shell writes."""
    with subprocess.Popen(["/bin/sh", "-c", f"{command} > {path}"]) as writer:
        found = read(path)
        assert writer.wait(HANG_S) == 0
    return found


def test_a_regular_file_is_read_as_it_is(tmp_path: Path) -> None:
    """As often as is needed."""
    (tmp_path / "file").write_bytes(b"a\nb")
    assert [read(tmp_path / "file"), read(tmp_path / "file")] == [b"a\nb", b"a\nb"]
    with opened(tmp_path / "file") as file:
        assert list(file) == [b"a\n", b"b"]
    check_regular(tmp_path / "file")


@pytest.mark.parametrize(
    "command", [f"head -c {LONG} /dev/zero", f"sleep 0.3; head -c {LONG} /dev/zero", ":"]
)
def test_a_pipe_is_read_to_its_end(fifo: Path, command: str) -> None:
    """Also if its writer takes its time, or writes nothing."""
    assert len(after(f"{{ {command}; }}", fifo)) == (0 if command == ":" else LONG)


def test_a_pipe_whose_writer_has_ended_is_read(tmp_path: Path) -> None:
    """As of `<(command)`, where the pipe has no name and the command may be faster."""
    ours, theirs = os.pipe()
    os.write(theirs, b"all of it")
    os.close(theirs)
    with opened(Path(f"/dev/fd/{ours}")) as file:
        assert file.read() == b"all of it"
    os.close(ours)


def test_a_pipe_that_nobody_writes_to_is_refused(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while, in which a writer may open it."""
    monkeypatch.setattr(given, "OPENED_WITHIN_S", 0.0)
    with pytest.raises(OSError, match="a pipe that no process writes to"):
        read(fifo)


def test_a_device_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its bytes fill the memory; one with an end is read."""
    monkeypatch.setattr(given, "MAX_STREAM", 3 * given.BLOCK)
    with pytest.raises(OSError, match="more than 3145728 bytes"):
        read(Path("/dev/zero"))
    assert read(Path(os.devnull)) == b""


def test_folders_and_sockets_are_refused(tmp_path: Path) -> None:
    """With the reason."""
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        read(tmp_path)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="it is a socket"):
            read(tmp_path / "socket")
    with pytest.raises(FileNotFoundError):
        is_regular(tmp_path / "nothing")


def test_what_cannot_be_read_twice_is_refused_where_it_must(fifo: Path) -> None:
    """Pipes and devices."""
    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(OSError, match="cannot be read twice"):
            check_regular(path)
