"""A file system that notes every change of a file or a directory, in order: the outputs of a store.

Reading leaves nothing behind and is not noted, so a store may read in another way, or less.  Contents are
noted by their sizes and checksums.  A change that fails is noted with its error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from zlib import crc32

from replog.run.files import FileStorage
from replog.sim.disks.disk import CrashedError
from replog.sim.disks.stored import DIRECTORY, KEY, StoreStorage
from replog.store.files.config import LogConfig
from replog.store.files.fs import Buffer, File, Fs, Lock, read_file
from specchk.conform.contract.behaviours import RunWatch

T = TypeVar("T")


class ObservedFs:
    """An `Fs` that notes the changes of the one below; paths are noted as given."""

    def __init__(self, fs: Fs, watch: RunWatch, at: str, root: str = "") -> None:
        self._fs, self._watch, self._at, self._root = fs, watch, at, root

    def change(self, make: Callable[[], T], kind: str, path: str, **fields: object) -> T:
        """Make a change of `path`, and note it after it was made or has failed."""
        try:
            made = make()
        except (OSError, CrashedError) as error:
            self._watch.note(self._at, kind, path=self._short(path), **fields, error=type(error).__name__)
            raise
        self._watch.note(self._at, kind, path=self._short(path), **fields)
        return made

    def _short(self, path: str) -> str:
        return path.removeprefix(self._root)

    def open(self, path: str) -> File:
        """Open a file, whose changes are recorded."""
        return ObservedFile(self._fs.open(path), self, path)

    def create(self, path: str) -> File:
        """Create or empty a file."""
        file = self.change(lambda: self._fs.create(path), "create", path)
        return ObservedFile(file, self, path)

    def exists(self, path: str) -> bool:
        """Return whether the name exists."""
        return self._fs.exists(path)

    def rename(self, source: str, target: str) -> None:
        """Replace `target`."""
        self.change(lambda: self._fs.rename(source, target), "rename", source, to=self._short(target))

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self.change(lambda: self._fs.unlink(path), "remove", path)

    def listdir(self, path: str) -> tuple[str, ...]:
        """Return the sorted names."""
        return self._fs.listdir(path)

    def is_dir(self, path: str) -> bool:
        """Return whether `path` is a directory."""
        return self._fs.is_dir(path)

    def mkdir(self, path: str) -> None:
        """Create a directory."""
        self.change(lambda: self._fs.mkdir(path), "make directory", path)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        self.change(lambda: self._fs.rmdir(path), "remove directory", path)

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        self.change(lambda: self._fs.fsync_dir(path), "sync directory", path)

    def lock(self, path: str) -> Lock:
        """Take a lock file."""
        return self.change(lambda: self._fs.lock(path), "lock", path)


class ObservedFile:
    """A handle whose writes, truncations and syncs are recorded."""

    __slots__ = ("_file", "_fs", "_path")

    def __init__(self, file: File, fs: ObservedFs, path: str) -> None:
        self._file, self._fs, self._path = file, fs, path

    def append(self, *parts: Buffer) -> None:
        """Write at the end."""
        size, checksum = _content(b"".join(parts))
        self._fs.change(
            lambda: self._file.append(*parts), "append", self._path, bytes=size, checksum=checksum
        )

    def pread(self, size: int, offset: int) -> bytes:
        """Read."""
        return self._file.pread(size, offset)

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Overwrite."""
        size, checksum = _content(bytes(data))
        self._fs.change(
            lambda: self._file.pwrite(data, offset),
            "write",
            self._path,
            offset=offset,
            bytes=size,
            checksum=checksum,
        )

    def truncate(self, size: int) -> None:
        """Cut or extend."""
        self._fs.change(lambda: self._file.truncate(size), "truncate", self._path, bytes=size)

    def fsync(self) -> None:
        """Make content and size durable."""
        self._fs.change(lambda: self._file.fsync(), "sync", self._path)

    def size(self) -> int:
        """Return the length."""
        return self._file.size()

    def close(self) -> None:
        """Release the handle."""
        self._file.close()


def _content(data: bytes) -> tuple[int, str]:
    return len(data), f"{crc32(data):08x}"


class ObservedDisk(StoreStorage):
    """A simulated machine's disk with replog's store on it, whose changes are recorded."""

    __slots__ = ()

    def __init__(self, watch: RunWatch, at: str, config: LogConfig) -> None:
        StoreStorage.__init__(self)
        FileStorage.__init__(self, ObservedFs(self.fs, watch, at), DIRECTORY, config, KEY)


def note_files(watch: RunWatch, at: str, fs: Fs, path: str, root: str = "") -> None:
    """Note the content of every file below a path; names are relative to `root`."""
    for name in fs.listdir(path):
        below = f"{path}/{name}"
        if fs.is_dir(below):
            note_files(watch, at, fs, below, root)
        else:
            size, checksum = _content(read_file(fs, below))
            watch.note(at, "file", path=below.removeprefix(root), bytes=size, checksum=checksum)
