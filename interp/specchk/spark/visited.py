"""The visited set of one partition: states in order of insertion, and the kernel's table over them.

The set is a cache of what is kept elsewhere permanently: it has the states of the first `levels`
levels, and its users add more where they need them.  It is in files of one machine that processes take over
from one another:

    head      levels, states, slots, whether a process is at work; checksums of states, table and head
    states    the states, in the order in which they arrived
    slots-N   the table over them (`table_kernel`), N slots

A process that ends in the middle of a level leaves the head at the level before; the next one takes
the states that count and rebuilds the table.  A table with a wrong checksum is rebuilt, too; states with a
wrong one are dropped, with their levels.  Only one process at a time has it open: it holds a lock, which
the system releases when the process ends.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from crc32c import crc32c

from specchk.native.machine.frames import CHUNK, SharedWord, Thread
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.mapped import MappedFile
from specchk.native.machine.memory import Words
from specchk.native.machine.runs import Run
from specchk.native.machine.slots import LOAD, grown
from specchk.native.store import Worker

# Half of a search's first table: there is one for each partition.
FIRST_SLOTS = 1 << 13
FAST_UNTIL = 1 << 23  # slots, 64 MB; there are as many tables as a process has partitions
PIECE = 1024  # states absorbed between two checks of the room that is left; at most MAX_RUNS
_HEAD = struct.Struct("<4Q2I")
_SEALED = struct.Struct("<I")


class Busy(Exception):
    """The set is open in another process."""


class Visited:
    """The set in a directory, open in this process until `close`."""

    def __init__(self, directory: Path, words: int, kernel: Loaded) -> None:
        self.state_bytes = 8 * words
        self.levels = self.used = self.slots = 0
        self._call = kernel.call
        self._control = Words(SharedWord.SIZE)
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._head = os.open(directory / "head", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._head, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._head)
            raise Busy(str(directory)) from None
        try:
            self._take_over()
        except BaseException:
            os.close(self._head)
            raise

    def _take_over(self) -> None:
        """Adopt the contents left by an earlier process, as far as they are intact."""
        self.levels, self.used, slots, at_work, self._check, table = self._read_head()
        self._map(slots, anew=bool(at_work))
        # The states first: a table over wrong states would be of no use, whatever its own checksum is.
        if crc32c(self._view(0, self.used)) != self._check:
            self.levels = self.used = self._check = 0
            self._remap(FIRST_SLOTS)
        # If a process was at work, the table has states that no longer count; `_map` has made a new one.
        elif not at_work and self._table_check != table:
            self._remap(slots)
        elif at_work:
            self._enter(0, self.used)
        self._kept = self.used

    def begin(self) -> None:
        """Mark the set as in use by one worker, until `commit`."""
        self._control[SharedWord.NEXT] = self.used  # what the worker before did not use of its chunk is free
        self._kept = self.used
        # Before the table is touched: from here on a process that ends leaves a table that is not trusted.
        self._write_head(at_work=True)

    def commit(self) -> None:
        """Commit all added states as one more level."""
        self.levels += 1
        # Continued over the new states alone; the whole file would be read once for each level.
        self._check = crc32c(self._view(self._kept, self.used - self._kept), self._check)
        self._kept = self.used
        self._write_head(at_work=False)

    def close(self) -> None:
        """Close the set, so that other processes can open it."""
        self._unmap()
        os.close(self._head)

    def add_known(self, fill: Callable[[memoryview], None], count: int) -> None:
        """Add states that `fill` writes, all new and already checked; its exceptions are passed on."""
        self._make_room(count)
        view = self._view(self.used, count)
        try:
            fill(view)
        finally:
            view.release()
        # Before `used` counts them: a function that raises leaves the set as it was.
        self._enter(self.used, self.used + count)
        self.used += count

    def absorb(self, worker: Worker, address: int, count: int) -> list[Run]:
        """Keep and check new states at an address; returns the runs of those inside the constraints."""
        runs: list[Run] = []
        block = worker.block
        for first in range(0, count, PIECE):
            # In pieces, because the table can grow only between two calls of the kernel.
            many = min(PIECE, count - first)
            self._make_room(many)
            at = address + first * self.state_bytes
            self._call["absorb"](self._control.address, block.address, at, many)
            # A partition has one worker, whose numbers have no gaps: the next free one is the number of
            # states.
            self.used = max(self.used, block[Thread.FREE])
            runs += worker.drain()
        return runs

    def views(self, runs: list[Run]) -> Iterator[memoryview]:
        """The states of runs."""
        for first, count in runs:
            view = self._view(first, count)
            yield view
            view.release()

    def _view(self, first: int, count: int) -> memoryview:
        """Some of the states."""
        return self._states.view(first * self.state_bytes, count * self.state_bytes)

    def _point(self, states: int, table: int) -> None:
        """Give their addresses to the kernel."""
        for word, value in (
            (SharedWord.TABLE, table), (SharedWord.MASK, self.slots - 1), (SharedWord.STATES, states),
            # The kernel's own limit is never reached: `_make_room` ensures room for a piece before each call.
            (SharedWord.LIMIT, self.slots),
        ):  # fmt: skip
            self._control[word] = value

    def _room_for_states(self, slots: int) -> int:
        """The number of bytes for the states of a full table."""
        # The last chunk may begin just below the limit.
        return (int(slots * LOAD) + 2 * CHUNK) * self.state_bytes

    def _enter(self, first: int, end: int) -> None:
        if first < end:
            self._call["rehash"](self._control.address, first, end)

    def _make_room(self, more: int) -> None:
        slots = grown(self.slots, self.used + more + CHUNK, FAST_UNTIL)
        if slots != self.slots:
            self._grow(slots)

    def _map(self, slots: int, *, anew: bool) -> None:
        """Map states and table; the table is empty if it is new."""
        self.slots = slots
        # The number of slots is in the name: a table that was made for another size is never mapped as this
        # one.
        path = self.directory / f"slots-{slots}"
        if anew:
            # A new file is an empty table, without writing zeroes.
            path.unlink(missing_ok=True)
        self._slots = MappedFile(path, 8 * slots)
        self._states = MappedFile(self.directory / "states", self._room_for_states(slots))
        self._point(self._states.address, self._slots.address)

    def _unmap(self) -> None:
        self._slots.close()
        self._states.close()

    def _remap(self, slots: int) -> None:
        self._unmap()
        self._map(slots, anew=True)
        self._enter(0, self.used)

    def _grow(self, slots: int) -> None:
        old = self._slots.path
        self._remap(slots)
        # A head that still names the old table does no harm: the empty one in its place does not have its
        # checksum, and is rebuilt.
        old.unlink(missing_ok=True)

    @property
    def _table_check(self) -> int:
        return crc32c(self._slots.view(0, 8 * self.slots))

    def _read_head(self) -> tuple[int, ...]:
        head = os.pread(self._head, _HEAD.size + _SEALED.size, 0)
        # A torn, empty or foreign head is like that of an empty set with which a process was at work.
        if head != self._with_check(head[: _HEAD.size]):
            return 0, 0, FIRST_SLOTS, 1, 0, 0
        return _HEAD.unpack_from(head)

    def _write_head(self, *, at_work: bool) -> None:
        table = 0 if at_work else self._table_check
        head = _HEAD.pack(self.levels, self._kept, self.slots, at_work, self._check, table)
        os.pwrite(self._head, self._with_check(head), 0)

    def _with_check(self, head: bytes) -> bytes:
        """A header with its checksum, which also covers its position."""
        # A head that was copied to another partition would describe other states; so the checksum covers its
        # place.
        return head + _SEALED.pack(crc32c(head, crc32c("/".join(self.directory.parts[-2:]).encode())))
