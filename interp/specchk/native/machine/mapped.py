"""Files mapped into memory for the kernel, shared by several processes in turn.

Space on the disk is taken before it is used, because the use of a page for which the disk has no room would
end the process.  The contents of a mapping are undefined after a failure of the machine: whoever keeps data
here has another copy.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path

from specchk.native.machine.memory import naming, take

POPULATE_WRITE = 23  # madvise: pages are there and writable at once; Linux 5.14


class MappedFile:
    """A file of `size` bytes at `address`; bytes that were never written are 0.

    `OSError` if there is no space for it.
    """

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = max(mmap.PAGESIZE, size)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with naming(path):
                self._map = _mapped(file, self.size)
        finally:
            os.close(file)
        # Holding the buffer keeps the mapping at its address; `close` has to drop it first.
        self._anchor: ctypes.c_char | None = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._anchor)

    def view(self, first: int, size: int) -> memoryview:
        """Some of the bytes, without copying them; release it before the file is closed."""
        return memoryview(self._map)[first : first + size]

    def close(self) -> None:
        """Unmap the file (repeated calls are allowed); the address can no longer be used."""
        self._anchor = None
        with suppress(BufferError):  # a view is left on the way out of an error, and keeps the mapping
            self._map.close()


def _mapped(file: int, size: int) -> mmap.mmap:
    # New pages are populated for writing, old ones for reading: `MAP_POPULATE` maps a shared file only to
    # be read.
    is_new = _enlarge(file, size)
    # A file with contents is read whole for its checksum, so its pages may as well be mapped in one call.
    flags = mmap.MAP_SHARED | (0 if is_new else getattr(mmap, "MAP_POPULATE", 0))
    mapped = mmap.mmap(file, size, flags=flags)
    if is_new:
        _populate(mapped)
    return mapped


def _enlarge(file: int, size: int) -> bool:
    """Grow a file to this size, with disk space reserved; returns whether it was smaller."""
    if os.fstat(file).st_size >= size:
        return False
    take(file, size)
    # `take` enlarges the file only where the system has it.
    os.ftruncate(file, size)
    return True


def _populate(mapped: mmap.mmap) -> None:
    """Populate all pages, writable, at once: that takes half the time of doing so one at a time."""
    try:
        mapped.madvise(POPULATE_WRITE)
    except OSError as error:
        if error.errno == errno.EFAULT:  # an access would end the process: space was not taken before
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        if error.errno != errno.EINVAL:  # an older system
            raise
