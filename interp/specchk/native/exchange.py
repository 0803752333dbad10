"""Expansion of states into buckets, one for each partition, and conversion of packed states to words.

Memory: the buckets, each of at most `CAPACITY` states and what one more state may add.  All together have
`BUDGET` bytes at most, whatever the number of partitions, and no more than the states to expand can fill.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

from specchk.ir.program import Program
from specchk.native.machine.frames import BATCH, Exchange, SharedWord, most_successors
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words
from specchk.native.store import Worker

# Half a megabyte a partition at two words, so that what a block costs (a call, a row, a trailer) is spread
# over many states.
CAPACITY = 1 << 15
BUDGET = 1 << 23  # bytes of all buckets, without what one more state may add
LEAST = 64  # states in a bucket, where the budget or the need has room for fewer
CACHE_SLOTS = 1 << 16


def exchange_worker(program: Program, layout: StateLayout) -> Worker:
    """A worker's block, with all counts zero."""
    return Worker(program, layout, most_successors(program) + BATCH + 1)


class Buckets:
    """One bucket for each partition, for the successors of this many states; call `release` when done."""

    def __init__(
        self, program: Program, layout: StateLayout, kernel: Loaded, partitions: int, states: int
    ) -> None:
        self.partitions = partitions
        self.state_bytes = 8 * layout.words
        self._call = kernel.call
        most = most_successors(program)
        self.capacity = capacity(partitions, self.state_bytes, states * most)
        # FULL is checked between states, so the successors of one more must fit.
        share = (self.capacity + most + BATCH) * self.state_bytes
        self._room = Region(partitions * share)
        if share > 2 * BUDGET // partitions or states < partitions * LEAST:
            # There is room for many successors of one state, or for many states, of which few ever exist: a
            # huge page for the first state of each bucket would take the whole budget, or more.
            self._room.use_small_pages()
        self._cache = Region(CACHE_SLOTS * (self.state_bytes + 8))
        self._block = Words(Exchange.BUCKETS + 2 * partitions)
        for word, value in (
            (Exchange.PARTITIONS, partitions), (Exchange.CAPACITY, self.capacity),
            (Exchange.CACHE, self._cache.address), (Exchange.CACHE_MASK, CACHE_SLOTS - 1),
        ):  # fmt: skip
            self._block[word] = value
        for partition in range(partitions):
            self._block[Exchange.BUCKETS + 2 * partition] = self._room.address + partition * share

    def expand(self, worker: Worker, address: int, count: int) -> Iterator[tuple[int, bytes]]:
        """The successors of states at an address: (partition, packed states), full buckets first."""
        return self._scatter("scatter", worker, address, count)

    def deal(self, worker: Worker, address: int, count: int) -> Iterator[tuple[int, bytes]]:
        """The states at an address themselves, distributed to their partitions."""
        return self._scatter("deal", worker, address, count)

    def _scatter(self, name: str, worker: Worker, address: int, count: int) -> Iterator[tuple[int, bytes]]:
        done = 0
        while done < count:
            at = address + done * self.state_bytes
            self._call[name](self._block.address, worker.block.address, at, count - done)
            # The states expanded before a bucket was full; the others follow once buckets are empty.
            done += self._block[Exchange.DONE]
            if self._block[Exchange.FULL]:
                # Buckets that are half full are emptied as well, since states are spread evenly and these
                # would follow soon.
                yield from self.drain(self.capacity // 2)

    def drain(self, least: int = 1) -> Iterator[tuple[int, bytes]]:
        """Empty the buckets with at least this many states."""
        for partition in range(self.partitions):
            word = Exchange.BUCKETS + 2 * partition
            count = self._block[word + 1]
            if count >= least:
                self._block[word + 1] = 0
                # A copy: the bucket is filled again while the block is on its way.
                yield partition, ctypes.string_at(self._block[word], count * self.state_bytes)

    def release(self) -> None:
        """Free the memory."""
        self._room.release()
        self._cache.release()


def capacity(partitions: int, state_bytes: int, successors: int) -> int:
    """The number of states that fill a bucket, if a state has at most this many successors."""
    within_budget = BUDGET // (partitions * state_bytes)
    return max(LEAST, min(CAPACITY, within_budget, successors))


def smallest_predecessor(
    kernel: Loaded, worker: Worker, address: int, count: int, target: Sequence[int]
) -> tuple[int, ...] | None:
    """The smallest of the states at an address that has the target as a successor."""
    words = len(target)
    wanted, best, control = Words(words), Words(words + 1), Words(SharedWord.SIZE)
    wanted.fill(list(target))
    # `precede` reads the states through the control block alone; no table is needed.
    control[SharedWord.STATES] = address
    call = kernel.call["precede"]
    call(control.address, worker.block.address, 0, count, wanted.address, best.address)
    return best.read(0, words) if best[words] else None


def address_of(data: bytearray) -> int:
    """The address of the bytes, valid as long as they are neither resized nor freed."""
    return ctypes.addressof(ctypes.c_char.from_buffer(data))


def address_of_bytes(data: bytes) -> int:
    """The address of the bytes, valid as long as they are kept; for reading only."""
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0
