"""Files kept between runs, so that results need not be computed again.

They live in `$XDG_CACHE_HOME/specchk` (`~/.cache` without the variable).  Each is named by a digest of
all that decides what is in it, the sources that compute it included: whole rooms of specchk, so that no
module can be left out.  A file is sealed under its own name (`sealed`):

- one that is missing, cut short, changed, or another one under this name is as good as none;
- so is one of another user, as object code is kept, too: whoever writes here runs code as this user.  The
  seal does not help, as anyone can compute it.  The directory is this user's alone (mode 0700), and one
  that another user owns or can write to is not used (`refusal`);
- a file appears whole or not at all (written beside its place, then renamed), so runs at the same time
  do not disturb each other;
- a directory that cannot be written costs the time to compute again, nothing else.

Not here: what is kept, and what decides it; whoever keeps it says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from io import FileIO
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

from specchk.sealed import Damaged, sealed, unsealed

SPECCHK = Path(__file__).parent
SPEC_ROOMS = ("lang", "ir", "meaning", "compile", "search", "explore")  # from text to states


def cache_directory() -> Path | None:
    """The directory of this user's specchk caches, or None if the user has no home."""
    named = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if named.is_absolute():  # the XDG rule: anything else is ignored
        return named / "specchk"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "specchk"
    return None


def refusal() -> str | None:
    """Why the directory is not used, a sentence; None if it is.  One of this user's is closed to others."""
    directory = cache_directory()
    try:
        status = None if directory is None else directory.stat()
        if directory is None or status is None:
            return None
        reason = "it belongs to another user"
        if status.st_uid == os.geteuid():
            if status.st_mode & 0o077:  # made under another umask
                directory.chmod(0o700)
            if not directory.stat().st_mode & 0o022:
                return None
            reason = "other users can write to it"
    except OSError:  # none there, or none that can be read or written: see above
        return None
    return (
        f"the cache {directory} is not used because {reason}: set XDG_CACHE_HOME to a directory of your own"
    )


def place(folder: str, name: str) -> Path | None:
    """The path of a kept file, None if nothing is kept."""
    directory = cache_directory()
    return None if directory is None or refusal() else directory / folder / name


@cache
def library(name: str) -> str:
    """A name for the installed version of a library, found without importing it."""
    found = PathFinder.find_spec(name)
    if found is None or found.origin is None:
        raise ModuleNotFoundError(f"no module named {name}", name=name)
    loader: Any = found.loader
    files = [loader.get_data(found.origin)]
    with suppress(OSError):  # most libraries have no such file
        files.append(loader.get_data(str(Path(found.origin).with_name("_version.py"))))
    # A digest: the files may be compiled, and are not text then.
    return hashlib.sha256(b"".join(files)).hexdigest()


def read(path: Path | None) -> bytes | None:
    """The content under this name; None if there is none, or if it differs from the written content."""
    if path is None:
        return None
    try:
        with FileIO(path) as file:
            # Of the open file: between a look at a path and the next there may be another file.
            is_own = os.fstat(file.fileno()).st_uid == os.geteuid()
            return unsealed(path.name, file.readall()) if is_own else None
    except (OSError, Damaged):
        return None


def write(path: Path | None, data: bytes) -> None:
    """Keep the content, if possible."""
    if path is not None:
        with suppress(OSError):
            path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            replace(path, sealed(path.name, data))


def read_json(path: Path | None) -> Any:
    """The value that `write_json` kept under this name; None as for `read`."""
    data = read(path)
    return None if data is None else json.loads(data)


def write_json(path: Path | None, value: Any) -> None:
    """Keep a JSON value, if possible."""
    write(path, json.dumps(value).encode())


def replace(path: Path, data: bytes | Sequence[bytes | memoryview]) -> None:
    """Replace a file's content by these pieces, atomically: a reader sees the old or the new content."""
    pieces = [data] if isinstance(data, bytes) else data
    # A rename would put a file in the place of a pipe or a device, and who reads from it would wait without
    # end.
    if _is_special(path):
        path.write_bytes(b"".join(pieces))
        return
    replacement = Replacement(path)
    try:
        replacement.write(pieces)
        replacement.finish()
    finally:
        replacement.abandon()


def _is_special(path: Path) -> bool:
    """Whether there is anything but a file.  One call: another process may remove a file meanwhile."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


class Replacement:
    """A new file that is written piece by piece, and then replaces a path in one step."""

    def __init__(self, path: Path) -> None:
        # Through links: what is replaced is the file, not the link to it.
        # Not `Path.resolve`, which raises `RuntimeError` for a link to itself.
        self.path = Path(os.path.realpath(path))
        # In the same folder, because a rename is atomic only within a file system; the name is this
        # writer's alone.
        self._beside = self.path.with_name(f".{self.path.name[:40]}.{os.getpid()}.{token_hex(4)}")
        self._file: BinaryIO | None = self._beside.open("xb")

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Add some pieces; raises `OSError`."""
        assert self._file is not None
        self._file.writelines(pieces)

    def finish(self) -> None:
        """Replace the path; raises `OSError`."""
        assert self._file is not None
        self._file.close()
        with suppress(FileNotFoundError):  # there may be no old file, or none any longer
            # A new file would have the modes of the umask, not those that its owner gave the old one.
            self._beside.chmod(self.path.stat().st_mode)
        self._beside.replace(self.path)
        self._file = None

    def abandon(self) -> None:
        """Remove the file, unless it is finished."""
        if self._file is not None:
            with suppress(OSError):  # closing writes what is left, and may fail where writing did
                self._file.close()
            self._beside.unlink(missing_ok=True)
            self._file = None


def name_of(*about: object) -> str:
    """A short name of values, derived from their text."""
    # `repr` and not `hash` or pickle: hashes of text are salted in each process, pickles are not canonical.
    return hashlib.sha256(repr(about).encode()).hexdigest()[:40]


@cache
def sources(*rooms: str) -> str:
    """A digest of specchk's modules in some rooms (by default all), and of the Python version."""
    if SPECCHK.parent.is_file():  # a zip file, as executors have it: all of it
        return contents((SPECCHK.parent,), SPECCHK.parent, sys.version)
    tops = [SPECCHK / room for room in rooms] or [SPECCHK]
    inside = {path for top in tops for path in _inside(str(top))}
    # How files are named and sealed decides what is in them, too.
    inside |= {entry.path for entry in os.scandir(SPECCHK) if entry.name.endswith(".py")}
    return contents(inside, SPECCHK, sys.version)


def _inside(folder: str) -> Iterator[str]:
    """The files in a folder and those below it, without what Python compiles and editors hide."""
    # Of those some do not last, and would change the digest.  Not `rglob`, which takes many times as long:
    # each run lists and reads all of them.
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith((".", "__pycache__")):
                continue
            if entry.is_dir():
                yield from _inside(entry.path)
            else:
                yield entry.path


def contents(files: Iterable[Path | str], folder: Path, about: str = "") -> str:
    """A digest of files: their relative paths, and their contents.  One that is not there is left out."""
    digest = hashlib.sha256(about.encode())
    for name, path in sorted((os.path.relpath(path, folder), path) for path in files):
        with suppress(FileNotFoundError), FileIO(path) as file:  # removed since it was listed
            data = file.readall()
            # With lengths, so that no two lists of files are the same bytes.
            digest.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()
