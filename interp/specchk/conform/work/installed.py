"""The packages installed beside specchk, which an adapter or a binding may import.

In a separate module: reading the metadata of packages loads modules of Python that no search needs.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import distributions

from specchk import kept


@cache
def installed() -> str:
    """A digest of the names and versions of all installed packages."""
    versions = {(package.metadata["Name"], package.version) for package in distributions()}
    return kept.name_of(sorted(versions, key=repr))
