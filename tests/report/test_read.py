"""Values written as JSON or ITF are read back unchanged."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union
from specchk.meaning.values import Values
from specchk.report.itf import value_itf
from specchk.report.json import value_json
from specchk.report.read import Unreadable, trace_file, value_from_itf, value_from_json

SCALARS: list[Type] = [Bool(), Int(-1, 1), Enum("E", ("a", "b")), Sort("R", ("r1", "r2"))]
INVERSES = [(value_json, value_from_json), (value_itf, value_from_itf)]


def grown(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    """Types one level deeper, small enough to list."""
    scalar = st.sampled_from(SCALARS)
    return st.one_of(
        inner.map(Option),
        st.builds(lambda a, b: Record((("x", a), ("y", b))), inner, scalar),
        st.builds(lambda a: Union("U", (("One", Record((("x", a),))), ("Two", Record(())))), inner),
        st.builds(lambda a: Union("T", (("tag", Record((("tag", a),))), ("value", Record(())))), inner),
        scalar.map(Set),
        st.builds(Seq, scalar, st.just(2)),
        st.builds(Bag, scalar, st.just(2)),
        st.builds(Map, st.sampled_from([Bool(), SCALARS[3], Option(Bool())]), scalar),
    )


KEYS = ("tag", "value", "#set", "#map", "#bigint", "some", "x", "y")
TYPES = st.recursive(st.sampled_from(SCALARS), grown, max_leaves=3)


@pytest.mark.parametrize(("write", "read"), INVERSES, ids=["json", "itf"])
@given(kind=TYPES, data=st.data())
def test_what_is_written_is_read_back(write: Any, read: Any, kind: Type, data: st.DataObject):
    """Reading is the inverse of writing, through the text of a file, for every type."""
    value = data.draw(st.sampled_from(Values().values(kind)))
    assert read(json.loads(json.dumps(write(value, kind))), kind) == value


@pytest.mark.parametrize("read", [value_from_json, value_from_itf])
@given(
    kind=TYPES,
    found=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
        max_leaves=6,
    ),
)  # fmt: skip
def test_anything_else_is_refused_in_words(read: Any, kind: Type, found: Any):
    """A result is a value of the type; anything else is `Unreadable`, never another exception."""
    with suppress(Unreadable):
        assert read(found, kind) in Values().values(kind)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["trace", "states", "vars", "spec", "#meta", "state"]), inner)
            | st.dictionaries(st.sampled_from(["action", "args", "sorts", "constants", "loop-step"]), inner)
        ),
    )
)
def test_no_file_breaks_the_reader(found: Any):
    """Whatever JSON a file has: a trace, or a sentence."""
    about = found if isinstance(found, dict) else {}
    named = {"vars": [], "states": [{"#meta": found}], "loop": 0, "#meta": {**about, "source": "a.spec"}}
    for data in (found, named, {"trace": [{"state": {}, "args": found}], **about, "spec": "a.spec"}):
        with suppress(Unreadable):
            assert trace_file(data).states
