"""Alignment: columns that the author aligned stay aligned (see lang/format/formatter.py).

The formatter aligns nothing by itself.  Where two or more lines of a paragraph had the name, the
`:`, the `=` or the trailing comment in one column, and not by chance, they get one column again,
as far left as the longest of them allows; a comment never moves left of where it was, so that a
lone one stays in line with others further away.  Formatting twice changes nothing: columns that
are lined up already are as far left as they can be.

A line that is too long is cut at the outermost place that fits: before `and`, `or` and other connecting
words, or after a comma.  The rest is indented more than a line that starts a statement, and as much as a
line that continues one, so that formatting it again cuts it at the same places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct, field

WIDTH = 132
COMMENT_GAP = 2
FURTHER = 4  # a line behind the first of a statement
_LEAST = 24  # a cut further to the left leaves most of the line behind it

Break = tuple[int, int]  # an offset in the code, and how many brackets are open there


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
        *lines, last = _wrapped(code.rstrip(), self.indent, self.indent + FURTHER * self.starts, breaks)
        yield from lines
        column = len(last) + COMMENT_GAP if lines else self.comment_column
        yield last.ljust(column) + self.comment if self.comment else last


def align(paragraph: list[AlignedLine]) -> None:
    """Align the points, then the comments, of consecutive lines without a blank line between them."""
    for point in ("name", ":", "="):
        places = [(line, line.points.index(point)) for line in paragraph if point in line.points]
        for _, group in groupby(places, lambda place: place[0].columns[place[1]]):
            _line_up(list(group))
    commented = [line for line in paragraph if line.comment and line.texts]
    for old, run in groupby(commented, lambda line: line.comment_column):
        lines = list(run)
        # Never further left than it was: comments below and above, in other groups, may be in line with it.
        column = max(old, *[line.indent + len(" ".join(line.texts)) + COMMENT_GAP for line in lines])
        for line in lines:
            line.comment_column = column


def _line_up(group: list[tuple[AlignedLine, int]]) -> None:
    """Line up neighbours that had a point in the same column."""
    # Two blanks somewhere are the sign that the author lined up; one each may be chance.
    if len(group) < 2 or all(line.gaps[index] < 2 for line, index in group):
        return
    column = max(line.start_of(index) for line, index in group)
    for line, index in group:
        # Blanks go to the end of the piece before, so that later points of the line move with it.
        line.texts[index - 1] += " " * (column - line.start_of(index))


def _wrapped(code: str, indent: int, further: int, breaks: Sequence[Break]) -> Iterator[str]:
    """The lines of indented code; those after the first are indented by `further` more."""
    while len(code) > WIDTH:
        places = [(at, depth) for at, depth in breaks if at > indent + _LEAST]
        fitting = [(depth, -at) for at, depth in places if at <= WIDTH + 1]
        if not places:
            break
        cut = -min(fitting)[1] if fitting else places[0][0]
        yield code[:cut].rstrip()
        code = " " * further + code[cut:]
        breaks = [(at - cut + further, depth) for at, depth in places if at > cut]
        indent = further
    yield code
