"""The file system of the store: the protocol `Fs`, and `OsFs`, the real one.

These dozen calls are all that the store needs for durability, so a simulated disk that implements them
(`replog.sim.disks.disk.SimFs`) can lose exactly what a real one may lose:

    what                                  is durable after
    bytes written to a file               File.fsync
    a file created, renamed, unlinked     Fs.fsync_dir of its directory
    (before that, a power loss may keep any prefix of the unsynced changes, the last one possibly torn)

Paths are absolute or relative strings with `/`. Failures are `OSError`s with their usual errno (ENOENT,
ENOSPC, EIO); `Fs.lock` alone raises `BlockingIOError` when the lock is taken. After a failed `fsync` the
kernel may have dropped the dirty pages: a later fsync that succeeds proves nothing (so the store never
retries one).

Not here: buffering (the store writes whole batches), threads, and any policy about when to sync.
"""

import errno
import fcntl
import os
import stat
from contextlib import closing
from pathlib import Path
from typing import Protocol

Buffer = bytes | bytearray | memoryview
READ_WRITE = os.O_RDWR | os.O_CLOEXEC
NO_FILE = "not a file"
NO_FILE_ERRORS = errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENOENT, errno.ENXIO
"""Of opening something else than a file; ENXIO is that of a socket."""


class File(Protocol):
    """One open file. Offsets and sizes are bytes."""

    def append(self, *parts: Buffer) -> None:
        """Write all parts, in order, at the end; on an `OSError` a prefix of them may have been written."""

    def pread(self, size: int, offset: int) -> bytes:
        """Read up to `size` bytes at `offset`; shorter only at the end of the file."""

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Overwrite at `offset`; a gap beyond the end reads as zeros."""

    def truncate(self, size: int) -> None:
        """Cut (or zero-extend) to `size` bytes; durable only after `fsync`."""

    def fsync(self) -> None:
        """Make content and size durable, or raise; never retry after a failure."""

    def size(self) -> int:
        """Return the current length in bytes."""

    def close(self) -> None:
        """Release the handle without syncing; closing twice is harmless."""


class Lock(Protocol):
    """An exclusive lock held until `close` or the death of the process."""

    def close(self) -> None:
        """Release the lock; releasing twice is harmless."""


class Fs(Protocol):
    """Directory operations and the opening of files."""

    def open(self, path: str) -> File:
        """Open an existing file for reading and writing; `FileNotFoundError` if there is none."""

    def create(self, path: str) -> File:
        """Create an empty file, or empty an existing one, and open it."""

    def exists(self, path: str) -> bool:
        """Return whether a file or directory of this name exists."""

    def rename(self, source: str, target: str) -> None:
        """Move a file over `target` atomically (within one directory)."""

    def unlink(self, path: str) -> None:
        """Remove a file; `FileNotFoundError` if there is none."""

    def listdir(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted."""

    def is_dir(self, path: str) -> bool:
        """Return whether `path` is a directory."""

    def mkdir(self, path: str) -> None:
        """Create a directory in an existing one; it may exist already."""

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""

    def lock(self, path: str) -> Lock:
        """Take the exclusive lock file `path`, or raise `BlockingIOError` at once."""


def read_file(fs: Fs, path: str) -> bytes:
    """Return a whole file; raises `OSError`."""
    with closing(fs.open(path)) as file:
        return file.pread(file.size(), 0)


def file_size(fs: Fs, path: str) -> int:
    """Return a file's length in bytes; raises `OSError`."""
    with closing(fs.open(path)) as file:
        return file.size()


def make_directory(fs: Fs, path: str) -> None:
    """Create a directory and its missing parents, each durable in its parent; it may exist already."""
    if fs.is_dir(path):
        return
    parent = path.rstrip("/").rpartition("/")[0] or ("/" if path.startswith("/") else ".")
    # From the top down, each name synced in its parent: a durable file in a directory whose own name is
    # lost cannot be found.
    make_directory(fs, parent)
    fs.mkdir(path)
    fs.fsync_dir(parent)


def is_no_file(fs: Fs, path: str) -> bool:
    """Return whether a name that a directory lists is that of a folder, a pipe, or a link to nothing."""
    try:
        fs.open(path).close()
    except OSError as error:
        return error.errno in NO_FILE_ERRORS
    return False


def replace_file(fs: Fs, directory: str, name: str, data: bytes) -> None:
    """Atomically and durably replace `directory/name`: write `.tmp`, fsync, rename, fsync the directory.

    At every moment, and after a crash at any moment, the name holds the old content or the new one, whole.
    """
    # Beside the target, since a rename is atomic only within one file system.
    temporary = f"{directory}/{name}.tmp"
    # Synced before the rename: a journal may commit the new name before the data, and a power loss then
    # leaves the name on an empty file.
    with closing(fs.create(temporary)) as file:
        file.append(data)
        file.fsync()
    fs.rename(temporary, f"{directory}/{name}")
    # The rename itself lives in the directory. Without this sync the old content may come back after a crash,
    # although a caller has already acted on the new one.
    fs.fsync_dir(directory)


class OsFile:
    """A file descriptor; short writes are continued, so `append` writes everything or raises."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def append(self, *parts: Buffer) -> None:
        """Write at the end of the file, in one system call if it accepts all (see `File.append`)."""
        # Usually one call: the stamped header and the producer's bytes go out together, without being joined.
        written = os.writev(self._descriptor, parts)
        # A short write is legal, for instance on a nearly full disk; the next call then raises the reason.
        if written < sum(map(len, parts)):
            rest = memoryview(b"".join(parts))
            while written < len(rest):
                written += os.write(self._descriptor, rest[written:])

    def pread(self, size: int, offset: int) -> bytes:
        """Read, continuing short reads until the end of the file."""
        data = os.pread(self._descriptor, size, offset)
        while len(data) < size:
            more = os.pread(self._descriptor, size - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Overwrite without moving the append position (see `File.pwrite`)."""
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, offset)
            view, offset = view[written:], offset + written

    def truncate(self, size: int) -> None:
        """Set the length and move the append position to it."""
        os.ftruncate(self._descriptor, size)
        # The position is not moved by ftruncate; the next append would leave a hole of zeros.
        os.lseek(self._descriptor, size, os.SEEK_SET)

    def fsync(self) -> None:
        """Flush data and metadata to the device."""
        os.fsync(self._descriptor)

    def size(self) -> int:
        """Return the length from the inode."""
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        """Close the descriptor; further calls do nothing."""
        # Forgotten before it is closed: the number may be reused at once, and a second close would hit a
        # stranger.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def open_file(path: str, flags: int) -> int:
    """Open a regular file and return its descriptor; `OSError` for anything else, also for a pipe at once."""
    # Without waiting, since the opening of a pipe waits for who writes it.
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, NO_FILE, path)
    return descriptor


class OsFs:
    """The operating system's files; stateless."""

    __slots__ = ()

    def open(self, path: str) -> OsFile:
        """Open an existing file, positioned at its end."""
        descriptor = open_file(path, os.O_RDWR)
        os.lseek(descriptor, 0, os.SEEK_END)
        return OsFile(descriptor)

    def create(self, path: str) -> OsFile:
        """Create or empty a file."""
        return OsFile(os.open(path, READ_WRITE | os.O_CREAT | os.O_TRUNC, 0o644))

    def exists(self, path: str) -> bool:
        """Return whether the name exists."""
        return Path(path).exists()

    def rename(self, source: str, target: str) -> None:
        """Replace `target` atomically."""
        Path(source).replace(target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        Path(path).unlink()

    def listdir(self, path: str) -> tuple[str, ...]:
        """Return the sorted names."""
        return tuple(sorted(entry.name for entry in Path(path).iterdir()))

    def is_dir(self, path: str) -> bool:
        """Return whether `path` is a directory."""
        return Path(path).is_dir()

    def mkdir(self, path: str) -> None:
        """Create a directory."""
        Path(path).mkdir(exist_ok=True)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        Path(path).rmdir()

    def fsync_dir(self, path: str) -> None:
        """Sync a directory through a descriptor of its own."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lock(self, path: str) -> Lock:
        """Take `flock` on a lock file: released by the kernel when the process dies, however it dies."""
        # The file is never removed. Deleting it would let a second process lock a new file of the same name
        # while the first still holds the old one.
        descriptor = os.open(path, READ_WRITE | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return OsFile(descriptor)
