"""Numbers shared by several processes: a free process takes the next one, and none is taken twice.

    claims = Claims(521)        # before the processes are forked
    for number in claims: ...   # in each of them

A pipe is the queue: what one process has read from it no other can read.  It needs no lock that a process
which dies could hold.

Invariant: all tokens are written, and the writing end is closed, before any process reads; so an empty
pipe is at its end, and no process waits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

TOKEN_BYTES = 4
MOST_TOKENS = 4096  # far less than the capacity of a pipe, which would block a longer write


class Claims:
    """The numbers from 0 to `count` - 1, claimed a few at a time."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._at_once = max(1, -(-count // MOST_TOKENS))
        self._tokens, writing = os.pipe()
        with os.fdopen(writing, "wb") as file:
            file.writelines(first.to_bytes(TOKEN_BYTES, "little") for first in range(0, count, self._at_once))

    def __iter__(self) -> Iterator[int]:
        while token := os.read(self._tokens, TOKEN_BYTES):
            first = int.from_bytes(token, "little")
            yield from range(first, min(first + self._at_once, self._count))

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._tokens)
