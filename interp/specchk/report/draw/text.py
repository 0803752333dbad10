"""The picture in plain text, for terminals and screen readers: the same content, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from specchk.report.draw.picture import Box, Line, LogCell, LogMark, Picture, Row


def text(picture: Picture) -> str:
    """The picture as text; `+` marks a new record, `x` a lost one, `*` a change, `!` a difference."""
    lines = [f"{picture.title}: lanes {', '.join(picture.lanes) or '(none)'}"]
    for row in picture.rows:
        lines += _row(picture, row)
    if picture.loop is not None:
        lines.append(f"     back to {picture.loop}")
    return "\n".join([*lines, *(f"!! {line}" for line in picture.ending)])


def _row(picture: Picture, row: Row) -> Iterator[str]:
    yield f"{'!' if row.differs else row.number:>3}  {row.title}"
    if row.arrow is not None:
        source, target = row.arrow
        yield f"       message {picture.lanes[source]} -> {picture.lanes[target]}"
    for column in picture.columns:
        if column in row.boxes:
            yield from _box(picture.name(column), row.boxes[column])


def _box(name: str, box: Box) -> Iterator[str]:
    marks = " ".join(f"{_sign(mark)}{mark.name}={mark.offset}" for mark in box.marks)
    log = f"log [{'|'.join(_cell(cell) for cell in box.log)}]" if box.log is not None else ""
    yield "  ".join(part for part in (f"     {name}", log, marks) if part)
    for line in box.lines:
        yield f"       {_sign(line) or ' '} {line.text}"


def _sign(part: LogMark | Line) -> str:
    return "!" if part.differs else "*" if part.changed else ""


def _cell(cell: LogCell) -> str:
    return ("!" if cell.differs else "") + ("+" if cell.fresh else "x" if cell.lost else "") + cell.cell.text
