"""Files that the kernel reads and writes under an address: what several processes share in turn.

Space on the disk is taken before it is used, because a page that finds the disk full would end the
process.  What a mapping holds after the machine went down is not defined: who keeps something here
has another copy of it.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path


class MappedFile:
    """A file of `size` bytes at `address`; bytes that were never written are 0."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = max(mmap.PAGESIZE, size)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _take(file, self.size)
            flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
            self._map = mmap.mmap(file, self.size, flags=flags)
        finally:
            os.close(file)
        self._anchor: ctypes.c_char | None = ctypes.c_char.from_buffer(self._map)
        self.address = ctypes.addressof(self._anchor)

    def view(self, first: int, size: int) -> memoryview:
        """Some of the bytes, without copying them; release it before the file is closed."""
        return memoryview(self._map)[first : first + size]

    def close(self) -> None:
        """Unmap, once or again; the address cannot be used any more."""
        self._anchor = None
        with suppress(BufferError):  # a view is left on the way out of an error, and keeps the mapping
            self._map.close()


def _take(file: int, size: int) -> None:
    if os.fstat(file).st_size >= size:
        return
    try:
        os.posix_fallocate(file, 0, size)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        os.ftruncate(file, size)
