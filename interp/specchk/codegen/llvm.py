"""LLVM, imported only when code must be compiled, or linked without an image (`images`).

The functions are those of `objects`.  To import it takes a tenth of the time that a run takes to start, and a
run whose code was kept needs none of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _objects() -> Any:
    module = import_module("specchk.codegen.objects")
    module.initialize()
    return module


def optimised(text: str) -> bytes:
    """Optimised object code from LLVM IR."""
    code: bytes = _objects().optimised(text)
    return code


def quick(text: str) -> bytes:
    """Object code from LLVM IR, compiled as fast as possible."""
    code: bytes = _objects().quick(text)
    return code


def linked(code: bytes, names: Iterable[str]) -> Any:
    """The functions with these names in object code, as `Linked` of `objects`."""
    return _objects().linked(code, names)


def machine_name() -> str:
    """The dependencies of object code besides its source: LLVM, the CPU and its features."""
    name: str = _objects().machine_name()
    return name


def version() -> str:
    """The versions of LLVM and of the package that contains it."""
    text: str = _objects().version()
    return text


def processor() -> str:
    """LLVM's name for the kind of CPU of this machine."""
    name: str = _objects().processor()
    return name
