"""The laws of types: cardinality counts, fits is an order, hull its join; intervals hold every result."""

from __future__ import annotations

from math import comb
from typing import Any

import pytest
from grown import is_value
from hypothesis import assume, given
from hypothesis import strategies as st

from specchk.ir.nodes import Apply, Const
from specchk.ir.ops import Op
from specchk.ir.types import (
    BOOL,
    UNCOUNTED,
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
    fits,
    hull,
    same_shape,
)  # fmt: skip
from specchk.ir.typing import result_type
from specchk.lang.text.source import Source, Span
from specchk.meaning.evaluate import misfit
from specchk.meaning.values import Values

SPAN = Span(Source("here", ""), 0, 0)


def intervals() -> st.SearchStrategy[Int]:
    return st.builds(lambda low, size: Int(low, low + size), st.integers(-2, 2), st.integers(0, 2))


@st.composite
def pairs(draw: st.DrawFn, depth: int = 2) -> tuple[Type, Type]:
    """Two types of one shape, with different intervals and limits."""
    form = draw(st.sampled_from(range(8 if depth else 3)))
    if form == 0:
        return draw(intervals()), draw(intervals())
    if form == 1:
        return BOOL, BOOL
    if form == 2:
        kind = draw(st.sampled_from([Enum("E", ("a", "b")), Sort("R", ("r1", "r2"))]))
        return kind, kind
    (a, b), (c, d) = draw(pairs(depth - 1)), draw(pairs(depth - 1))
    match form:
        case 3:
            return Option(a), Option(b)
        case 4:
            return Record((("x", a), ("y", c))), Record((("x", b), ("y", d)))
        case 5:
            first, second = ((("A", Record((("x", k),))), ("B", Record(()))) for k in (a, b))
            return Union("U", first), Union("U", second)
        case 6:
            return Map(Sort("R", ("r1", "r2")), a), Map(Sort("R", ("r1", "r2")), b)
    made = draw(st.sampled_from([Seq, Bag]))
    return made(a, draw(st.integers(0, 2))), made(b, draw(st.integers(0, 2)))


def some_values(kind: Type) -> list[Any]:
    assume(cardinality(kind) <= 3000)
    return list(Values().values(kind))


@given(pairs())
def test_cardinality_is_the_number_of_values(pair: tuple[Type, Type]) -> None:
    """The values of a type are as many as cardinality says, ascending, canonical and within it."""
    kind, _ = pair
    values = some_values(kind)
    assert len(values) == cardinality(kind)
    assert values == sorted(set(values))
    assert all(is_value(value, kind) and misfit(kind)(value) is None for value in values)


@given(pairs())
def test_fits_is_inclusion_of_values(pair: tuple[Type, Type]) -> None:
    """If a fits b, every value of a is one of b; and `misfit` agrees value by value."""
    a, b = pair
    values = some_values(a)
    others = set(some_values(b))
    if fits(a, b):
        assert set(values) <= others
    assert all((misfit(b)(value) is None) == (value in others) for value in values)


@given(pairs())
def test_hull_is_the_join_of_two_types(pair: tuple[Type, Type]) -> None:
    """Both fit their hull, it has their shape and no more than another that both fit; it is commutative."""
    a, b = pair
    joined = hull(a, b)
    assert fits(a, joined)
    assert fits(b, joined)
    assert same_shape(a, joined)
    assert fits(joined, hull(b, a))
    assert fits(hull(joined, a), joined)
    if fits(a, b):
        assert fits(joined, b)


def test_a_type_without_values_adds_nothing() -> None:
    """The item of {} or none, and that of a sequence of limit 0, widen no hull and fit everywhere."""
    nothing, some = Int(0, -1), Int(5, 7)
    assert hull(nothing, some) == hull(some, nothing) == some
    assert fits(Set(nothing), Set(some))
    assert hull(Seq(Int(0, 9), 0), Seq(some, 2)) == Seq(some, 2)


@pytest.mark.parametrize("kind", [Set(Int(0, 3)), Set(Sort("R", ("r1", "r2", "r3"))), Set(BOOL)])
def test_a_set_type_has_the_subsets_of_its_item(kind: Set) -> None:
    """Two to the number of items."""
    assert cardinality(kind) == 2 ** cardinality(kind.item) == len(Values().values(kind))


@pytest.mark.parametrize("kind", [Set(Int(0, 1 << 60)), Map(Int(0, 1 << 60), BOOL), Seq(Int(0, 1 << 60), 64)])
def test_cardinality_of_a_monstrous_type_is_still_an_answer(kind: Type) -> None:
    """No number is built that exceeds memory."""
    assert cardinality(kind) > 1 << 60


@pytest.mark.parametrize("made", [Seq, Bag])
@pytest.mark.parametrize("limit", [64, 65, 128, 300])
@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_no_limit_of_a_variable_bounds_what_is_computed(made: type[Seq | Bag], size: int, limit: int) -> None:
    """`s ++ s` is longer than any variable: counted by the number of items, of which it adds one."""
    longer, before = (cardinality(made(Int(1, size), n)) for n in (limit, limit - 1))
    most = size**limit if made is Seq else comb(size + limit - 1, limit) if size else 0
    assert longer == before + most


@pytest.mark.parametrize(
    "kind",
    [
        Record((("x", Set(Int(0, 1 << 60))), ("y", Set(Int(0, 1 << 60))))),
        Map(Set(Int(0, 1 << 60)), Map(Int(0, 5000), Int(0, 1 << 5000))),
        Seq(Set(Int(0, 1 << 60)), 5000), Bag(Set(Int(0, 1 << 60)), 5000), Bag(Int(0, 9999), 9999),
    ],
)  # fmt: skip
def test_beyond_all_that_can_be_counted_one_number_stands_for_all(kind: Type) -> None:
    """So it does not grow with the nesting of a type."""
    assert cardinality(kind) == UNCOUNTED


ARITHMETIC = [Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MOD, Op.MIN, Op.MAX]
MEANING = {
    Op.ADD: lambda a, b: a + b, Op.SUB: lambda a, b: a - b, Op.MUL: lambda a, b: a * b,
    Op.DIV: lambda a, b: a // b, Op.MOD: lambda a, b: a % b, Op.MIN: min, Op.MAX: max,
}  # fmt: skip


@pytest.mark.parametrize("op", ARITHMETIC)
@given(st.integers(-6, 6), st.integers(0, 4), st.integers(-6, 6), st.integers(0, 4))
def test_interval_arithmetic_holds_every_result(op: Op, low: int, size: int, low_b: int, size_b: int) -> None:
    """For all a in A and b in B, a op b is in the interval computed for A op B."""
    a, b = Int(low, low + size), Int(low_b, low_b + size_b)
    args = (Const(a, SPAN, a.low), Const(b, SPAN, b.low))
    found = result_type(op, args)
    assert isinstance(found, Int)
    for x in range(a.low, a.high + 1):
        for y in range(b.low, b.high + 1):
            if y or op not in (Op.DIV, Op.MOD):
                assert found.low <= MEANING[op](x, y) <= found.high


@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("empty", [Int(0, -1), Int(1, 0), Int(5, 4), Int(-3, -4)])
def test_nothing_is_computed_from_no_number(op: Op, empty: Int) -> None:
    """The name bound in `1..0` has no value, and an expression of it has none either."""
    for kinds in ((empty, Int(2, 6)), (Int(2, 6), empty), (empty, empty)):
        assert cardinality(result_type(op, tuple(Const(kind, SPAN, 0) for kind in kinds))) == 0


@pytest.mark.parametrize("op", ARITHMETIC)
def test_what_is_computed_from_a_horizon_is_marked(op: Op) -> None:
    """A limit of enumeration remains one through arithmetic."""
    far, near = Const(Int(0, 3, True), SPAN, 1), Const(Int(1, 3), SPAN, 1)
    for args in ((far, near), (near, far)):
        found = result_type(op, args)
        assert isinstance(found, Int)
        assert found.horizon


def test_an_apply_node_is_frozen() -> None:
    """Passes share nodes, so none may be changed."""
    node = Apply(BOOL, SPAN, Op.NOT, (Const(BOOL, SPAN, True),))
    with pytest.raises(AttributeError):
        node.data = 3  # type: ignore[misc]
