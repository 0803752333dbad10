"""Values in JSON, ITF and text: nothing lost, whatever the type."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.values import Values, show
from specchk.report.itf import value_itf
from specchk.report.json import value_json

R = Sort("R", ("r1", "r2"))
REC = Record((("x", Int(0, 1)), ("y", Bool())))
TYPES: list[Type] = [
    Bool(), Int(-1, 2), Enum("E", ("a", "b")), R, Option(Int(0, 1)), REC, Set(R), Seq(Int(0, 1), 2),
    Bag(Int(0, 1), 2), Map(R, Int(0, 1)), Map(REC, Bool()),
    Union("M", (("Fetch", Record((("r", R),))), ("Ping", Record(())))), Option(Option(Bool())),
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: type(kind).__name__)
def test_different_values_are_written_differently(kind: Type) -> None:
    """JSON, ITF and text distinguish all values of a type, and JSON can be read back."""
    values = Values().values(kind)
    for write in (value_json, value_itf, show):
        assert len({json.dumps(write(value, kind)) for value in values}) == len(values)
    for value in values:
        assert json.loads(json.dumps(value_json(value, kind))) == value_json(value, kind)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (Bool(), True, True),
        (Int(0, 9), 7, {"#bigint": "7"}),
        (R, 1, "r2"),
        (Option(R), (0,), {"tag": "some", "value": "r1"}),
        (Option(R), (), {"tag": "none", "value": {"#tup": []}}),
        (REC, (1, False), {"x": {"#bigint": "1"}, "y": False}),
        (Set(R), (0, 1), {"#set": ["r1", "r2"]}),
        (Seq(R, 2), (1, 0), ["r2", "r1"]),
        (Bag(R, 3), (1, 1), {"#map": [["r2", {"#bigint": "2"}]]}),
        (Map(R, Bool()), (True, False), {"#map": [["r1", True], ["r2", False]]}),
    ],
)  # fmt: skip
def test_itf_writes_each_type_as_adr_015_says(kind: Type, value: Any, wanted: Any) -> None:
    """#bigint, #set, #map, #tup, tagged objects, plain strings, booleans and lists."""
    assert value_itf(value, kind) == wanted


@given(st.integers(-(10**30), 10**30))
def test_large_numbers_keep_every_digit(number: int) -> None:
    """ITF writes integers as strings, so that no reader rounds them."""
    kind = Int(-(10**30), 10**30)
    assert int(value_itf(number, kind)["#bigint"]) == number
    assert json.loads(json.dumps(value_json(number, kind))) == number
