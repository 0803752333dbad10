"""A trace as a picture, before anyone draws it: lanes, rows, boxes, cells, messages.

All that is shown is decided here, so that every form (SVG, terminal text, HTML) has the same
content.  A row is a state; a box stands in each lane in which the step changed something (in every
lane at the start); what belongs to no lane is in the column of shared state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from specchk.core.values import State, show
from specchk.core.verdict import Step, Trace, Violation
from specchk.core.view import Cell, Viewer
from specchk.ir.types import Map
from specchk.report.diff import Change, changes


@dataclass(frozen=True, slots=True)
class LogCell:
    """A record as drawn: `fresh` came with this step, `lost` went with it."""

    cell: Cell
    fresh: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """What one lane shows in one row: log, marks by offset, and lines of text.

    A line is (text, changed).
    """

    log: tuple[LogCell, ...] | None
    marks: tuple[tuple[str, int], ...]
    lines: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One state: the step that led to it, boxes by lane (-1 is the shared column), a message."""

    number: int
    title: str
    boxes: dict[int, Box]
    arrow: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Picture:
    """A whole trace."""

    title: str
    lanes: tuple[str, ...]
    shared: bool
    rows: tuple[Row, ...]
    ending: tuple[str, ...]


SHARED = -1


def picture(viewer: Viewer, trace: Trace, violation: Violation | None) -> Picture:
    """The picture of a trace, with what it violates at the end."""
    program = viewer.program
    rows = [_first(viewer, trace.initial)]
    before = trace.initial
    for number, step in enumerate(trace.steps, 1):
        rows.append(_row(viewer, number, before, step))
        before = step.state
    shared = any(SHARED in row.boxes for row in rows)
    return Picture(
        f"{program.spec}, model {program.model}", viewer.lanes, shared, tuple(rows), _ending(violation)
    )


def _ending(violation: Violation | None) -> tuple[str, ...]:
    if violation is None:
        return ()
    lines = [f"{violation.kind} {violation.name}" if violation.kind != violation.name else violation.kind]
    if violation.blame is not None:
        bound = ", ".join(f"{name} = {value}" for name, value in violation.blame.bindings)
        lines += [f"because {f'for {bound}: ' if bound else ''}{violation.blame.text}"]
        lines += [f"where {name} = {value}" for name, value in violation.blame.values]
    return tuple(lines)


def _first(viewer: Viewer, state: State) -> Row:
    boxes = {}
    for lane in range(len(viewer.lanes)):
        box = _box(viewer, None, state, lane, ())
        boxes[lane] = Box(box.log, box.marks, (*_initial_lines(viewer, state, lane), *box.lines))
    lines = tuple((f"{name} = {value}", False) for name, value in _shared(viewer, state))
    if lines:
        boxes[SHARED] = Box(None, (), lines)
    return Row(0, "initial state", boxes, None)


def _initial_lines(viewer: Viewer, state: State, lane: int) -> Iterable[tuple[str, bool]]:
    for slot, variable in enumerate(viewer.program.variables):
        kind, value = variable.type, state[slot]
        if viewer.is_lane_variable(slot) and variable.name not in viewer.hidden:
            assert isinstance(kind, Map)
            assert isinstance(value, tuple)
            yield f"{variable.name} = {show(value[lane], kind.value)}", False


def _shared(viewer: Viewer, state: State) -> Iterable[tuple[str, str]]:
    for slot, (variable, value) in enumerate(zip(viewer.program.variables, state, strict=True)):
        if not viewer.is_lane_variable(slot) and variable.name not in viewer.hidden:
            yield variable.name, show(value, variable.type)


def _row(viewer: Viewer, number: int, before: State, step: Step) -> Row:
    slots = {variable.name: slot for slot, variable in enumerate(viewer.program.variables)}
    by_lane: dict[int, list[Change]] = {}
    for change in changes(viewer.program, before, step.state):
        if change.variable not in viewer.hidden:
            by_lane.setdefault(_lane_of(viewer, slots[change.variable], change), []).append(change)
    arrow = viewer.arrow(before, step)
    for lane in arrow or ():
        by_lane.setdefault(lane, [])
    boxes = {
        lane: _box(viewer, before, step.state, lane, found)
        if lane != SHARED
        else Box(None, (), _lines(found))
        for lane, found in sorted(by_lane.items())
    }
    return Row(number, str(step), boxes, arrow)


def _lane_of(viewer: Viewer, slot: int, change: Change) -> int:
    kind = viewer.program.variables[slot].type
    if not (viewer.is_lane_variable(slot) and isinstance(kind, Map)):
        return SHARED
    key = change.path[len(change.variable) + 1 :].split("]", 1)[0]
    return viewer.lanes.index(key)


def _lines(found: Iterable[Change]) -> tuple[tuple[str, bool], ...]:
    return tuple((f"{change.path}: {change.before} → {change.after}", True) for change in found)


def _box(viewer: Viewer, before: State | None, after: State, lane: int, found: Iterable[Change]) -> Box:
    log = viewer.log(after, lane)
    old = viewer.log(before, lane) if before is not None else log
    marks = tuple(sorted(viewer.marks(after, lane).items(), key=lambda mark: (mark[1], mark[0])))
    lines = [(_short(change, viewer.lanes[lane]), True) for change in found]
    was = viewer.labels(before, lane) if before is not None else {}
    for name, value in viewer.labels(after, lane).items():
        lines.append((f"{name}: {value}", was.get(name, value) != value))
    return Box(_log(old, log), marks, tuple(lines))


def _short(change: Change, lane: str) -> str:
    """A change as its own lane shows it: `hw[r1]: 0 → 1` is `hw: 0 → 1`."""
    path = change.path.replace(f"[{lane}]", "", 1)
    return f"{path}: {change.before} → {change.after}"


def _log(old: tuple[Cell, ...] | None, new: tuple[Cell, ...] | None) -> tuple[LogCell, ...] | None:
    if new is None:
        return None
    before = old or ()
    kept = next(
        (i for i, (a, b) in enumerate(zip(before, new, strict=False)) if a != b), min(len(before), len(new))
    )
    cells = [LogCell(cell, fresh=index >= kept) for index, cell in enumerate(new)]
    return (*cells, *(LogCell(cell, lost=True) for cell in before[kept:]))
