"""The names of packed states: their 64-bit hashes, checked to be distinct within an export.

Names are compared by shares, each of which fits the processor's cache, so a writer sorts those of each block
by their share.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise

from msgspec import Struct

from specchk.export.parts import Unwritten
from specchk.ir.program import Program
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State
from specchk.native.exchange import address_of_bytes
from specchk.native.kernel.edge_kernel import NAME_SHARES
from specchk.native.machine.frames import NameTable
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words


class SharedNames(Struct, frozen=True):
    """The words of names, sorted by share, and the end of each share."""

    words: bytes
    ends: Sequence[int]

    def share(self, number: int) -> bytes:
        """The names of a share."""
        return self.words[8 * (self.ends[number - 1] if number else 0) : 8 * self.ends[number]]


class Naming:
    """Names the states of a block; `release` frees the memory."""

    def __init__(self, kernel: Loaded, most: int) -> None:
        self._kernel = kernel
        self._names, self._shared, self._ends = Region(8 * most), Region(8 * most), Words(NAME_SHARES)
        self._view = self._names.view(0, 8 * most)

    def names(self, address: int, count: int) -> tuple[memoryview, SharedNames]:
        """The names of states at an address: in order (valid until the next call), and by share."""
        names, shared, ends = self._names.address, self._shared.address, self._ends.address
        self._kernel.call["identify"](address, count, names)
        self._kernel.call["share_names"](names, count, ends, shared)
        ends_of_shares = array("Q", ctypes.string_at(ends, 8 * NAME_SHARES))
        return self._view[: 8 * count], SharedNames(ctypes.string_at(shared, 8 * count), ends_of_shares)

    def release(self) -> None:
        """Free the memory."""
        self._names.release()
        self._shared.release()


def names_of(
    states: Iterable[State], program: Program, layout: StateLayout, kernel: Loaded
) -> list[int | None]:
    """The names of the kept representatives of some states; None outside a constraint."""
    names: list[int | None] = []
    words, name = Words(layout.words), Words(1)
    properties = Properties(program, Stepper(program))
    for state in states:
        # A trace may end in a state that was checked and not kept.
        if not properties.keeps(state):
            names.append(None)
            continue
        words.fill(list(layout.pack(state)))
        kernel.call["represent"](words.address)
        kernel.call["identify"](words.address, 1, name.address)
        names.append(ctypes.c_int64(name[0]).value)
    return names


def require_distinct(kernel: Loaded, names: Sequence[SharedNames]) -> None:
    """Raise `Unwritten` if two states have the same name, as in one of 2^65 / states^2 exports."""
    ends = [sum(block.ends[number] for block in names) for number in range(NAME_SHARES)]
    largest = max(end - start for start, end in pairwise((0, *ends)))
    slots = 2 << largest.bit_length()
    table, block = Region(8 * slots), Words(NameTable.SIZE)
    block[NameTable.SLOTS], block[NameTable.MASK] = table.address, slots - 1
    try:
        for number in range(NAME_SHARES):
            share = b"".join([block.share(number) for block in names])
            ctypes.memset(table.address, 0, 8 * slots)
            kernel.call["repeats"](block.address, address_of_bytes(share), len(share) // 8)
    finally:
        table.release()
    if block[NameTable.REPEATED] or block[NameTable.ZEROES] > 1:
        raise Unwritten(f"two of {ends[-1]} states have the same 64-bit name: export another model")
