"""Pictures show what a view declares: lanes of a sort or an enum, logs, marks, labels, arrows."""

from __future__ import annotations

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.view import Viewer
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.initial import initial_states
from specchk.meaning.step import Stepper
from specchk.search.verdict import Step

SPEC = """spec post
type Letters = seq[0..1] upto 2
var box : Letters = []
var read : 0..2 = 0
var hurry : bool = true
action drop(x: 0..1):
    require len(box) < 2
    box' = append(box, x)
type Party = enum { sender, postman, reader }
view p in Party:
    log: if p == postman then some(box) else none
    mark read: if p == postman then some(read) else none
    label hurry: if p == sender then some(hurry) else none
    label never: if false then some(read) else none
    hide box
    arrow drop(x): sender -> postman
model small:
    expect holds
"""
SMALL = instantiate(check("post.spec", SPEC))


def test_the_members_of_an_enum_are_lanes():
    """In order; a variable belongs to a lane only if it is mapped over them."""
    viewer = Viewer(SMALL)
    assert viewer.lanes == ("sender", "postman", "reader")
    assert not any(viewer.is_lane_variable(slot) for slot in range(3))


@pytest.mark.parametrize(("by_key", "by_node", "lanes"), [
    (1, 2, ("a", "b")), (2, 1, ("k1", "k2")), (1, 1, ("k1", "k2")), (0, 1, ("a", "b")), (0, 0, ()),
])  # fmt: skip
def test_without_a_view_lanes_are_what_most_variables_are_mapped_over(by_key, by_node, lanes):
    """The elements of a sort or of an enum; of a sort where both have as many."""
    text = "spec p\nsort Key\ntype Node = enum { a, b }\nvar n : 0..1 = 0\n"
    text += "".join(f"var x{i} : Key -> bool = {{ k: false for k in Key }}\n" for i in range(by_key))
    text += "".join(f"var y{i} : Node -> bool = {{ m: false for m in Node }}\n" for i in range(by_node))
    instance = instantiate(check("p.spec", text + "action go():\n    n' = 1\nmodel m:\n    Key = 2\n"))
    assert Viewer(instance).lanes == lanes


def test_what_is_none_is_not_shown():
    """The content of an option, in the lanes in which it has one."""
    viewer, (state,) = Viewer(SMALL), initial_states(SMALL.program)
    assert [viewer.log(state, lane) for lane in range(3)] == [None, (), None]
    assert [viewer.marks(state, lane) for lane in range(3)] == [{}, {"read": 0}, {}]
    labels = [viewer.labels(state, lane) for lane in range(3)]  # pictures leave these out while they are so
    assert labels == [{"hurry": hurry, "never": "none"} for hurry in ("true", "none", "none")]


def test_arrows_go_between_members_of_an_enum():
    """As between elements of a sort."""
    (state,) = initial_states(SMALL.program)
    (first, *_) = Stepper(SMALL.program).successors(state)
    assert Viewer(SMALL).arrow(state, Step.of(SMALL.program, *first)) == (0, 1)


@pytest.mark.parametrize("lanes", ["Letters", "Nobody", "box"])
def test_a_view_is_over_a_sort_or_an_enum(lanes):
    """Any other type is reported with the names that are possible."""
    with pytest.raises(SpecError) as caught:
        check("post.spec", SPEC.replace("view p in Party", f"view p in {lanes}"))
    assert any(lanes in one.message for one in caught.value.diagnostics)


VIEWED = """spec viewed
type Key = 0..2
type Party = enum { sender, reader }
var of : Key -> 0..1 = { k: 0 for k in Key }
action drop():
    of'[0] = 1
view p in Party:
    LINE
model m:
    expect holds
"""


@pytest.mark.parametrize(
    "line",
    ["log: if TEST then 1 else 0", "mark at: if TEST then 1 else 0", "label keyed: TEST",
     "arrow drop(): (if TEST then sender else reader) -> reader",
     "arrow drop(): sender -> (choose q in Party: TEST)"],
)  # fmt: skip
def test_what_no_picture_could_show_is_rejected_before_a_search(line):
    """That a map lacks a key is found with its type: no picture of a verdict ends in an error."""
    text = VIEWED.replace("LINE", line)
    instantiate(check("viewed.spec", text.replace("TEST", "of == { k: 0 for k in Key }")))
    checked = check("viewed.spec", text.replace("TEST", "of == { k: 0 for k in {0, 1} }"))
    with pytest.raises(SpecError) as caught:
        instantiate(checked)
    assert [one.code for one in caught.value.diagnostics] == ["S309"]
