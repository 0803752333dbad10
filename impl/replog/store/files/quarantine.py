"""Data that a start or a repair removes from a log is kept beside it: renamed files, or copies of cut bytes.

    00000000000000000120.log.quarantine1              a file that does not belong there, or is unusable
    00000000000000000000.log.at-4096.quarantine1      the bytes of that file from byte 4096 on

The store writes these names and never reads, renames or removes them; `replog dump` lists them. Removing them
is for a person to decide.
"""

import re
from collections.abc import Iterable
from contextlib import closing
from itertools import count

from replog.store.files.fs import File, Fs, read_file

SUFFIX = ".quarantine"
PIECE_BYTES = 1 << 20
TEXT = re.compile(rb"[\n -~]*\0*")
"""What replacing a text file may leave: a beginning of it, filled up with zeros by a power loss."""


def is_quarantined(name: str) -> bool:
    """Return whether a file's name was given by this module."""
    stem, _, number = name.rpartition(SUFFIX)
    return bool(stem) and number.isascii() and number.isdecimal()


def set_aside(fs: Fs, directory: str, name: str) -> str:
    """Rename a file as set aside and return its new name; durable once the directory is synced."""
    kept = _free_name(fs, directory, name)
    fs.rename(f"{directory}/{name}", f"{directory}/{kept}")
    return kept


def keep_copy(fs: Fs, directory: str, name: str, file: File, position: int) -> str | None:
    """Copy a file's bytes from `position` on, durably, and return the copy's name; None if all are zero."""
    size = file.size()
    starts = range(position, size, PIECE_BYTES)
    pieces = (file.pread(PIECE_BYTES, start) for start in starts)
    # A power loss can extend a file with zeros; there is nothing in them to keep.
    if all(piece.count(0) == len(piece) for piece in pieces):
        return None
    kept = _free_name(fs, directory, f"{name}.at-{position}")
    with closing(fs.create(f"{directory}/{kept}")) as copy:
        for start in starts:
            copy.append(file.pread(PIECE_BYTES, start))
        # The caller cuts the original next. The copy and its name must be durable by then, or a power loss
        # in between takes both.
        copy.fsync()
    fs.fsync_dir(directory)
    return kept


def _free_name(fs: Fs, directory: str, name: str) -> str:
    names = (f"{name}{SUFFIX}{number}" for number in count(1))
    return next(free for free in names if not fs.exists(f"{directory}/{free}"))


def clear_temporary(fs: Fs, directory: str, names: Iterable[str]) -> list[str]:
    """Remove the remains of replaced text files; set aside files that are not text; return their names."""
    kept = []
    for name in names:
        path = f"{directory}/{name}.tmp"
        if not fs.exists(path):
            continue
        # Only what this store may have left is removed. Anything else under the name is not its own.
        if TEXT.fullmatch(read_file(fs, path)):
            fs.unlink(path)
        else:
            kept.append(set_aside(fs, directory, f"{name}.tmp"))
    return kept
