"""Traces with numbers above a horizon, as the symbolic engine writes them, are read back by `draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

SPEC = """\
spec far
sort Node
type Offset = nat upto 2
var end : Node -> Offset = { n: 0 for n in Node }
var last : Offset = 0
var seen : bool = false
var hidden : bool = false
action move(n: Node, to: Offset):
    require to > last + 40
    end'[n] = to
    last' = last + 1
action see(n: Node, at: Offset):
    require at > end[n] + 40 and not seen
    seen' = true
action hide(n: Node):
    any to in Offset:
        require to > end[n] + 40 and not hidden
        hidden' = true
invariant near: forall n in Node: end[n] < 90
invariant unseen: not seen
invariant shown: not hidden
view n in Node:
    mark END: end[n]
    arrow move(a, b): a -> (choose c in Node: c != a)
model two:
    Node = {ann, bob}
    properties near
model seen extends two:
    properties unseen
model hidden extends two:
    properties shown
"""


@pytest.fixture
def traces(specchk: Any, here: Path) -> dict[str, tuple[str, str]]:
    """For each model a trace of the symbolic engine in both formats."""
    (here / "far.spec").write_text(SPEC, encoding="utf-8")
    found = {}
    for model in ("two", "seen", "hidden"):
        said = specchk(
            "run", "far.spec", "--model", model, "--engine", "symbolic", "--json", "--itf", "far.itf.json"
        )
        assert said.code == 10
        found[model] = said.out, (here / "far.itf.json").read_text(encoding="utf-8")
    return found


@pytest.mark.parametrize("at", [0, 1], ids=["json", "itf"])
@pytest.mark.parametrize(
    ("model", "step"), [("two", "move(ann, 90)"), ("seen", "see(ann, 41)"), ("hidden", "hide(ann)")]
)
def test_a_trace_with_larger_numbers_is_a_behaviour(
    specchk: Any, here: Path, traces: dict[str, tuple[str, str]], at: int, model: str, step: str
) -> None:
    """In states, in arguments alone, or in a choice alone; the picture is the one that the run draws."""
    (here / "read.json").write_text(traces[model][at], encoding="utf-8")
    drawn = specchk("draw", "read.json")
    assert (drawn.code, drawn.err) == (0, "")
    assert step in drawn.out
    assert "!! violated: invariant" in drawn.out
    assert drawn == specchk("draw", "far.spec", "--model", model, "--engine", "symbolic")


@pytest.mark.parametrize(
    ("model", "old", "new", "words"),
    [
        ("two", '"last": 1', '"last": 2', "does not lead from state 0 to state 1"),
        ("two", "90", "40", "does not lead from state 0 to state 1"),
        ("two", "90", str(1 << 40), "is not a value of type nat upto 2"),
        ("seen", '"41"', '"40"', "does not lead from state 0 to state 1"),
    ],
)
def test_what_is_no_behaviour_is_refused_there(
    specchk: Any, here: Path, traces: dict[str, tuple[str, str]], model: str, old: str, new: str, words: str
) -> None:
    """A guard or a value that is wrong, or a number that no picture can show."""
    text = traces[model][0]
    assert old in text
    (here / "read.json").write_text(text.replace(old, new), encoding="utf-8")
    said = specchk("draw", "read.json")
    assert (said.code, words in said.err) == (2, True), said.err


def test_a_spec_that_lists_all_numbers_ends_at_its_horizon(
    specchk: Any, here: Path, traces: dict[str, tuple[str, str]]
) -> None:
    """The symbolic engine rejects it, so that none of its traces has larger numbers."""
    text = SPEC.replace("end[n] < 90\n", "end[n] < 90 or (forall o in Offset: o < 90)\n")
    (here / "far.spec").write_text(text, encoding="utf-8")
    (here / "read.json").write_text(traces["two"][0], encoding="utf-8")
    said = specchk("draw", "read.json")
    assert (said.code, "90 is not a value of type nat upto 2" in said.err) == (2, True), said.err
