"""Files that a user names and that are read whole: regular ones, and pipes, as of `<(command)`.

Opening a pipe waits for its writer, and a device may have no end.  So a pipe that no process opens is refused
after a while, and whatever is not a regular file is read up to a limit.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BytesIO
from pathlib import Path
from select import POLLHUP, POLLIN, poll
from time import monotonic
from typing import IO

MAX_STREAM = 1 << 28  # bytes of a pipe or device
OPENED_WITHIN_S = 10.0  # a shell opens a pipe as soon as it has started the command before it
BLOCK = 1 << 20
PAUSE_MS = 20


def is_regular(path: Path) -> bool:
    """Whether there is a file of which each reading has the same content; `OSError` as for `read`."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if stat.S_ISSOCK(mode):
        raise _refused(path, "it is a socket; write its messages to a file")
    return stat.S_ISREG(mode)


def check_regular(path: Path) -> None:
    """Check that a file can be read more than once; raises `OSError` if it cannot."""
    if not is_regular(path):
        raise _refused(path, "it is a pipe or a device, which cannot be read twice; write it to a file")


def read(path: Path) -> bytes:
    """The bytes of a file, or of a pipe or device up to its end; raises `OSError` with the reason."""
    return path.read_bytes() if is_regular(path) else _read_stream(path)


def opened(path: Path) -> IO[bytes]:
    """As `read`; a regular file is read by and by."""
    return path.open("rb") if is_regular(path) else BytesIO(_read_stream(path))


def _read_stream(path: Path) -> bytes:
    # Without waiting: only for a writer that exists is it right to wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        first = _first_block(path, descriptor)
        os.set_blocking(descriptor, True)
        parts, size = [first], len(first)
        while parts[-1]:
            if size > MAX_STREAM:
                raise _refused(path, f"it has more than {MAX_STREAM} bytes, and is not a regular file")
            parts.append(os.read(descriptor, BLOCK))
            size += len(parts[-1])
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _first_block(path: Path, descriptor: int) -> bytes:
    """The first bytes, as soon as there are some; none if a writer ended without any."""
    waiting = poll()
    waiting.register(descriptor, POLLIN)
    last = monotonic() + OPENED_WITHIN_S
    while True:
        try:
            block = os.read(descriptor, BLOCK)
        except BlockingIOError:  # a writer has it open, and may take its time
            waiting.poll()
            continue
        if block or not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            return block
        # A pipe hangs up only after a writer had it open; before, it reads as if it were empty.
        events = dict(waiting.poll(PAUSE_MS)).get(descriptor, 0)
        if events == POLLHUP:
            return block
        if not events and monotonic() > last:
            raise _refused(path, "it is a pipe that no process writes to")


def _refused(path: Path, reason: str) -> OSError:
    return OSError(errno.EINVAL, reason, str(path))
