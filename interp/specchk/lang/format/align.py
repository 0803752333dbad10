"""Alignment: columns that the author aligned stay aligned (see lang/format/formatter.py).

The formatter aligns nothing by itself.  Where two or more lines of a paragraph had the name, the
`:`, the `=` or the trailing comment in one column, and not by chance, they get one column again,
as far left as the longest of them allows; a comment never moves left of where it was, so that a
lone one stays in line with others further away.  Formatting twice changes nothing: columns that
are lined up already are as far left as they can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from msgspec import Struct, field

from specchk.lang.format.wrap import Break, wrapped

COMMENT_GAP = 2
FURTHER = 4  # a line behind the first of a statement


class AlignedLine(Struct):
    """A line in pieces: `texts[i]` begins at the alignment point `points[i]`.

    The first piece has the point "" and is at the indentation.  `columns` and `gaps` are
    the column of each point in the source, and the number of blanks before it.
    """

    indent: int
    points: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    gaps: list[int] = field(default_factory=list)
    comment: str = ""
    comment_column: int = 0
    breaks: list[list[Break]] = field(default_factory=list)  # of each piece: where a line may be cut
    starts: bool = True  # a logical line, not one that continues

    def start_of(self, index: int) -> int:
        """The leftmost possible column of a piece, given the pieces before it."""
        return self.indent + len(" ".join(self.texts[:index])) + (1 if index else 0)

    def render(self) -> Iterator[str]:
        """The line as text, its comment at `comment_column`; several lines if it is too long."""
        code = " " * self.indent + " ".join(self.texts)
        if not self.texts:
            yield (code + self.comment).rstrip()
            return
        breaks = [
            (self.start_of(index) + at, depth)
            for index, places in enumerate(self.breaks)
            for at, depth in places
        ]
        *lines, last = wrapped(code.rstrip(), self.indent, self.indent + FURTHER * self.starts, breaks)
        yield from lines
        column = len(last) + COMMENT_GAP if lines else self.comment_column
        yield last.ljust(column) + self.comment if self.comment else last


def align(paragraph: list[AlignedLine]) -> None:
    """Align the points, then the comments, of consecutive lines without a blank line between them."""
    for point in ("name", ":", "="):
        places = [(line, line.points.index(point)) for line in paragraph if point in line.points]
        for group in _groups(places, lambda line, index: line.columns[index]):
            _line_up(group)
    commented = [(line, 0) for line in paragraph if line.comment and line.texts]
    for group in _groups(commented, lambda line, _: line.comment_column):
        ends = [line.indent + len(" ".join(line.texts)) + COMMENT_GAP for line, _ in group]
        # Never further left than it was: comments below and above, in other groups, may be in line with it.
        column = max(group[0][0].comment_column, *ends)
        for line, _ in group:
            line.comment_column = column


Place = tuple[AlignedLine, int]


def _groups(places: Iterable[Place], column: Callable[[AlignedLine, int], int]) -> Iterator[list[Place]]:
    """Runs of neighbours, among the lines with this point, that had it in the same column."""
    for _, group in groupby(places, lambda place: column(*place)):
        yield list(group)


def _line_up(group: list[Place]) -> None:
    # Two blanks somewhere are the sign that the author lined up; one each may be chance.
    if len(group) < 2 or all(line.gaps[index] < 2 for line, index in group):
        return
    column = max(line.start_of(index) for line, index in group)
    for line, index in group:
        # Blanks go to the end of the piece before, so that later points of the line move with it.
        line.texts[index - 1] += " " * (column - line.start_of(index))
