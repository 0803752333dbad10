"""The positions of all parts of a picture, in points: numbers only, independent of any font.

Values are set in a monospaced font of ten points; every cell has room for wider characters than the
usual fonts have, so a line of `CHARS` characters fits its box whatever machine draws or shows it.
A box is a stack of strips of known height: rows of cells, rows of marks under them, lines of text.  All are
as wide as the widest strip needs, at most `INNER`.

Invariants: boxes of one lane do not overlap, boxes of two lanes are `GAP` apart, x grows with the
lane and y with the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import ceil

from msgspec import Struct

from specchk.report.draw.picture import Box, Line, LogCell, LogMark, Picture, Row

CHAR = 6.7  # width of a character of text, with some air: 0.602 em in the usual fonts
SMALL = 5.4  # width of a character of a mark
CHARS = 34
INNER = 228  # CHARS * CHAR, rounded up: the most that a box has inside
PAD = 6
GAP = 44
HEADING = 7.8  # width of a character of a heading
TITLE_CHAR = 7.3  # of a step's title
TITLE_CHARS = 31
LINE = 13
CELL = 20  # a cell's height
MARK = 12
ROW_GAP = 16
HEAD = 56  # the first row begins below the heads
# So that two cells fit a row, however long their texts: a log that wraps after each record is a list.
_WIDEST_CELL = 100


class Cells(Struct, frozen=True):
    """Cells side by side, each `width` wide."""

    cells: tuple[LogCell, ...]
    width: int
    height: int = CELL + 4


class PlacedMark(Struct, frozen=True):
    """A mark's text from `x` on (from the box's inner left); the first one at a boundary points to it."""

    x: int
    width: int
    text: str
    changed: bool
    differs: bool


class Marks(Struct, frozen=True):
    """Marks in a row, left to right."""

    marks: tuple[PlacedMark, ...]
    height: int = MARK


class Text(Struct, frozen=True):
    """One line of text."""

    text: str
    changed: bool
    differs: bool
    height: int = LINE


Strip = Cells | Marks | Text


class Placed(Struct, frozen=True):
    """A box with its place: `x` and `y` are its centre, y downwards."""

    row: int
    column: int
    x: int
    y: int
    height: int
    strips: tuple[Strip, ...]


class Titled(Struct, frozen=True):
    """The title of a row, in lines, on its left; `y` is its centre."""

    row: int
    y: int
    lines: tuple[str, ...]
    differs: bool


class PlacedPicture(Struct, frozen=True):
    """A picture with positions; `x_of` is the centre of each column.

    `inner` is the width inside of boxes, `titles_width` that of the steps' titles; lifelines end at `floor`.
    """

    picture: Picture
    inner: int
    titles_width: int
    floor: int
    x_of: dict[int, int]
    titles: tuple[Titled, ...]
    boxes: tuple[Placed, ...]
    ending: tuple[str, ...]
    ending_y: int
    height: int

    @property
    def width(self) -> int:
        """The distance from the left of the titles to the right of the last column."""
        return self.titles_width + (self.box + GAP) * max(len(self.x_of), 1)

    @property
    def box(self) -> int:
        """The width of a box."""
        return self.inner + 2 * PAD


def layout(picture: Picture) -> PlacedPicture:
    """The picture with the positions of all parts."""
    cell = _cell_width(picture)
    stacks = [
        {column: tuple(_strips(box, cell)) for column, box in row.boxes.items()} for row in picture.rows
    ]
    headings = [HEADING * len(picture.name(column)) for column in picture.columns]
    inner = ceil(
        max([CELL, *headings, *(_needed(one) for row in stacks for each in row.values() for one in each)])
    )
    lines = [title_lines(row) for row in picture.rows]
    left = ceil(TITLE_CHAR * max((len(line) for title in lines for line in title), default=0)) + PAD
    column_width = inner + 2 * PAD + GAP
    x_of = {
        column: left + column_width * index + column_width // 2
        for index, column in enumerate(picture.columns)
    }
    titles: list[Titled] = []
    boxes: list[Placed] = []
    y = HEAD
    for row, title, strips in zip(picture.rows, lines, stacks, strict=True):
        heights = {column: sum(item.height for item in parts) + PAD for column, parts in strips.items()}
        # Boxes of a row share their middle, so that arrows between them run level.
        tall = max([*heights.values(), LINE * len(title)])
        middle = y + tall // 2
        titles.append(Titled(row.number, middle, title, row.differs))
        boxes += [
            Placed(row.number, column, x_of[column], middle, heights[column], strips[column])
            for column in picture.columns if column in strips
        ]  # fmt: skip
        y += tall + ROW_GAP
    ending = tuple(part for line in picture.ending for part in wrapped(line, 90))
    tall = LINE * len(ending) + 2 * PAD if ending else 0
    return PlacedPicture(
        picture, inner, left, y - ROW_GAP, x_of, tuple(titles), tuple(boxes), ending, y + tall // 2, y + tall
    )


def _needed(strip: Strip) -> float:
    """The width of a strip."""
    match strip:
        case Cells():
            return strip.width * len(strip.cells)
        case Marks():
            return strip.marks[-1].x + strip.marks[-1].width
        case Text():
            return CHAR * len(strip.text)


def title_lines(row: Row) -> tuple[str, ...]:
    """A row's title with its number, broken at a parenthesis, a comma or an underscore."""
    number = "!" if row.differs else row.number
    return tuple(wrapped(f"{number:>2} {row.title}", TITLE_CHARS, indent="     "))


def wrapped(text: str, width: int, indent: str = "  ") -> Iterator[str]:
    """The lines of at most `width` characters, broken at spaces, else within names, else anywhere."""
    lead = ""
    while len(lead) + len(text) > width:
        room = width - len(lead)
        # A break in the first third of the line would leave it nearly empty; then inside a name is better.
        cut = next((at for at in (_last(kind, text, room) for kind in _BREAKS) if at > room // 3), room)
        yield lead + text[:cut].rstrip()
        text, lead = text[cut:].lstrip(), indent
    yield lead + text


_BREAKS = (re.compile(r" "), re.compile(r"(?=\()|(?<=[_,.])"))


def _last(kind: re.Pattern[str], text: str, room: int) -> int:
    return max((match.end() for match in kind.finditer(text, 0, room + 1) if match.end() <= room), default=0)


def _cell_width(picture: Picture) -> int:
    boxes = [box for row in picture.rows for box in row.boxes.values()]
    longest = max((len(cell_text(cell)) for box in boxes for cell in box.log or ()), default=0)
    return min(max(30, round(CHAR * longest) + 8), _WIDEST_CELL)


def cell_text(cell: LogCell) -> str:
    """The text of a cell; one that is too long is cut, and given in full in the lines below."""
    text = cell.cell.text + (" ✗" if cell.lost else "")
    most = int((_WIDEST_CELL - 8) / CHAR)
    return text if len(text) <= most else text[: most - 1] + "…"


def _strips(box: Box, cell: int) -> Iterator[Strip]:
    if box.log is not None:
        yield from _log(box.log, box.marks, cell)
    elif box.marks:
        differs = any(mark.differs for mark in box.marks)
        text = "  ".join(f"{mark.name} {mark.offset}" for mark in box.marks)
        yield from _texts(Line(text, differs=differs))
    for line in box.lines:
        yield from _texts(line)


def _texts(line: Line) -> Iterator[Text]:
    for part in wrapped(line.text, CHARS):
        yield Text(part, line.changed, line.differs)


def _log(log: tuple[LogCell, ...], marks: tuple[LogMark, ...], width: int) -> Iterator[Strip]:
    """A log as rows of cells as wide as the box, with the marks under each boundary."""
    fit = INNER // width
    if not log:
        yield Text("empty log", changed=False, differs=False)
    for first in range(0, max(len(log), 1), fit):
        part = log[first : first + fit]
        if part:
            yield Cells(part, width)
        # Marks beyond the end of the log stand under its last row.
        last = first + fit >= len(log)
        here = [m for m in marks if first <= m.offset < first + fit or (last and m.offset >= first + fit)]
        at = [min(mark.offset - first, len(part)) * width for mark in here]
        yield from _mark_rows(list(zip(here, at, strict=True)), len(log))


def _mark_rows(marks: list[tuple[LogMark, int]], length: int) -> Iterator[Marks]:
    """Marks side by side if there is room, else in further rows; those beyond the log show their offset."""
    rows: list[list[PlacedMark]] = []
    pointed: dict[int, int] = {}  # a boundary, and where the last mark at it ends
    for mark, at in marks:
        text = mark.name + (f"={mark.offset}" if mark.offset > length else "")
        text = text if at in pointed else f"▲{text}"
        width = round(SMALL * len(text)) + 6
        # At the boundary, or behind the mark that points at it already; at the right edge as far left as
        # need be.
        x = min(pointed.get(at, at), INNER - width)
        # First fit, in the order of the marks: as few rows as that order allows.
        free = next((row for row in rows if row[-1].x + row[-1].width <= x), None)
        if free is None:
            rows.append(free := [])
            x = min(at, INNER - width)
        free.append(PlacedMark(max(0, x), width, text, mark.changed, mark.differs))
        pointed[at] = x + width
    for row in rows:
        yield Marks(tuple(row))
