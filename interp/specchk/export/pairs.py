"""Maps in the results of queries, which print them without DuckDB."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Pairs(Struct, frozen=True):
    """The keys of a map with their values; `is_named`: keys are text."""

    items: tuple[tuple[Any, Any], ...]
    is_named: bool
