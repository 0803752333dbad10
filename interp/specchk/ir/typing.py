"""Types of operator results, with intervals: what makes every integer of the core bounded.

Interval arithmetic as usual; a result is marked `horizon` when an operand is, so that no engine
mistakes a limit of enumeration for a fact of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import cast

from specchk.ir.nodes import Expr, Gather, Local, Op
from specchk.ir.types import (
    BOOL,
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
    hull,
    narrowest,
)  # fmt: skip

Rule = Callable[[tuple[Expr, ...], int], Type]


def _int(expr: Expr) -> Int:
    kind = expr.type
    assert isinstance(kind, Int)
    return kind


def _item(kind: Type) -> Type:
    assert isinstance(kind, Option | Set | Seq | Bag)
    return narrowest(kind.item) if isinstance(kind, Seq | Bag) and kind.limit == 0 else kind.item


def _limit(kind: Type) -> int:
    assert isinstance(kind, Seq | Bag)
    return kind.limit


def _add(args: tuple[Expr, ...], _: int) -> Type:
    a, b = _int(args[0]), _int(args[1])
    return Int(a.low + b.low, a.high + b.high, a.horizon or b.horizon)


def _sub(args: tuple[Expr, ...], _: int) -> Type:
    a, b = _int(args[0]), _int(args[1])
    return Int(a.low - b.high, a.high - b.low, a.horizon or b.horizon)


def _mul(args: tuple[Expr, ...], _: int) -> Type:
    a, b = _int(args[0]), _int(args[1])
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return Int(min(corners), max(corners), a.horizon or b.horizon)


def _div(args: tuple[Expr, ...], _: int) -> Type:
    a, b = _int(args[0]), _int(args[1])
    most = max(abs(a.low), abs(a.high))
    if a.low >= 0 and b.low > 0:
        return Int(a.low // b.high, a.high // b.low, a.horizon or b.horizon)
    return Int(-most - 1, most, a.horizon or b.horizon)


def _mod(args: tuple[Expr, ...], _: int) -> Type:
    b = _int(args[1])
    return Int(min(0, b.low + 1), max(0, b.high - 1), _int(args[0]).horizon or b.horizon)


def _min(args: tuple[Expr, ...], _: int) -> Type:
    a, b = _int(args[0]), _int(args[1])
    return Int(min(a.low, b.low), min(a.high, b.high), a.horizon or b.horizon)


def _max(args: tuple[Expr, ...], _: int) -> Type:
    a, b = _int(args[0]), _int(args[1])
    return Int(max(a.low, b.low), max(a.high, b.high), a.horizon or b.horizon)


def _neg(args: tuple[Expr, ...], _: int) -> Type:
    a = _int(args[0])
    return Int(-a.high, -a.low, a.horizon)


def _set_sum(args: tuple[Expr, ...], _: int) -> Type:
    item = _item(args[0].type)
    assert isinstance(item, Int)
    size = cardinality(item)
    return Int(min(0, item.low) * size, max(0, item.high) * size, item.horizon)


def _field(args: tuple[Expr, ...], data: int) -> Type:
    kind = args[0].type
    assert isinstance(kind, Record)
    return kind.fields[data][1]


def _with_field(args: tuple[Expr, ...], data: int) -> Type:
    kind = args[0].type
    assert isinstance(kind, Record)
    name = kind.fields[data][0]
    return Record(tuple((f, args[1].type if f == name else t) for f, t in kind.fields))


def _map_get(args: tuple[Expr, ...], _: int) -> Type:
    kind = args[0].type
    assert isinstance(kind, Map)
    return kind.value


def _map_set(args: tuple[Expr, ...], _: int) -> Type:
    kind = args[0].type
    assert isinstance(kind, Map)
    return Map(kind.key, hull(kind.value, args[2].type))


def _range(args: tuple[Expr, ...], _: int) -> Type:
    a, b = _int(args[0]), _int(args[1])
    return Set(Int(a.low, max(a.low - 1, b.high), a.horizon or b.horizon))  # from a.low to below it: empty


def _union(args: tuple[Expr, ...], _: int) -> Type:
    return Set(hull(_item(args[0].type), _item(args[1].type)))


def _card(args: tuple[Expr, ...], _: int) -> Type:
    item = _item(args[0].type)
    return Int(0, cardinality(item), isinstance(item, Int) and item.horizon)


def _append(args: tuple[Expr, ...], _: int) -> Type:
    kind = args[0].type
    return Seq(hull(_item(kind), args[1].type), _limit(kind) + 1)


def _concat(args: tuple[Expr, ...], _: int) -> Type:
    a, b = args[0].type, args[1].type
    return Seq(hull(_item(a), _item(b)), _limit(a) + _limit(b))


def _bag_add(args: tuple[Expr, ...], _: int) -> Type:
    kind = args[0].type
    return Bag(hull(_item(kind), args[1].type), _limit(kind) + 1)


def _bag_union(args: tuple[Expr, ...], _: int) -> Type:
    a, b = args[0].type, args[1].type
    return Bag(hull(_item(a), _item(b)), _limit(a) + _limit(b))


def _seq_set(args: tuple[Expr, ...], _: int) -> Type:
    kind = args[0].type
    return Seq(hull(_item(kind), args[2].type), _limit(kind))


def _bool(_: tuple[Expr, ...], __: int) -> Type:
    return BOOL


def _first(args: tuple[Expr, ...], _: int) -> Type:
    return args[0].type


def _content(args: tuple[Expr, ...], _: int) -> Type:
    return _item(args[0].type)


def _size(args: tuple[Expr, ...], _: int) -> Type:
    return Int(0, _limit(args[0].type))


_RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        **dict.fromkeys(
            (Op.EQ, Op.NE, Op.LT, Op.LE, Op.NOT, Op.IS_VARIANT, Op.IN_SET, Op.SUBSET, Op.IN_SEQ, Op.IN_BAG),
            _bool,
        ),
        **dict.fromkeys((Op.INTERSECT, Op.DIFFERENCE, Op.TAIL, Op.PREFIX, Op.SUFFIX, Op.BAG_REMOVE), _first),
        **dict.fromkeys((Op.GET, Op.SET_MIN, Op.SET_MAX, Op.SEQ_GET, Op.HEAD, Op.LAST), _content),
        **dict.fromkeys((Op.LEN, Op.BAG_COUNT, Op.BAG_CARD), _size),
        Op.NEG: _neg,
        Op.ADD: _add,
        Op.SUB: _sub,
        Op.MUL: _mul,
        Op.DIV: _div,
        Op.MOD: _mod,
        Op.MIN: _min,
        Op.MAX: _max,
        Op.FIELD: _field,
        Op.WITH_FIELD: _with_field,
        Op.SOME: lambda args, _: Option(args[0].type),
        Op.GET_OR: lambda args, _: hull(_item(args[0].type), args[1].type),
        Op.MAP_GET: _map_get,
        Op.MAP_SET: _map_set,
        Op.RANGE: _range,
        Op.UNION: _union,
        Op.CARD: _card,
        Op.SUBSETS: lambda args, _: Set(args[0].type),
        Op.SET_SUM: _set_sum,
        Op.SEQ_SET: _seq_set,
        Op.APPEND: _append,
        Op.CONCAT: _concat,
        Op.SEQ_ITEMS: lambda args, _: Set(_item(args[0].type)),
        Op.BAG_ITEMS: lambda args, _: Set(_item(args[0].type)),
        Op.BAG_ADD: _bag_add,
        Op.BAG_UNION: _bag_union,
    }
)

# literals: the type is part of the node because an empty one does not show it
LITERALS = frozenset({Op.RECORD, Op.VARIANT, Op.MAP, Op.SET, Op.SEQ, Op.BAG})


def result_type(op: Op, args: tuple[Expr, ...], data: int = 0) -> Type:
    """The type of a non-literal operator's result."""
    return _RULES[op](args, data)


def folded(gather: Gather, binders: tuple[tuple[Local, Expr], ...], item: Type) -> Type:
    """The type of the sum or extreme of numbers of type `item`, one for each choice of the binders."""
    assert isinstance(item, Int)
    if gather is not Gather.SUM:
        return item
    times = 1
    for local, _ in binders:
        times *= cardinality(local.type)
    return Int(min(0, item.low) * times, max(0, item.high) * times, item.horizon)


def rules() -> frozenset[Op]:
    """The operators with a rule; with `LITERALS` these are all (a law test holds it)."""
    return frozenset(_RULES)


def payload(kind: Type, tag: int) -> Type:
    """The fields that the variant `tag` of a union or option carries."""
    if isinstance(kind, Union):
        return kind.variants[tag][1]
    return _item(cast(Option, kind)) if tag == 1 else Bool()
