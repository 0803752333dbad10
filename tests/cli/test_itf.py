"""ITF traces of other tools: whatever the format leaves open is read."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from specchk.ir.types import BOOL, Bag, Enum, Int, Map
from specchk.report.read import Unreadable, value_from_itf

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


def capitalised(part: Any) -> Any:
    is_option = isinstance(part, dict) and part.get("tag") in ("some", "none")
    return {**part, "tag": part["tag"].capitalize()} if is_option else part


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
    "items of sets twice": in_states(tagged("#set", lambda items: {"#set": items * 2})),
    "pairs of maps twice": in_states(tagged("#map", lambda pairs: {"#map": pairs * 2})),
    "options as Quint's": in_states(capitalised),
    "no fields as Apalache's": in_states(lambda part: "U_OF_UNIT" if part == {"#tup": []} else part),
    "stuttering steps": lambda trace: {
        **trace, "states": [{**state, "#meta": {}} for state in trace["states"] for _ in range(3)]
    },
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
        (lambda trace: trace.pop("#meta"), "give it with --spec, or add its path as `source` of `#meta`"),
        (lambda trace: trace["states"].insert(1, trace["states"][1]), "step(n1) does not lead from state 1"),
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


@pytest.mark.parametrize("about", [None, {"source": "Kinds.qnt", "status": "violation"}])
def test_a_trace_of_another_tool_is_drawn_by_the_spec_that_is_named(
    specchk, trace: Trace, about: Any
) -> None:
    """Without `#meta`, or with one that names a spec of that tool."""
    drawn = specchk("draw", "kinds.itf.json")
    other = {"#meta": about, **{name: trace[name] for name in ("vars", "states")}}
    for state in other["states"]:
        del state["#meta"]
    if about is None:
        del other["#meta"]
    Path("other.itf.json").write_text(json.dumps(other), encoding="utf-8")
    assert specchk("draw", "other.itf.json").code in (2, 30)
    assert specchk("draw", "other.itf.json", "--spec", "kinds.spec", "--model", "one") == drawn
    said = specchk("draw", "kinds.spec", "--spec", "kinds.spec")
    assert (said.code, "--spec names the spec of a trace" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("value", "is_read"),
    [
        ({"tag": "up", "value": {"#tup": []}}, True),
        ({"tag": "up", "value": "U_OF_UNIT"}, True),
        ({"tag": "up", "value": {"#tup": [1]}}, False),
        ({"tag": "left", "value": {"#tup": []}}, False),
    ],
)
def test_a_member_of_an_enum_may_be_a_variant_without_fields(value: Any, is_read: bool) -> None:
    """As in Quint and Apalache, where there are no enums."""
    kind = Enum("Way", ("down", "up"))
    if is_read:
        assert value_from_itf(value, kind) == 1
    else:
        with pytest.raises(Unreadable):
            value_from_itf(value, kind)


def test_two_counts_or_values_of_one_key_are_refused() -> None:
    """A pair that is listed twice is one, two different ones are no map."""
    number = Int(0, 9)
    bag, table = Bag(number, 4), Map(BOOL, number)
    assert value_from_itf({"#map": [[3, 2], [3, {"#bigint": "2"}]]}, bag) == (3, 3)
    assert value_from_itf({"#map": [[True, 2], [False, 1], [True, 2]]}, table) == (1, 2)
    wrong = [([[3, 2], [3, 1]], bag), ([[True, 2], [False, 1], [True, 3]], table), ([[True, 2]], table)]
    for pairs, kind in wrong:
        with pytest.raises(Unreadable, match=r"two counts|twice"):
            value_from_itf({"#map": pairs}, kind)


RING = """\
spec ring
var n : 0..2 = 0
action next():
    n' = (n + 1) % 3
model one:
    expect holds
"""


@pytest.mark.parametrize(
    ("numbers", "loop", "shown"),
    [
        ([0, 1, 2], 0, 3),
        ([0, 1, 2, 0], 0, 3),
        ([0, 0, 1, 1, 1, 2, 0, 0], 1, 3),
        ([0, 1, 2, 0, 1], 1, 4),
        ([0, 1, 1], 1, 1),
    ],
)
def test_a_loop_with_stuttering_steps_is_that_without(specchk, here, numbers, loop, shown: int) -> None:
    """Its number is one of the file's states, of which some are left out."""
    Path("ring.spec").write_text(RING, encoding="utf-8")
    written = {"vars": ["n"], "states": [{"n": number} for number in numbers], "loop": loop}
    Path("ring.itf.json").write_text(json.dumps(written), encoding="utf-8")
    drawn = specchk("draw", "ring.itf.json", "--spec", "ring.spec")
    assert drawn.code == 0, drawn.err
    assert drawn.out.count("next()") == shown, drawn.out
