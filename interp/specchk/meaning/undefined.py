"""The two ways in which an expression has no value."""

from __future__ import annotations

from specchk.lang.text.source import Span


class Undefined(Exception):
    """The expression at `span` has no value; `reason` explains it. Reported as a violation."""

    def __init__(self, span: Span, reason: str) -> None:
        self.span = span
        self.reason = reason
        super().__init__(reason)

    def __reduce__(self) -> tuple[type[Undefined], tuple[object, ...]]:
        return type(self), (self.span, self.reason)


class BeyondHorizon(Exception):
    """A stored number is above its `nat upto` horizon."""
