"""Pictures of random behaviours of every spec: nothing that changed is missing, nothing overlaps."""

from __future__ import annotations

import html
import re
import shutil
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.draw.conftest import ROOT, SPECS, instance, models, walk
from specchk.compile.instantiate import Instance, instantiate
from specchk.explore.view import Viewer
from specchk.lang.frontend import check
from specchk.report.diff import changes
from specchk.report.draw import lanes
from specchk.report.draw.layout import (
    CHAR,
    CHARS,
    GAP,
    INNER,
    Cells,
    Marks,
    Text,
    layout,
    title_lines,
)
from specchk.report.draw.picture import SHARED, Picture, Row, picture
from specchk.report.draw.render import svg_element
from specchk.report.draw.text import text
from specchk.search.verdict import Trace
from specs.spec_runs import declared

WITH_MODELS = [spec for spec in SPECS if declared("model", spec.removeprefix("spec/").removesuffix(".spec"))]
STEPS = 12


@pytest.mark.parametrize("spec", WITH_MODELS)
@settings(max_examples=2)
@given(seed=st.integers(0, 1 << 30))
def test_a_picture_of_a_random_behaviour_shows_it(spec: str, seed: int):
    """What changed is visible, nothing overlaps, and text, drawing and SVG have the same content."""
    found = instance(spec, models(spec)[seed % len(models(spec))])
    viewer, trace = Viewer(found), walk(found, seed, STEPS)
    shown = picture(viewer, trace, None)
    changes_are_visible(found, viewer, trace, shown)
    text_and_drawing_agree(shown)
    apart(shown)
    if shutil.which("dot") is not None:
        graphviz_draws_what_was_placed(shown)


def words(row: Row) -> str:
    """The text of a row, without the breaks caused by wrapping."""
    lines = [line.text for box in row.boxes.values() for line in box.lines if line.changed]
    return " ".join(lines)


def changes_are_visible(found: Instance, viewer: Viewer, trace: Trace, shown: Picture) -> None:
    """Every place that a step changed is in its row, marked as changed, unless its variable is hidden.

    Where no view says what the log is, its variable is in the cells, so a change of it is there.
    """
    for (before, after), row in zip(pairwise(trace.states), shown.rows[1:], strict=True):
        for change in changes(found.program, before, after):
            if change.variable not in viewer.hidden:
                assert change.text("→").removeprefix(change.path) in words(row), change
                assert change.variable in words(row)
            elif not found.lowering.spec.views:
                cells = [cell for box in row.boxes.values() for cell in box.log or ()]
                assert any(cell.fresh or cell.lost for cell in cells)


def text_and_drawing_agree(shown: Picture) -> None:
    """Titles, lines, cells and marks of the picture are in both, in the same order of rows."""
    said = text(shown)
    dot = html.unescape(re.sub(r"<[^<>]*>", "\n", lanes.dot(shown))).replace("\xa0", " ")
    joined = re.sub(r"\s+", "", dot)
    for row in shown.rows:
        assert f"{row.number:>3}  {row.title}" in said
        for part in title_lines(row):
            assert re.sub(r"\s+", "", part) in joined
        for box in row.boxes.values():
            for line in box.lines:
                assert line.text in said
                assert re.sub(r"\s+", "", line.text) in joined
            for mark in box.marks:
                assert f"{mark.name}={mark.offset}" in said
                assert mark.name in dot
            for cell in box.log or ():
                assert cell.cell.text in said
                assert cell.cell.text[:12] in dot


def apart(shown: Picture) -> None:
    """Boxes of a lane are one below the other at one x; lanes are apart; strips fill their box."""
    placed = layout(shown)
    assert list(placed.x_of) == list(shown.columns)
    for left, right in pairwise(placed.x_of.values()):
        assert right - left == placed.box + GAP
    below: dict[int, float] = {}
    for box in placed.boxes:
        assert box.x == placed.x_of[box.column]
        assert box.x - placed.box / 2 > placed.titles_width
        top = box.y - (box.height + 1) / 2
        assert top >= below.get(box.column, 0)
        below[box.column] = box.y + box.height / 2
        for strip in box.strips:
            match strip:
                case Text():
                    assert len(strip.text) <= CHARS
                    assert len(strip.text) * CHAR <= placed.inner
                case Cells():
                    assert strip.width * len(strip.cells) <= placed.inner <= INNER
                case Marks():
                    ends = [0, *(mark.x + mark.width for mark in strip.marks)]
                    assert all(mark.x >= end for mark, end in zip(strip.marks, ends, strict=False))
                    assert ends[-1] <= placed.inner
    titles = [(title.y, len(title.lines)) for title in placed.titles]
    assert all(b - a > 6.5 * (m + n) for (a, m), (b, n) in pairwise(titles))
    assert max(below.values(), default=0) <= placed.floor <= placed.height


@pytest.mark.parametrize("seed", [1, 2])
def test_thirty_steps_of_five_replicas_are_apart(seed: int):
    """The size that must be readable: all lanes, all steps, without overlaps."""
    spec = check(str(ROOT / "spec/replication.spec"))
    found = instantiate(spec, "three_brokers", {"Broker": "5", "MaxOffset": "4"})
    shown = picture(Viewer(found), walk(found, seed, 30), None)
    assert len(shown.rows) == 31
    assert len(shown.lanes) == 5
    apart(shown)


def graphviz_draws_what_was_placed(shown: Picture) -> None:
    """Each box, with each of its texts, is in the SVG where the layout put it."""
    placed = layout(shown)
    svg = svg_element(lanes.dot(shown), placed=True)
    assert svg is not None
    groups = {
        name: html.unescape(body)
        for name, body in re.findall(r"<title>(s\d+l\d+)</title>\n(.*?)</g>", svg, re.DOTALL)
    }
    assert len(groups) == len(placed.boxes)
    for box in placed.boxes:
        body = groups[f"s{box.row}l{box.column % len(placed.x_of)}"]
        for strip in box.strips:
            if isinstance(strip, Text):
                assert f"{strip.text.lstrip()}</text>" in body


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_a_picture_is_drawn_the_same_each_time():
    shown = first_picture()
    assert svg_element(lanes.dot(shown), placed=True) == svg_element(lanes.dot(shown), placed=True)


def test_the_shared_column_is_the_last():
    """State that belongs to no lane is at the right, whatever the lanes are."""
    assert first_picture().columns == (0, 1, SHARED)


def first_picture() -> Picture:
    spec = "spec/kafka/truncate_to_hw.spec"
    found = instance(spec, models(spec)[0])
    return picture(Viewer(found), walk(found, 1, STEPS), None)
