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

from itertools import zip_longest

from msgspec.structs import replace

from specchk.explore.view import Cell, Viewer
from specchk.meaning.values import State
from specchk.report.diff import VariableChange, changes
from specchk.report.draw.picture import SHARED, Box, Line, LogCell, LogMark, Picture, Row, lane_of


def contrasted(viewer: Viewer, drawn: Picture, wanted: State, actual: State, title: str) -> Picture:
    """The picture of a trace that ends in `wanted`, with `found` as an additional row with this title."""
    slots = {variable.name: slot for slot, variable in enumerate(viewer.program.variables)}
    by_lane: dict[int, list[VariableChange]] = {}
    for change in changes(viewer.program, wanted, actual):
        by_lane.setdefault(lane_of(viewer, slots[change.variable], change), []).append(change)
    last = drawn.rows[-1]
    boxes = dict(last.boxes)
    beside: dict[int, Box] = {}
    for lane, different in by_lane.items():
        lines = tuple(_line(viewer, lane, change) for change in different)
        if lane == SHARED:
            beside[lane] = Box(None, (), lines)
            continue
        boxes[lane] = _wanted(viewer, boxes.get(lane), wanted, actual, lane, different)
        beside[lane] = _found(viewer, wanted, actual, lane, lines)
    if SHARED in boxes:
        boxes[SHARED] = _with_lines(boxes[SHARED], by_lane.get(SHARED, []), "")
    instead = Row(last.number + 1, title, beside, None, differs=True)
    return replace(drawn, rows=(*drawn.rows[:-1], replace(last, boxes=boxes), instead))


def _line(viewer: Viewer, lane: int, change: VariableChange) -> Line:
    own = "" if lane == SHARED else f"[{viewer.lanes[lane]}]"
    path = change.path.replace(own, "", 1) if own else change.path
    return Line(f"{path}: the spec has {change.before}, the implementation {change.after}", differs=True)


def _wanted(
    viewer: Viewer, box: Box | None, wanted: State, actual: State, lane: int, different: list[VariableChange]
) -> Box:  # fmt: skip
    """The box of the spec's row, created if the step left the lane unchanged."""
    own, theirs = viewer.log(wanted, lane), viewer.log(actual, lane)
    if box is None:
        box = Box(None if own is None else tuple(map(LogCell, own)), _marks(viewer, wanted, lane), ())
    elsewhere = viewer.marks(actual, lane)
    marks = tuple(replace(mark, differs=elsewhere.get(mark.name) != mark.offset) for mark in box.marks)
    log = None if box.log is None else _differing(box.log, theirs or ())
    return _with_lines(Box(log, marks, box.lines), different, f"[{viewer.lanes[lane]}]")


def _with_lines(box: Box, different: list[VariableChange], own: str) -> Box:
    """The box with the lines marked that show a differing place."""
    paths = tuple(change.path.replace(own, "", 1) + ":" for change in different)
    lines = tuple(replace(line, differs=line.changed and line.text.startswith(paths)) for line in box.lines)
    return replace(box, lines=lines)


def _found(viewer: Viewer, wanted: State, found: State, lane: int, lines: tuple[Line, ...]) -> Box:
    """The box of the implementation's row: its log, compared with the spec's, its marks, the differences."""
    own, theirs = viewer.log(found, lane), viewer.log(wanted, lane) or ()
    log = None
    if own is not None:
        # Records that only the spec has are crossed out behind the implementation's: a missing end is a
        # difference.
        lacking = tuple(LogCell(cell, lost=True, differs=True) for cell in theirs[len(own) :])
        log = (*_differing(tuple(map(LogCell, own)), theirs), *lacking)
    offsets = viewer.marks(wanted, lane)
    marks = tuple(
        replace(mark, differs=offsets.get(mark.name) != mark.offset) for mark in _marks(viewer, found, lane)
    )
    was, now = viewer.labels(wanted, lane), viewer.labels(found, lane)
    labels = tuple(
        Line(f"{name}: the spec has {was[name]}, the implementation {value}", differs=True)
        for name, value in now.items()
        if was[name] != value
    )
    return Box(log, marks, (*lines, *labels))


def _marks(viewer: Viewer, state: State, lane: int) -> tuple[LogMark, ...]:
    at = sorted(viewer.marks(state, lane).items(), key=lambda mark: (mark[1], mark[0]))
    return tuple(LogMark(name, offset) for name, offset in at)


def _differing(log: tuple[LogCell, ...], theirs: tuple[Cell, ...]) -> tuple[LogCell, ...]:
    """The cells, marked if the other log differs in that position; lost cells are never marked."""
    kept = [cell for cell in log if not cell.lost]
    lost = [cell for cell in log if cell.lost]
    pairs = zip_longest(kept, theirs[: len(kept)])
    return (*(replace(cell, differs=cell.cell != theirs_) for cell, theirs_ in pairs), *lost)
