"""Tuples: the meaning of expressions, files, and every engine on one spec."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from zoned import search_zones

from agreement.both import differences, program_of
from agreement.random_specs import spec_with_maps
from specchk.conform.contract import values as contract
from specchk.export.columns import column_of
from specchk.ir.types import BOOL, Int, Option, Record, Seq, Sort, show
from specchk.meaning import values
from specchk.meaning.values import universe
from specchk.report.itf import value_itf
from specchk.report.json import value_json
from specchk.report.read import Unreadable, value_from_itf, value_from_json
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.verdict import Holds
from specchk.symbolic.induction.prove import ProofOptions, prove

CLAIMS = """\
spec claims
sort Node
type Cell = (0..2, 0..1)
type Row = { x: 0..2, y: 0..1 }
var at : Cell = (1, 0)
var links : set[(Node, Node)] = {}
var marks : Cell -> 0..9 = { (x, y): 2 * x + y for (x, y) in Cell }
var table : map[(0..99, 0..99), (bool, Node?)] = { (7, 8): (true, none) }
var nested : ((0..2, bool), Cell) = ((2, true), (0, 1))
var line : seq[Cell] upto 3 = [(2, 0), (0, 1)]
var two : bag[Cell] upto 3 = {(0, 0), (0, 0)}
const Steps : set[(int, int)] = {(0, 1), (1, 0)}
def plus(a: (int, int), b: (int, int)): (int, int) =
    let (x, y) = a
    let (i, j) = b
    (x + i, y + j)
action link():
    any a in Node, b in Node:
        links' = links union {(a, b)}
deadlock ok
invariant claims:
    at == (1, 0) and (0, 1) != at and at in Cell
    (let (x, y) = at: x == 1 and y == 0)
    (let ((i, on), (_, j)) = nested: i == 2 and on and j == 1)
    card(Cell) == 6 and card({ (x, y) for x in 0..2, y in 0..1 }) == 6
    { (x, y) for x in 0..2, y in 0..1 } == Cell
    (choose (x, y) in Cell: x + y == 2) == (1, 1)
    (filter (x, y) in Cell: x > y + 1) == {(2, 0)}
    forall (x, y) in Cell: marks[(x, y)] == 2 * x + y
    (exists (x, y) in line, z in 0..x: z == 2 and y == 0)
    sum(x for (x, y) in Cell if y == 1) == 3
    sum(x * y for (x, y) in Cell) == 3
    table[(7, 8)] == (true, none) and (8, 7) not in table and keys(table) == {(7, 8)}
    (forall (a, b) in table: a + 1 == b)
    { table with [(1, 2)]: (false, none) } == { (a, b): (a == 7, none) for (a, b) in {(1, 2), (7, 8)} }
    fold(line, (0, 0), (acc, p) => plus(acc, p)) == (2, 1)
    fold(line, 0, (acc, (x, y)) => acc * 10 + x + y) == 21
    { plus(at, s) for s in Steps } == {(1, 1), (2, 0)}
    count(two, (0, 0)) == 2 and card(elements(two)) == 1
    head(line) == (2, 0) and append(line, (1, 1)) == [(2, 0), (0, 1), (1, 1)]
    card({ (b, a) for (a, b) in links }) == card(links)
    get(if card(links) > 0 then some((1, 2)) else none, (1, 2)) == (1, 2)
model m:
    Node = 2
"""
SYMBOLIC = """\
spec open
sort Node
type Offset = nat upto 4
var ends : Node -> (Offset, Offset) = { n: (0, 0) for n in Node }
action grow(n: Node):
    let (a, b) = ends[n]
    ends'[n] = (a + 1, b)
action follow(n: Node):
    let (a, b) = ends[n]
    require b < a
    ends'[n] = (a, a)
invariant behind: forall n in Node: (let (a, b) = ends[n]: b <= a)
model m:
    Node = 2
"""
NODE = Sort("Node", ("a", "b"))
PAIR = Record((("1", NODE), ("2", Option(Int(0, 1)))))
KINDS = (PAIR, Record((("1", PAIR), ("2", BOOL), ("3", Seq(PAIR, 1)))))


def test_claims_hold_in_the_reference_and_compiled(tmp_path: Path) -> None:
    """Every expression has the documented value of tuples, and both engines agree."""
    program = program_of(CLAIMS, tmp_path)
    assert program is not None
    assert isinstance(reference.search(program).verdict, Holds)
    for symmetry in (True, False):
        assert differences(program, symmetry=symmetry, keep_going=True, workers=2) == {}


def test_renamed_tuples_are_one_state(tmp_path: Path) -> None:
    """Elements of sorts are renamed inside tuples: 16 sets of pairs of two nodes, 10 up to renaming."""
    program = program_of(CLAIMS, tmp_path)
    assert program is not None
    options = [Options(symmetry=symmetry) for symmetry in (False, True)]
    assert [reference.search(program, one).statistics.distinct for one in options] == [16, 10]


@pytest.mark.parametrize("kind", KINDS, ids=show)
def test_values_are_read_as_they_were_written(kind: Record) -> None:
    """JSON, ITF, Python and Arrow have a form of each value, and no two values share one."""
    found = universe(kind)
    for value in found:
        assert value_from_json(value_json(value, kind), kind) == value
        assert value_from_itf(value_itf(value, kind), kind) == value
        assert contract.raw(contract.plain(value, kind), kind) == value
    assert len({values.show(value, kind) for value in found}) == len(found)
    column = pa.array([column_of(kind).plain(value) for value in found], column_of(kind).type)
    assert len({str(one) for one in column.to_pylist()}) == len(found)


def test_forms_of_a_pair() -> None:
    """The text, JSON, ITF, Python and columns of one pair."""
    pair = (1, (0,))
    assert show(PAIR) == "(Node, 0..1?)"
    assert values.show(pair, PAIR) == "(b, some(0))"
    assert value_json(pair, PAIR) == ["b", {"some": 0}]
    assert value_itf(pair, PAIR) == {"#tup": ["b", {"tag": "some", "value": {"#bigint": "0"}}]}
    assert contract.plain(pair, PAIR) == ("b", 0)
    assert column_of(PAIR).plain(pair) == {"_1": "b", "_2": 0}


@pytest.mark.parametrize(
    "data", [["a"], ["a", None, None], {"1": "a", "2": None}, "ab", None, [0, None]], ids=repr
)
def test_other_data_are_no_pair(data: object) -> None:
    """A list of another length, a table or a text is refused."""
    with pytest.raises(Unreadable):
        value_from_json(data, PAIR)
    with pytest.raises(Unreadable):
        value_from_itf({"#tup": data}, PAIR)
    with pytest.raises(contract.NotAValue):
        contract.raw(data, PAIR)


def test_open_offsets_in_tuples(tmp_path: Path) -> None:
    """The symbolic engine supports tuples of offsets without a horizon, and induction proves valid claims."""
    program = program_of(SYMBOLIC, tmp_path)
    assert program is not None
    assert isinstance(search_zones(program).verdict, Holds)
    assert prove(program, ProofOptions()).proved == ("behind",)
    wrong = program_of(SYMBOLIC.replace("b <= a)", "b <= 2)"), tmp_path)
    assert wrong is not None
    assert not isinstance(search_zones(wrong).verdict, Holds)


@pytest.mark.parametrize("seed", range(8))
def test_random_specs_with_tuples(seed: int, tmp_path: Path) -> None:
    """Reference and native engine agree on random specs with tuples, partial maps and their patterns."""
    random = Random(7000 + seed)
    program = program_of(spec_with_maps(random), tmp_path)
    if program is not None:
        limit = Budget(max_states=400)
        assert not differences(
            program, symmetry=random.random() < 0.5, keep_going=True, workers=2, limit=limit
        )
