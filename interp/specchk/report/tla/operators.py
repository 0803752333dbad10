"""The operators in TLA+: with the page of rules (`meaning.rules`) total over `Op`, which a test checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.types import Int, Map, Record, Union, of_shape
from specchk.meaning.values import universe
from specchk.report.tla.layout import (
    Tight,
    Tla,
    at_least,
    atom,
    bracketed,
    call,
    clause,
    combined,
    compared,
    indexed,
    infix,
)
from specchk.report.tla.names import cleaned
from specchk.report.tla.types import Types

Rule = Callable[[Types, Apply, Sequence[Tla]], Tla]


def _compared(word: str) -> Rule:
    return lambda _, __, args: compared(args[0], word, args[1])


def _combined(word: str) -> Rule:
    return lambda _, __, args: combined(args[0], word, args[1])


def _prefix(word: str, level: Tight) -> Rule:
    return lambda _, __, args: at_least(args[0], Tight.ATOM).behind(word, level)


def _call(name: str) -> Rule:
    """A call of an operator of a module that every spec extends, or of a helper."""
    return lambda types, _, args: call(types.helpers.use(name), *args)


def _bag(name: str) -> Rule:
    return lambda types, _, args: call(types.bag(name), *args)


def _bag_and_item(word: str) -> Rule:
    return lambda types, _, args: combined(args[0], types.bag(word), _single(types, args[1]))


def _single(types: Types, item: Tla) -> Tla:
    return call(types.bag("SetToBag"), bracketed("{", (item,), "}"))


def _record(types: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    return types.record(of_shape(expr.type, Record), args)


def _field(types: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    return types.part(of_shape(expr.args[0].type, Record), args[0], expr.data)


def _with_field(_: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    kind = of_shape(expr.args[0].type, Record)
    place = f"[{expr.data + 1}]" if kind.is_tuple else f".{cleaned(kind.fields[expr.data][0])}"
    return except_(args[0], [(atom(f"!{place}"), args[1])])


def except_(base: Tla, changes: Sequence[tuple[Tla, Tla]]) -> Tla:
    """A function or record with some places changed."""
    first, *rest = [infix(place, "=", value, Tight.OPEN, Tight.OPEN) for place, value in changes]
    parts = [("[", base), ("EXCEPT ", first), *[(", ", change) for change in rest]]
    text = clause(parts, "]", Tight.ATOM)
    return Tla(tuple(line.replace(" , !", ", !") for line in text.lines))


def _variant(types: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    return call("Variant", atom(types.tag(of_shape(expr.type, Union), expr.data)), args[0])


def _is_variant(types: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    tag = types.tag(of_shape(expr.args[0].type, Union), expr.data)
    return compared(call("VariantTag", args[0]), "=", atom(tag))


def _map(types: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    key = of_shape(expr.type, Map).key
    return types.map_of(key, [types.value(value, key) for value in sorted(universe(key))], args)


def _changed(types: Types, _: Apply, args: Sequence[Tla]) -> Tla:
    return except_(args[0], [(bracketed("![", (args[1],), "]"), args[2])])


def position(index: Tla) -> Tla:
    """An index of a sequence in TLA+, where the first is 1."""
    if index.flat is not None and index.flat.isdigit():
        return atom(str(int(index.flat) + 1))
    if index.level == Tight.INFIX and index.flat is not None and index.flat.endswith(" - 1"):
        return atom(index.flat.removesuffix(" - 1"))
    return combined(index, "+", atom("1"))


def _item(_: Types, __: Apply, args: Sequence[Tla]) -> Tla:
    return indexed(args[0], position(args[1]))


def _item_set(types: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    return _changed(types, expr, [args[0], position(args[1]), args[2]])


def _in_items(types: Types, _: Apply, args: Sequence[Tla]) -> Tla:
    return compared(args[0], "\\in", call(types.helpers.use("Items"), args[1]))


def _sum(types: Types, expr: Apply, args: Sequence[Tla]) -> Tla:
    each = clause([("[x_ \\in ", args[0]), ("|-> ", atom("x_"))], "]", Tight.ATOM)
    return sum_of(types, expr.type, each)


def sum_of(types: Types, kind: object, function: Tla) -> Tla:
    """The sum of a function's values; `kind` is the sum's type."""
    is_natural = isinstance(kind, Int) and kind.low >= 0
    return call(types.helpers.use("SumOf" if is_natural else "SumOfInts"), function)


def _bag_of(types: Types, _: Apply, args: Sequence[Tla]) -> Tla:
    if not args:
        return types.counted(())
    text = _single(types, args[0])
    for item in args[1:]:
        text = combined(text, types.bag("(+)"), _single(types, item))
    return text


RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.EQ: _compared("="), Op.NE: _compared("#"), Op.LT: _compared("<"), Op.LE: _compared("<="),
        Op.NOT: _prefix("~", Tight.NOT), Op.NEG: _prefix("-", Tight.INFIX),
        Op.ADD: _combined("+"), Op.SUB: _combined("-"), Op.MUL: _combined("*"),
        Op.DIV: _combined("\\div"), Op.MOD: _combined("%"), Op.MIN: _call("Min"), Op.MAX: _call("Max"),
        Op.RECORD: _record, Op.FIELD: _field, Op.WITH_FIELD: _with_field,
        Op.VARIANT: _variant, Op.IS_VARIANT: _is_variant,
        Op.SOME: _call("Some"), Op.GET: lambda _, __, args: indexed(args[0], atom("1")),
        Op.MAP: _map, Op.MAP_GET: lambda _, __, args: indexed(args[0], args[1]), Op.MAP_SET: _changed,
        Op.SET: lambda _, __, args: bracketed("{", args, "}"), Op.RANGE: _combined(".."),
        Op.IN_SET: _compared("\\in"), Op.SUBSET: _compared("\\subseteq"),
        Op.UNION: _combined("\\union"), Op.INTERSECT: _combined("\\intersect"),
        Op.DIFFERENCE: _combined("\\"),
        Op.CARD: _call("Cardinality"), Op.SUBSETS: _prefix("SUBSET ", Tight.INFIX), Op.MAPS: _call("MapsOf"),
        Op.SET_MIN: _call("SetMin"), Op.SET_MAX: _call("SetMax"), Op.SET_SUM: _sum,
        Op.SEQ: lambda _, __, args: bracketed("<<", args, ">>"), Op.SEQ_GET: _item, Op.SEQ_SET: _item_set,
        Op.LEN: _call("Len"), Op.HEAD: _call("Head"), Op.TAIL: _call("Tail"),
        Op.APPEND: _call("Append"), Op.CONCAT: _combined("\\o"),
        Op.PREFIX: _call("Prefix"), Op.SUFFIX: _call("Suffix"),
        Op.IN_SEQ: _in_items, Op.SEQ_ITEMS: _call("Items"),
        Op.BAG: _bag_of, Op.BAG_ADD: _bag_and_item("(+)"), Op.BAG_REMOVE: _bag_and_item("(-)"),
        Op.BAG_COUNT: lambda types, _, args: call(types.bag("CopiesIn"), args[1], args[0]),
        Op.BAG_UNION: lambda types, _, args: combined(args[0], types.bag("(+)"), args[1]),
        Op.IN_BAG: _bag("BagIn"), Op.BAG_CARD: _bag("BagCardinality"), Op.BAG_ITEMS: _bag("BagToSet"),
    }
)  # fmt: skip
