"""A kernel loaded into this process: C functions, wherever their code comes from.

Code that is simple enough is copied into memory (`placed`).  A process that runs tasks needs no compiler:
the code of an `ObjectCode` can be used at once (`in_memory`) on the processor for which it was compiled.  One
loop over a loaded kernel lists the states in which nothing is enabled (`resting`), in a search and in a task.

Not here: compiling, and linking code that is not that simple (`compiler`), for which LLVM is needed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from specchk.codegen.images import Image, processor_name
from specchk.native.machine.memory import Region, Words

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
    """A compiled kernel of an exchanging engine, and the machine for which it was compiled.

    `image`: the same code to be placed in memory, for processors with this name; None if that takes a linker.
    """

    code: bytes
    machine: str
    image: Image | None = None
    processor: str = ""


def at_addresses(
    addresses: Mapping[str, int], entries: Entries, keeper: object, *, is_optimised: bool = True
) -> Loaded:
    """The functions at addresses, valid as long as `keeper` is alive."""
    calls = {}
    for name, count in entries:
        # Such functions run without the interpreter's lock, so workers are threads.
        shape = ctypes.CFUNCTYPE(None, *([ctypes.c_uint64] * count))
        call: Any = shape(addresses[name])
        call.keeper = keeper  # so that the code exists as long as the function
        calls[name] = call
    return Loaded(calls, keeper, is_optimised)


def placed(image: Image, entries: Entries, *, is_optimised: bool = True) -> Loaded:
    """The functions of an image, copied into memory; `OSError` if the system refuses executable memory."""
    room = Code(image.code)
    addresses = {name: room.address + first for name, first in image.at.items()}
    return at_addresses(addresses, entries, room, is_optimised=is_optimised)


class Code:
    """Code in memory, valid as long as this object is alive."""

    # Kept here: when the last objects of a process are deleted, the names of modules may be gone.
    _is_ending = staticmethod(sys.is_finalizing)

    def __init__(self, code: bytes) -> None:
        self._region = Region.of_code(code)
        self.address = self._region.address

    def __del__(self) -> None:
        # A process that ends may have threads that still run the code.
        if not self._is_ending() and hasattr(self, "_region"):
            self._region.release()


def in_memory(code: ObjectCode) -> Loaded | None:
    """The kernel of an exchanging engine from its image; None if there is none for this processor."""
    # Instructions of the driver's processor may be missing here; a signal would end the executor.
    if code.image is None or code.processor != processor_name():
        return None
    return placed(code.image, EXCHANGE)


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
