"""Types as columns: every kind of value is readable, and packed states become the columns that values do."""

from __future__ import annotations

import ctypes
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchk.export import decoded
from specchk.export.columns import arrow_type, distinct, plain
from specchk.export.decoded import PackedBlock, place_of, spread
from specchk.export.parts import LocalDraft, TableWriter
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.native.machine.layout import WORD, encode, mask, width

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
    column = pa.array([plain(kind, value)], arrow_type(kind))
    assert column.to_pylist() == [wanted]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": column}), sink)
    assert pq.read_table(pa.BufferReader(sink.getvalue()))["x"].to_pylist() == [wanted]


def test_names_differ_for_readers_that_ignore_case() -> None:
    """The first of each keeps its name."""
    assert distinct(["id", "ID", "Id_", "level"], ["level"]) == ["id", "ID_", "Id__", "level_"]


def value_of(kind: Type, random: Random) -> object:
    """A value of a type."""
    match kind:
        case Bool():
            return random.randrange(2)
        case Int():
            return random.randint(kind.low, kind.high)
        case Enum() | Sort():
            return random.randrange(len(kind.members))
        case Option():
            return random.choice([(), (value_of(kind.item, random),)])
        case Record():
            return tuple(value_of(part, random) for _, part in kind.fields)
        case Union():
            tag = random.randrange(len(kind.variants))
            return tag, value_of(kind.variants[tag][1], random)
        case Map():
            return tuple(value_of(kind.value, random) for _ in decoded.positions(kind.key))
        case Set():
            return tuple(item for item in sorted(decoded.positions(kind.item)) if random.random() < 0.5)
        case Seq():
            return tuple(value_of(kind.item, random) for _ in range(random.randint(0, kind.limit)))
        case Bag():
            items = [value_of(kind.item, random) for _ in range(random.randint(0, kind.limit))]
            return tuple(sorted(items, key=lambda item: encode(kind.item, item)))


@settings(max_examples=150, deadline=None)
@given(kind=KINDS, seed=st.integers(0, 1 << 30), offset=st.integers(0, 130), many=st.integers(1, 40))
def test_packed_states_become_the_columns_of_their_values(
    kind: Type, seed: int, offset: int, many: int
) -> None:
    """At any offset, across words, taken apart or decoded as a whole, in blocks of any size."""
    random = Random(seed)
    values = [value_of(kind, random) for _ in range(many)]
    words = -(-(offset + width(kind)) // WORD) or 1
    place = place_of(kind, offset)
    for some in (values, values[: many // 2 + 1]):  # the second block meets what the first one made
        packed = (ctypes.c_uint64 * (words * len(some)))()
        for row, value in enumerate(some):
            whole = (
                encode(kind, value) << offset | random.getrandbits(offset) if offset else encode(kind, value)
            )
            for word in range(words):
                packed[row * words + word] = whole >> WORD * word & mask(WORD)
        found = place.column(PackedBlock(ctypes.addressof(packed), len(some), words))
        found.validate(full=True)
        wanted = pa.array([plain(kind, value) for value in some], arrow_type(kind))
        assert found.to_pylist() == wanted.to_pylist()
        assert written(found, wanted.type) == wanted


def written(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column, with dictionaries in it, as readers see it in a part of a table of plain types."""
    with TemporaryDirectory() as folder:
        writer = TableWriter(LocalDraft(Path(folder), Path(folder)), "t", pa.schema([("x", kind)]))
        writer.add(pa.RecordBatch.from_arrays([column], ["x"]))
        (part,) = writer.close()
        return pq.read_table(Path(folder, part.file))["x"].combine_chunks()


@pytest.mark.parametrize(("kind", "value", "wanted"), PLAIN, ids=str)
def test_values_that_are_spread_are_those_that_are_taken(kind: Type, value: object, wanted: object) -> None:
    """Nulls on any floor, empty lists, and values that are there more than once."""
    del wanted
    values = pa.array([plain(kind, value), None, plain(kind, value)], arrow_type(kind))
    for rows in ([], [1], [2, 0, 0], [0, 1, 2, 1, 2]):
        column = spread(values, pa.array(rows, pa.int32()))
        column.validate(full=True)
        assert column.to_pylist() == values.take(pa.array(rows, pa.int32())).to_pylist()


def test_a_place_forgets_codes_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded where each state has a code of its own."""
    monkeypatch.setattr(decoded, "MANY", 10)
    place, kind = place_of(Int(0, 1 << 20), 0), Int(0, 1 << 20)
    for first in range(0, 100, 7):
        packed = (ctypes.c_uint64 * 7)(*range(first, first + 7))
        found = place.column(PackedBlock(ctypes.addressof(packed), 7, 1))
        assert found.to_pylist() == [plain(kind, first + step) for step in range(7)]
        assert len(place._values._rows) <= 17  # type: ignore[attr-defined]
