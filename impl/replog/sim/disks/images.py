"""The simulated file and directory: the visible state, the durable state, and the changes between.

    Inode       cache b"abcdef"   durable b"abc"     pending [(3, b"d"), (4, b"ef")]
                a power loss leaves abc, abcd, abcde (torn), abcdef, or one of these filled up with zeros
    Directory   names {log}       durable {log.tmp}  pending [log.tmp -> log]
                a power loss leaves one or the other

A pending change to a file is `(offset, data)` or, for a truncation, `(size, None)`; to a directory it is
a tuple of names set or removed together. A `Chooser` picks what is left, never this module (`disk.py`
has the machine).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

Chooser = Callable[[int], int]  # choose(n) is one of 0..n-1, e.g. random.Random(seed).randrange
Change = tuple[int, bytes | None]
Naming = tuple[tuple[str, int | None], ...]


@dataclass(slots=True)
class Inode:
    """One file's two images and the changes between them; `pages_lost` after a failed fsync."""

    cache: bytes = b""
    durable: bytes = b""
    pending: list[Change] = field(default_factory=list)
    pages_lost: bool = False

    def copy(self) -> "Inode":
        """Return a copy that shares the contents and has its own list."""
        return Inode(self.cache, self.durable, self.pending.copy(), self.pages_lost)

    def sync(self) -> None:
        """Bring the durable image up to date, except for lost pages."""
        # Pages that a failed fsync dropped are in the cache and stay off the platter, whatever is synced
        # later.
        self.durable = applied(self.durable, self.pending) if self.pages_lost else self.cache
        self.pending.clear()

    def drop_dirty(self) -> None:
        """Drop pending writes, keeping them readable: a failed fsync on Linux."""
        self.pages_lost = True
        self.pending.clear()

    def surviving(self, choose: Chooser) -> bytes:
        """Return a content that could remain after a power loss now."""
        # A prefix: changes to one file reach the platter in order. Between files nothing is ordered.
        kept = choose(len(self.pending) + 1)
        image = applied(self.durable, self.pending[:kept])
        if kept < len(self.pending):
            offset, data = self.pending[kept]
            if data is not None:
                image = applied(image, [(offset, data[: choose(len(data) + 1)])])
            # The new length may be durable without the data, and a read then returns zeros.
            if choose(4) == 0:
                image = image.ljust(len(self.cache), b"\0")
        return image


@dataclass(slots=True)
class Directory:
    """Names to inode numbers: the visible ones, the durable ones, and the steps between."""

    names: dict[str, int] = field(default_factory=dict)
    durable: dict[str, int] = field(default_factory=dict)
    pending: list[Naming] = field(default_factory=list)

    def copy(self) -> "Directory":
        """Return a copy that shares nothing (directories are small)."""
        return Directory(self.names.copy(), self.durable.copy(), self.pending.copy())

    def apply(self, naming: Naming) -> None:
        """Apply one step, not yet durable."""
        self.pending.append(naming)
        _rename(self.names, naming)

    def surviving(self, choose: Chooser) -> dict[str, int]:
        """Return names that could remain after a power loss now."""
        names = self.durable.copy()
        for naming in self.pending[: choose(len(self.pending) + 1)]:
            _rename(names, naming)
        return names


def _rename(names: dict[str, int], naming: Naming) -> None:
    for name, number in naming:
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number


def written(content: bytes, offset: int, data: bytes) -> bytes:
    """Return the content with `data` at `offset`; a gap is filled with zeros."""
    return content[:offset].ljust(offset, b"\0") + data + content[offset + len(data) :]


def applied(content: bytes, changes: Iterable[Change]) -> bytes:
    """Return the content after the changes."""
    for offset, data in changes:
        content = content[:offset].ljust(offset, b"\0") if data is None else written(content, offset, data)
    return content
