"""Files of the operating system, whose calls may do a part of what they are asked."""

from __future__ import annotations

import errno
import os
from contextlib import closing
from pathlib import Path

import pytest

from replog.store.files.fs import OsFs

PARTS = (b"head", b"", b"and the rest of it")


def shorten(monkeypatch: pytest.MonkeyPatch, most: int, room: int = 1000) -> None:
    """Let each call read or write so many bytes, and all of them write no more than there is room for."""
    write, read, written = os.write, os.pread, 0

    def short_write(file: int, data: bytes) -> int:
        nonlocal written
        if written >= room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = write(file, bytes(data)[: min(most, room - written)])
        written += count
        return count

    monkeypatch.setattr(os, "write", short_write)
    monkeypatch.setattr(os, "writev", lambda file, parts: short_write(file, b"".join(parts)))
    monkeypatch.setattr(os, "pread", lambda file, size, at: read(file, min(size, most), at))


@pytest.mark.parametrize("most", [1, 3, 5, 22, 100])
def test_short_writes_and_reads_are_continued(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every byte is written once, in order, and read again."""
    shorten(monkeypatch, most)
    with closing(OsFs().create(str(tmp_path / "file"))) as file:
        file.append(*PARTS)
        file.append(*PARTS)
        assert file.pread(30, 3) == (2 * b"".join(PARTS))[3:33]
        assert file.pread(100, 40) == b" of it"[2:]
    assert (tmp_path / "file").read_bytes() == 2 * b"".join(PARTS)


def test_a_write_for_which_there_is_no_room_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the first call of the system took a part of it."""
    shorten(monkeypatch, 100, room=10)
    with closing(OsFs().create(str(tmp_path / "file"))) as file, pytest.raises(OSError, match="No space"):
        file.append(*PARTS)
