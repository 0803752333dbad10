"""Source text and places in it.

A `Source` is one file's text with its display path; a `Span` is a half-open range of character
offsets in one source.  Lines and columns are 1-based and computed only when something is shown.

Reading is bounded: a spec is text written by people, so a file over `MAX_BYTES`, a line over
`MAX_LINE` or bytes that are not UTF-8 are refused before any parser sees them.  The errors are
diagnostics like all others (`lang.load` reports them); this module only reads and measures.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property

from msgspec import Struct

MAX_BYTES = 1 << 20
MAX_LINE = 4_000
REGION = ("line", "column", "end_line", "end_column")


# With a `__dict__`, in which `cached_property` keeps the starts of the lines.
class Source(Struct, frozen=True, dict=True):
    """The text of one spec file; `path` is its path as given, and as shown."""

    path: str
    text: str

    @cached_property
    def line_starts(self) -> tuple[int, ...]:
        """Offsets of the first character of every line."""
        return (0, *[end.end() for end in re.finditer("\n", self.text)])

    def position(self, offset: int) -> tuple[int, int]:
        """The line and column, both from 1, of a character offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of line `number` (from 1) without its line end."""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] - 1 if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


class Span(Struct, frozen=True):
    """Characters `start` up to but not including `end` of one source."""

    source: Source
    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of `other` (same source)."""
        return Span(self.source, self.start, max(self.end, other.end))

    def word(self, word: str) -> Span:
        """The first place in this span where `word` is a whole word; else this span."""
        place = re.search(rf"\b{re.escape(word)}\b", self.text)
        return Span(self.source, self.start + place.start(), self.start + place.end()) if place else self

    @property
    def text(self) -> str:
        """The characters of the span."""
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        """The 1-based line on which the span starts."""
        return self.source.position(self.start)[0]

    @property
    def region(self) -> dict[str, int]:
        """The place in JSON: line and column, from 1, of its start and of the character after it."""
        places = (*self.source.position(self.start), *self.source.position(self.end))
        return dict(zip(REGION, places, strict=True))

    @property
    def where(self) -> str:
        """The place as `path:line:column`, as compilers print it."""
        line, column = self.source.position(self.start)
        return f"{self.source.path}:{line}:{column}"
