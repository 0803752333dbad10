"""A disk in memory that can lose exactly what a real disk may lose: `SimFs`, an `Fs` with a page cache.

    per file        cache     what the process reads: every write so far
                    durable   what the platter has: as of the last fsync
                    pending   the writes and truncations in between, oldest first
    per directory   names, durable names, and the pending creations, renames and removals

    process crash   handles and locks are lost, the page cache survives
    power loss      a file is `durable` plus a prefix of `pending`, the next write possibly torn, and its
                    length may have survived without the data (zeros); a directory is its durable names plus
                    a prefix of its pending changes, so a rename that was not synced may be lost

What survives is picked by a `Chooser` the caller seeds, so a run is a function of its seed. Faults are
armed on `SimFs.faults`: a full disk, an fsync that fails (and drops the dirty pages, as Linux does), a
failed write, and `crash_in`, the death of the machine inside the n-th change from now, half way through a
write.

Contents are immutable `bytes`, so `snapshot` copies references only, and an append copies one small file.
Meant for logs of kilobytes: a segment of megabytes belongs on `OsFs`.
"""

from dataclasses import dataclass, replace
from errno import EBADF, EEXIST, EIO, EISDIR, ENOENT, ENOSPC, ENOTEMPTY
from functools import lru_cache

from replog.sim.disks.images import Chooser, Directory, Inode, Naming, applied, written

Buffer = bytes | bytearray | memoryview

ROOT = 0


class CrashedError(Exception):
    """The machine died in a file operation; until `power_loss` or `process_crash` every call raises this.

    Deliberately no `OSError`: the program under test is gone and must not be able to handle it.
    """


@dataclass(slots=True)
class Faults:
    """Failures of a disk. A counter of n strikes at the n-th occasion from now (0: the next), once."""

    capacity_bytes: int | None = None
    fail_fsync_in: int | None = None
    fail_write_in: int | None = None
    crash_in: int | None = None
    fired: int = 0

    def strikes(self, counter: str) -> bool:
        """Count one occasion down; return whether the fault strikes at it."""
        left: int | None = getattr(self, counter)
        if left is None:
            return False
        setattr(self, counter, left - 1 if left else None)
        self.fired += left == 0
        return left == 0


class SimFs:
    """The simulated disk of one machine (see above); `changes` counts the changes to it.

    `died_in` is the operation in which the machine died last.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self.changes = 0
        self.incarnation = 0
        self.is_dead = False
        self.died_in = ""
        self._nodes: dict[int, Inode | Directory] = {ROOT: Directory()}
        self._next_number = ROOT + 1
        self._locks: set[str] = set()

    def process_crash(self) -> None:
        """Kill the process: handles and locks are lost, every written byte is kept."""
        self.incarnation += 1
        self._locks.clear()
        self.is_dead = False
        self.faults.crash_in = None

    def power_loss(self, choose: Chooser) -> None:
        """Cut the power: of each file or directory, keep one of the possible remains, as `choose` selects."""
        self.process_crash()
        # Sorted, so that the draws are in the same order in every run of a seed.
        for _, node in sorted(self._nodes.items()):
            if isinstance(node, Inode):
                node.cache = node.durable = node.surviving(choose)
                node.pages_lost = False
            else:
                node.names = node.surviving(choose)
                node.durable = node.names.copy()
            node.pending.clear()
        self._sweep()

    def _sweep(self) -> None:
        """Remove the files that are in no directory."""
        reachable: dict[int, Inode | Directory] = {}
        waiting = [ROOT]
        while waiting:
            number = waiting.pop()
            node = reachable[number] = self._nodes[number]
            if isinstance(node, Directory):
                waiting += node.names.values()
        self._nodes = reachable

    def snapshot(self) -> "SimFs":
        """Return a copy, in time proportional to the number of files and pending changes."""
        twin = SimFs()
        twin.restore(self)
        return twin

    def restore(self, snapshot: "SimFs") -> None:
        """Restore a snapshot, any number of times; handles that were open then are valid again."""
        self._nodes = {number: node.copy() for number, node in snapshot._nodes.items()}
        self._next_number = snapshot._next_number
        self.incarnation = snapshot.incarnation
        self._locks = snapshot._locks.copy()
        self.faults = replace(snapshot.faults)
        self.is_dead = snapshot.is_dead

    def note_change(self, what: str, about: str | int) -> bool:
        """Count a change about to happen; True if the machine dies in it (the caller makes a part of it).

        `about` is the path, or the number of a file.
        """
        if self.is_dead:
            raise CrashedError
        self.changes += 1
        if self.faults.crash_in is not None and self.faults.strikes("crash_in"):
            self.is_dead = True
            self.died_in = f"{what} {about if isinstance(about, str) else self._path_of(about)}"
            return True
        return False

    def _path_of(self, number: int) -> str:
        """The path of a file, or that the file has none any more."""
        for folder, node in self._nodes.items():
            if isinstance(node, Directory):
                for name, own in node.names.items():
                    if own == number:
                        return name if folder == ROOT else f"{self._path_of(folder)}/{name}"
        return "a file without a name"

    def _change_names(self, directory: Directory, naming: Naming, what: str, path: str) -> None:
        if self.note_change(what, path):
            raise CrashedError
        directory.apply(naming)

    @property
    def used_bytes(self) -> int:
        """Bytes of all files as the process sees them."""
        return sum(len(node.cache) for node in self._nodes.values() if isinstance(node, Inode))

    def inode(self, number: int) -> Inode:
        """Return a file by its number (handles look it up at every use, so that `restore` is possible)."""
        node = self._nodes.get(number)
        if not isinstance(node, Inode):
            raise OSError(EBADF, "the file is gone")
        return node

    def open(self, path: str) -> "SimFile":
        """Open an existing file."""
        directory, name = self._parent(path)
        number = directory.names.get(name)
        if number is None:
            raise FileNotFoundError(ENOENT, "no such file", path)
        if isinstance(self._nodes[number], Directory):
            raise IsADirectoryError(EISDIR, "is a directory", path)
        return SimFile(self, number)

    def create(self, path: str) -> "SimFile":
        """Create or empty a file."""
        directory, name = self._parent(path)
        if name in directory.names:
            file = self.open(path)
            # An empty file is not truncated: that would be one more change at which a crash may strike, and
            # no real disk sees it.
            if file.size():
                file.truncate(0)
            return file
        self._change_names(directory, ((name, self._add(Inode())),), "create", path)
        return SimFile(self, directory.names[name])

    def _add(self, node: Inode | Directory) -> int:
        number, self._next_number = self._next_number, self._next_number + 1
        self._nodes[number] = node
        return number

    def exists(self, path: str) -> bool:
        """Return whether the name exists."""
        return self._find(path) is not None

    def is_dir(self, path: str) -> bool:
        """Return whether `path` is a directory."""
        return isinstance(self._find(path), Directory)

    def rename(self, source: str, target: str) -> None:
        """Replace `target` atomically; both are in one directory."""
        directory, old = self._parent(source)
        target_directory, new = self._parent(target)
        assert directory is target_directory, "the store renames within a directory"
        if old not in directory.names:
            raise FileNotFoundError(ENOENT, "no such file", source)
        naming = ((old, None), (new, directory.names[old]))
        self._change_names(directory, naming, f"rename {source} to", target)

    def unlink(self, path: str) -> None:
        """Remove a file's name."""
        directory, name = self._parent(path)
        if name not in directory.names:
            raise FileNotFoundError(ENOENT, "no such file", path)
        self._change_names(directory, ((name, None),), "unlink", path)

    def listdir(self, path: str) -> tuple[str, ...]:
        """Return the sorted names."""
        return tuple(sorted(self._directory(path).names))

    def mkdir(self, path: str) -> None:
        """Create a directory."""
        directory, name = self._parent(path)
        if name not in directory.names:
            self._change_names(directory, ((name, self._add(Directory())),), "mkdir", path)
        elif not isinstance(self._nodes[directory.names[name]], Directory):
            raise FileExistsError(EEXIST, "a file has this name", path)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        if self._directory(path).names:
            raise OSError(ENOTEMPTY, "directory not empty", path)
        directory, name = self._parent(path)
        self._change_names(directory, ((name, None),), "rmdir", path)

    def fsync_dir(self, path: str) -> None:
        """Make the names durable, and forget the files that lost their last one."""
        directory = self._directory(path)
        if self.note_change("fsync of the folder", path):
            raise CrashedError
        # A file that was renamed over is kept until the directory is synced: a power loss may bring its name
        # back.
        named = {*directory.durable.values(), *(n for step in directory.pending for _, n in step if n)}
        directory.durable = directory.names.copy()
        directory.pending.clear()
        for number in named.difference(directory.names.values()):
            self._nodes.pop(number, None)

    def lock(self, path: str) -> "SimLock":
        """Take the lock of a file."""
        if path in self._locks:
            raise BlockingIOError(f"{path} is locked")
        if not self.exists(path):
            self.create(path)
        self._locks.add(path)
        return SimLock(self, path)

    def unlock(self, path: str, incarnation: int) -> None:
        """Release a lock taken in the same incarnation of the process."""
        # A lock of a dead process is free already, and may have a new owner.
        if incarnation == self.incarnation:
            self._locks.discard(path)

    def _find(self, path: str) -> Inode | Directory | None:
        if self.is_dead:
            raise CrashedError
        node: Inode | Directory | None = self._nodes[ROOT]
        for name in _split(path):
            number = node.names.get(name) if isinstance(node, Directory) else None
            if number is None:
                return None
            node = self._nodes[number]
        return node

    def _directory(self, path: str) -> Directory:
        node = self._find(path)
        if not isinstance(node, Directory):
            raise FileNotFoundError(ENOENT, "no such directory", path)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        parent, _, name = path.rpartition("/")
        return self._directory(parent), name


class SimFile:
    """A handle: valid in the incarnation of the process that opened it."""

    __slots__ = ("_fs", "_incarnation", "_number")

    def __init__(self, fs: SimFs, number: int) -> None:
        self._fs = fs
        self._number = number
        self._incarnation = fs.incarnation

    def _inode(self) -> Inode:
        if self._fs.is_dead:
            raise CrashedError
        if self._incarnation != self._fs.incarnation:
            raise OSError(EBADF, "the process that opened this file is gone")
        return self._fs.inode(self._number)

    def append(self, *parts: Buffer) -> None:
        """Write at the end (see `File.append`)."""
        inode = self._inode()
        self._write(inode, b"".join(parts), len(inode.cache))

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Overwrite (see `File.pwrite`)."""
        self._write(self._inode(), bytes(data), offset)

    def _write(self, inode: Inode, data: bytes, offset: int) -> None:
        """Write all of `data`, or the part that a fault permits."""
        fs, faults, wanted = self._fs, self._fs.faults, len(data)
        dies = fs.note_change(f"write of {wanted} bytes at {offset} of", self._number)
        fails = faults.fail_write_in is not None and faults.strikes("fail_write_in")
        if dies or fails:
            # Half of it: a torn write is the hardest case for a reader, since its header may be whole.
            data = data[: wanted // 2]
        if faults.capacity_bytes is not None:
            room = faults.capacity_bytes - fs.used_bytes + len(inode.cache) - offset
            data = data[: max(room, 0)]
        inode.pending.append((offset, data))
        inode.cache = inode.cache + data if offset == len(inode.cache) else written(inode.cache, offset, data)
        # After the part was written: death in the middle of a write leaves that part.
        if dies:
            raise CrashedError
        if fails:
            raise OSError(EIO, "injected write error")
        if len(data) < wanted:
            faults.fired += 1
            raise OSError(ENOSPC, "no space left on the simulated disk")

    def pread(self, size: int, offset: int) -> bytes:
        """Read from the page cache."""
        return self._inode().cache[offset : offset + size]

    def truncate(self, size: int) -> None:
        """Cut or extend."""
        inode = self._inode()
        if self._fs.note_change(f"truncate to {size} bytes", self._number):
            raise CrashedError
        inode.pending.append((size, None))
        inode.cache = applied(inode.cache, [(size, None)])

    def fsync(self) -> None:
        """Make the content durable, or fail permanently."""
        inode = self._inode()
        if self._fs.note_change("fsync of", self._number):
            raise CrashedError
        faults = self._fs.faults
        if faults.fail_fsync_in is not None and faults.strikes("fail_fsync_in"):
            # As Linux does: the pages are marked clean though they were not written, so the next fsync
            # succeeds and proves nothing.
            inode.drop_dirty()
            raise OSError(EIO, "injected fsync error")
        inode.sync()

    def size(self) -> int:
        """Return the length that the process sees."""
        return len(self._inode().cache)

    def close(self) -> None:
        """Do nothing: a handle holds no resources."""


class SimLock:
    """A held lock."""

    __slots__ = ("_fs", "_incarnation", "_path")

    def __init__(self, fs: SimFs, path: str) -> None:
        self._fs = fs
        self._path = path
        self._incarnation = fs.incarnation

    def close(self) -> None:
        """Release the lock, unless a crash has released it."""
        self._fs.unlock(self._path, self._incarnation)


@lru_cache(1024)
def _split(path: str) -> tuple[str, ...]:
    # Kept: a store asks for the same few paths in every call, and splitting them was a tenth of its time.
    return tuple([name for name in path.split("/") if name not in ("", ".")])
