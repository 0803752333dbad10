"""Coverage points: the places of a spec at which evaluation is counted."""

from __future__ import annotations

from specchk.ir.program import Point
from specchk.lang.text.source import Span


class Points:
    """The points of one program, numbered as they are met; `owner` is the declaration being lowered.

    A helper action has points in each action that calls it, a definition has them once.
    """

    def __init__(self) -> None:
        self.owner = ""
        self.listed: list[Point] = []
        self._known: dict[tuple[str, int, int, str, str], int] = {}

    def at(self, kind: str, label: str, span: Span, owner: str | None = None) -> int:
        """The point at a span; one for all copies with the same owner."""
        what = f"{kind}{label if kind == 'branch' else ''}"
        key = (span.source.path, span.start, span.end, what, self.owner if owner is None else owner)
        if key not in self._known:
            self._known[key] = len(self.listed)
            self.listed.append(Point(kind, self.owner, label, span))
        return self._known[key]
