"""In place of the standard library's module, which a browser lacks: as much of it as specchk uses."""

from __future__ import annotations

from types import SimpleNamespace

RLIMIT_AS = RUSAGE_SELF = 0
RLIM_INFINITY = -1


def getrlimit(_: int) -> tuple[int, int]:
    """No limit but WebAssembly's own."""
    return RLIM_INFINITY, RLIM_INFINITY


def getpagesize() -> int:
    """The size of a page of WebAssembly's memory, in bytes."""
    return 1 << 16


def getrusage(_: int) -> SimpleNamespace:
    """Nothing: a browser does not say how much memory is used."""
    return SimpleNamespace(ru_maxrss=0)
