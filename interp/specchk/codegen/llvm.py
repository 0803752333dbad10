"""LLVM, imported when there is something to compile, or to link that has no image (`images`).

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
    """Optimised object code of LLVM IR."""
    code: bytes = _objects().optimised(text)
    return code


def quick(text: str) -> bytes:
    """Object code of LLVM IR that is compiled as fast as possible."""
    code: bytes = _objects().quick(text)
    return code


def linked(code: bytes, names: Iterable[str]) -> Any:
    """The functions of object code that have these names, as `Linked` of `objects`."""
    return _objects().linked(code, names)


def machine_name() -> str:
    """The dependencies of object code beside its source: LLVM, the CPU and its features."""
    name: str = _objects().machine_name()
    return name


def version() -> str:
    """The versions of LLVM and of the package that it is in."""
    text: str = _objects().version()
    return text


def processor() -> str:
    """LLVM's name for the kind of CPU of this machine."""
    name: str = _objects().processor()
    return name
