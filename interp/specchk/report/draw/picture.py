"""A trace as a picture, independent of its rendering: lanes, rows, boxes, cells, messages.

All that is shown is decided here, so that every form (SVG, terminal text, HTML) has the same
content.  A row is a state; a box stands in each lane in which the step changed something that is
shown there (in every lane at the start); what belongs to no lane is in the column of shared state.
Where two states should be the same and are not (`contrast`), what differs is marked in both rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from specchk.explore.view import ABSENT, Cell, Viewer
from specchk.ir.types import Map
from specchk.meaning.values import State, show
from specchk.report.behaviour import ending as forever_at
from specchk.report.diff import VariableChange, changes
from specchk.search.verdict import Step, Trace, Violation

FORMATS = ("svg", "png", "pdf", "dot")  # the endings of a picture's file


class LogCell(Struct, frozen=True):
    """A record as drawn: `fresh` if added by this step, `lost` if removed by it, `differs` if wrong."""

    cell: Cell
    fresh: bool = False
    lost: bool = False
    differs: bool = False


class LogMark(Struct, frozen=True):
    """A name at an offset of the log; `changed` if it was elsewhere before."""

    name: str
    offset: int
    changed: bool = False
    differs: bool = False


class Line(Struct, frozen=True):
    """A line of text in a box; `changed` if the step changed it."""

    text: str
    changed: bool = False
    differs: bool = False


class Box(Struct, frozen=True):
    """The content of one lane in one row: log, marks at its offsets, lines of text."""

    log: tuple[LogCell, ...] | None
    marks: tuple[LogMark, ...]
    lines: tuple[Line, ...]


class Row(Struct, frozen=True):
    """One state: the step that led to it, boxes by lane (-1 is the shared column), and a message.

    `differs`: the state stands beside that of the row before, and should be the same.
    """

    number: int
    title: str
    boxes: dict[int, Box]
    arrow: tuple[int, int] | None
    differs: bool = False


class Picture(Struct, frozen=True):
    """A complete trace; `loop` is the row that the last row repeats, for a behaviour with a loop."""

    title: str
    lanes: tuple[str, ...]
    rows: tuple[Row, ...]
    ending: tuple[str, ...]
    loop: int | None = None

    @property
    def columns(self) -> tuple[int, ...]:
        """The lanes in order, then the shared column if it is not empty."""
        shared = any(SHARED in row.boxes for row in self.rows)
        return (*range(len(self.lanes)), *([SHARED] if shared else []))

    def name(self, column: int) -> str:
        """The title of a column."""
        return "shared" if column == SHARED else self.lanes[column]


SHARED = -1
SHORT = 34  # characters that a box of any picture has room for


def picture(
    viewer: Viewer, trace: Trace, violation: Violation | None, title: str = "", ending: tuple[str, ...] = ()
) -> Picture:
    """The picture of a trace, with its violation or `ending` at the end.  `title` is added to the model."""
    program = viewer.program
    rows = [_first(viewer, trace.initial), *(_row(viewer, *numbered) for numbered in trace.numbered)]
    head = f"{program.spec}, model {program.model}" + (f", {title}" if title else "")
    loop = trace.loop if trace.loop is not None and trace.loop < len(trace.steps) else None
    return Picture(head, viewer.lanes, tuple(rows), ending or _ending(violation, trace), loop)


def _ending(violation: Violation | None, trace: Trace) -> tuple[str, ...]:
    forever = [forever_at(trace)] if trace.loop is not None else []
    if violation is None:
        return tuple(forever)
    name = f"{violation.kind} {violation.name}" if violation.kind != violation.name else violation.kind
    lines = [f"violated: {name}"]
    if violation.blame is not None:
        bound = ", ".join(f"{name} = {value}" for name, value in violation.blame.bindings)
        lines += [f"because {f'for {bound}: ' if bound else ''}{violation.blame.text}"]
        lines += [f"where {name} = {value}" for name, value in violation.blame.values]
    return (*lines, *violation.notes, *forever)


def _first(viewer: Viewer, state: State) -> Row:
    boxes = {}
    for lane in range(len(viewer.lanes)):
        box = _box(viewer, None, state, lane, ())
        boxes[lane] = Box(box.log, box.marks, (*_values(viewer, state, lane), *box.lines))
    lines = tuple(_values(viewer, state, SHARED))
    if lines:
        boxes[SHARED] = Box(None, (), lines)
    return Row(0, "initial state", boxes, None)


def _values(viewer: Viewer, state: State, column: int) -> Iterable[Line]:
    """The values of the variables that belong to a column."""
    for slot, (variable, value) in enumerate(zip(viewer.program.variables, state, strict=True)):
        is_in_lane = viewer.is_lane_variable(slot)
        if variable.name in viewer.hidden or is_in_lane != (column != SHARED):
            continue
        kind = variable.type
        if is_in_lane:
            assert isinstance(kind, Map)
            assert isinstance(value, tuple)
            kind, value = kind.value, value[column]
        yield Line(f"{variable.name} = {show(value, kind)}")


def _row(viewer: Viewer, number: int, before: State, step: Step) -> Row:
    news = [change for change in changes(viewer.program, before, step.state)
            if change.variable not in viewer.hidden]  # fmt: skip
    by_lane = by_column(viewer, news)
    arrow = viewer.arrow(before, step)
    boxes = {}
    for lane in range(len(viewer.lanes)):
        box = _box(viewer, before, step.state, lane, by_lane.get(lane, ()))
        # An arrow needs a box at both ends, also where the message changed nothing there.
        if _has_news(box) or lane in (arrow or ()):
            boxes[lane] = box
    if SHARED in by_lane:
        boxes[SHARED] = Box(None, (), tuple(_line(change, change.path) for change in by_lane[SHARED]))
    return Row(number, str(step), boxes, arrow)


def _has_news(box: Box) -> bool:
    cells = any(cell.fresh or cell.lost for cell in box.log or ())
    return cells or any(mark.changed for mark in box.marks) or any(line.changed for line in box.lines)


def by_column(viewer: Viewer, news: Iterable[VariableChange]) -> dict[int, list[VariableChange]]:
    """Changes by the column in which each is shown."""
    slots = {variable.name: slot for slot, variable in enumerate(viewer.program.variables)}
    columns: dict[int, list[VariableChange]] = {}
    for change in news:
        column = SHARED
        if viewer.is_lane_variable(slots[change.variable]):
            # `hw[r1].x`: paths are made by `diff`, and the name of a sort's or enum's member has no bracket.
            column = viewer.lanes.index(change.path[len(change.variable) + 1 :].split("]", 1)[0])
        columns.setdefault(column, []).append(change)
    return columns


def path_in(viewer: Viewer, column: int, change: VariableChange) -> str:
    """The path of a change in its column: `hw[r1]` is `hw` in the lane of r1."""
    return change.path if column == SHARED else change.path.replace(f"[{viewer.lanes[column]}]", "", 1)


def marks_of(viewer: Viewer, state: State, lane: int) -> list[tuple[str, int]]:
    """The names and offsets of a lane's marks, by offset."""
    return sorted(viewer.marks(state, lane).items(), key=lambda mark: (mark[1], mark[0]))


def _line(change: VariableChange, path: str) -> Line:
    return Line(replace(change, path=path).text("→"), changed=True)


def _box(
    viewer: Viewer, before: State | None, after: State, lane: int, changed: Iterable[VariableChange]
) -> Box:
    old = before if before is not None else after
    was = viewer.marks(old, lane)
    marks = tuple(LogMark(*mark, was.get(mark[0]) != mark[1]) for mark in marks_of(viewer, after, lane))
    lines = [_line(change, path_in(viewer, lane, change)) for change in changed]
    log = _log(viewer.log(old, lane), viewer.log(after, lane))
    was_labels, labels = viewer.labels(old, lane), viewer.labels(after, lane)
    lines += [
        Line(f"{name}: {was_labels[name]} → {value}", changed=True)
        for name, value in labels.items() if was_labels[name] != value
    ]  # fmt: skip
    # Unchanged labels are in the first box of a lane, and in one that would be empty without them.
    if before is None or not (log or marks or lines):
        lines += _labels({name: value for name, value in labels.items() if was_labels[name] == value})
    return Box(log, marks, tuple(lines))


def _labels(labels: dict[str, str]) -> Iterable[Line]:
    """Labels side by side; a true one is shown by its name only."""
    shown = [(name, value) for name, value in labels.items() if value not in ("false", *ABSENT)]
    return map(Line, _packed(name if value == "true" else f"{name}: {value}" for name, value in shown))


def _packed(texts: Iterable[str]) -> Iterable[str]:
    """The texts side by side, as many on a line as are short enough together."""
    line = ""
    for text in texts:
        joined = f"{line}, {text}" if line else text
        if line and len(joined) > SHORT:
            yield line
            joined = text
        line = joined
    if line:
        yield line


def _log(old: tuple[Cell, ...] | None, new: tuple[Cell, ...] | None) -> tuple[LogCell, ...] | None:
    if new is None:
        return None
    before = old or ()
    # The common beginning stays; a log is changed at its end, so what is behind it went, or came.
    kept = next(
        (i for i, (a, b) in enumerate(zip(before, new, strict=False)) if a != b), min(len(before), len(new))
    )
    cells = [LogCell(cell, fresh=index >= kept) for index, cell in enumerate(new)]
    return (*cells, *(LogCell(cell, lost=True) for cell in before[kept:]))
