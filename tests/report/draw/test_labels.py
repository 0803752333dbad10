"""Labels without a value: `none` and `undefined` are shown when they appear or disappear, and only there."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.view import Viewer
from specchk.lang.frontend import check
from specchk.report.draw.contrast import contrasted
from specchk.report.draw.picture import Picture, picture
from specchk.search.verdict import Step, Trace

SPEC = """\
spec labelled
type Place = enum { here, there }
var chosen : Place -> (0..3)? = { p: none for p in Place }
var limit  : Place -> 0..3 = { p: 0 for p in Place }
action choice(p: Place):
    chosen'[p] = some(2)
view p in Place:
    label best: chosen[p]
    label share: [1, 3][3 - limit[p]]
model m:
    expect states 4
"""


@pytest.fixture
def viewer(tmp_path: Path) -> Viewer:
    path = tmp_path / "labelled.spec"
    path.write_text(SPEC)
    return Viewer(instantiate(check(str(path)), "m"))


NOTHING, CHOSEN, LIMITED = (((), ()), (0, 0)), (((2,), ()), (0, 0)), (((2,), ()), (2, 0))


def lines(drawn: Picture) -> list[list[str]]:
    """The lines of each row's boxes."""
    return [[line.text for box in row.boxes.values() for line in box.lines] for row in drawn.rows]


def test_what_a_label_was_before_it_had_a_value(viewer: Viewer) -> None:
    """An option was `none`, an item undefined; while they are so, there is no line."""
    trace = Trace(NOTHING, (Step("choice", ("here",), CHOSEN), Step("choice", ("here",), LIMITED)))
    first, second, third = lines(picture(viewer, trace, None))
    assert not any("best" in line or "share" in line for line in first)
    assert "best: none → 2" in second
    assert not any("share" in line for line in second)
    assert "share: undefined → 3" in third


def test_a_label_that_only_the_spec_has_is_a_difference(viewer: Viewer) -> None:
    """As is one that only the implementation has."""
    trace = Trace(NOTHING, (Step("choice", ("here",), CHOSEN),))
    beside = contrasted(viewer, picture(viewer, trace, None), CHOSEN, NOTHING, "instead")
    assert "best: the spec has 2, the implementation none" in lines(beside)[-1]
