"""The kernels as functions of this process, compiled once per machine and cached.

They are called with the addresses of arrays, or with the bytes of a zone, which they only read.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from specchk import kept
from specchk.codegen.functions import module_of
from specchk.codegen.objects import VERSION, linked, machine_name, optimised
from specchk.symbolic.kernels import matrices, walking

ROOMS = ("codegen", "symbolic")  # whose sources decide what the kernels are
FUNCTIONS: tuple[Callable[..., int], ...] = (
    matrices.fits, matrices.assume, matrices.close, matrices.copy, matrices.forget, matrices.canonical,
    matrices.image, matrices.is_less, matrices.least_image, matrices.pair, matrices.join, matrices.cut,
    walking.load, walking.start, walking.push, walking.end, walking.enter, walking.reach, walking.answer,
    walking.choose, walking.widen, walking.follow, walking.walk, walking.count_hits,
)  # fmt: skip
# The functions that Python calls, with their arguments: `*` for an address, `i` for a number.
ENTRIES = (
    ("load", "***"), ("start", "*"), ("walk", "*******"), ("count_hits", "****"),
    ("least_image", "*iii*ii**"), ("join", "****"), ("cut", "*iii***"),
)  # fmt: skip


class Kernels(NamedTuple):
    """The functions by name: compiled ones, or equivalents for tests."""

    load: Callable[..., int]
    start: Callable[..., int]
    walk: Callable[..., int]
    count_hits: Callable[..., int]
    least_image: Callable[..., int]
    join: Callable[..., int]
    cut: Callable[..., int]
    keeper: Any = None


def text() -> str:
    """The LLVM IR of all kernels."""
    return str(module_of(FUNCTIONS, [name for name, _ in ENTRIES]))


@cache
def compiled() -> Kernels:
    """The kernels, from the cache or newly compiled."""
    name = kept.name_of(kept.sources(*ROOMS), VERSION, machine_name())
    path = kept.place("kernels", f"{name}-zones.o")
    code = kept.read(path)
    if code is None:
        code = optimised(text())
        kept.write(path, code)
    return loaded(code)


def loaded(code: bytes) -> Kernels:
    """The kernels of object code."""
    found = linked(code, [name for name, _ in ENTRIES])
    calls = {}
    for entry, kinds in ENTRIES:
        # Like `PyDLL`: calls are short, so the interpreter's lock is not released.
        shape = ctypes.PYFUNCTYPE(
            ctypes.c_int64, *[ctypes.c_int64 if kind == "i" else ctypes.c_void_p for kind in kinds]
        )
        calls[entry] = shape(found.at[entry])
    return Kernels(**calls, keeper=found)
