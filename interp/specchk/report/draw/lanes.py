"""Lanes in DOT: one column a lane, time downwards, messages as arrows between columns.

Graphviz only draws: every node has a position (`neato -n2` takes them as they are), so the layout
is ours, stable, and does not move when a label changes.  Sizes are estimated from the text (a
character of the 10-point font is about 6 points wide), lines are wrapped to the column.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from textwrap import wrap

from specchk.report.draw.picture import SHARED, Box, LogCell, Picture, Row

# Okabe and Ito's palette, lightened: told apart with colour-blind eyes too; an epoch is also written out
COLORS = ("#cfe3f5", "#fbe0b5", "#c6ebdf", "#f6cfc0", "#ead3e6", "#fbf6c4", "#d6d6d6", "#b9dcf2")
COLUMN = 236
TITLE = 230
LINE = 13
GAP = 26
CHARS = 34
INK = "#222222"
FAINT = "#bbbbbb"
CHANGED = "#0b4f8a"
LOST = "#a02020"
_SIZE = 'FIXEDSIZE="TRUE" WIDTH="44" HEIGHT="20"'


def dot(picture: Picture) -> str:
    """The picture as a DOT graph with positions."""
    columns = [*range(len(picture.lanes)), *([SHARED] if picture.shared else [])]
    x_of = {lane: TITLE + COLUMN * index + COLUMN // 2 for index, lane in enumerate(columns)}
    lines = list(_head(picture, columns, x_of))
    y = -60.0
    last = {lane: f"head{index}" for index, lane in enumerate(columns)}
    for row in picture.rows:
        height = max([_height(box) for box in row.boxes.values()] + [_title_height(row)])
        y -= height / 2
        lines += _row(row, columns, x_of, y, last)
        y -= height / 2 + GAP
    lines += _ending(picture, y)
    return "\n".join([*lines, "}"]) + "\n"


def _head(picture: Picture, columns: list[int], x_of: dict[int, int]) -> Iterator[str]:
    yield "digraph trace {"
    yield '  graph [bgcolor="white", outputorder="edgesfirst", pad=0.2];'
    yield f'  node [shape=plain, fontname="Helvetica", fontsize=10, fontcolor="{INK}"];'
    yield f'  edge [fontname="Helvetica", fontsize=9, color="{FAINT}", arrowsize=0.7];'
    yield f'  title [label=<<B>{escape(picture.title)}</B>>, fontsize=13, pos="{TITLE // 2},0!"];'
    for index, lane in enumerate(columns):
        name = "shared" if lane == SHARED else picture.lanes[lane]
        yield f'  head{index} [label=<<B>{escape(name)}</B>>, fontsize=13, pos="{x_of[lane]},-30!"];'


def _row(row: Row, columns: list[int], x_of: dict[int, int], y: float, last: dict[int, str]) -> Iterator[str]:
    title = "<BR/>".join(escape(part) for part in _title(row))
    label = f"{row.number}&#160;&#160;<B>{title}</B>"
    yield f'  step{row.number} [label=<{label}>, pos="{TITLE // 2 - 10},{y:.0f}!"];'
    for index, lane in enumerate(columns):
        box = row.boxes.get(lane)
        if box is None:
            continue
        name = f"s{row.number}l{index}"
        yield f'  {name} [label=<{_table(box)}>, pos="{x_of[lane]},{y:.0f}!"];'
        yield f"  {last[lane]} -> {name} [arrowhead=none];"
        last[lane] = name
    if row.arrow is not None:
        source, target = (f"s{row.number}l{columns.index(lane)}" for lane in row.arrow)
        yield f'  {source} -> {target} [color="{CHANGED}", penwidth=1.6, constraint=false];'


def _title(row: Row) -> list[str]:
    return wrap(row.title, 30, break_on_hyphens=False) or [""]


def _title_height(row: Row) -> int:
    return 14 * len(_title(row)) + 8


def _height(box: Box) -> int:
    rows = sum(len(_wrapped(line)) for line, _ in box.lines)
    return 14 + LINE * rows + (38 if box.log is not None else LINE if box.marks else 0)


def _wrapped(line: str) -> list[str]:
    return wrap(line, CHARS, subsequent_indent="  ", break_on_hyphens=False) or [""]


def _table(box: Box) -> str:
    rows = []
    if box.log is not None:
        rows.append(f"<TR><TD>{_log(box)}</TD></TR>")
    elif box.marks:
        marks = ", ".join(f"{escape(name)} {offset}" for name, offset in box.marks)
        rows.append(f"<TR><TD>{marks}</TD></TR>")
    for line, changed in box.lines:
        text = '<BR ALIGN="LEFT"/>'.join(escape(part) for part in _wrapped(line)) + '<BR ALIGN="LEFT"/>'
        shown = f'<FONT COLOR="{CHANGED}"><B>{text}</B></FONT>' if changed else text
        rows.append(f'<TR><TD ALIGN="LEFT" BALIGN="LEFT">{shown}</TD></TR>')
    inside = "".join(rows) or "<TR><TD></TD></TR>"
    return (
        f'<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2" COLOR="{FAINT}" '
        f'BGCOLOR="white" STYLE="rounded">{inside}</TABLE>'
    )


def _log(box: Box) -> str:
    """Cells in a row, and under each boundary the marks that stand there."""
    assert box.log is not None
    cells = "".join(_cell(cell) for cell in box.log)
    under = "".join(_mark(box, offset) for offset in range(len(box.log) + 1))
    end = f'<TD {_SIZE} BORDER="0"></TD>' if box.log else '<TD BORDER="0" HEIGHT="20">empty log</TD>'
    return (
        '<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="0">'
        f"<TR>{cells}{end}</TR><TR>{under}</TR></TABLE>"
    )


def _mark(box: Box, offset: int) -> str:
    names = [escape(name) for name, at in box.marks if at == offset]
    text = f'<FONT POINT-SIZE="8">▲{" ".join(names)}</FONT>' if names else ""
    return f'<TD BORDER="0" ALIGN="LEFT">{text}</TD>'


def _cell(cell: LogCell) -> str:
    color = COLORS[cell.cell.color % len(COLORS)] if cell.cell.color >= 0 else COLORS[-1]
    text = escape(cell.cell.text)
    if cell.lost:
        return f'<TD {_SIZE} BGCOLOR="#eeeeee" COLOR="{LOST}"><FONT COLOR="{LOST}"><S>{text}</S>✗</FONT></TD>'
    if cell.fresh:
        return f'<TD {_SIZE} BGCOLOR="{color}" BORDER="2" COLOR="{CHANGED}"><B>{text}</B></TD>'
    return f'<TD {_SIZE} BGCOLOR="{color}">{text}</TD>'


def _ending(picture: Picture, y: float) -> Iterator[str]:
    if not picture.ending:
        return
    parts = [part for line in picture.ending for part in wrap(line, 90, break_on_hyphens=False)]
    text = '<BR ALIGN="LEFT"/>'.join(escape(part) for part in parts) + '<BR ALIGN="LEFT"/>'
    x = TITLE + COLUMN * max(1, len(picture.lanes)) // 2
    table = (
        f'<TABLE BORDER="2" CELLBORDER="0" CELLPADDING="6" COLOR="{LOST}" BGCOLOR="#fff4f2">'
        f'<TR><TD ALIGN="LEFT" BALIGN="LEFT"><FONT COLOR="{LOST}">{text}</FONT></TD></TR></TABLE>'
    )
    yield f'  ending [label=<{table}>, pos="{x},{y - 8 * len(parts):.0f}!"];'
