"""Lanes in DOT: one column for each lane, time downwards, messages as arrows between columns.

Graphviz only draws: every node has a position (`neato -n2` takes them as they are) and every cell
of its tables a fixed size, all from `layout`.  So the drawing is the same with whatever fonts are
installed, and nothing in it moves when a text changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import ceil
from typing import assert_never

from specchk.report.draw import layout
from specchk.report.draw.picture import LogCell, Picture

# Okabe and Ito's palette, lightened: told apart with colour-blind eyes too; an epoch is also written out
COLORS = ("#cfe3f5", "#fbe0b5", "#c6ebdf", "#f6cfc0", "#ead3e6", "#fbf6c4", "#d6d6d6", "#b9dcf2")
INK = "#222222"
FAINT = "#aaaaaa"
CHANGED = "#0b4f8a"
LOST = "#a02020"


def dot(picture: Picture) -> str:
    """The picture as a DOT graph with positions."""
    placed = layout.layout(picture)
    lines = [*_head(placed), *(_title(title, placed.titles_width) for title in placed.titles)]
    differing = {row.number for row in picture.rows if row.differs}
    # `column % len`: the shared column is -1, and a minus sign ends a name of DOT.
    above = {column: f"head{column % len(placed.x_of)}" for column in placed.x_of}
    for box in placed.boxes:
        name = _name(box.row, box.column, placed)
        frame = LOST if box.row in differing else FAINT
        lines.append(f'  {name} [label=<{_table(box, frame, placed.inner)}>, pos="{box.x},{-box.y}!"];')
        lines.append(f"  {above[box.column]} -> {name} [arrowhead=none];")
        above[box.column] = name
    # To the bottom: a line that ends where nothing more changes would look like the end of a process.
    for column, name in above.items():
        floor = f"floor{column % len(placed.x_of)}"
        lines.append(
            f'  {floor} [shape=point, width=0, style=invis, pos="{placed.x_of[column]},{-placed.floor}!"];'
        )
        lines.append(f"  {name} -> {floor} [arrowhead=none];")
    for row in picture.rows:
        if row.arrow is not None:
            source, target = (_name(row.number, lane, placed) for lane in row.arrow)
            lines.append(f'  {source} -> {target} [color="{CHANGED}", penwidth=1.8];')
    if picture.loop is not None:
        # Along the left edge of the titles, where nothing else is drawn.
        last = picture.rows[-1].number
        lines.append(f'  step{last}:w -> step{picture.loop}:w [color="{LOST}", penwidth=1.8];')
    return "\n".join([*lines, *_ending(placed), "}"]) + "\n"


def _name(row: int, column: int, placed: layout.PlacedPicture) -> str:
    return f"s{row}l{column % len(placed.x_of)}"


def _head(placed: layout.PlacedPicture) -> Iterator[str]:
    picture = placed.picture
    yield "digraph trace {"
    # Edges first, so that boxes cover their ends: an arrow is aimed at the centre of a box.
    yield '  graph [bgcolor="white", outputorder="edgesfirst", pad=0.15, splines=line];'
    yield f'  node [shape=plain, fontname="monospace", fontsize=10, fontcolor="{INK}"];'
    yield f'  edge [color="{FAINT}", arrowsize=0.8];'
    wide = max(placed.width, round(layout.HEADING * len(picture.title)) + layout.PAD)
    title = _fixed(f"<B>{escape(picture.title)}</B>", wide, 20, 'ALIGN="LEFT"')
    yield f'  title [label=<{_outer(f"<TR>{title}</TR>")}>, fontsize=13, pos="{wide // 2},0!"];'
    for column, x in placed.x_of.items():
        name = picture.name(column)
        table = _centred(name, f"<B>{escape(name)}</B>", placed.box, 18, layout.HEADING)
        yield f'  head{column % len(placed.x_of)} [label=<{table}>, fontsize=13, pos="{x},-30!"];'


def _title(title: layout.Titled, width: int) -> str:
    lines = [f"<B>{_spaced(line)}</B>" for line in title.lines]
    looks = [f'<FONT COLOR="{LOST}">{line}</FONT>' if title.differs else line for line in lines]
    rows = "".join(f"<TR>{_fixed(look, width, layout.LINE, _LEFT)}</TR>" for look in looks)
    return f'  step{title.row} [label=<{_outer(rows)}>, pos="{width // 2},{-title.y}!"];'


_LEFT = 'ALIGN="LEFT"'
_SPACE = "&#160;"


def _spaced(text: str) -> str:
    """The text escaped, with leading spaces kept."""
    bare = text.lstrip(" ")
    return _SPACE * (len(text) - len(bare)) + escape(bare)


def _fixed(inside: str, width: int, height: int, more: str) -> str:
    """A table cell of a fixed size, whatever its content."""
    return f'<TD FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}" {more}>{inside}</TD>'


def _outer(rows: str, more: str = 'BORDER="0"') -> str:
    return f'<TABLE {more} CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">{rows}</TABLE>'


def _table(box: layout.Placed, frame: str, inner: int) -> str:
    gap = _padded("", layout.PAD // 2, "", inner)
    rows = "".join(_strip(strip, inner) for strip in box.strips)
    return _outer(gap + rows + gap, f'BORDER="1" COLOR="{frame}" BGCOLOR="white" STYLE="rounded"')


def _strip(strip: layout.Strip, inner: int) -> str:
    match strip:
        case layout.Cells():
            inside = _cells(strip, inner)
        case layout.Marks():
            inside = _marks(strip, inner)
        case layout.Text():
            text = _spaced(strip.text)
            is_plain = not (strip.changed or strip.differs)
            inside = text if is_plain else f'<FONT COLOR="{_color(strip)}"><B>{text}</B></FONT>'
        case _:
            assert_never(strip)
    return _padded(inside, strip.height, _LEFT, inner)


def _padded(inside: str, height: int, more: str, inner: int) -> str:
    """A row of a box."""
    side = _fixed("", layout.PAD, height, "")
    return f"<TR>{side}{_fixed(inside, inner, height, more)}{side}</TR>"


def _color(part: layout.Text | layout.PlacedMark) -> str:
    return LOST if part.differs else CHANGED if part.changed else INK


def _cells(strip: layout.Cells, inner: int) -> str:
    rest = inner - strip.width * len(strip.cells)
    cells = "".join(_cell(cell, strip.width) for cell in strip.cells)
    return _outer(f"<TR>{cells}{_fixed('', rest, layout.CELL, '') if rest else ''}</TR>")


def _cell(cell: LogCell, width: int) -> str:
    text, fill, frame, border = layout.cell_text(cell), COLORS[cell.cell.color % len(COLORS)], FAINT, 1
    label = escape(text)
    if cell.lost:
        fill, frame, label = "#eeeeee", LOST, f'<FONT COLOR="{LOST}"><S>{label}</S></FONT>'
    elif cell.fresh or cell.differs:
        frame, border, label = LOST if cell.differs else CHANGED, 2, f"<B>{label}</B>"
    inside = _centred(text, label, width - 2 * border, layout.CELL - 2 * border)
    return _fixed(inside, width, layout.CELL, f'BORDER="{border}" BGCOLOR="{fill}" COLOR="{frame}"')


def _centred(text: str, label: str, width: int, height: int, char: float = 6.0) -> str:
    """A centred text, using our own estimate of its width instead of a font's."""
    # Centred by Graphviz, the text would move with the fonts that are installed.
    left = max(0, round((width - char * len(text)) / 2))
    space = _fixed("", left, height, "") if left else ""
    return _outer(f"<TR>{space}{_fixed(label, width - left, height, _LEFT)}</TR>")


def _marks(strip: layout.Marks, inner: int) -> str:
    parts, x = [], 0
    for mark in strip.marks:
        if mark.x > x:
            parts.append(_fixed("", mark.x - x, layout.MARK, ""))
        text = f"<B>{escape(mark.text)}</B>" if mark.changed or mark.differs else escape(mark.text)
        look = f'<FONT POINT-SIZE="8" COLOR="{_color(mark)}">{text}</FONT>'
        parts.append(_fixed(look, mark.width, layout.MARK, _LEFT))
        x = mark.x + mark.width
    if x < inner:
        parts.append(_fixed("", inner - x, layout.MARK, ""))
    return _outer(f"<TR>{''.join(parts)}</TR>")


def _ending(placed: layout.PlacedPicture) -> Iterator[str]:
    if not placed.ending:
        return
    inner = ceil(layout.CHAR * max(map(len, placed.ending)))
    wide = inner + 2 * layout.PAD
    looks = [f'<FONT COLOR="{LOST}">{_spaced(line)}</FONT>' for line in placed.ending]
    side = _fixed("", layout.PAD, layout.LINE, "")
    lines = "".join(f"<TR>{side}{_fixed(look, inner, layout.LINE, _LEFT)}</TR>" for look in looks)
    gap = f"<TR>{_fixed('', layout.PAD, layout.PAD, '')}</TR>"
    table = _outer(gap + lines + gap, f'BORDER="2" COLOR="{LOST}" BGCOLOR="#fff4f2"')
    yield f'  ending [label=<{table}>, pos="{placed.titles_width + wide // 2},{-placed.ending_y}!"];'
