"""LLVM, imported only when code must be compiled, or linked without an image (`images`).

The functions are those of `objects`.  To import it takes a tenth of the time that a run takes to start, and a
run whose code was kept needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _objects() -> Any:
    module = import_module("specchk.codegen.objects")
    module.initialize()
    return module


def _later(name: str) -> Any:
    """The function of `objects` with this name, imported when it is called."""
    return lambda *args: getattr(_objects(), name)(*args)


# Object code of LLVM IR, optimised, or compiled as fast as possible.
optimised: Callable[[str], bytes] = _later("optimised")
quick: Callable[[str], bytes] = _later("quick")
# The functions with these names in object code, as `objects.Linked`.
linked: Callable[[bytes, Iterable[str]], Any] = _later("linked")
# What object code depends on besides its source: LLVM, the CPU and its features.
machine_name: Callable[[], str] = _later("machine_name")
# The versions of LLVM and of the package that contains it.
version: Callable[[], str] = _later("version")
# LLVM's name for the kind of CPU of this machine.
processor: Callable[[], str] = _later("processor")
