"""ITF traces of other tools: whatever the format leaves open is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

# A value of each kind that ITF has a form of its own for.
KINDS = """\
spec kinds
sort Node
type Offset = nat upto 3
type Note = Empty | Carries(at: Offset, by: Node)
var low : -3..3 = -3
var pair : (Node, 0..3)? = none
var many : set[Offset] = {}
var heard : Node -> seq[Offset] upto 2 = { n: [] for n in Node }
var note : Note = Empty
var kept : bag[Node] upto 2 = {}
action step(n: Node):
    require card(many) < 3
    low' = low + 1
    pair' = some((n, card(many)))
    many' = many union { card(many) }
    heard'[n] = [card(many)]
    note' = Carries(at: card(many), by: n)
    kept' = if card(kept) < 2 then add(kept, n) else kept
invariant few: card(many) < 3
deadlock ok
model one:
    Node = 2
    expect violates few in 3 steps
"""
Trace = dict[str, Any]
Change = Callable[[Any], Any]


def everywhere(change: Change, data: Any) -> Any:
    """The data with a change in each part, the inner ones first."""
    if isinstance(data, dict):
        data = {name: everywhere(change, part) for name, part in data.items()}
    elif isinstance(data, list):
        data = [everywhere(change, part) for part in data]
    return change(data)


def tagged(tag: str, change: Change) -> Change:
    return lambda part: change(part[tag]) if isinstance(part, dict) and set(part) == {tag} else part


def each_state(change: Callable[[Trace], object]) -> Change:
    def changed(trace: Trace) -> Trace:
        for state in trace["states"]:
            change(state)
        return trace

    return changed


def in_states(change: Change) -> Change:
    return lambda trace: {**trace, "states": everywhere(change, trace["states"])}


def reordered(part: Any) -> Any:
    return dict(reversed(part.items())) if isinstance(part, dict) else part


CHANGES: dict[str, Change] = {
    "nothing": lambda trace: trace,
    "the order of members": lambda trace: everywhere(reordered, trace),
    "plain numbers": in_states(tagged("#bigint", int)),
    "the order of sets": in_states(tagged("#set", lambda items: {"#set": items[::-1]})),
    "the order of maps": in_states(tagged("#map", lambda pairs: {"#map": pairs[::-1]})),
    "the order of variables": lambda trace: {**trace, "vars": trace["vars"][::-1]},
    "an empty record for no value": in_states(tagged("#tup", lambda items: {"#tup": items} if items else {})),
    "no parameters": lambda trace: {name: part for name, part in trace.items() if name != "params"},
    "no loop": lambda trace: {**trace, "loop": None},
    "further members": each_state(lambda state: state.update({"another::tool": [None, {"x": 1.5}]})),
    "only the source": lambda trace: {**trace, "#meta": {"source": trace["#meta"]["source"]}},
    "no labels": each_state(lambda state: state.pop("#meta")),
    "labels of another tool": each_state(lambda state: state.update({"#meta": {"index": 7, "args": 5}})),
    "labels that are no objects": each_state(lambda state: state.update({"#meta": None})),
}  # fmt: skip


@pytest.fixture
def trace(specchk, here: Path) -> Trace:
    Path("kinds.spec").write_text(KINDS, encoding="utf-8")
    assert specchk("run", "kinds.spec", "--itf", "kinds.itf.json").code == 10
    written: Trace = json.loads(Path("kinds.itf.json").read_text(encoding="utf-8"))
    return written


@pytest.mark.parametrize("change", CHANGES)
def test_a_trace_in_another_form_is_the_same(specchk, trace: Trace, change: str) -> None:
    """The order of members, numbers, labels and further members are free."""
    drawn = specchk("draw", "kinds.itf.json")
    assert "few" in drawn.out
    Path("other.itf.json").write_text(json.dumps(CHANGES[change](deepcopy(trace))), encoding="utf-8")
    assert specchk("draw", "other.itf.json") == drawn


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("indent", [None, 7])
def test_white_space_and_a_byte_order_mark_mean_nothing(
    specchk, trace: Trace, encoding: str, indent: int | None
) -> None:
    """As some editors leave them."""
    drawn = specchk("draw", "kinds.itf.json")
    text = f"\n {json.dumps(trace, indent=indent)}\r\n"
    Path("other.itf.json").write_text(text, encoding=encoding)
    assert specchk("draw", "other.itf.json") == drawn


@pytest.mark.parametrize("digits", [3.7, True, "1_0", " 1", "+1", "", "1.0", None, [1]])
def test_a_number_that_is_none_is_refused(specchk, trace: Trace, digits: object) -> None:
    """Python's `int` would read some of these as numbers."""
    trace["states"][0]["low"] = {"#bigint": digits}
    Path("other.itf.json").write_text(json.dumps(trace), encoding="utf-8")
    said = specchk("draw", "other.itf.json")
    assert (said.code, "state 0, variable low" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda trace: trace.pop("#meta"), "add the path of the spec as `source` of `#meta`"),
        (lambda trace: trace.update(loop=True), "`loop` is the number of a state, not True"),
        (lambda trace: trace["#meta"].update(sorts={"Node": 5}), "`sorts` has a sort that is not a list"),
        (lambda trace: trace["states"].pop(1), "does not lead from state 0 to state 1"),
    ],
)
def test_a_trace_that_lacks_something_is_refused_with_the_reason(specchk, trace, change, words: str) -> None:
    """And with the remedy, if there is one."""
    change(trace)
    Path("other.itf.json").write_text(json.dumps(trace), encoding="utf-8")
    said = specchk("draw", "other.itf.json")
    assert (said.code, words in said.err) == (2, True)
