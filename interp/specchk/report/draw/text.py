"""The picture in plain text, for terminals and screen readers: the same content, line by line."""

from __future__ import annotations

from collections.abc import Iterator

from specchk.report.draw.picture import SHARED, Box, LogCell, Picture, Row


def text(picture: Picture) -> str:
    """The whole picture; `+` marks a record that came, `x` one that was lost, `*` what changed."""
    lines = [f"{picture.title}: lanes {', '.join(picture.lanes) or '(none)'}"]
    for row in picture.rows:
        lines += _row(picture, row)
    return "\n".join([*lines, *(f"!! {line}" for line in picture.ending)])


def _row(picture: Picture, row: Row) -> Iterator[str]:
    yield f"{row.number:>3}  {row.title}"
    if row.arrow is not None:
        source, target = row.arrow
        yield f"       message {picture.lanes[source]} -> {picture.lanes[target]}"
    for lane, box in row.boxes.items():
        name = "shared" if lane == SHARED else picture.lanes[lane]
        yield from _box(name, box)


def _box(name: str, box: Box) -> Iterator[str]:
    head = f"     {name}"
    if box.log is not None:
        marks = " ".join(f"{mark}={offset}" for mark, offset in box.marks)
        head += f"  log [{'|'.join(_cell(cell) for cell in box.log)}]" + (f"  {marks}" if marks else "")
    elif box.marks:
        head += "  " + " ".join(f"{mark}={offset}" for mark, offset in box.marks)
    yield head
    for line, changed in box.lines:
        yield f"       {'*' if changed else ' '} {line}"


def _cell(cell: LogCell) -> str:
    return ("+" if cell.fresh else "x" if cell.lost else "") + cell.cell.text
