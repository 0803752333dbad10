"""The binding class of a Python file."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from specchk.conform.binding import Binding


class NoBinding(Exception):
    """A file that has no class derived from `Binding`, or several."""


def load_binding(path: Path) -> type[Binding[Any]]:
    """The binding of a file, which may import its neighbours, as a program may; raises `NoBinding`."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    found = [one for one in runpy.run_path(str(path)).values() if _is_binding(one)]
    if len(found) != 1:
        raise NoBinding(f"{path} has {len(found)} classes derived from Binding; it takes one")
    chosen: type[Binding[Any]] = found[0]
    return chosen


def _is_binding(one: object) -> bool:
    """Whether something is a binding of the file itself: what it imports and derives from does not count."""
    return isinstance(one, type) and issubclass(one, Binding) and one.__module__ == "<run_path>"
