"""Types as columns: every kind of value is readable, and packed states become the same columns as values."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native.drawn import value_of
from specchk.export import parts, unpack
from specchk.export.columns import column_of, distinct
from specchk.export.unpack import states_at
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Room, Seq, Set, Sort, Type, Union
from specchk.native.machine.layout import WORD, BitRange, StateLayout, encode, mask, width

COLOUR, NODE = Enum("Colour", ("red", "green")), Sort("Node", ("n1", "n2", "n3"))
PAIR = Record((("from", NODE), ("to", Option(NODE))))
ACK = Record((("at", Int(0, 9)),))
BODY = Union("Body", (("Empty", Record(())), ("Ack", ACK), ("Tag", PAIR), ("tag", PAIR)))
PLAIN = (
    (Bool(), 1, True),
    (Int(-3, 9), -2, -2),
    (COLOUR, 1, "green"),
    (NODE, 0, "n1"),
    (Option(NODE), (), None),
    (Option(NODE), (2,), "n3"),
    (Option(Option(NODE)), (), None),
    (Option(Option(NODE)), ((),), {"some": None}),
    (PAIR, (0, (1,)), {"from": "n1", "to": "n2"}),
    (Record(()), (), True),
    (Record((("a", Bool()), ("A", Bool()))), (0, 1), {"a": False, "A_": True}),
    (Union("Kind", (("On", Record(())), ("Off", Record(())))), (1, ()), "Off"),
    (BODY, (0, ()), {"tag": "Empty", "Ack": None, "Tag_": None, "tag__": None}),
    (BODY, (1, (4,)), {"tag": "Ack", "Ack": {"at": 4}, "Tag_": None, "tag__": None}),
    (BODY, (3, (0, ())), {"tag": "tag", "Ack": None, "Tag_": None, "tag__": {"from": "n1", "to": None}}),
    (Map(NODE, Int(0, 5)), (3, 4, 5), [("n1", 3), ("n2", 4), ("n3", 5)]),
    (Map(Option(COLOUR), Bool()), (0, 1, 0),
     [{"key": None, "value": False}, {"key": "red", "value": True}, {"key": "green", "value": False}]),
    (Set(Int(0, 9)), (1, 7), [1, 7]),
    (Seq(Option(COLOUR), 3), ((0,), (), (1,)), ["red", None, "green"]),
    (Bag(COLOUR, 3), (0, 0, 1), ["red", "red", "green"]),
)  # fmt: skip
SCALARS = st.sampled_from([Bool(), Int(0, 0), Int(-5, 300), Int(0, (1 << 40)), COLOUR, NODE])
KEYS = st.sampled_from([Bool(), Int(0, 3), COLOUR, NODE, Option(COLOUR)])


def records(kinds: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.lists(kinds, max_size=3).map(lambda parts: Record(tuple(zip("abc", parts, strict=False))))


KINDS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        inner.map(Option), records(inner), st.builds(Map, KEYS, inner), KEYS.map(Set),
        st.builds(Seq, inner, st.integers(0, 3)), st.builds(Bag, inner, st.integers(0, 2)),
        st.lists(records(inner), min_size=1, max_size=3).map(
            lambda parts: Union("U", tuple(zip(("X", "Y", "Z"), parts, strict=False)))  # type: ignore[arg-type]
        ),
    ),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.parametrize(("kind", "value", "wanted"), PLAIN, ids=str)
def test_values_are_readable(kind: Type, value: object, wanted: object) -> None:
    """Members by name, options as nulls, unions by their tag; also when written and read again."""
    column = pa.array([column_of(kind).plain(value)], column_of(kind).type)
    assert column.to_pylist() == [wanted]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": column}), sink)
    assert pq.read_table(pa.BufferReader(sink.getvalue()))["x"].to_pylist() == [wanted]


def test_names_differ_for_readers_that_ignore_case() -> None:
    """The first of each keeps its name."""
    assert distinct(["id", "ID", "Id_", "level"], ["level"]) == ["id", "ID_", "Id__", "level_"]


def codes_of(kind: Type, values: list[object], offset: int, words: int, random: Random) -> ctypes.Array[Any]:
    """Packed states that have the values at an offset, and anything below it."""
    packed = (ctypes.c_uint64 * (words * len(values)))()
    for row, value in enumerate(values):
        whole = encode(kind, value) << offset | (random.getrandbits(offset) if offset else 0)
        for word in range(words):
            packed[row * words + word] = whole >> WORD * word & mask(WORD)
    return packed


class HeldDraft(parts.LocalDraft, frozen=True):
    """A draft whose only file stays in memory."""

    files: ClassVar[list[bytes]] = []

    def write(self, name: str, data: Sequence[parts.Data]) -> None:
        self.files.append(b"".join(data))


def written(kind: Type, blocks: list[list[object]], offset: int, random: Random) -> bytes:
    """A file with a row group for each block of values."""
    words = max(1, -(-(offset + width(kind)) // WORD))
    layout = StateLayout((BitRange("x", kind, offset, width(kind)),), words)
    draft = HeldDraft(Path("E"), Path("E"))
    table = parts.TableWriter(draft, "states", pa.schema([("x", column_of(kind).type)]))
    for values in blocks:
        packed = codes_of(kind, values, offset, words, random)
        (column,) = states_at(ctypes.addressof(packed), len(values), layout)
        column.validate(full=True)
        table.add(pa.table([column], ["x"]))
    table.close()
    return draft.files.pop()


def check_columns(kind: Type, seed: int, offset: int, many: int) -> None:
    """Check that packed states become the columns of their values, in two row groups."""
    random = Random(seed)
    values = [value_of(kind, random) for _ in range(many)]
    blocks = [values, values[: many // 2 + 1]]
    column = pq.read_table(pa.BufferReader(written(kind, blocks, offset, random)))["x"].combine_chunks()
    column.validate(full=True)
    wanted = [column_of(kind).plain(value) for some in blocks for value in some]
    assert column == pa.array(wanted, column_of(kind).type)


@settings(max_examples=150, deadline=None)
@given(kind=KINDS, seed=st.integers(0, 1 << 30), offset=st.integers(0, 130), many=st.integers(1, 40))
def test_packed_states_become_the_columns_of_their_values(
    kind: Type, seed: int, offset: int, many: int
) -> None:
    """At any offset, across words, in several row groups."""
    check_columns(kind, seed, offset, many)


@settings(max_examples=150, deadline=None)
@given(kind=KINDS, seed=st.integers(0, 1 << 30))
def test_types_of_few_values_need_no_table(kind: Type, seed: int) -> None:
    """A table only saves time: what it has of parts is the same without."""
    with patch.object(unpack, "TABLE_BITS", -1):
        check_columns(kind, seed, 3, 20)


MANY_NODES = Sort("Node", tuple(f"n{number}" for number in range(300)))
WIDE = (
    Record((("a", MANY_NODES), ("b", Option(MANY_NODES)))),
    Record((("a", Int(0, 255)), ("b", Int(0, 256)))),
    Record((("a", Int(-(1 << 31), (1 << 31) - 1)), ("b", Int(-1, 1 << 31)))),
    Set(Int(0, 150)),
    Set(Record((("a", Int(0, 9)), ("b", COLOUR)))),
    Set(Int(0, 900), Room(4, 16)),
    Map(Int(0, 99), Seq(Bool(), 2)),
    Map(Record((("a", COLOUR), ("b", Int(0, 6)))), Option(PAIR)),
    Map(COLOUR, Map(NODE, Map(Bool(), Option(Option(COLOUR))))),
    Map(BODY, Seq(BODY, 2)),
    Seq(Map(Option(COLOUR), Set(NODE)), 3),
    Set(Record((("key", NODE), ("value", Option(PAIR)))), keyed=True),
    Set(Record((("key", Option(COLOUR)), ("value", BODY))), Room(4, 16), keyed=True),
    Map(Sort("None", ()), Bool()),
    Seq(Int(0, 0), 5),
    Option(Record((("a", Map(Bool(), Int(0, 9))), ("b", Map(NODE, Int(0, 9))), ("c", Map(COLOUR, Bool()))))),
    Seq(Record((("a", Map(Enum("One", ("x",)), Bool())), ("b", Record((("c", COLOUR),))))), 2),
    Seq(Map(Map(Bool(), COLOUR), Bool()), 2),
)  # fmt: skip


@pytest.mark.parametrize("kind", WIDE, ids=str)
def test_types_of_many_values_and_deep_ones(kind: Type, tmp_path: Path) -> None:
    """Members of more than a byte, numbers of 64 bits, sets of several words, keys that are records.

    Read by Arrow and by DuckDB, whose Parquet is its own.
    """
    random = Random(5)
    values = [value_of(kind, random) for _ in range(100)]
    file = tmp_path / "x.parquet"
    file.write_bytes(written(kind, [values[:33], values[33:]], 3, random))
    wanted = pa.array([column_of(kind).plain(value) for value in values], column_of(kind).type)
    assert pq.read_table(file)["x"].combine_chunks() == wanted
    pq.write_table(pa.table({"x": wanted}), tmp_path / "y.parquet")
    with duckdb.connect() as base:
        ours, theirs = (base.sql(f"from '{tmp_path}/{name}.parquet'").fetchall() for name in "xy")
    assert ours == theirs
