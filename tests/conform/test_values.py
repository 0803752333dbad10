"""Plain values and the values of a spec are the same thing in two forms."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchk.conform.contract.values import NotAValue, Some, plain, raw, words
from specchk.ir.types import (
    BOOL,
    Bag,
    Enum,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Sort,
    Type,
    Union,
    cardinality,
)
from specchk.meaning.values import show, universe

SIDE = Enum("Side", ("heads", "tails"))
BROKER = Sort("Broker", ("b1", "b2"))


def _deeper(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    record = st.lists(inner, min_size=0, max_size=2).map(
        lambda items: Record(tuple((f"f{i}", item) for i, item in enumerate(items)))
    )
    return st.one_of(
        inner.map(Option),
        inner.map(Set),
        record,
        st.lists(record, min_size=1, max_size=2).map(
            lambda records: Union("U", tuple((f"V{i}", one) for i, one in enumerate(records)))
        ),
        st.tuples(inner, inner).map(lambda pair: Map(*pair)),
        st.tuples(inner, st.integers(0, 2)).map(lambda pair: Seq(*pair)),
        st.tuples(inner, st.integers(0, 2)).map(lambda pair: Bag(*pair)),
    )


SCALARS = st.sampled_from([BOOL, Int(-1, 1), SIDE, BROKER])
TYPES = st.recursive(SCALARS, _deeper, max_leaves=4).filter(lambda kind: cardinality(kind) <= 300)


@pytest.mark.parametrize(
    "kind", [BOOL, Int(8, 11), BROKER, Option(SIDE), Set(BROKER), Set(Int(8, 11)),
             Map(BROKER, Set(SIDE)), Record((("isr", Set(BROKER)), ("late", BOOL)))],
)  # fmt: skip
def test_words_are_those_of_the_spec(kind: Type):
    """A plain value is written like the spec's, except for `some`, which most plain values do not have."""
    for value in universe(kind):
        text = show(value, kind)
        assert words(plain(value, kind)) == re.sub(r"^some\((.*)\)$", r"\1", text)


@given(TYPES)
def test_raw_is_the_inverse_of_plain(kind: Type):
    """Every value of every type comes back as itself."""
    values = universe(kind)
    forms = [plain(value, kind) for value in values]
    assert [raw(form, kind) for form in forms] == values


@given(TYPES)
def test_plain_values_can_be_in_sets(kind: Type):
    """Two values are equal exactly if their plain forms are, which can be hashed."""
    values = universe(kind)
    assert len({plain(value, kind) for value in values}) == len(values)


def test_plain_values_are_what_a_python_program_would_have():
    """Names, None, mappings, frozensets and tuples."""
    kind = Map(BROKER, Option(Record((("isr", Set(BROKER)), ("side", SIDE)))))
    form = plain(((((0, 1), 1),), ()), kind)
    assert form == {"b1": {"isr": frozenset({"b1", "b2"}), "side": "tails"}, "b2": None}
    assert plain(((),), Option(Option(BOOL))) == Some(None)


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (1, BOOL), (True, Int(0, 1)), (2, Int(0, 1)), ("edge", SIDE), (None, SIDE), ({}, Map(BROKER, BOOL)),
        ({"b1": True, "b3": True}, Map(BROKER, BOOL)), ({"x": 1}, Record((("y", BOOL),))),
        (("V9", {}), Union("U", (("V0", Record(())),))), ("V0", Union("U", (("V0", Record(())),))),
        ("b1", Set(BROKER)), ((True, True), Seq(BOOL, 1)), (None, Set(BOOL)), (True, Option(Option(BOOL))),
    ],
)  # fmt: skip
def test_what_is_no_value_of_a_type_is_refused(form: object, kind: Type):
    """No value is clipped, truncated or guessed."""
    with pytest.raises(NotAValue):
        raw(form, kind)


def test_a_refusal_names_the_place():
    """The place is written in the spec's syntax."""
    kind = Map(BROKER, Record((("hw", Int(0, 1)),)))
    with pytest.raises(NotAValue) as caught:
        raw({"b1": {"hw": 0}, "b2": {"hw": 7}}, kind)
    assert caught.value.path == "[b2].hw"


@pytest.mark.parametrize("form", [{"a": {"x", "y", "z"}}, [{"z", "y", "x"}], ("t", {"y", "x", "z"})])
def test_a_refusal_is_the_same_text_in_each_process(form: object):
    """A set anywhere in a refused value is written in order, not by hash."""
    with pytest.raises(NotAValue, match=r"\{x, y, z\}.* is not a value of bool"):
        raw(form, BOOL)
