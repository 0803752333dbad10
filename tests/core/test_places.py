"""Expressions as one function: values inserted for their names, loops over names, nested blocks."""

from __future__ import annotations

import pytest
from spec_texts import instance_of

from specchk.ir import nodes
from specchk.ir.ops import Op
from specchk.ir.types import BOOL, Int, Map, Option, Record, Set, Union
from specchk.lang.text.source import Source, Span
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.step import Stepper
from specchk.meaning.texts.joined import RuleText, read_once
from specchk.meaning.texts.places import is_put_in_place
from specchk.meaning.undefined import Faulty, Undefined
from specchk.symbolic.replay import Unended

WRITES = """\
spec writes
var at : -1..2 = 0
var items : seq[0..1] upto 2 = [0, 0]
action write():
    items'[at] = 1
model m:
    expect holds
"""
KEYED = """\
spec keyed
type Offset = nat upto 1
var at : Offset = 0
var seen : Offset -> bool = { offset: false for offset in Offset }
action write():
    seen'[at] = true
model m:
    expect holds
"""
SPAN = Span(Source("places", ""), 0, 0)
DIGIT = Int(0, 9)
DIGITS = Set(DIGIT)
X, Y = (nodes.Local(DIGIT, SPAN, slot, name) for slot, name in enumerate("xy"))
ZERO = nodes.Const(DIGIT, SPAN, 0)
IS_READ = nodes.Var(BOOL, SPAN, 0, False)
READ_OR_ZERO = nodes.If(DIGIT, SPAN, IS_READ, X, ZERO)


def let(value: nodes.Expr, body: nodes.Expr) -> nodes.Let:
    return nodes.Let(body.type, SPAN, nodes.Local(value.type, SPAN, 0, "x"), value, body)


def value_of(expr: nodes.Expr, *state: nodes.Value) -> object:
    return Evaluator(len(state)).compile(expr)([*state, *state, 0, 0])


def test_a_value_that_may_not_exist_stays_where_its_name_is_bound():
    """Read or not, it is evaluated: `get` of none, and a key outside its map."""
    option = nodes.Var(Option(DIGIT), SPAN, 1, False)
    of, key = nodes.Var(Map(Int(0, 1), DIGIT), SPAN, 1, False), nodes.Var(DIGIT, SPAN, 2, False)
    got = let(nodes.Apply(DIGIT, SPAN, Op.GET, (option,)), READ_OR_ZERO)
    found = let(nodes.Apply(DIGIT, SPAN, Op.MAP_GET, (of, key)), READ_OR_ZERO)
    assert value_of(got, True, (7,)) == 7
    assert value_of(found, True, (3, 4), 1) == 4
    for expr, state in ((got, (False, ())), (found, (False, (3, 4), 2))):
        with pytest.raises(Undefined):
            value_of(expr, *state)


def test_a_place_is_put_where_it_is_read_once_or_twice_and_out_of_loops():
    """A number; a truth value, whose reading is a decision, is not."""
    place = nodes.Var(DIGIT, SPAN, 1, False)
    of = nodes.Apply(DIGIT, SPAN, Op.MAP_GET, (nodes.Var(Map(Int(0, 9), DIGIT), SPAN, 2, False), place))
    loop = nodes.Quantifier(
        BOOL, SPAN, True, Y, nodes.Var(DIGITS, SPAN, 0, False), nodes.Apply(BOOL, SPAN, Op.LE, (X, Y))
    )
    assert is_put_in_place(let(of, READ_OR_ZERO))
    assert is_put_in_place(let(place, loop))
    assert not is_put_in_place(let(of, loop))
    assert not is_put_in_place(let(IS_READ, nodes.Local(BOOL, SPAN, 0, "x")))
    state = ((4, 5), 3, (9, 9, 9, 4))
    assert [value_of(let(value, loop), *state) for value in (of, place)] == [True, True]


def test_a_loop_in_a_loop_reads_the_item_of_the_one_around_it():
    """By its slot, since it is another function."""
    inner = nodes.Quantifier(
        BOOL, SPAN, True, Y, nodes.Var(DIGITS, SPAN, 1, False), nodes.Apply(BOOL, SPAN, Op.LE, (X, Y))
    )
    outer = nodes.Quantifier(BOOL, SPAN, False, X, nodes.Var(DIGITS, SPAN, 0, False), inner)
    assert value_of(outer, (5, 2), (3, 4)) is True
    assert value_of(outer, (5, 6), (3, 4)) is False


def test_a_part_of_a_set_is_ascending_and_its_image_is_made_so():
    """Only the items themselves are in order, each once."""
    domain = nodes.Var(DIGITS, SPAN, 0, False)
    half = nodes.Apply(
        DIGIT,
        SPAN,
        Op.SUB,
        (nodes.Const(DIGIT, SPAN, 9), nodes.Apply(DIGIT, SPAN, Op.DIV, (X, nodes.Const(DIGIT, SPAN, 2)))),
    )
    large = nodes.Apply(BOOL, SPAN, Op.LT, (nodes.Const(DIGIT, SPAN, 2), X))

    def gathered(body: nodes.Expr) -> object:
        return value_of(
            nodes.Collect(DIGITS, SPAN, nodes.Gather.SET, ((X, domain),), large, body), (1, 3, 4, 5)
        )

    assert gathered(X) == (3, 4, 5)
    assert gathered(half) == (7, 8)


def test_numbers_are_chosen_of_chosen_numbers():
    """Each has its own names in the text of the whole."""
    numbers = [nodes.Const(DIGIT, SPAN, number) for number in (5, 3, 4, 8)]

    def chosen(op: Op, *args: nodes.Expr) -> nodes.Expr:
        return nodes.Apply(DIGIT, SPAN, op, args)

    first, second = chosen(Op.MIN, *numbers[:2]), chosen(Op.MAX, *numbers[2:])
    assert value_of(chosen(Op.MAX, first, chosen(Op.MIN, second, numbers[0])), 0) == 5
    assert value_of(chosen(Op.MIN, chosen(Op.MAX, second, first), numbers[2]), 0) == 4


def test_a_match_takes_the_arm_of_its_value():
    """Of an option; and of a union, by its default too."""
    of = nodes.Var(Option(DIGIT), SPAN, 0, False)
    match = nodes.Case(DIGIT, SPAN, of, ((1, X, X), (0, None, ZERO)), None)
    assert [value_of(match, value) for value in ((7,), ())] == [7, 0]
    empty = Record(())
    kind = Union("U", (("a", Record((("of", DIGIT),))), ("b", empty), ("c", empty), ("d", empty)))
    local = nodes.Local(kind.variants[0][1], SPAN, 0, "x")
    one, two, three = (nodes.Const(DIGIT, SPAN, number) for number in (1, 2, 3))
    arms = ((2, None, two), (0, local, nodes.Apply(DIGIT, SPAN, Op.FIELD, (local,), 0)), (1, None, one))
    match = nodes.Case(DIGIT, SPAN, nodes.Var(kind, SPAN, 0, False), arms, three)
    assert [value_of(match, value) for value in ((0, (9,)), (1, ()), (2, ()), (3, ()))] == [9, 1, 2, 3]


@pytest.mark.parametrize("at", [-1, 2])
def test_a_step_that_writes_outside_of_a_sequence_is_undefined(at):
    """Python would write at the end for -1."""
    program = instance_of(WRITES).program
    ((after,),) = [[state for _, _, state in Stepper(program).of_action((1, (0, 0)), 0, ())]]
    assert after == (1, (0, 1))
    with pytest.raises(Faulty, match="outside the sequence"):
        Stepper(program).of_action((at, (0, 0)), 0, ())


@pytest.mark.parametrize("at", [2, 5])
def test_a_key_above_a_horizon_is_outside_of_its_map(at):
    """Searches without horizons have such keys, if a position is not checked when it is computed."""
    program = instance_of(KEYED).program
    ((after,),) = [[state for _, _, state in Unended(program).of_action((1, (0, 0)), 0, ())]]
    assert after == (1, (0, 1))
    with pytest.raises(Faulty, match="outside the sequence"):
        Unended(program).of_action((at, (0, 0)), 0, ())


def test_conditions_in_conditions_are_as_deep_as_they_are():
    """Python limits nested blocks."""
    expr: nodes.Expr = ZERO
    for number in range(110):
        test = nodes.Apply(
            BOOL,
            SPAN,
            Op.LE,
            (nodes.Const(Int(0, 200), SPAN, number), nodes.Var(Int(0, 200), SPAN, 0, False)),
        )
        expr = nodes.If(DIGIT, SPAN, test, expr, nodes.Const(DIGIT, SPAN, number % 10))
    assert value_of(expr, 109) == 0
    assert value_of(expr, 105) == 9


def test_what_a_loop_reads_is_read_once():
    """Slots, and fields in them, get names; places of other values and names bound by a loop do not."""
    lines = [
        RuleText("for item in {}:", ((1, 2),)),
        RuleText(" out.append(e[{}][1][item] + e[{}] + {} * e[{}][1][0] + value[{}])", (4, 5, 6, 4, 7)),
    ]
    assert read_once(lines) == [
        RuleText("read0 = e[{}][1]", (4,)), RuleText("read1 = e[{}]", (5,)),
        RuleText("read2 = e[{}][1][0]", (4,)), lines[0],
        RuleText(" out.append(read0[item] + read1 + {} * read2 + value[{}])", (6, 7)),
    ]  # fmt: skip
    calls = [*lines, RuleText(" out.append({}(e) + e[{}])", (len, 4))]
    assert read_once(calls) == calls
