"""Deadlocks among states without enabled listed steps.

Where the spec lists a `nat upto`, compiled code cannot distinguish a deadlock from the end of a
horizon (`meaning.deadlock`).  It notes one state of a level without steps; then all states of that level are
checked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator

from specchk.meaning.deadlock import End, Ends
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Words
from specchk.search.findings import Findings

AT_ONCE = 4096  # states in one call


def smallest_deadlock(
    ends: Ends, findings: Findings, layout: StateLayout, resting_states: Iterable[tuple[int, ...]]
) -> tuple[int, ...] | None:
    """The smallest deadlock among packed states without steps; undecided ones are added to `findings`."""
    best: tuple[int, ...] | None = None
    for state in resting_states:
        # Trying open numbers takes long, and only the smallest is reported: a larger one need not be tried.
        if best is None or state < best:
            end = ends.without_steps(layout.unpack(state))
            findings.note_end(end)
            best = state if end is End.DEADLOCK else best
    return best


def resting(kernel: Loaded, thread: int, words: int, address: int, count: int) -> Iterator[tuple[int, ...]]:
    """The packed states at an address that have no steps, unless `deadlock ok` allows that.

    `thread` is the address of a worker's block whose counts do not matter.
    """
    places = Words(AT_ONCE + 1)
    for first in range(0, count, AT_ONCE):
        start = address + 8 * words * first
        size = min(AT_ONCE, count - first)
        kernel.call["resting"](thread, start, size, places.address)
        # Read in place: a level may be most of the memory.
        data = (ctypes.c_uint64 * (words * size)).from_address(start)
        for place in places.read(1, places[0]):
            yield tuple(data[words * place : words * (place + 1)])
