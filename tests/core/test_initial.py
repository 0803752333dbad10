"""Initial states: the conditions of `init` one after the other, as if complete states were tested."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from spec_texts import instance_of

from specchk.ir.program import Program
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.initial import initial_states, value_of
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import State, Values

VARIABLES = """
var a : 0..3
var b : -1..2
var c : 0..3 in { 1, 2, 3 }
var d : 0..2 = 1
var s : set[0..1]
var q : seq[0..1] upto 2
var m : 0..1 -> 0..2
var w : 0..1 -> 0..2 in { { k: k for k in 0..1 }, { k: 2 for k in 0..1 } }
var f : bool
"""
CONDITIONS = (
    "a == b", "a == c - 1", "a == len(q)", "b == 3", "c == a", "d == a", "s == { a }", "s == elements(q)",
    "q == [0, 1]", "a == head(q)", "6 // a == c", "m == { k: d for k in 0..1 }", "a == a", "m[a] == b",
    "m == { k: a for k in 0..1 }", "a == 3 - a", "card(s) == a", "a in s", "q != []",
    "a < 2 and b == a", "a == 1 or b == 6 // a", "len(q) == a and a == d", "let x = b: a == x",
    "(a == 1) == (b == 1)", "not (a == 1)", "true", "f", "not f", "f == (b == 1)", "b in { a, 7 }",
    "c in 0..a",
    "forall k in 0..1: m[k] == a + k", "forall k in 0..1: b == m[k]", "forall k in 0..1: m[k] == m[0]",
    "forall k in 0..0: m[k] == a", "forall k in 0..1: m[k] == 2 // (b - k)",
    "forall k in 0..1: m[k] in { k, k + 2 }", "forall k in 0..1: m[k] in s",
    "forall k in 0..1: m[k] in { a, 2 // (b - k) }", "forall k in 0..1: m[k] in { m[0] }",
    "forall k in 0..1: w[k] in { k, 2 // (1 - k) }", "forall k in 0..1: w[k] in { 0, 2 }",
    "forall k in 0..1: b in { m[k], a }",
)  # fmt: skip


def naive(program: Program) -> list[State]:
    """Every state whose parts are possible and in which all conditions are true, in order."""
    domains = []
    for start, variable in zip(program.starts, program.variables, strict=True):
        fixed = start.value if start.value is not None else start.choices
        domain = Values().values(variable.type) if fixed is None else value_of(fixed)
        domains.append((domain,) if start.value is not None else domain)
    evaluator = Evaluator(len(domains))
    tests = [(evaluator.compile(init.body), init.locals) for init in program.inits]
    room = [0] * max((count for _, count in tests), default=0)
    return sorted(
        state for state in product(*domains) if all(test([*state, *state, *room]) for test, _ in tests)
    )


def answer(found: object, program: Program) -> object:
    try:
        return found(program)  # type: ignore[operator]
    except Undefined as reason:
        return reason.args


@given(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=4), st.booleans())
@example(["a == 3 - a"], False)
@settings(max_examples=60, deadline=None)
def test_initial_states_are_those_of_whole_states(conditions: list[str], in_one: bool) -> None:
    """Equations, early tests and their order change no state, nor what is undefined."""
    inits = [" and ".join(f"({part})" for part in conditions)] if in_one else conditions
    text = f"spec s{VARIABLES}" + "".join(f"init: {part}\n" for part in inits)
    program = instance_of(text + "deadlock ok\nmodel m:\n    expect holds\n").program
    assert answer(initial_states, program) == answer(naive, program)


PRODUCT = """spec product
type Place = 1..6
var a : Place -> Place
var b : Place -> Place
var u : set[set[Place]]
{init}
deadlock ok
model m:
    expect holds
"""


def test_conditions_and_equations_pick_no_product() -> None:
    """46 656 squared times 2 to the power of 64 combinations, few of which are tried."""
    equations = (
        "init:\n    card({ a[p] for p in Place }) == 1\n    b == a\n    u == { { a[p] for p in Place } }"
    )
    found = initial_states(instance_of(PRODUCT.format(init=equations)).program)
    assert [state[0] for state in found] == [(place,) * 6 for place in range(1, 7)]
    assert all(b == a and u == ((a[0],),) for a, b, u in found)


def test_items_of_a_map_and_lets_pick_no_product() -> None:
    """A `forall` over the keys determines the map's items, and a `let` is not a variable."""
    conditions = (
        "init:\n    let n = 2\n    a == { p: n for p in Place }\n    forall p in Place: a[p] == b[p]\n"
    )
    found = initial_states(instance_of(PRODUCT.format(init=conditions + "    u in { {}, { {n} } }")).program)
    assert found == [((2,) * 6, (2,) * 6, ()), ((2,) * 6, (2,) * 6, ((2,),))]


def test_items_of_a_map_are_drawn_for_each_key() -> None:
    """Two for each key, of 46 656 maps, and the second map's depend on the first one."""
    drawn = ["forall p in Place: a[p] in { p, 1 }", "forall p in Place: b[p] in { a[p], 0, 7 }", "u == {}"]
    conditions = "\n    ".join(["init:", *drawn])
    found = initial_states(instance_of(PRODUCT.format(init=conditions)).program)
    assert len(found) == 2**5
    assert all(a == b for a, b, _ in found)
    assert found[0][0] == (1,) * 6
    assert found[-1][0] == (1, 2, 3, 4, 5, 6)


def test_too_many_initial_states_are_refused_without_listing_them() -> None:
    """If `init` leaves too many values to enumerate."""
    with pytest.raises(SpecError, match="too many to enumerate"):
        instance_of(PRODUCT.format(init="init: a != b"))
