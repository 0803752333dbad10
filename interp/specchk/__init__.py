"""A model checker for replicated protocols.

The names are those of which a binding is made; they are imported with the room `conform` when one is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from specchk.conform.contract import (
        Accepted,
        Answer,
        At,
        BadCode,
        BadFile,
        BadSpec,
        BadStart,
        Binding,
        Impossible,
        Refused,
        action,
        never,
        project,
    )

__all__ = [
    "Accepted", "Answer", "At", "BadCode", "BadFile", "BadSpec", "BadStart", "Binding", "Impossible",
    "Refused", "action", "never", "project",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """A name of `specchk.conform.contract`."""
    if name not in __all__:
        raise AttributeError(f"module 'specchk' has no attribute {name!r}")
    return getattr(import_module("specchk.conform.contract"), name)
