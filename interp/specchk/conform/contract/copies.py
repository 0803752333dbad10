"""Copies of systems, as made by `copy.deepcopy`, but in a fifth of the time.

A system is saved once for a place, and restored for each step and probe there: a saved system is packed, so
that restoring it is reading a text.  Objects that `deepcopy` shares are shared here, too: classes,
functions and names of enums.  A system with a part that defines its own copying, or that packing
would change, is left to `deepcopy`.  Texts, numbers and tuples of them are equal in a copy, and
need not be the same objects.
"""

from __future__ import annotations

import pickle
from copy import deepcopy
from enum import Enum
from io import BytesIO
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from msgspec import Struct

from specchk.conform.contract.failures import FAILURES

SHARED = (type, FunctionType, BuiltinFunctionType, Enum)
# A packed method is found by its name, which a class that derives from its own may have given to another; a
# packed dict or list gets its items before its attributes, on which a class of them may rely.
LEFT = (MethodType, dict, list)


class _Packed(Struct, frozen=True):
    data: bytes
    shared: tuple[Any, ...]


class _Packer(pickle.Pickler):
    def __init__(self, file: BytesIO) -> None:
        super().__init__(file, protocol=4)  # as `deepcopy` does
        self.shared: list[Any] = []

    def persistent_id(self, part: Any) -> int | None:
        """The index of a part shared by all copies; None for a part that each copy owns."""
        if not isinstance(part, SHARED):
            return None
        self.shared.append(part)
        return len(self.shared) - 1

    def reducer_override(self, part: Any) -> Any:
        """Use the default for a part that pickles itself; one with its own copying method is not packed.

        Called for all but values of built-in types themselves.
        """
        if hasattr(part, "__deepcopy__") or isinstance(part, LEFT):
            raise pickle.PicklingError(type(part).__name__)
        return NotImplemented


class _Unpacker(pickle.Unpickler):
    def __init__(self, packed: _Packed) -> None:
        super().__init__(BytesIO(packed.data))
        self._shared = packed.shared

    def persistent_load(self, at: int) -> Any:
        """The part at an index."""
        return self._shared[at]


def saved(system: Any) -> Any:
    """A copy for `restored`, never changed."""
    file = BytesIO()
    packer = _Packer(file)
    try:
        packer.dump(system)
    except (*FAILURES, pickle.PicklingError):
        # Where copying fails as well, that is the failure.
        return deepcopy(system)
    return _Packed(file.getvalue(), tuple(packer.shared))


def restored(kept: Any) -> Any:
    """A copy of a saved system, for running."""
    return _Unpacker(kept).load() if isinstance(kept, _Packed) else deepcopy(kept)
