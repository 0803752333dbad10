"""The values of operators obey the laws of sets, bags and sequences."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from specchk.ir.nodes import Apply, Const
from specchk.ir.ops import Op
from specchk.ir.types import Bag, Int, Option, Seq, Set, Type
from specchk.ir.typing import result_type
from specchk.lang.text.source import Source, Span
from specchk.meaning.operators import RULES
from specchk.meaning.undefined import Undefined

SPAN = Span(Source("here", "here"), 0, 4)
SMALL = Int(-20, 20)
ints = st.integers(-20, 20)
sets = st.frozensets(st.integers(0, 5), max_size=5)
lists = st.lists(st.integers(0, 3), max_size=5)


def apply(op: Op, *args: tuple[Type, Any]) -> Any:
    """The value of a strict operator on constants."""
    nodes = tuple(Const(kind, SPAN, value) for kind, value in args)
    node = Apply(result_type(op, nodes), SPAN, op, nodes)
    functions = [lambda e, value=value: value for _, value in args]
    return RULES[op](node, functions)(None)


def canonical(items: Any) -> tuple[Type, tuple[int, ...]]:
    return Set(Int(0, 5)), tuple(sorted(items))


def sequence(items: list[int]) -> tuple[Type, tuple[int, ...]]:
    return Seq(Int(0, 3), 5), tuple(items)


def bag(items: list[int]) -> tuple[Type, tuple[int, ...]]:
    return Bag(Int(0, 3), 5), tuple(sorted(items))


def number(value: int) -> tuple[Type, int]:
    return SMALL, value


@given(ints, ints)
def test_division_and_modulo_fit_together(a: int, b: int) -> None:
    """A == (a // b) * b + a % b, the remainder has the divisor's sign and is smaller than it."""
    assume(b != 0)
    quotient, remainder = apply(Op.DIV, number(a), number(b)), apply(Op.MOD, number(a), number(b))
    assert quotient * b + remainder == a
    assert abs(remainder) < abs(b)
    assert remainder == 0 or (remainder > 0) == (b > 0)


@pytest.mark.parametrize("op", [Op.DIV, Op.MOD])
def test_division_by_zero_has_no_value(op: Op) -> None:
    """X // 0 and x % 0 are undefined."""
    with pytest.raises(Undefined, match="division by zero"):
        apply(op, number(3), number(0))


@given(sets, sets)
def test_sets_are_python_sets(a: frozenset[int], b: frozenset[int]) -> None:
    """union, intersect, difference, subset, card and subsets agree with Python's sets, canonically."""
    x, y = canonical(a), canonical(b)
    assert apply(Op.UNION, x, y) == canonical(a | b)[1]
    assert apply(Op.INTERSECT, x, y) == canonical(a & b)[1]
    assert apply(Op.DIFFERENCE, x, y) == canonical(a - b)[1]
    assert apply(Op.SUBSET, x, y) == (a <= b)
    assert apply(Op.CARD, x) == len(a)
    found = apply(Op.SUBSETS, x)
    assert list(found) == sorted(set(found))
    assert len(found) == 2 ** len(a)


@given(sets)
def test_extremes_and_sum_of_a_set_are_pythons(a: frozenset[int]) -> None:
    """min, max and sum of a set; min and max of {} are undefined."""
    assert apply(Op.SET_SUM, canonical(a)) == sum(a)
    for op, wanted in ((Op.SET_MIN, min), (Op.SET_MAX, max)):
        if a:
            assert apply(op, canonical(a)) == wanted(a)
        else:
            with pytest.raises(Undefined, match="of an empty collection"):
                apply(op, canonical(a))


@given(ints, ints)
def test_a_range_is_pythons_with_its_end(a: int, b: int) -> None:
    """a..b has the numbers from a to b, none when b < a."""
    assert apply(Op.RANGE, number(a), number(b)) == tuple(range(a, b + 1))


@pytest.mark.parametrize("high", [1 << 20, 1 << 60])
def test_a_range_too_large_to_list_is_undefined(high: int) -> None:
    """0..N with more than 2 ** 20 numbers ends in a finding, not in a full memory."""
    with pytest.raises(Undefined, match="too large to list"):
        apply(Op.RANGE, (Int(0, 0), 0), (Int(0, high), high))
    assert len(apply(Op.RANGE, (Int(1, 1), 1), (Int(0, high), 1 << 20))) == 1 << 20


def test_subsets_too_many_to_list_are_undefined() -> None:
    """The subsets of 21 items are not listed."""
    with pytest.raises(Undefined, match="too many to list"):
        apply(Op.SUBSETS, (Set(Int(0, 20)), tuple(range(21))))


@given(sets, sets)
def test_maps_are_functions(a: frozenset[int], b: frozenset[int]) -> None:
    """Ascending, each once: as many as there are ways to choose a value for each key."""
    keys, values = sorted(a)[:4], sorted(b)[:4]
    found = apply(Op.MAPS, canonical(frozenset(keys)), canonical(frozenset(values)))
    assert list(found) == sorted(set(found))
    assert len(found) == len(values) ** len(keys)
    assert all([key for key, _ in table] == keys and {v for _, v in table} <= b for table in found)


def test_maps_too_many_to_list_are_undefined() -> None:
    """From 7 keys to 8 values there are 2^21."""
    with pytest.raises(Undefined, match="the maps from 7 keys to 8 values are too many to list"):
        apply(Op.MAPS, (Set(Int(0, 6)), tuple(range(7))), (Set(Int(0, 7)), tuple(range(8))))


@given(lists, lists)
def test_bags_are_counters(a: list[int], b: list[int]) -> None:
    """union, add, remove, count, in, card and items agree with Counter, sorted."""
    x, y = bag(a), bag(b)
    assert apply(Op.BAG_UNION, x, y) == tuple(sorted((Counter(a) + Counter(b)).elements()))
    for item in range(4):
        assert apply(Op.BAG_ADD, x, number(item)) == tuple(sorted([*a, item]))
        assert apply(Op.BAG_COUNT, x, number(item)) == Counter(a)[item]
        assert apply(Op.IN_BAG, number(item), x) == (item in a)
        if item in a:
            assert apply(Op.BAG_REMOVE, x, number(item)) == tuple(
                sorted((Counter(a) - Counter([item])).elements())
            )
        else:
            with pytest.raises(Undefined, match="not in the bag"):
                apply(Op.BAG_REMOVE, x, number(item))
    assert apply(Op.BAG_CARD, x) == len(a)
    assert apply(Op.BAG_ITEMS, x) == tuple(sorted(set(a)))


@given(lists, lists, st.integers(-1, 6))
def test_sequences_are_lists(a: list[int], b: list[int], n: int) -> None:
    """Every sequence operator is the list's; positions and sizes outside are undefined."""
    x, y = sequence(a), sequence(b)
    assert apply(Op.CONCAT, x, y) == (*a, *b)
    assert apply(Op.APPEND, x, number(n)) == (*a, n)
    assert apply(Op.LEN, x) == len(a)
    assert apply(Op.SEQ_ITEMS, x) == tuple(sorted(set(a)))
    partial = [
        (Op.SEQ_GET, 0 <= n < len(a), lambda: a[n]), (Op.PREFIX, 0 <= n <= len(a), lambda: tuple(a[:n])),
        (Op.SUFFIX, 0 <= n <= len(a), lambda: tuple(a[n:])),
    ]  # fmt: skip
    for op, defined, wanted in partial:
        if defined:
            assert apply(op, x, number(n)) == wanted()
        else:
            with pytest.raises(Undefined):
                apply(op, x, number(n))
    for op, at in ((Op.HEAD, 0), (Op.LAST, -1)):
        if a:
            assert apply(op, x) == a[at]
            assert apply(Op.TAIL, x) == tuple(a[1:])
        else:
            with pytest.raises(Undefined):
                apply(op, x)


@given(st.one_of(st.none(), ints), ints)
def test_options_unwrap_to_what_was_wrapped(wrapped: int | None, default: int) -> None:
    """get(some(x)) == x, get(none) is undefined, get(o, d) is d for none only."""
    option = (Option(SMALL), () if wrapped is None else (wrapped,))
    assert apply(Op.GET_OR, option, number(default)) == (default if wrapped is None else wrapped)
    if wrapped is None:
        with pytest.raises(Undefined, match="of none"):
            apply(Op.GET, option)
    else:
        assert apply(Op.GET, (Option(SMALL), apply(Op.SOME, number(wrapped)))) == wrapped
