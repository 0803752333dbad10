"""Files that executors read: listed, read and written by path or URI, never by the driver.

A plain path and `file:` are the machine's own; any other scheme goes through `pyarrow.fs`, as for a ledger.
In a URI, the characters of a name that have a meaning there are escaped (`%20`); a path has names unchanged.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct
from pyarrow import fs

from specchk.export.arrow import system_of
from specchk.export.places import absolute_uri, local_path
from specchk.search.engine import Unusable

__all__ = ["RecordingListing", "absolute_uri", "listed", "names_in", "read", "size_of"]
SUFFIX = ".ndjson"


def read(place: str, unless: int = -1) -> bytes | None:
    """The bytes of a file; None, unread, if it has this size.  Raises `OSError`."""
    path = local_path(place)
    if path is not None:
        return None if path.stat().st_size == unless else path.read_bytes()
    system, name = system_of(place)
    with system.open_input_file(name) as file:
        return None if file.size() == unless else bytes(file.read())


def size_of(place: str) -> int | None:
    """The size of a file in bytes; None if it is not visible from here."""
    path = local_path(place)
    try:
        if path is not None:
            return path.stat().st_size
        system, name = system_of(place)
        size: int | None = system.get_file_info(name).size
    except OSError:
        return None
    return size


def listed(place: str) -> list[str]:
    """The recordings in a folder in the order of their names, or a single file; raises `OSError`."""
    path = local_path(place)
    if path is not None:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    else:
        system, name = system_of(place)
        kind = system.get_file_info(name).type
        if kind == fs.FileType.NotFound:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
        is_folder = kind == fs.FileType.Directory
    return _recordings_in(place) if is_folder else [place]


def _recordings_in(folder: str) -> list[str]:
    path = local_path(folder)
    names = [name for name in names_in(folder) if name.endswith(SUFFIX)]
    # A file of this machine has its path, whatever is in its name: it would have to be escaped in a URI.
    if path is not None:
        return [str(path / name) for name in names]
    return [f"{folder.rstrip('/')}/{quote(name)}" for name in names]


def names_in(folder: str) -> list[str]:
    """The names of everything in a folder, which need not exist; raises `OSError`."""
    path = local_path(folder)
    if path is not None:
        return sorted(one.name for one in path.iterdir()) if path.exists() else []
    system, name = system_of(folder)
    return sorted(one.base_name for one in system.get_file_info(fs.FileSelector(name, allow_not_found=True)))


class RecordingListing(Struct, frozen=True):
    """A job (`conform.work.crews.Job`) that lists the recordings at a place."""

    def __call__(self, cls: Any, folder: Path) -> Callable[[str], Sequence[str]]:
        """The function that lists; `Unusable` names this host."""
        del cls, folder
        return listed_here


def listed_here(place: str) -> Sequence[str]:
    """Like `listed`; raises `Unusable`, also for a folder without recordings."""
    try:
        names = listed(place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unusable(f"the worker on {socket.gethostname()} cannot list {place}: {reason}") from None
    if not names:
        raise Unusable(f"there is no recording (*{SUFFIX}) in {place}")
    return names
