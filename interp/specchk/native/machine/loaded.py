"""A kernel loaded into this process: C functions, linked from object code.

One loop over a loaded kernel lists the states in which nothing is enabled (`resting`), in a search and in a
task.

Not here: making object code (`compiler`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from specchk.codegen.objects import linked
from specchk.native.machine.memory import Words

Entries = tuple[tuple[str, int], ...]  # the functions that Python calls, with the number of arguments
EXCHANGE: Entries = (
    ("scatter", 4), ("deal", 4), ("absorb", 4), ("rehash", 3), ("precede", 6), ("resting", 4),
)  # fmt: skip
RESTING_AT_ONCE = 4096  # states in one call of `resting`


class Loaded(Struct, frozen=True):
    """A loaded kernel: `call[name]` is a C function of 64-bit arguments."""

    call: dict[str, ctypes._CFuncPtr]  # type: ignore[name-defined]
    keeper: object  # what owns the code
    is_optimised: bool = True


class ObjectCode(Struct, frozen=True):
    """A compiled kernel of an exchanging engine, and the machine for which it was compiled."""

    code: bytes
    machine: str


def loaded(code: bytes, entries: Entries, *, is_optimised: bool = True) -> Loaded:
    """The kernel of object code for this machine."""
    library = linked(code, [name for name, _ in entries])
    calls = {}
    for name, count in entries:
        # Such functions run without the interpreter's lock, so workers are threads.
        shape = ctypes.CFUNCTYPE(None, *([ctypes.c_uint64] * count))
        call: Any = shape(library.at[name])
        call.keeper = library  # so that the code exists as long as the function
        calls[name] = call
    return Loaded(calls, library, is_optimised)


def resting(kernel: Loaded, thread: int, words: int, address: int, count: int) -> Iterator[tuple[int, ...]]:
    """The packed states at an address that have no steps, unless `deadlock ok` allows that.

    `thread` is the address of a worker's block whose counts do not matter.
    """
    places = Words(RESTING_AT_ONCE + 1)
    for first in range(0, count, RESTING_AT_ONCE):
        start = address + 8 * words * first
        size = min(RESTING_AT_ONCE, count - first)
        kernel.call["resting"](thread, start, size, places.address)
        # Read in place: a level may be most of the memory.
        data = (ctypes.c_uint64 * (words * size)).from_address(start)
        for place in places.read(1, places[0]):
            yield tuple(data[words * place : words * (place + 1)])
