"""Memory of the kernel: large regions, in huge pages if the system has them.

A region reserves address space and gets pages when they are first used; one of maximal size never moves, and
a smaller one may move when it grows.  It can be moved to a file under the same addresses (`spill`), so that
the system may write its pages out; disk space is then taken before it is used, because the use of a page for
which the disk has no room would end the process.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Self

# Constants of Linux that Python 3.11's `mmap` does not have.
_NORESERVE, _FIXED, _HUGE_PAGE, _SMALL_PAGES, _PAGE_OUT, _MAY_MOVE = 0x4000, 0x10, 14, 15, 21, 1
_WRITE_AT_ONCE = 1 << 26
_FEW_WORDS = 2048  # cheaper to write than to map


@cache  # loading a library makes a class of functions, and a Spark task has hundreds of regions
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    address, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.argtypes = [address, size, number, number, number, ctypes.c_long]
    library.munmap.argtypes = [address, size]
    library.mremap.argtypes = [address, size, size, number]
    library.madvise.argtypes = [address, size, number]
    # Without a type ctypes takes 32 bits of the address.
    library.mmap.restype = library.mremap.restype = address
    return library


class Region:
    """`size` bytes of zeroes at `address`."""

    def __init__(self, size: int) -> None:
        self._libc = _library()
        self.size = _whole_pages(size)
        # Without NORESERVE a system that does not overcommit refuses 4 TiB at once.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        self.address = self._map(None, self.size, flags, -1)
        # A hint, and no error if the system ignores it; nearly every probe reads another page, and pages of 2
        # MB need 512 times fewer entries of the TLB (half of the time of a hand-written search).
        self._libc.madvise(self.address, self.size, _HUGE_PAGE)
        self._file: int | None = None
        self.file_bytes = 0

    def _map(self, address: int | None, size: int, flags: int, file: int) -> int:
        return _address(self._libc.mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, file, 0))

    def grow(self, size: int) -> None:
        """Grow, moving to another address if necessary; `MemoryError` leaves everything unchanged."""
        assert self._file is None, "a region on disk does not grow"
        size = _whole_pages(size)
        # Page tables are moved, not bytes; and a failure leaves the old mapping.
        self.address = _address(self._libc.mremap(self.address, self.size, size, _MAY_MOVE))
        self.size = size
        self._libc.madvise(self.address, size, _HUGE_PAGE)

    @classmethod
    def of_small_pages(cls, size: int) -> Self:
        """A region of small pages, allocated on first use: for sparse, small or sequentially read data."""
        region = cls(size)
        region.use_small_pages()
        return region

    def use_small_pages(self) -> None:
        """Use small pages, allocated on first use; call it before any page is used."""
        self._libc.madvise(self.address, self.size, _SMALL_PAGES)

    @property
    def is_spilled(self) -> bool:
        """Whether a file holds the contents."""
        return self._file is not None

    def view(self, first: int, size: int) -> memoryview:
        """Some of the bytes, without copying them."""
        return memoryview((ctypes.c_char * size).from_address(self.address + first)).cast("B")

    def spill(self, directory: Path, used: int, room: int) -> None:
        """Move the contents to a nameless file, with space for `room` bytes; `OSError` if there is none."""
        # Nameless: whatever ends the process, the space is free afterwards.
        file = os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o600)
        try:
            # Before anything is written: a store to a page of the mapping is a SIGBUS if the disk is full.
            take(file, max(room, used))
            for first in range(0, used, _WRITE_AT_ONCE):
                write_fully(file, self.view(first, min(_WRITE_AT_ONCE, used - first)))
            # The file has holes up to the whole address space: it never has to be enlarged while workers
            # run.
            os.ftruncate(file, self.size)
            # Over the old mapping, in one call: the kernel's pointers stay right, and the memory is freed
            # with it.
            self._map(self.address, self.size, mmap.MAP_SHARED | _FIXED, file)
        except BaseException:
            os.close(file)
            raise
        self._file, self.file_bytes = file, max(room, used)

    def make_room(self, room: int) -> None:
        """Ensure that `room` bytes can be used; `OSError` if the disk is full."""
        if self._file is not None and room > self.file_bytes:
            take(self._file, room)
            self.file_bytes = room

    def page_out(self, used: int) -> None:
        """Allow the system to write out pages that are now in memory."""
        if self._file is not None:
            # Rounded down: the last page is the one that workers write next.
            self._libc.madvise(self.address, used // mmap.PAGESIZE * mmap.PAGESIZE, _PAGE_OUT)

    def release(self) -> None:
        """Free everything; the region can no longer be used."""
        if self.address:
            self._libc.munmap(self.address, self.size)
            self.address = 0
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


def _address(address: int | None) -> int:
    if address in (None, ctypes.c_void_p(-1).value):
        raise MemoryError(os.strerror(ctypes.get_errno()))
    return int(address)


def address_space(most: int) -> int:
    """The number of bytes to reserve: `most`, or half of what a process limit (`ulimit -v`) leaves."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return most
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return min(most, max(mmap.PAGESIZE, (limit - pages * mmap.PAGESIZE) // 2))


def take(file: int, size: int) -> None:
    """Reserve disk space for this many bytes of a file, if supported; `OSError` if there is not enough."""
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            # Some file systems cannot; there, a full disk is detected later, by the signal.
            raise


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add to the system's errors the name of the file that they concern."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def write_fully(file: int, data: memoryview | bytes) -> None:
    """Write all of the data; `OSError` if that fails."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, if the system can."""
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


class Words:
    """A small block of 64-bit words that Python can also read and write."""

    def __init__(self, count: int) -> None:
        kind = ctypes.c_uint64 * max(1, count)
        if count < _FEW_WORDS:
            self._block = kind()
        else:
            # Pages that are not touched take no memory: a worker's list of runs has room for 4,096, and a
            # task that makes many slices has a worker for each.
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            self._block = kind.from_buffer(mmap.mmap(-1, ctypes.sizeof(kind), flags=flags))
        self.address = ctypes.addressof(self._block)

    @classmethod
    def of(cls, data: bytes) -> Words:
        """A new block with a copy of some words."""
        block = cls(len(data) // 8)
        ctypes.memmove(block.address, data, len(data))
        return block

    def __getitem__(self, index: int) -> int:
        return self._block[index]

    def __setitem__(self, index: int, value: int) -> None:
        self._block[index] = value

    def read(self, first: int, count: int, stride: int = 1) -> tuple[int, ...]:
        """Some words: all, or the first one of each `stride`."""
        return tuple(self._block[first : first + count : stride])

    def fill(self, values: list[int]) -> None:
        """Set the first words."""
        for index, value in enumerate(values):
            self._block[index] = value
