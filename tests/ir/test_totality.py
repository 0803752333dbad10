"""Which expressions certainly have a value: what passes may move and the native engine may compute early."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest

from specchk.ir.nodes import (
    And,
    Apply,
    Case,
    Choose,
    Collect,
    Const,
    Cover,
    Expr,
    Gather,
    If,
    Implies,
    Let,
    Local,
    MapOf,
    Narrow,
    Op,
    Or,
    Quantifier,
    Var,
)
from specchk.ir.totality import is_partial, is_total
from specchk.ir.types import (
    BOOL,
    MAX_LISTED_BITS,
    Bag,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Type,
    Union,
    cardinality,
)
from specchk.ir.typing import LITERALS, result_type
from specchk.lang.text.source import Source, Span
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import universe
from specchk.native.values.totality import Facts

SPAN = Span(Source("here", "here"), 0, 4)
TWO = Const(Int(2, 2), SPAN, 2)
TABLE = Map(Int(0, 3), BOOL)


def some(low: int, high: int, *, horizon: bool = False) -> Local:
    return Local(Int(low, high, horizon), SPAN, 0, "x")


def quotient(divisor: Expr, op: Op = Op.DIV) -> Expr:
    return Apply(Int(-9, 9), SPAN, op, (TWO, divisor))


def looked_up(key: Expr) -> Expr:
    return Apply(BOOL, SPAN, Op.MAP_GET, (Var(TABLE, SPAN, 0, False), key))


@pytest.mark.parametrize(
    "expr", [quotient(TWO), quotient(some(1, 9), Op.MOD), quotient(some(-3, -1)), looked_up(some(0, 3)), TWO]
)
def test_what_always_has_a_value(expr: Expr) -> None:
    """A divisor that is never 0, a key that is always there."""
    assert is_total(expr)


@pytest.mark.parametrize(
    "expr",
    [
        quotient(some(0, 9)), quotient(some(-1, 1), Op.MOD), looked_up(some(0, 4)), looked_up(some(-1, 0)),
        looked_up(some(0, 3, horizon=True)),  # has no end where offsets are open
        Narrow(Int(0, 1), SPAN, some(0, 9)),
        Apply(BOOL, SPAN, Op.HEAD, (Var(Seq(BOOL, 2), SPAN, 0, False),)),
    ],
)  # fmt: skip
def test_what_may_have_none(expr: Expr) -> None:
    """Nor has anything that contains it, though that is not partial itself."""
    around = And(BOOL, SPAN, (Apply(BOOL, SPAN, Op.EQ, (expr, expr)),))
    assert is_partial(expr)
    assert not is_total(expr)
    assert not is_partial(around)
    assert not is_total(around)


# -- every operator on the edges of its types

DIGIT, SIGNED, WIDE = Int(0, 2), Int(-1, 1), Int(0, 1 << MAX_LISTED_BITS)
PAIR = Record((("a", DIGIT), ("b", BOOL)))
EITHER = Union("u", (("no", Record(())), ("yes", PAIR)))
SOME, DIGITS, ROW, HEAP = Option(DIGIT), Set(DIGIT), Seq(DIGIT, 2), Bag(DIGIT, 2)
SHELF, LOWER = Map(DIGIT, BOOL), Map(Int(1, 2), BOOL)
Signature = tuple[Type, ...]
NUMBERS: tuple[Signature, ...] = ((DIGIT, SIGNED), (SIGNED, DIGIT), (WIDE, WIDE))
SETS: tuple[Signature, ...] = ((DIGITS, DIGITS), (Set(SIGNED), DIGITS))
BAGS: tuple[Signature, ...] = ((HEAP, DIGIT), (HEAP, SIGNED))
DIVISORS: tuple[Signature, ...] = tuple(
    (SIGNED, divisor) for divisor in (DIGIT, SIGNED, Int(0, 0), Int(1, 3), Int(-3, -1), Int(-2, 0))
)
KEYS = (DIGIT, SIGNED, Int(0, 3), Int(1, 2), Int(7, 9))
SIGNATURES: dict[Op, tuple[Signature, ...]] = {
    **dict.fromkeys((Op.EQ, Op.NE), ((DIGIT, SIGNED), (DIGITS, DIGITS), (SOME, SOME), (EITHER, EITHER))),
    **dict.fromkeys((Op.LT, Op.LE, Op.ADD, Op.SUB, Op.MUL, Op.MIN, Op.MAX), NUMBERS),
    **dict.fromkeys((Op.DIV, Op.MOD), DIVISORS),
    Op.NOT: ((BOOL,),), Op.NEG: ((SIGNED,), (WIDE,)),
    Op.RECORD: ((DIGIT, BOOL),), Op.FIELD: ((PAIR,),), Op.WITH_FIELD: ((PAIR, SIGNED),),
    Op.VARIANT: ((Record(()),),), Op.IS_VARIANT: ((EITHER,),),
    Op.SOME: ((DIGIT,),), Op.GET: ((SOME,),), Op.GET_OR: ((SOME, SIGNED),),
    Op.MAP: ((BOOL, BOOL, BOOL),),
    Op.MAP_GET: (
        *((kind, key) for kind in (SHELF, LOWER) for key in KEYS),
        (Map(DIGITS, BOOL), Set(SIGNED)), (Map(SOME, BOOL), SOME), (Map(BOOL, BOOL), BOOL),
    ),
    Op.MAP_SET: tuple((kind, key, BOOL) for kind in (SHELF, LOWER) for key in KEYS),
    Op.SET: ((), (DIGIT,), (DIGIT, SIGNED)),
    Op.RANGE: ((DIGIT, SIGNED), (DIGIT, WIDE), (Int(1, 2), WIDE), (WIDE, DIGIT)),
    Op.IN_SET: ((DIGIT, DIGITS), (SIGNED, DIGITS)),
    **dict.fromkeys((Op.SUBSET, Op.UNION, Op.INTERSECT, Op.DIFFERENCE), SETS),
    **dict.fromkeys((Op.CARD, Op.SET_MIN, Op.SET_MAX, Op.SET_SUM), ((DIGITS,), (Set(SIGNED),))),
    Op.SUBSETS: ((DIGITS,), (Set(Int(1, MAX_LISTED_BITS)),), (Set(Int(0, MAX_LISTED_BITS)),)),
    Op.SEQ: ((), (DIGIT, DIGIT)),
    **dict.fromkeys((Op.LEN, Op.HEAD, Op.LAST, Op.TAIL, Op.SEQ_ITEMS), ((ROW,), (Seq(BOOL, 1),))),
    Op.SEQ_GET: ((ROW, DIGIT), (ROW, SIGNED), (ROW, Int(0, 0))),
    Op.SEQ_SET: ((ROW, DIGIT, SIGNED), (ROW, Int(0, 0), DIGIT)),
    Op.APPEND: ((ROW, DIGIT), (ROW, SIGNED)), Op.CONCAT: ((ROW, ROW), (ROW, Seq(SIGNED, 1))),
    **dict.fromkeys((Op.PREFIX, Op.SUFFIX), ((ROW, DIGIT), (ROW, SIGNED), (ROW, Int(3, 4)))),
    Op.IN_SEQ: ((DIGIT, ROW), (SIGNED, ROW)),
    Op.BAG: ((), (DIGIT, DIGIT)),
    **dict.fromkeys((Op.BAG_ADD, Op.BAG_REMOVE, Op.BAG_COUNT), BAGS),
    Op.BAG_UNION: ((HEAP, HEAP),), Op.IN_BAG: ((DIGIT, HEAP), (SIGNED, HEAP)),
    **dict.fromkeys((Op.BAG_CARD, Op.BAG_ITEMS), ((HEAP,),)),
}  # fmt: skip
MADE: dict[Op, Type] = {
    Op.RECORD: PAIR, Op.VARIANT: EITHER, Op.MAP: SHELF, Op.SET: Set(SIGNED), Op.SEQ: ROW, Op.BAG: HEAP,
}  # fmt: skip


def applied(op: Op, kinds: Signature) -> Apply:
    """The operator on locals of these types."""
    args = tuple(Local(kind, SPAN, slot, f"x{slot}") for slot, kind in enumerate(kinds))
    return Apply(MADE[op] if op in LITERALS else result_type(op, args, 0), SPAN, op, args)


def edges(kind: Type) -> list[Any]:
    """All values of a type, or of a large one those at its ends."""
    if cardinality(kind) <= 256:
        return universe(kind)
    if isinstance(kind, Int):
        return [kind.low, kind.low + 1, kind.high - 1, kind.high]
    assert isinstance(kind, Set)
    assert isinstance(kind.item, Int)
    every = tuple(range(kind.item.low, kind.item.high + 1))
    return [(), every[:1], *([every] if len(every) > MAX_LISTED_BITS else [])]


def may_be_undefined(expr: Expr, kinds: Signature) -> bool:
    """Whether the meaning gives no value for some values of the locals, tried out."""
    function, room = Evaluator(0, [0]).compile(expr), [0] * 9
    for values in product(*map(edges, kinds)):
        try:
            function([*values, *room])
        except Undefined:
            return True
    return False


def test_every_operator_is_tried_out() -> None:
    """An operator without arguments to try it on would be judged by nobody."""
    assert set(SIGNATURES) == set(Op)
    assert set(MADE) == LITERALS
    assert all(SIGNATURES.values())


@pytest.mark.parametrize("op", Op, ids=lambda op: op.name)
def test_an_operator_is_partial_exactly_where_its_meaning_has_no_value(op: Op) -> None:
    """Believed total, it is dropped where it decides; believed partial, it is computed for nothing."""
    for kinds in SIGNATURES[op]:
        expr = applied(op, kinds)
        wanted = may_be_undefined(expr, kinds)
        assert is_partial(expr) == wanted, kinds
        assert is_total(expr) != wanted, kinds
        assert Facts().plain(expr) != wanted, kinds


def test_every_operator_that_may_have_no_value_is_seen_without_one() -> None:
    """The arguments tried include some without a value, for every operator that the language has them for."""
    found = {op for op, every in SIGNATURES.items() for kinds in every if is_partial(applied(op, kinds))}
    assert {op.name for op in found} == {
        "DIV", "MOD", "GET", "MAP_GET", "MAP_SET", "RANGE", "SUBSETS", "SET_MIN", "SET_MAX", "SEQ_GET",
        "SEQ_SET", "HEAD", "LAST", "TAIL", "PREFIX", "SUFFIX", "BAG_REMOVE",
    }  # fmt: skip


# -- every other node

X, Y, TRUTH = Local(DIGIT, SPAN, 0, "x"), Local(DIGIT, SPAN, 3, "y"), Local(BOOL, SPAN, 1, "t")
FULL, MAYBE = Local(DIGITS, SPAN, 2, "s"), Local(SOME, SPAN, 4, "o")
KINDS: Signature = (DIGIT, BOOL, DIGITS, DIGIT, SOME)
NODES: tuple[Expr, ...] = (
    TWO, X, And(BOOL, SPAN, (TRUTH, TRUTH)), Or(BOOL, SPAN, (TRUTH, TRUTH)),
    Implies(BOOL, SPAN, TRUTH, TRUTH), If(DIGIT, SPAN, TRUTH, X, Y),
    Quantifier(BOOL, SPAN, True, X, FULL, TRUTH),
    Choose(DIGIT, SPAN, X, FULL, TRUTH),
    *(Collect(MADE[Op.SET] if how is Gather.SET else Int(-9, 9), SPAN, how, ((X, FULL),), TRUTH, X)
      for how in Gather),
    MapOf(SHELF, SPAN, X, TRUTH), Let(DIGIT, SPAN, Y, X, Y), Cover(DIGIT, SPAN, 0, X),
    Case(DIGIT, SPAN, MAYBE, ((0, None, X), (1, Y, Y)), None), Narrow(Int(1, 2), SPAN, X),
)  # fmt: skip


def test_every_node_is_tried_out() -> None:
    """All but variables, which are read as locals are."""
    assert {type(node) for node in NODES} == set(get_args(Expr)) - {Apply, Var}


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_is_partial_exactly_where_its_meaning_has_no_value(node: Expr) -> None:
    """With parts that have values, all of them."""
    wanted = may_be_undefined(node, KINDS)
    assert is_partial(node) == wanted
    assert is_total(node) != wanted
    assert Facts().plain(node) == (not wanted and not isinstance(node, Cover))
