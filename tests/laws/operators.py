"""Every operator on the edges of its types; errors in a card or a table name the operator."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

from msgspec.structs import replace

from specchk.ir.nodes import Apply, Const, Expr, Var
from specchk.ir.ops import Op
from specchk.ir.totality import is_partial
from specchk.ir.types import (
    BOOL,
    MAX_LISTED_BITS,
    Bag,
    Bool,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Type,
    Union,
    cardinality,
    fits,
    same_shape,
)
from specchk.ir.typing import result_type
from specchk.lang.check.builtins import BUILTINS
from specchk.lang.text.source import Source, Span
from specchk.meaning import operators as meaning
from specchk.meaning import rules
from specchk.meaning.evaluate import Check, Env, Evaluator, checker
from specchk.meaning.texts.joined import RuleText
from specchk.meaning.undefined import BeyondHorizon, Undefined
from specchk.meaning.values import universe
from specchk.native.values import expressions as native
from specchk.native.values.totality import ExpressionFacts
from specchk.symbolic.induction.encode import ops as symbolic

SPAN = Span(Source("here", "here"), 0, 4)
DIGIT, SIGNED, WIDE = Int(0, 2), Int(-1, 1), Int(0, 1 << MAX_LISTED_BITS)
PAIR = Record((("a", DIGIT), ("b", BOOL)))
EITHER = Union("u", (("no", Record(())), ("yes", PAIR)))
SOME, DIGITS, ROW, HEAP = Option(DIGIT), Set(DIGIT), Seq(DIGIT, 2), Bag(DIGIT, 2)
SHELF, LOWER = Map(DIGIT, BOOL), Map(Int(1, 2), BOOL)
Signature = tuple[Type, ...]
NUMBERS: tuple[Signature, ...] = ((DIGIT, SIGNED), (SIGNED, DIGIT), (WIDE, WIDE))
SETS: tuple[Signature, ...] = ((DIGITS, DIGITS), (Set(SIGNED), DIGITS))
ROWS: tuple[Signature, ...] = ((ROW,), (Seq(BOOL, 1),), (Seq(SOME, 2),), (Seq(DIGIT, 0),))
BAGS: tuple[Signature, ...] = ((HEAP, DIGIT), (HEAP, SIGNED), (Bag(DIGIT, 0), DIGIT))
DIVISORS: tuple[Signature, ...] = tuple(
    (SIGNED, divisor) for divisor in (DIGIT, SIGNED, Int(0, 0), Int(1, 3), Int(-3, -1), Int(-2, 0))
)
KEYS = (DIGIT, SIGNED, Int(0, 3), Int(1, 2), Int(7, 9))
SIGNATURES: dict[Op, tuple[Signature, ...]] = {
    **dict.fromkeys((Op.EQ, Op.NE), ((DIGIT, SIGNED), (DIGITS, DIGITS), (SOME, SOME), (EITHER, EITHER))),
    **dict.fromkeys((Op.LT, Op.LE, Op.ADD, Op.SUB, Op.MUL, Op.MIN, Op.MAX), NUMBERS),
    **dict.fromkeys((Op.DIV, Op.MOD), DIVISORS),
    Op.DECREASED: ((DIGIT, DIGIT), (DIGIT, SIGNED), (SIGNED, DIGIT), (DIGIT, Int(3, 4)), (DIGIT, Int(0, 0))),
    Op.NOT: ((BOOL,),), Op.NEG: ((SIGNED,), (WIDE,)),
    Op.RECORD: ((DIGIT, BOOL),), Op.FIELD: ((PAIR,), (Record((("a", SOME), ("b", DIGIT))),)),
    Op.WITH_FIELD: ((PAIR, SIGNED), (PAIR, BOOL)),
    Op.VARIANT: ((Record(()),), (PAIR,)), Op.IS_VARIANT: ((EITHER,),),
    Op.SOME: ((DIGIT,),), Op.GET: ((SOME,), (Option(BOOL),), (Option(SOME),)),
    Op.GET_OR: ((SOME, SIGNED), (Option(BOOL), BOOL)),
    Op.MAP: ((BOOL, BOOL, BOOL),),
    Op.MAP_GET: (
        *((kind, key) for kind in (SHELF, LOWER) for key in KEYS),
        (Map(DIGITS, BOOL), Set(SIGNED)), (Map(SOME, BOOL), SOME), (Map(BOOL, SOME), BOOL),
    ),
    Op.MAP_SET: tuple((kind, key, BOOL) for kind in (SHELF, LOWER) for key in KEYS),
    Op.SET: ((), (DIGIT,), (DIGIT, SIGNED)),
    # Of few values, since each range up to a wide one is a set of a million items.
    Op.RANGE: ((DIGIT, SIGNED), (Int(0, 0), WIDE), (Int(1, 1), WIDE), (WIDE, DIGIT)),
    Op.IN_SET: ((DIGIT, DIGITS), (SIGNED, DIGITS)),
    **dict.fromkeys((Op.SUBSET, Op.UNION, Op.INTERSECT, Op.DIFFERENCE), SETS),
    **dict.fromkeys((Op.CARD, Op.SET_MIN, Op.SET_MAX, Op.SET_SUM), ((DIGITS,), (Set(SIGNED),))),
    Op.SUBSETS: ((DIGITS,), (Set(Int(1, MAX_LISTED_BITS)),), (Set(Int(0, MAX_LISTED_BITS)),)),
    Op.MAPS: ((Set(Int(0, 0)), Set(BOOL)), (Set(BOOL), Set(BOOL)), (Set(Int(0, MAX_LISTED_BITS)), Set(BOOL)),
              (Set(Record(())), DIGITS)),
    Op.SEQ: ((), (DIGIT, DIGIT)),
    **dict.fromkeys((Op.LEN, Op.HEAD, Op.LAST, Op.TAIL, Op.SEQ_ITEMS), ROWS),
    Op.SEQ_GET: ((ROW, DIGIT), (ROW, SIGNED), (ROW, Int(0, 0)), (Seq(BOOL, 2), SIGNED),
                 (Seq(SOME, 2), DIGIT)),
    Op.SEQ_SET: ((ROW, DIGIT, SIGNED), (ROW, Int(0, 0), DIGIT)),
    Op.APPEND: ((ROW, DIGIT), (ROW, SIGNED)), Op.CONCAT: ((ROW, ROW), (ROW, Seq(SIGNED, 1))),
    **dict.fromkeys((Op.PREFIX, Op.SUFFIX), ((ROW, DIGIT), (ROW, SIGNED), (ROW, Int(3, 4)))),
    Op.IN_SEQ: ((DIGIT, ROW), (SIGNED, ROW)),
    Op.BAG: ((), (DIGIT, DIGIT)),
    **dict.fromkeys((Op.BAG_ADD, Op.BAG_REMOVE, Op.BAG_COUNT), BAGS),
    Op.BAG_UNION: ((HEAP, HEAP),), Op.IN_BAG: ((DIGIT, HEAP), (SIGNED, HEAP)),
    **dict.fromkeys((Op.BAG_CARD, Op.BAG_ITEMS), ((HEAP,),)),
}  # fmt: skip
# What a literal makes of these: its type is its node's.
MADE: dict[Op, Type] = {
    Op.RECORD: PAIR, Op.VARIANT: EITHER, Op.MAP: SHELF, Op.SET: Set(Int(-1, 2)), Op.SEQ: ROW, Op.BAG: HEAP,
}  # fmt: skip
KEYWORDS = {"in", "not", "union", "intersect", "subset"}  # operators of the grammar that are words
# The tables that engines look an operator up in.
TABLES: dict[str, tuple[Any, str]] = {
    "the meaning": (meaning, "RULES"),
    "the native engine": (native, "RULES"),
    "the encoding for Z3": (symbolic, "RULES"),
}


def applied(op: Op, kinds: Signature, data: int = 0) -> Apply:
    """The operator on variables of these types."""
    args = tuple(Var(kind, SPAN, slot, primed=False) for slot, kind in enumerate(kinds))
    kind = MADE[op] if op.card.result is None else result_type(op, args, data)
    return Apply(kind, SPAN, op, args, data)


def cases(op: Op) -> Iterator[tuple[Apply, Signature]]:
    """The operator on all tried arguments, with every field and variant."""
    for kinds in SIGNATURES[op]:
        for data in _fields_or_variants(op, kinds):
            yield applied(op, kinds, data), kinds


def _fields_or_variants(op: Op, kinds: Signature) -> Iterable[int]:
    match op, kinds[:1]:
        case Op.FIELD | Op.WITH_FIELD, (Record(fields),):
            return [at for at, (_, kind) in enumerate(fields) if same_shape(kind, (*kinds, kind)[1])]
        case Op.IS_VARIANT, (Union(variants=variants),):
            return range(len(variants))
        case Op.VARIANT, (payload,):
            return [tag for tag, (_, record) in enumerate(EITHER.variants) if record == payload]
    return [0]


def on_constants(expr: Apply, values: tuple[Any, ...]) -> Apply:
    """The same application of values that are known beforehand."""
    args = (Const(arg.type, arg.span, value) for arg, value in zip(expr.args, values, strict=True))
    return replace(expr, args=tuple(args))


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


def tried(expr: Expr, kinds: Signature) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The meaning for all edge values of variables or locals: the arguments and the result, or None."""
    return meant(expr, kinds, product(*map(edges, kinds)))


def meant(
    expr: Expr, kinds: Signature, every: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The meaning for some values of variables or locals: the arguments and the result, or None."""
    function, room = Evaluator(len(kinds), [0]).compile(expr), [0] * 9
    for values in every:
        try:
            yield values, function([*values, *values, *values, *room])
        except Undefined:
            yield values, None


class Apart(Evaluator):
    """The meaning with one function for each node, where the evaluator joins many."""

    def compile(self, expr: Expr) -> Callable[[Env], Any]:
        """The function of an expression, whose parts are not joined to it: see `Evaluator`."""
        return super().compile(expr)


def outcome(evaluator: Evaluator, expr: Expr, env: Env) -> Any:
    """An expression's value, or the reason why there is none, with the place to blame."""
    try:
        return evaluator.compile(expr)(env)
    except Undefined as undefined:
        return undefined.span, undefined.reason
    except BeyondHorizon:
        return BeyondHorizon


def may_be_undefined(expr: Expr, kinds: Signature) -> bool:
    """Whether the meaning gives no value for some edge values."""
    return any(value is None for _, value in tried(expr, kinds))


def untabled(op: Op) -> list[str]:
    """The tables without an entry for an operator, which is not on the page of rules either."""
    return [
        f"{op.name} is not in {name}"
        for name, (room, table) in TABLES.items()
        if op not in getattr(room, table) and (op not in rules.DERIVED or room is meaning)
    ]


def untried(op: Op) -> list[str]:
    """Arguments that an operator does not accept, or none at all: it would not be checked."""
    if not SIGNATURES.get(op):
        return [f"{op.name} is not tried"]
    return [f"{op.name} does not take {kinds}" for kinds in SIGNATURES[op] if not op.card.accepts(kinds)]


def unwritten(op: Op) -> list[str]:
    """A word is built in or an operator of the grammar, and has one meaning for any arguments."""
    card, wrong = op.card, []
    if card.word.isalpha() and card.word not in {*BUILTINS, *KEYWORDS}:
        wrong.append(f"{op.name}: `{card.word}` is not built in")
    for other in Op:
        if other is not op and card.shapes and other.card.word == card.word and not _is_form(other):
            wrong += [
                f"{op.name} or {other.name}, on {k}" for k in SIGNATURES.get(op, ()) if other.card.accepts(k)
            ]
    return wrong


def wordless() -> list[str]:
    """The built-in functions without an operator; the compiler expands them."""
    return sorted({*BUILTINS, *KEYWORDS} - {"enabled", "fold", "keys", "maps"} - {op.card.word for op in Op})


def _is_form(op: Op) -> bool:
    return not op.card.word or op.card.shapes is None


def miscarded(op: Op) -> list[str]:
    """Differences between the meaning and the card."""
    found = [line for expr, kinds in cases(op) for line in _miscarded(expr, kinds)]
    if _builds(op) != (op.card.part_types is not None):
        found.append(f"{op.name} is {'' if _builds(op) else 'not '}built from its arguments")
    if (op.card.shapes is None) != (op.card.result is None):
        found.append(f"{op.name} is a literal by half")
    return found


def _miscarded(expr: Apply, kinds: Signature) -> Iterator[str]:
    op = expr.op
    results = [value for _, value in tried(expr, kinds)]
    undefined = None in results
    if is_partial(expr) != undefined:
        yield f"{op.name} is {'partial' if undefined else 'total'} on {kinds}"
    if ExpressionFacts().plain(expr) == undefined:
        yield f"{op.name} is computed early or late on {kinds}, against its meaning"
    check = checker(expr.type, SPAN)
    if not all(_is_of(value, expr.type, check) for value in results if value is not None):
        yield f"{op.name} gives more than {expr.type} on {kinds}"
    if op.card.part_types is not None:
        wanted = op.card.part_types(expr.type, expr.data, len(kinds))
        if len(wanted) != len(kinds) or not all(map(fits, kinds, wanted)):
            yield f"{op.name} is not made of {wanted}"


def _is_of(value: Any, kind: Type, check: Check) -> bool:
    try:
        check(value)
    except Undefined:
        return False
    return isinstance(value, bool) == isinstance(kind, Bool)


def _builds(op: Op) -> bool:
    """Whether the result consists of the arguments, except for a variant's name."""
    every = ((given, value) for expr, kinds in cases(op) for given, value in tried(expr, kinds) if given)
    return all(isinstance(value, tuple) and {*value[-len(given) :]} == {*given} for given, value in every)


def unmarked(op: Op) -> list[str]:
    """A guard's decision without a mark would merge two classes of steps."""
    compares = op in (Op.EQ, Op.NE, Op.LT, Op.LE, Op.MIN, Op.MAX)
    decides = op is not Op.NOT and any(isinstance(expr.type, Bool) for expr, _ in cases(op))
    wanted = "sign" if compares else "truth" if decides else ""
    return [] if op.card.marks == wanted else [f"{op.name} is marked {op.card.marks!r}, not {wanted!r}"]


def unclosed(op: Op) -> list[str]:
    """A text whose meaning depends on its context, or that omits one of its values."""
    rule, wrong = meaning.RULES[op], []
    for expr, kinds in cases(op) if isinstance(rule, meaning.TextRule) else ():
        text = rule.text(expr, [RuleText("e[{}]", (slot,)) for slot in range(len(kinds))])
        code = text.code.replace("{}", "v")
        if ast.dump(_parsed(f"{code}.next").value) != ast.dump(_parsed(code)):  # type: ignore[attr-defined]
            wrong.append(f"{op.name} is not closed: {code}")
        if text.code.count("{}") != len(text.values):
            wrong.append(f"{op.name} has {len(text.values)} values: {text.code}")
    return wrong


def _parsed(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body


def parted(op: Op) -> list[str]:
    """An operator with another meaning in a joined text than as a separate function."""
    found = []
    for expr, kinds in cases(op):
        joined, apart = Evaluator(len(kinds)), Apart(len(kinds))
        for values, _ in tried(expr, kinds):
            for alone in (expr, on_constants(expr, values)):
                # Twice, so that it is a part, with another one behind it.
                whole = Apply(Seq(expr.type, 2), SPAN, Op.SEQ, (alone, alone), 0)
                for form in (alone, whole):
                    env = [*values, *values, 0]
                    if outcome(joined, form, env) != outcome(apart, form, env):
                        found.append(f"{op.name} on {values} is {outcome(joined, form, env)} in a whole")
    return found
