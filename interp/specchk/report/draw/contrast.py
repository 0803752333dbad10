"""A state beside the expected one: an additional last row in a picture, with the differences marked.

    20  apply_response(b2)
     b2  log [+e0]  !HW=1 *LEO=1
     !  the implementation instead
     b2  log [e0]  !HW=2 LEO=1
       ! hw: the spec has 1, the implementation 2

Invariant: every place of `report.diff.changes` between the two states is a line of the last row,
hidden variables included: what differs is why the picture is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from msgspec.structs import replace

from specchk.explore.view import Cell, Viewer
from specchk.meaning.values import State
from specchk.report.diff import changes
from specchk.report.draw import picture
from specchk.report.draw.picture import Box, Line, LogCell, LogMark, Picture, Row


def contrasted(viewer: Viewer, drawn: Picture, wanted: State, actual: State, title: str) -> Picture:
    """The picture of a trace that ends in `wanted`, with `actual` as an additional row with this title."""
    last = drawn.rows[-1]
    boxes = dict(last.boxes)
    beside: dict[int, Box] = {}
    for column, different in picture.by_column(viewer, changes(viewer.program, wanted, actual)).items():
        paths = [picture.path_in(viewer, column, change) for change in different]
        lines = [_line(path, each.before, each.after) for path, each in zip(paths, different, strict=True)]
        if column == picture.SHARED:
            beside[column] = Box(None, (), tuple(lines))
        else:
            boxes[column] = _wanted(viewer, boxes.get(column), wanted, actual, column)
            beside[column] = _found(viewer, wanted, actual, column, lines)
        if column in boxes:
            boxes[column] = _with_lines(boxes[column], paths)
    instead = Row(last.number + 1, title, beside, None, differs=True)
    return replace(drawn, rows=(*drawn.rows[:-1], replace(last, boxes=boxes), instead))


def _line(place: str, spec: str, implementation: str) -> Line:
    return Line(f"{place}: the spec has {spec}, the implementation {implementation}", differs=True)


def _wanted(viewer: Viewer, box: Box | None, wanted: State, actual: State, lane: int) -> Box:
    """The box of the spec's row, created if the step left the lane unchanged."""
    own, theirs = viewer.log(wanted, lane), viewer.log(actual, lane)
    if box is None:
        box = Box(None if own is None else tuple(map(LogCell, own)), _marks(viewer, wanted, lane), ())
    log = None if box.log is None else _differing(box.log, theirs or ())
    return Box(log, _elsewhere(box.marks, viewer.marks(actual, lane)), box.lines)


def _with_lines(box: Box, paths: Sequence[str]) -> Box:
    """The box with the lines marked that show a differing place."""
    shown = tuple(f"{path}:" for path in paths)
    lines = tuple(replace(line, differs=line.changed and line.text.startswith(shown)) for line in box.lines)
    return replace(box, lines=lines)


def _found(viewer: Viewer, wanted: State, found: State, lane: int, lines: Sequence[Line]) -> Box:
    """The box of the implementation's row: its log, compared with the spec's, its marks, the differences."""
    own, theirs = viewer.log(found, lane), viewer.log(wanted, lane) or ()
    log = None
    if own is not None:
        # Records that only the spec has are crossed out behind the implementation's: a missing end is a
        # difference.
        lacking = tuple(LogCell(cell, lost=True, differs=True) for cell in theirs[len(own) :])
        log = (*_differing(tuple(map(LogCell, own)), theirs), *lacking)
    was, now = viewer.labels(wanted, lane), viewer.labels(found, lane)
    labels = [_line(name, was[name], value) for name, value in now.items() if was[name] != value]
    marks = _elsewhere(_marks(viewer, found, lane), viewer.marks(wanted, lane))
    return Box(log, marks, (*lines, *labels))


def _marks(viewer: Viewer, state: State, lane: int) -> tuple[LogMark, ...]:
    return tuple(LogMark(*mark) for mark in picture.marks_of(viewer, state, lane))


def _elsewhere(marks: tuple[LogMark, ...], offsets: dict[str, int]) -> tuple[LogMark, ...]:
    """The marks, marked if the other state has them at other offsets."""
    return tuple(replace(mark, differs=offsets.get(mark.name) != mark.offset) for mark in marks)


def _differing(log: tuple[LogCell, ...], theirs: tuple[Cell, ...]) -> tuple[LogCell, ...]:
    """The cells, marked if the other log differs in that position; lost cells are never marked."""
    kept = [cell for cell in log if not cell.lost]
    lost = [cell for cell in log if cell.lost]
    pairs = zip_longest(kept, theirs[: len(kept)])
    return (*(replace(cell, differs=cell.cell != theirs_) for cell, theirs_ in pairs), *lost)
