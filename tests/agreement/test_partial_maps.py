"""Partial maps: the meaning of expressions, all engines on one suite, files, and planted errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from zoned import search_zones

from agreement import test_planted_sparse_bugs as sparse_bugs
from agreement.both import differences, program_of
from specchk.compile.nodes import operators
from specchk.compile.nodes.partial_maps import PartialMaps
from specchk.conform.contract import values as contract
from specchk.export.columns import column_of
from specchk.ir.nodes import Const, Expr
from specchk.ir.ops import Op
from specchk.ir.program import Program
from specchk.ir.types import BOOL, Enum, Int, Option, Record, Room, Set, partial_map, show
from specchk.lang.text.source import Span
from specchk.meaning.values import Values
from specchk.native import engine
from specchk.native.machine.rooms import is_roomy
from specchk.report.itf import value_itf
from specchk.report.json import value_json
from specchk.report.read import Unreadable, value_from_itf, value_from_json
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Holds, HoldsWithin
from specchk.symbolic.induction.prove import ProofOptions, prove
from specchk.symbolic.zones import engine as zones

VALUES = """\
spec values
sort Node
type Cell = { x: 0..9, y: 0..9 }
type Offset = nat upto 3
var wide : map[0..1000000, 0..9] = { 5: 1, 1000000: 9 }
var few : map[Node, bool] = { c: true for c in Node }
var cells : map[Cell, set[0..9]] = { { x: 1, y: 2 }: {3}, { x: 0, y: 9 }: {} }
var nested : Node -> map[0..3, map[bool, 0..3]] = { c: { 2: { true: 1 } } for c in Node }
var tiny : map[0..2, bool] = { 1: true }
var made : set[map[0..2, bool]] = { { 1: true }, { 1: true, 0: false } }
var ends : map[Offset, Offset] = { 1: 3 }
var n : 0..9 = 5
def same(a: map[0..1000000, 0..9], b: map[0..1000000, 0..9]): bool = a == b
def total(m: map[0..1000000, 0..9]): int = sum(m[k] for k in m)
model m:
    Node = 3
"""
CLAIMS = (
    "wide[5] == 1 and wide[n] == 1", "5 in wide and 6 not in wide and not (n + 1 in wide)",
    "keys(wide) == { 5, 1000000 }", "card(wide) == 2", "get(wide, 7, 4) == 4 and get(wide, n, 4) == 1",
    "{ wide with [n]: 2 } == { 5: 2, 1000000: 9 }", "{ wide with [6]: 2 } == { 1000000: 9, 6: 2, 5: 1 }",
    "{ wide with [6]: 2, [n]: 3, [6]: 4 } == { 5: 3, 6: 4, 1000000: 9 }",
    "remove(wide, n) == { 1000000: 9 } and remove(remove(wide, 5), 1000000) == {}",
    "wide != {} and wide == { k: wide[k] for k in wide }", "total(wide) == 10 and total({}) == 0",
    "same({ n: 1, n + 1: 2 }, { 6: 2, 5: 1 }) and same({ n: 1, 5: 2, 7: 0 }, { 5: 2, 7: 0 })",
    "forall k in few: few[k]",
    "(exists k in Node: { few with [k]: false } != few) and card(few) == card(Node)",
    "cells[{ x: 1, y: 2 }] == {3} and card(cells[{ y: 9, x: 0 }]) == 0",
    "{ cells with [{ x: 1, y: 2 }]: {} } == { c: {} for c in keys(cells) }",
    "forall c in Node: nested[c][2][true] == 1 and not (false in nested[c][2])",
    "(exists c in Node: { nested with [c][2][false]: 3 }[c][2] == { true: 1, false: 3 })",
    "{ m for m in { tiny, {}, remove(tiny, 1), { tiny with [0]: false } } if card(m) > 0 } == made",
    "(filter k in wide: wide[k] > 5) == { 1000000 }", "(choose k in wide: wide[k] > 5) == 1000000",
    "card(maps(Node, bool)) == 8 and few in maps(Node, bool) and maps(Node, {}) == {}",
    "(forall m in maps(keys(few), {true}): m == few) and maps(keys(remove(tiny, 1)), bool) == {{}}",
    "maps({1}, {n, 9}) == {{ 1: 5 }, { 1: 9 }} and made != maps({1, 0}, {true})",
    "max(k for k in wide) == 1000000 and fold(keys(ends), 0, (acc, k) => acc + ends[k]) == 3",
)  # fmt: skip
UNDEFINED = (
    "wide[6] == 1", "remove(wide, 6) == wide", "forall c in Node: nested[c][1][true] == 1",
    "get(ends, 3, 1 // 0) == 1",
)  # fmt: skip


def claims(*texts: str) -> str:
    """The spec with an invariant for each claim, and without a step."""
    return VALUES.replace("model m:", "\n".join(
        [*(f"invariant claim{n}: {text}" for n, text in enumerate(texts)),
         "action stay():\n    skip", "deadlock ok", "model m:"])
    )  # fmt: skip


def verdicts(text: str, folder: Path) -> list[str]:
    """The answers of the reference, the native and the symbolic engine."""
    program = program_of(text, folder)
    assert program is not None
    found = [
        reference.search(program, Options(keep_going=True)),
        engine.search(program, engine.NativeOptions(keep_going=True)),
    ]
    return [
        f"{type(one.verdict).__name__} {[(v.kind, v.name) for v in getattr(one.verdict, 'violations', ())]}"
        for one in found
    ]


def test_expressions_mean_what_they_say(tmp_path: Path) -> None:
    """Every claim holds, for maps with many keys, few, records as keys and maps as values."""
    assert verdicts(claims(*CLAIMS), tmp_path) == ["HoldsWithin []"] * 2


def test_maps_depend_on_the_values_of_their_sets(tmp_path: Path) -> None:
    """Of large types as well; more than 2^20 maps are undefined."""
    few = "(exists m in maps({ k for k in wide if k > 9 }, { wide[k] for k in wide }): m == { 1000000: 9 })"
    assert verdicts(claims("card(maps(0..999, {1})) == 1", few), tmp_path) == ["Holds []"] * 2
    many = verdicts(claims("forall m in maps(0..n, 0..99): m == {}"), tmp_path)
    assert many == ["Violated [('undefined', 'claim0')]"] * 2


@pytest.mark.parametrize("claim", UNDEFINED)
def test_a_key_that_is_not_there_has_no_value(claim: str, tmp_path: Path) -> None:
    """Looked up or removed; a default is evaluated only if it is needed."""
    first, second = verdicts(claims(claim), tmp_path)
    assert first == second
    assert "undefined" in first


SUITE = """
spec suite
sort Node
type Message = { from: Node, to: Node, term: -1..9, at: 0..99, ok: bool }
var box : map[0..299, Message] = {}
var tally : map[Message, 0..3] = {}
var net : bag[Message] upto 3 = {}
var seats : Node -> map[0..1, Node] = { n: {} for n in Node }
var past : set[map[0..1, 0..2]] = { { 0: 1 } }
action send(a: Node, b: Node):
    require a != b and card(net) < 2 and card(past) < 3 and card(tally) < 2
    let m = { from: a, to: b, term: card(net) - 1, at: 40 + card(box),
        ok: a in { s for s in Node if 0 in seats[s] } }
    net' = add(net, m)
    tally'[m] = get(tally, m, 0) + 1
action deliver():
    any m in net:
        require card(box) < 2
        net' = remove(net, m)
        box' = { box with [m.at + 2 * card(box)]: { m with ok: true } }
        seats'[m.to][0 - m.term] = m.from
action forget():
    any k in box:
        require card(tally) > 1 and card(past) == 1
        box' = remove(box, k)
        tally' = { m: tally[m] for m in keys(tally) - { { box[k] with ok: false } } }
action repeat_one():
    any m in tally:
        require tally[m] < 2 and net == {} and card(past) < 3
        net' = net union { m }
        tally'[m] = tally[m] + 1
action note(i: 0..1):
    require net == {} and card(past) < 4 and box != {}
    past' = { { p with [i]: min(2, card(box)) } for p in past } union past
action overflow():
    any k in box:
        require card(past) > 2
        box'[k].term = box[k].term + 11
invariant kept: forall k in box: box[k].at + 2 >= k or k in { 40, 42, 43 }
invariant counted: forall m in net: m in tally and count(net, m) <= 3
reachable both: exists k in box: box[k].ok and k > 41
reachable seated: exists n in Node: seats[n] == { 0: n, 1: n } or card(seats[n]) == 2
reachable noted: { 0: 1, 1: 1 } in past
constraint few: card(tally) + card(net) + card(box) + card(past) < 6 and card(past) < 4
deadlock ok
model m:
    Node = 2
"""
ROOMS = ((True, Room.of(8)), (False, Room(1)))
LIMIT = Budget(max_states=13_000)


def suite(folder: Path) -> Program:
    program = program_of(SUITE, folder)
    assert program is not None
    assert is_roomy(program)
    return program


def is_caught(folder: Path) -> bool:
    """Whether the engines differ, with symmetry or without, with many slots from the start or few."""
    for symmetry, room in ROOMS:
        try:
            found = differences(
                suite(folder), symmetry=symmetry, keep_going=True, workers=1, limit=LIMIT, room=room
            )
        except (ReplayFailed, RuntimeError, AssertionError, IndexError):
            return True
        assert found is not None, "the suite is small enough, and compiled"
        if found:
            return True
    return False


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an empty cache, so that no kernel of a wrong compiler is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_the_engines_agree_on_a_suite_of_maps_and_bags(tmp_path: Path) -> None:
    """Verdict, counts, coverage and traces, whatever the number of slots."""
    assert not is_caught(tmp_path)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("bug", [
    "items are put at the end", "the last item is not merged", "empty slots are not 0",
    "an overflow is not noted",
    "an item is read from one word", "the last item is not visited", "nothing is removed",
    "renamed items are not sorted",
])  # fmt: skip
def test_a_bug_planted_in_the_kernels_of_lists_is_caught(
    bug: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maps and bags alone distinguish the engines."""
    owner, name, wrong = sparse_bugs.BUGS[bug]
    monkeypatch.setattr(owner, name, wrong(getattr(owner, name)))
    assert is_caught(tmp_path)


def _both_pairs(_: Any) -> Any:
    def put(self: PartialMaps, span: Span, table: Expr, key: Expr, value: Expr) -> Expr:
        return operators.applied(span, Op.UNION, table, self._of_pairs(span, [(key, value)]))

    return put


def _always_default(_: Any) -> Any:
    return lambda self, span, table, key, default: default


def _of_others(good: Any) -> Any:
    def only(self: PartialMaps, span: Span, table: Expr, wanted: Expr) -> Expr:
        found = good(self, span, table, wanted)
        return replace(found, body=operators.of_word(span, "not", found.body))

    return only


MISTAKES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a key keeps its old value": ("put", _both_pairs),
    "the value of another key is found": ("_only", _of_others),
    "a default is always taken": ("get", _always_default),
    "no key is removed": ("remove", lambda _: lambda self, span, table, key: table),
    "no key is there": ("has", lambda _: lambda self, span, key, table: Const(BOOL, span, False)),
    "the first of equal keys counts": (
        "literal",
        lambda _: lambda self, span, pairs: self._of_pairs(span, pairs),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_planted_in_the_lowering_is_caught(
    mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All engines share it, so the claims must detect it."""
    name, wrong = MISTAKES[mistake]
    monkeypatch.setattr(PartialMaps, name, wrong(getattr(PartialMaps, name)))
    program = program_of(claims(*CLAIMS), tmp_path)
    assert program is None or not isinstance(reference.search(program, Options()).verdict, HoldsWithin)


COLOUR = Enum("Colour", ("red", "green"))
KINDS = (
    partial_map(Int(0, 2), BOOL), partial_map(COLOUR, Option(BOOL)),
    partial_map(BOOL, partial_map(Int(0, 0), BOOL)),
    partial_map(Option(BOOL), Int(-1, 1)), partial_map(Record((("a", BOOL),)), BOOL),
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=map(show, KINDS))
def test_a_map_is_read_as_it_was_written(kind: Set) -> None:
    """ITF and JSON, of every value; in JSON, a map with a repeated key is not a value."""
    key, value = kind.pair
    every = Values().values(kind)
    assert len(every) == (1 + len(Values().values(value))) ** len(Values().values(key))
    for given in every:
        assert value_from_itf(value_itf(given, kind), kind) == given
        assert value_from_json(value_json(given, kind), kind) == given
    twice = value_json(every[-1], kind)[:1] * 2
    with pytest.raises(Unreadable, match="twice"):
        value_from_json(twice, kind)
    assert value_from_itf({"#map": value_itf(every[-1], kind)["#map"] * 2}, kind) == every[-1]


@pytest.mark.parametrize("kind", KINDS[:4], ids=map(show, KINDS[:4]))
def test_a_map_is_a_column_and_a_value_of_a_binding(kind: Set) -> None:
    """A map of Arrow's, or a list of pairs if keys may be null; a mapping of an implementation's."""
    every = Values().values(kind)
    column = pa.array([column_of(kind).plain(given) for given in every], column_of(kind).type)
    assert [len(item) for item in column.to_pylist()] == [len(given) for given in every]
    for given in every:
        assert contract.raw(contract.plain(given, kind), kind) == given


def test_a_binding_that_gives_no_map_is_refused() -> None:
    """A list of pairs is not one, nor is a map with a wrong key or value; the place is named."""
    for wrong in ([(0, True)], {9: True}, {0: 1}):
        with pytest.raises(contract.NotAValue):
            contract.raw(wrong, KINDS[0])


def test_only_maps_are_listed_and_open_values(tmp_path: Path) -> None:
    """No value of the type has two values for a key: three for each of two keys."""
    text = (
        "spec open_maps\ntype M = map[0..1, 0..1]\nvar m : M\nvar n : 0..9 = 0\ninit: true\n"
        "action count_all():\n    n' = card(M)\nreachable all: n == 9\ninvariant few: card(m) <= 2\n"
        "deadlock ok\nmodel m:\n    expect states 18\n"
    )
    program = program_of(text, tmp_path)
    assert program is not None
    assert reference.search(program, Options()).statistics.distinct == 18
    assert not differences(program, keep_going=True)
    assert isinstance(search_zones(program, zones.ZoneOptions()).verdict, Holds)
    assert prove(program, ProofOptions()).verdict == Holds()
