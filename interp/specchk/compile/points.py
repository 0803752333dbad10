"""Coverage points: the places of a spec at which evaluation is counted."""

from __future__ import annotations

from specchk.ir.program import Point
from specchk.lang.text.source import Span


class Points:
    """The points of one program, numbered as they are met; `owner` is the declaration being lowered."""

    def __init__(self) -> None:
        self.owner = ""
        self.listed: list[Point] = []
        self._known: dict[tuple[str, int, int, str], int] = {}

    def at(self, kind: str, label: str, span: Span) -> int:
        """The point at a span; one for all inlined copies."""
        key = (span.source.path, span.start, span.end, f"{kind}{label if kind == 'branch' else ''}")
        if key not in self._known:
            self._known[key] = len(self.listed)
            self.listed.append(Point(kind, self.owner, label, span))
        return self._known[key]
