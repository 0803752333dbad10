"""States as packed words: exact, canonical, small."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agreement.both import differences, of_seed, program_of
from specchk.ir.ops import Op
from specchk.ir.types import (
    BOOL,
    MAX_LISTED_BITS,
    Bag,
    Enum,
    Int,
    Map,
    Option,
    Record,
    Room,
    Seq,
    Set,
    Sort,
    Type,
    Union,
    cardinality,
)
from specchk.meaning.rules import DERIVED
from specchk.meaning.values import universe
from specchk.native.machine.layout import decode, encode, layout_of, render_layout, width
from specchk.native.machine.prospects import prospects
from specchk.native.values.operators import RULES
from specchk.search.engine import Unsupported

NODE = Sort("Node", ("n1", "n2", "n3"))
LEAVES = st.sampled_from([BOOL, Int(0, 2), Int(-1, 1), Int(5, 5), Enum("E", ("a", "b", "c")), NODE])


def larger(inner: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    return st.one_of(
        inner.map(Option),
        st.lists(inner, max_size=2).map(
            lambda kinds: Record(tuple((f"f{i}", k) for i, k in enumerate(kinds)))
        ),
        st.tuples(inner, inner).map(
            lambda p: Union("U", (("A", Record((("x", p[0]),))), ("B", Record((("y", p[1]),)))))
        ),
        st.tuples(LEAVES, inner).map(lambda p: Map(*p)),
        inner.map(Set),
        inner.map(lambda kind: Seq(kind, 2)),
        inner.map(lambda kind: Bag(kind, 2)),
    )


TYPES = st.recursive(LEAVES, larger, max_leaves=3).filter(lambda kind: cardinality(kind) <= Room().dense)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(kind=TYPES)
def test_every_value_has_a_code_of_its_own_and_comes_back(kind: Type) -> None:
    """Encoding is one to one, within the type's width, and decoding inverts it."""
    values = universe(kind)
    codes = [encode(kind, value) for value in values]
    assert [decode(kind, code) for code in codes] == values
    assert len(set(codes)) == len(values)
    assert all(0 <= code < 1 << width(kind) for code in codes)


def has_set(kind: Type) -> bool:
    parts = [
        getattr(kind, "item", None),
        getattr(kind, "value", None),
        *(t for _, t in getattr(kind, "fields", ())),
    ]
    parts += [record for _, record in getattr(kind, "variants", ())]
    return isinstance(kind, Set) or any(part is not None and has_set(part) for part in parts)


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(kind=TYPES.filter(lambda kind: not has_set(kind)))
def test_codes_without_sets_are_in_the_order_of_values(kind: Type) -> None:
    """The kernel may compare codes where the reference engine compares values (bags rely on it)."""
    codes = [encode(kind, value) for value in sorted(universe(kind))]
    assert codes == sorted(codes)


@pytest.mark.parametrize("seed", range(12))
def test_states_are_unpacked_as_they_were_packed(seed: int, tmp_path: object) -> None:
    """`unpack` inverts `pack` for random states of random programs, in the fewest words."""
    program = of_seed(seed, tmp_path)  # type: ignore[arg-type]
    if program is None:
        pytest.skip("this seed gives no legal spec")
    layout, random = layout_of(program), Random(seed)
    small = [v for v in program.variables if cardinality(v.type) <= 4096]
    if len(small) < len(program.variables):
        pytest.skip("a variable has too many values to list")
    for _ in range(20):
        state = tuple(random.choice(universe(variable.type)) for variable in program.variables)
        assert layout.unpack(layout.pack(state)) == state
    assert layout.words == max(1, -(-sum(place.width for place in layout.places) // 64))
    assert all(place.name in render_layout(program) for place in layout.places)


def test_no_two_variables_share_a_bit(tmp_path: object) -> None:
    """Places are disjoint, and only values wider than a word cross words when there is space."""
    for seed in range(20):
        program = of_seed(seed, tmp_path)  # type: ignore[arg-type]
        if program is not None:
            taken = [bit for p in layout_of(program).places for bit in range(p.offset, p.offset + p.width)]
            assert len(taken) == len(set(taken))


def test_a_set_over_too_many_values_is_refused() -> None:
    """A value without a code is refused by name, never truncated."""
    with pytest.raises(Unsupported, match="a set over"):
        width(Set(Int(0, Room().dense)))


@pytest.mark.parametrize("listed", ["5 in 0..n", "{5} in subsets(0..n)", "card(0..n) >= 0 or true"])
def test_a_set_that_may_be_too_large_to_list_is_refused(listed: str, tmp_path: Path) -> None:
    """The kernel compares with bounds, so it would report `holds` where the meaning is undefined."""
    small, large = (
        program_of(f"spec big\nvar n : 0..{most} = 0\ninvariant p: {listed}\n", tmp_path)
        for most in (15, 1 << MAX_LISTED_BITS)
    )
    assert small is not None
    assert large is not None
    layout_of(small)
    with pytest.raises(Unsupported, match=r"may have more than 2 \*\* 20 items"):
        layout_of(large)


def test_initial_states_have_no_such_limits(tmp_path: Path) -> None:
    """They are listed by the reference evaluator: a choice among the sets of pairs needs no code."""
    text = """spec pairs
const large : bool = false
type Node = 0..4
var edges : set[set[Node]] in (if large then subsets({ { a, b } for a in Node, b in Node }) else { {} })
var small : 0..3
init: small < 4611686018427387904 * 4
invariant p: {} not in edges
"""
    program = program_of(text, tmp_path)
    assert program is not None
    layout_of(program)
    assert prospects(program) == []


WIDE = "spec wide\nvar x : {range} = {value}\ninvariant p: {claim}\n"
MOST = (1 << 62) - 1


@pytest.mark.parametrize(
    ("high", "claim"),
    [
        (3, f"x < {(1 << 64) - 1}"),  # as a register's -1 it would be below all
        (3, f"x > -{1 << 62}"),
        ((1 << 64) - 1, "x < 5"),
        (4 * 10**18, "sum(x for i in 0..3) < 10"),
        (4 * 10**18, "sum(x for i in 0..3) > 0"),
        (4 * 10**18, "x + x > 0"),
        (3, f"{{{{x, {1 << 62}}}}} == {{{{}}}}"),
        (3, f"some(x) == some({1 << 62})"),
    ],
)
def test_a_number_wider_than_a_register_is_refused(high: int, claim: str, tmp_path: Path) -> None:
    """Constants, variables and sums alike: with wrap-around, they would give another verdict."""
    program = program_of(WIDE.format(range=f"0..{high}", value=high, claim=claim), tmp_path)
    assert program is not None
    with pytest.raises(Unsupported, match="numbers of more than 62 bits"):
        layout_of(program)


@pytest.mark.parametrize(
    "claim", ["x < {0}", "max(x, y) - 1 < {0}", "some(x) == some(y)", "sum(x for i in 0..0) > y"]
)
def test_the_widest_numbers_have_codes(claim: str, tmp_path: Path) -> None:
    """Of both signs, held, subtracted and compared as the reference engine does."""
    text = WIDE.format(range=f"-{MOST}..{MOST}", value=MOST, claim=claim.format(MOST))
    program = program_of(text.replace("invariant", "var y : 0..1 = 0\ninvariant"), tmp_path)
    assert program is not None
    assert differences(program) == {}


def test_a_sum_over_a_bag_is_as_wide_as_the_bag(tmp_path: Path) -> None:
    """And not as wide as all possible values of its items."""
    text = """spec s
type Message = { a: 0..4000000000, b: 0..4000000000 }
var sent : bag[Message] upto 2 = {}
invariant few: sum(1 for m in elements(sent)) < 3
"""
    program = program_of(text, tmp_path)
    assert program is not None
    assert differences(program) == {}


def test_every_operator_has_a_rule() -> None:
    """The emitter's table has every operator that the page of rules does not derive."""
    assert set(RULES) | set(DERIVED) == set(Op)
