"""The values with which fields of recordings were compared: two of each show that a field varies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specchk.conform.recordings.events.fields import ShownTogether

_UNSEEN = object()


class Compared:
    """Up to two texts of each field's values: enough to show that a comparison is with varying values."""

    def __init__(self, seen: dict[str, set[Any]]) -> None:
        self._seen = seen
        self._first: dict[str, Any] = {}
        self._changing: set[str] = set()
        # The fields that are shown together, of which some were not seen to change.
        self._open: dict[ShownTogether, list[int]] = {}

    def add(self, together: ShownTogether, values: Sequence[Any]) -> None:
        """Record the fields of an event."""
        names, firsts = together.names, self._first
        places = self._open.get(together)
        if places is None:
            places = [at for at, name in enumerate(names) if name not in self._changing]
            self._open[together] = places
        for place in places:
            name, value = names[place], values[place]
            first = firsts.get(name, _UNSEEN)
            # Most values are the first one again, and a text of them takes longer.
            if first is not value and (first.__class__ is not value.__class__ or first != value):
                firsts.setdefault(name, value)
                self._add(name, value)
                self._open[together] = [at for at in places if names[at] not in self._changing]

    def _add(self, name: str, value: Any) -> None:
        values = self._seen.setdefault(name, set())
        if len(values) < 2:
            values.add(repr(value))
        if len(values) > 1:
            self._changing.add(name)
