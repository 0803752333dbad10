"""Operators on values of several machine words, with some arguments known beforehand and others not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

from msgspec.structs import replace

from laws.operators import SPAN, Signature, meant
from native.drawn import value_of
from native.emitted import compiled
from specchk.ir.nodes import Apply, Const, Var
from specchk.ir.ops import Op
from specchk.ir.types import Bag, Int, Map, Option, Record, Seq, Set, Type, Union
from specchk.ir.typing import result_type
from specchk.native.machine.layout import decode, encode, mask

DIGIT, KEY = Int(0, 6), Int(0, 29)
LONG, BIG, HEAP, TABLE = Seq(DIGIT, 29), Set(Int(0, 99)), Bag(DIGIT, 29), Map(KEY, Int(0, 30))
PAIR, MAYBE = Record((("a", LONG), ("b", DIGIT))), Option(LONG)
EITHER = Union("either", (("no", Record(())), ("yes", PAIR)))
ROWS, HEAPS = Map(Int(0, 11), LONG), Seq(BIG, 3)
SAME: tuple[Signature, ...] = tuple(
    (kind, kind) for kind in (LONG, BIG, HEAP, TABLE, PAIR, MAYBE, EITHER, HEAPS)
)
UNEQUAL: Signature = (Set(Int(0, 128)), Set(Int(0, 255)))  # numbers of as many bits, three words and four
# With the result, where the arguments do not decide it.
WIDE: dict[Op, tuple[Signature, ...] | tuple[Signature, Type]] = {
    **dict.fromkeys((Op.EQ, Op.NE), (*SAME, UNEQUAL)),
    Op.RECORD: ((LONG, DIGIT), PAIR), Op.FIELD: ((PAIR,),), Op.WITH_FIELD: ((PAIR, LONG),),
    Op.VARIANT: ((PAIR,), EITHER), Op.IS_VARIANT: ((EITHER,),),
    Op.SOME: ((LONG,),), Op.GET: ((MAYBE,),), Op.GET_OR: ((MAYBE, LONG),),
    Op.MAP: ((LONG,) * 12, ROWS), Op.MAP_GET: ((TABLE, KEY), (ROWS, DIGIT)),
    Op.MAP_SET: ((TABLE, KEY, DIGIT), (ROWS, DIGIT, LONG)),
    Op.SET: ((Int(0, 99), DIGIT), BIG), Op.IN_SET: ((Int(0, 99), BIG), (DIGIT, BIG)),
    **dict.fromkeys((Op.SUBSET, Op.UNION, Op.INTERSECT, Op.DIFFERENCE), ((BIG, BIG), UNEQUAL, UNEQUAL[::-1])),
    **dict.fromkeys((Op.CARD, Op.SET_MIN, Op.SET_MAX, Op.SET_SUM), ((BIG,),)),
    Op.SEQ: ((DIGIT,) * 29, LONG),
    **dict.fromkeys((Op.LEN, Op.HEAD, Op.LAST, Op.TAIL), ((LONG,), (HEAPS,))), Op.SEQ_ITEMS: ((LONG,),),
    Op.SEQ_GET: ((LONG, KEY), (HEAPS, DIGIT)), Op.SEQ_SET: ((LONG, KEY, DIGIT), (HEAPS, DIGIT, BIG)),
    Op.APPEND: ((LONG, DIGIT), (HEAPS, BIG)), Op.CONCAT: ((LONG, LONG), (HEAPS, HEAPS)),
    **dict.fromkeys((Op.PREFIX, Op.SUFFIX), ((LONG, KEY), (HEAPS, DIGIT))),
    Op.IN_SEQ: ((DIGIT, LONG), (BIG, HEAPS)),
    Op.BAG: ((DIGIT,) * 29, HEAP),
    **dict.fromkeys((Op.BAG_ADD, Op.BAG_REMOVE, Op.BAG_COUNT), ((HEAP, DIGIT),)),
    Op.BAG_UNION: ((HEAP, HEAP),), Op.IN_BAG: ((DIGIT, HEAP),),
    **dict.fromkeys((Op.BAG_CARD, Op.BAG_ITEMS), ((HEAP,),)),
}  # fmt: skip
TRIED = 12  # values of each signature
KNOWN = 2  # of which so many are known beforehand, in turn


def applied(op: Op) -> Iterator[tuple[Apply, Signature]]:
    """An operator on variables."""
    given = WIDE[op]
    literal = op.card.result is None
    for kinds in given[:1] if literal else given:
        assert isinstance(kinds, tuple)
        args = tuple(Var(kind, SPAN, slot, primed=False) for slot, kind in enumerate(kinds))
        for data in (1,) if op in (Op.VARIANT, Op.IS_VARIANT) else (0,):
            kind = given[1] if literal else result_type(op, args, data)
            assert not isinstance(kind, tuple)
            yield Apply(kind, SPAN, op, args, data), kinds


def miscompiled(op: Op) -> list[str]:
    """The arguments for which wide code of an operator gives another value than its meaning."""
    return [line for expr, kinds in applied(op) for line in _miscompiled(expr, kinds)]


def _miscompiled(expr: Apply, kinds: Signature) -> Iterator[str]:
    random = Random(f"{expr.op.name} {kinds}")
    tried = [tuple(value_of(kind, random) for kind in kinds) for _ in range(TRIED)]
    # First one whose highest bits are 0: a known number does not show how wide it is.
    tried = [tuple(_low(kind, value) for kind, value in zip(kinds, tried[0], strict=True)), *tried]
    forms = [(known, fixed) for known in _known(len(kinds)) for fixed in tried[: KNOWN if any(known) else 1]]
    codes = compiled([_partly(expr, known, fixed) for known, fixed in forms], kinds)
    for (known, fixed), code in zip(forms, codes, strict=True):
        all_given = [
            tuple(a if k else b for a, b, k in zip(fixed, values, known, strict=True)) for values in tried
        ]
        for values, (given, wanted) in zip(tried, meant(expr, kinds, all_given), strict=True):
            if (found := code(values)) != wanted:
                yield f"{expr.op.name} of {given} in {kinds} is {found}, not {wanted}; known: {known}"


def _low(kind: Type, value: Any) -> Any:
    """A value with the lowest bits of another one."""
    return decode(kind, encode(kind, value) & mask(60))


def _known(count: int) -> list[tuple[bool, ...]]:
    """The arguments known beforehand: each choice, or for many arguments a few."""
    if count <= 3:
        return list(product((False, True), repeat=count))
    return [(False,) * count, (True,) * count, tuple(index % 2 == 0 for index in range(count))]


def _partly(expr: Apply, known: Sequence[bool], values: Sequence[Any]) -> Apply:
    pairs = zip(expr.args, values, known, strict=True)
    args = [Const(arg.type, arg.span, value) if is_known else arg for arg, value, is_known in pairs]
    return replace(expr, args=tuple(args))
