"""The strict operators as instructions: operator -> rule, total over `Op` (a law test holds it).

A rule gets the application and builds its value; it asks for its arguments' values itself, left to
right, so that `x in lo..hi` and the like never build the set.  What an operator means is said in
`core.operators`; here is only how.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Protocol

from llvmlite import ir

from specchk.core.values import universe
from specchk.ir.nodes import Apply, Expr, Op
from specchk.ir.types import Bag, Bool, Enum, Int, Map, Option, Record, Seq, Set, Sort, Type, Union, hull
from specchk.native.asm import I64, Asm, Val
from specchk.native.codes import Codes, register
from specchk.native.domains import Domains
from specchk.native.layout import Unsupported, encode, length_bits, mask, set_size, width


class Emitter(Protocol):
    """What rules need of the expression emitter."""

    asm: Asm
    codes: Codes
    domains: Domains
    undefined: ir.Block

    def value(self, expr: Expr) -> Val:
        """The held value of an expression, of its own type."""

    def of_type(self, expr: Expr, kind: Type) -> Val:
        """The held value of an expression as one of a wider type."""


Rule = Callable[[Emitter, Apply], Val]


def _args(e: Emitter, expr: Apply) -> list[Val]:
    return [e.value(arg) for arg in expr.args]


def _equal(e: Emitter, expr: Apply) -> Val:
    a, b = expr.args
    common = hull(a.type, b.type)
    return e.asm.cmp("==", e.of_type(a, common), e.of_type(b, common))


def _unequal(e: Emitter, expr: Apply) -> Val:
    return e.asm.negate(_equal(e, expr))


def _compare(op: str) -> Rule:
    return lambda e, expr: e.asm.cmp(op, e.value(expr.args[0]), e.value(expr.args[1]))


def _arithmetic(name: str) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        assert isinstance(expr.type, Int)
        if not -(1 << 62) < expr.type.low <= expr.type.high < 1 << 62:
            raise Unsupported("numbers of more than 62 bits")
        a, b = _args(e, expr)
        found: Val = getattr(e.asm, name)(a, b)
        return found

    return rule


def _floor(e: Emitter, expr: Apply, *, modulo: bool) -> Val:
    a, b = _args(e, expr)
    e.asm.leave_if(e.asm.cmp("==", b, 0), e.undefined)
    if isinstance(a, int) and isinstance(b, int):
        return 0 if b == 0 else a % b if modulo else a // b
    left, right = e.asm.val(a), e.asm.val(b)
    quotient, rest = e.asm.b.sdiv(left, right), e.asm.b.srem(left, right)
    crooked = e.asm.both(e.asm.cmp("!=", rest, 0), e.asm.cmp("<", e.asm.b.xor(rest, right), 0))
    if modulo:
        return e.asm.select(crooked, e.asm.add(rest, right), rest)
    return e.asm.select(crooked, e.asm.sub(quotient, 1), quotient)


def _record(e: Emitter, expr: Apply) -> Val:
    kind = expr.type
    assert isinstance(kind, Record)
    return e.codes.record(kind, [e.of_type(a, item) for a, (_, item) in zip(expr.args, kind.fields, strict=True)])


def _field(e: Emitter, expr: Apply) -> Val:
    kind = expr.args[0].type
    assert isinstance(kind, Record)
    return e.codes.field(kind, e.value(expr.args[0]), expr.data)


def _with_field(e: Emitter, expr: Apply) -> Val:
    kind, (base, value) = expr.type, expr.args
    assert isinstance(kind, Record)
    old, item = e.of_type(base, kind), kind.fields[expr.data][1]
    code = e.codes.code(item, e.of_type(value, item))
    offset = sum(width(part) for _, part in kind.fields[expr.data + 1 :])
    return e.asm.with_bits(old, offset, width(item), code, register(kind))


def _variant(e: Emitter, expr: Apply) -> Val:
    kind = expr.type
    assert isinstance(kind, Union)
    return e.codes.variant(kind, expr.data, e.of_type(expr.args[0], kind.variants[expr.data][1]))


def _is_variant(e: Emitter, expr: Apply) -> Val:
    kind = expr.args[0].type
    assert isinstance(kind, Union)
    return e.asm.cmp("==", e.codes.tag(kind, e.value(expr.args[0])), expr.data)


def _some(e: Emitter, expr: Apply) -> Val:
    assert isinstance(expr.type, Option)
    return e.codes.some(expr.type, e.of_type(expr.args[0], expr.type.item))


def _get(e: Emitter, expr: Apply) -> Val:
    kind, option = expr.args[0].type, e.value(expr.args[0])
    assert isinstance(kind, Option)
    e.asm.leave_if(e.asm.negate(e.codes.is_some(kind, option)), e.undefined)
    return e.codes.unwrapped(kind, option)


def _get_or(e: Emitter, expr: Apply) -> Val:
    kind, (option, default) = expr.args[0].type, _args(e, expr)
    assert isinstance(kind, Option)
    item = e.codes.convert(e.codes.unwrapped(kind, option), kind.item, expr.type)
    other = e.codes.convert(default, expr.args[1].type, expr.type)
    return e.asm.select(e.codes.is_some(kind, option), item, other, register(expr.type))


def _map(e: Emitter, expr: Apply) -> Val:
    kind = expr.type
    assert isinstance(kind, Map)
    out: Val = 0
    for position, arg in enumerate(expr.args):
        item = e.of_type(arg, kind.value)
        out = e.asm.bor(out, e.codes.placed(kind.value, item, e.codes.key_offset(kind, position), register(kind)))
    return out


def key_position(e: Emitter, wanted: Type, key: Expr) -> Val:
    """The position of a key among a map's; leaves for `undefined` where it is no key."""
    value, found = e.value(key), key.type
    if isinstance(wanted, Bool | Enum | Sort):
        return e.asm.resize(value, I64)
    inside = e.codes.within(value, found, wanted)
    e.asm.leave_if(e.asm.negate(inside), e.undefined)
    if inside is False:
        return 0
    return e.codes.rank(wanted, e.codes.convert(value, found, wanted))


def _map_get(e: Emitter, expr: Apply) -> Val:
    kind = expr.args[0].type
    assert isinstance(kind, Map)
    whole = e.value(expr.args[0])
    return e.codes.part(kind.value, whole, e.codes.key_offset(kind, key_position(e, kind.key, expr.args[1])))


def _map_set(e: Emitter, expr: Apply) -> Val:
    kind, (base, key, value) = expr.type, expr.args
    assert isinstance(kind, Map)
    old, at = e.of_type(base, kind), key_position(e, kind.key, key)
    code = e.codes.code(kind.value, e.of_type(value, kind.value))
    return e.asm.with_bits(old, e.codes.key_offset(kind, at), width(kind.value), code, register(kind))


def _set(e: Emitter, expr: Apply) -> Val:
    kind = expr.type
    assert isinstance(kind, Set)
    out: Val = 0
    for arg in expr.args:
        out = e.asm.bor(out, singleton(e, kind, e.of_type(arg, kind.item)))
    return out


def singleton(e: Emitter, kind: Set, item: Val) -> Val:
    """The set of one item."""
    set_size(kind)
    shape = register(kind)
    return e.asm.shl(1, e.asm.resize(e.codes.rank(kind.item, item), shape), shape)


def _range(e: Emitter, expr: Apply) -> Val:
    kind = expr.type
    assert isinstance(kind, Set)
    assert isinstance(kind.item, Int)
    low, high = _args(e, expr)
    shape, full = register(kind), mask(set_size(kind))
    if isinstance(low, int) and isinstance(high, int):
        return sum(1 << n - kind.item.low for n in range(low, high + 1))
    above = e.asm.shl(full, e.asm.resize(e.asm.sub(low, kind.item.low), shape), shape)
    below = e.asm.shr(full, e.asm.resize(e.asm.sub(kind.item.high, high), shape), shape)
    return e.asm.select(e.asm.cmp("<=", low, high), e.asm.band(above, below), 0, shape)


def _in_set(e: Emitter, expr: Apply) -> Val:
    item, domain = expr.args
    if isinstance(domain, Apply) and domain.op is Op.RANGE:
        value, low, high = e.value(item), *(e.value(arg) for arg in domain.args)
        return e.asm.both(e.asm.cmp("<=", low, value), e.asm.cmp("<=", value, high))
    if isinstance(domain, Apply) and domain.op is Op.SUBSETS:
        common = hull(item.type, domain.args[0].type)
        inner, outer = e.of_type(item, common), e.of_type(domain.args[0], common)
        return _subset_of(e, common, inner, outer)
    value, members, kind = e.value(item), e.value(domain), domain.type
    assert isinstance(kind, Set)
    set_size(kind)
    fitting = e.codes.within(value, item.type, kind.item)
    if fitting is False:
        return False
    rank = e.codes.rank(kind.item, e.codes.convert(value, item.type, kind.item))
    if not isinstance(fitting, int):
        rank = e.asm.select(fitting, rank, 0)
    hit = e.asm.cmp("!=", e.asm.bits(_code(e, members, kind, rank), rank, 1), 0)
    return e.asm.both(fitting, hit)


def _code(e: Emitter, members: Val, kind: Type, rank: Val) -> Val:
    """A set as an operand where the rank is only known at run time."""
    return members if isinstance(rank, int) else e.asm.val(members, register(kind))


def _subset_of(e: Emitter, kind: Type, inner: Val, outer: Val) -> Val:
    missing = e.asm.band(inner, e.asm.xor(outer, mask(register(kind).width)))
    return e.asm.cmp("==", missing, 0)


def _subset(e: Emitter, expr: Apply) -> Val:
    common = hull(expr.args[0].type, expr.args[1].type)
    inner, outer = (e.of_type(arg, common) for arg in expr.args)
    return _subset_of(e, common, inner, outer)


def _set_algebra(combine: Callable[[Emitter, Val, Val, int], Val]) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        common = hull(expr.args[0].type, expr.args[1].type)
        assert isinstance(common, Set)
        set_size(common)
        a, b = (e.of_type(arg, common) for arg in expr.args)
        return e.codes.convert(combine(e, a, b, mask(register(common).width)), common, expr.type)

    return rule


def _card(e: Emitter, expr: Apply) -> Val:
    value = e.value(expr.args[0])
    if isinstance(value, int):
        return value.bit_count()
    return e.asm.resize(e.asm.intrinsic("ctpop", value), I64)


def _subsets(e: Emitter, expr: Apply) -> Val:
    inner = expr.args[0].type
    kind = Set(inner)
    set_size(kind)
    outside = e.asm.xor(e.value(expr.args[0]), mask(register(inner).width))
    out: Val = 0
    for rank, item in enumerate(sorted(universe(inner))):
        fits_in = e.asm.cmp("==", e.asm.band(outside, encode(inner, item)), 0)
        out = e.asm.bor(out, e.asm.select(fits_in, 1 << rank, 0, register(kind)))
    return out


def _extreme(*, least: bool) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        kind, members = expr.args[0].type, e.value(expr.args[0])
        assert isinstance(kind, Set)
        assert isinstance(kind.item, Int)
        e.asm.leave_if(e.asm.cmp("==", members, 0), e.undefined)
        if isinstance(members, int):
            found = (members & -members).bit_length() if least else members.bit_length()
            return max(0, found - 1) + kind.item.low
        name = "cttz" if least else "ctlz"
        rank = e.asm.resize(e.asm.intrinsic(name, members), I64)
        return e.asm.add(rank if least else e.asm.sub(register(kind).width - 1, rank), kind.item.low)

    return rule


def _set_sum(e: Emitter, expr: Apply) -> Val:
    kind, members = expr.args[0].type, e.value(expr.args[0])
    assert isinstance(kind, Set)
    assert isinstance(kind.item, Int)
    total: Val = 0
    for rank in range(set_size(kind)):
        bit = e.asm.resize(e.asm.bits(members, rank, 1), I64)
        total = e.asm.add(total, e.asm.mul(bit, kind.item.low + rank))
    return total


# ---------------------------------------------------------------- sequences


def _seq(e: Emitter, expr: Apply) -> Val:
    kind = expr.type
    assert isinstance(kind, Seq)
    out: Val = len(expr.args)
    for index, arg in enumerate(expr.args):
        item = e.of_type(arg, kind.item)
        out = e.asm.bor(out, e.codes.placed(kind.item, item, e.codes.slot_offset(kind, index), register(kind)))
    return out


def _seq_get(e: Emitter, expr: Apply) -> Val:
    kind, (items, index) = expr.args[0].type, _args(e, expr)
    assert isinstance(kind, Seq)
    check_index(e, kind, items, index)
    if isinstance(index, int) and not 0 <= index < kind.limit:
        return 0
    return e.codes.slot(kind, items, index) if kind.limit else 0


def check_index(e: Emitter, kind: Seq, items: Val, index: Val) -> None:
    """Leave for `undefined` unless an index is inside a sequence."""
    inside = e.asm.both(e.asm.cmp("<=", 0, index), e.asm.cmp("<", index, e.codes.length(kind, items)))
    e.asm.leave_if(e.asm.negate(inside), e.undefined)


def _seq_set(e: Emitter, expr: Apply) -> Val:
    kind, (base, index, value) = expr.args[0].type, expr.args
    wanted = expr.type
    assert isinstance(kind, Seq)
    assert isinstance(wanted, Seq)
    items, at = e.value(base), e.value(index)
    check_index(e, kind, items, at)
    code = e.codes.code(wanted.item, e.of_type(value, wanted.item))
    if not kind.limit or (isinstance(at, int) and not 0 <= at < kind.limit):
        return 0
    old = e.codes.convert(items, kind, wanted)
    return e.asm.with_bits(old, e.codes.slot_offset(wanted, at), width(wanted.item), code, register(wanted))


def _length(e: Emitter, expr: Apply) -> Val:
    kind = expr.args[0].type
    assert isinstance(kind, Seq | Bag)
    return e.codes.length(kind, e.value(expr.args[0]))


def _end(*, head: bool) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        kind, items = expr.args[0].type, e.value(expr.args[0])
        assert isinstance(kind, Seq)
        size = e.codes.length(kind, items)
        e.asm.leave_if(e.asm.cmp("==", size, 0), e.undefined)
        if not kind.limit:
            return 0
        return e.codes.slot(kind, items, 0 if head else e.asm.sub(e.asm.max(size, 1), 1))

    return rule


def _tail(e: Emitter, expr: Apply) -> Val:
    kind, items = expr.args[0].type, e.value(expr.args[0])
    assert isinstance(kind, Seq)
    e.asm.leave_if(e.asm.cmp("==", e.codes.length(kind, items), 0), e.undefined)
    return _without_first(e, kind, items, 1) if kind.limit else 0


def _cut(*, prefix: bool) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        kind, (items, size) = expr.args[0].type, _args(e, expr)
        assert isinstance(kind, Seq)
        inside = e.asm.both(e.asm.cmp("<=", 0, size), e.asm.cmp("<=", size, e.codes.length(kind, items)))
        e.asm.leave_if(e.asm.negate(inside), e.undefined)
        if not kind.limit or (isinstance(size, int) and not 0 <= size <= kind.limit):
            return 0
        return _first(e, kind, items, size) if prefix else _without_first(e, kind, items, size)

    return rule


def _slots(e: Emitter, kind: Seq, items: Val) -> Val:
    below = mask(length_bits(kind))
    return e.asm.band(items, mask(register(kind).width) & ~below)


def _first(e: Emitter, kind: Seq, items: Val, size: Val) -> Val:
    shape = register(kind)
    cut = e.asm.mul(e.asm.sub(kind.limit, size), width(kind.item))
    slots = e.asm.val(e.asm.shr(items, length_bits(kind)), shape)
    kept = e.asm.shl(e.asm.shr(slots, cut), cut, shape)
    return e.asm.bor(e.asm.shl(kept, length_bits(kind), shape), e.asm.resize(size, shape))


def _without_first(e: Emitter, kind: Seq, items: Val, size: Val) -> Val:
    shape = register(kind)
    moved = e.asm.shl(_slots(e, kind, items), e.asm.mul(size, width(kind.item)), shape)
    kept = e.asm.band(moved, mask(width(kind)))
    return e.asm.bor(kept, e.asm.resize(e.asm.sub(e.codes.length(kind, items), size), shape))


def _append(e: Emitter, expr: Apply) -> Val:
    kind, (base, value) = expr.type, expr.args
    assert isinstance(kind, Seq)
    items, item = e.of_type(base, kind), e.of_type(value, kind.item)
    size = e.codes.length(kind, items)
    placed = e.codes.placed(kind.item, item, e.codes.slot_offset(kind, size), register(kind))
    return e.asm.bor(e.asm.add(items, 1), placed)


def _concat(e: Emitter, expr: Apply) -> Val:
    kind, (left, right) = expr.type, expr.args
    assert isinstance(kind, Seq)
    a, b = e.of_type(left, kind), e.of_type(right, kind)
    if not kind.limit:
        return 0
    by = e.asm.mul(e.codes.length(kind, a), width(kind.item))
    if not isinstance(by, int) and isinstance(b, int):
        b = e.asm.val(b, register(kind))
    moved = e.asm.shr(_slots(e, kind, b), by)
    moved = e.asm.band(moved, mask(register(kind).width) & ~mask(length_bits(kind)))
    return e.asm.add(e.asm.bor(a, moved), e.asm.resize(e.codes.length(kind, b), register(kind)))


def _contains(e: Emitter, expr: Apply) -> Val:
    (item, items), kind = expr.args, expr.args[1].type
    assert isinstance(kind, Seq | Bag)
    return _searched(e, item, items, kind, e.domains.contains)


def _bag_count(e: Emitter, expr: Apply) -> Val:
    (items, item), kind = expr.args, expr.args[0].type
    assert isinstance(kind, Bag)
    common = Bag(hull(kind.item, item.type), kind.limit)
    return e.domains.count(common, e.of_type(items, common), e.of_type(item, common.item))


def _searched(e: Emitter, item: Expr, items: Expr, kind: Seq | Bag, test: Callable[..., Val]) -> Val:
    common = type(kind)(hull(kind.item, item.type), kind.limit)
    wanted = e.of_type(item, common.item)
    return test(common, e.of_type(items, common), wanted)


def _items(e: Emitter, expr: Apply) -> Val:
    kind, wanted = expr.args[0].type, expr.type
    assert isinstance(kind, Seq | Bag)
    assert isinstance(wanted, Set)
    set_size(wanted)
    return e.domains.mask_of(kind, e.value(expr.args[0]), wanted)


# ---------------------------------------------------------------- bags


def _bag(e: Emitter, expr: Apply) -> Val:
    kind = expr.type
    assert isinstance(kind, Bag)
    out: Val = 0
    for arg in expr.args:
        out = e.domains.added(kind, e.asm.val(out, register(kind)), e.of_type(arg, kind.item))
    return out


def _bag_add(e: Emitter, expr: Apply) -> Val:
    kind, (base, value) = expr.type, expr.args
    assert isinstance(kind, Bag)
    bag, item = e.asm.val(e.of_type(base, kind), register(kind)), e.of_type(value, kind.item)
    return e.domains.added(kind, bag, item)


def _bag_remove(e: Emitter, expr: Apply) -> Val:
    (base, item), kind = expr.args, expr.args[0].type
    assert isinstance(kind, Bag)
    bag, value = e.asm.val(e.value(base), register(kind)), e.value(item)
    present = e.codes.within(value, item.type, kind.item)
    e.asm.leave_if(e.asm.negate(present), e.undefined)
    wanted = e.codes.convert(value, item.type, kind.item)
    e.asm.leave_if(e.asm.negate(e.domains.contains(kind, bag, wanted)), e.undefined)
    return e.domains.removed(kind, bag, wanted) if kind.limit else 0


def _bag_union(e: Emitter, expr: Apply) -> Val:
    kind, (left, right) = expr.type, expr.args
    other = right.type
    assert isinstance(kind, Bag)
    assert isinstance(other, Bag)
    out, more = e.asm.val(e.of_type(left, kind), register(kind)), e.value(right)
    size = e.codes.length(other, more)
    for index in range(other.limit):
        item = e.codes.convert(e.codes.slot(other, more, index), other.item, kind.item)
        grown = e.domains.added(kind, out, item)
        out = e.asm.val(e.asm.select(e.asm.cmp("<", index, size), grown, out, register(kind)), register(kind))
    return out


def _negative(e: Emitter, expr: Apply) -> Val:
    return e.asm.sub(0, e.value(expr.args[0]))


def _same_width_not(e: Emitter, a: Val, b: Val, full: int) -> Val:
    return e.asm.band(a, e.asm.xor(b, full))


# what these give is a part of an argument, or an argument's type with other content
PARTS = frozenset(
    {Op.FIELD, Op.GET, Op.MAP_GET, Op.SEQ_GET, Op.HEAD, Op.LAST, Op.TAIL, Op.PREFIX, Op.SUFFIX, Op.BAG_REMOVE, Op.SUBSETS}
)  # fmt: skip

RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.EQ: _equal, Op.NE: _unequal, Op.LT: _compare("<"), Op.LE: _compare("<="),
        Op.NOT: lambda e, x: e.asm.negate(e.value(x.args[0])), Op.NEG: _negative,
        Op.ADD: _arithmetic("add"), Op.SUB: _arithmetic("sub"), Op.MUL: _arithmetic("mul"),
        Op.DIV: lambda e, x: _floor(e, x, modulo=False), Op.MOD: lambda e, x: _floor(e, x, modulo=True),
        Op.MIN: _arithmetic("min"), Op.MAX: _arithmetic("max"),
        Op.RECORD: _record, Op.FIELD: _field, Op.WITH_FIELD: _with_field,
        Op.VARIANT: _variant, Op.IS_VARIANT: _is_variant, Op.SOME: _some, Op.GET: _get, Op.GET_OR: _get_or,
        Op.MAP: _map, Op.MAP_GET: _map_get, Op.MAP_SET: _map_set,
        Op.SET: _set, Op.RANGE: _range, Op.IN_SET: _in_set, Op.SUBSET: _subset,
        Op.UNION: _set_algebra(lambda e, a, b, _: e.asm.bor(a, b)),
        Op.INTERSECT: _set_algebra(lambda e, a, b, _: e.asm.band(a, b)),
        Op.DIFFERENCE: _set_algebra(_same_width_not), Op.CARD: _card, Op.SUBSETS: _subsets,
        Op.SET_MIN: _extreme(least=True), Op.SET_MAX: _extreme(least=False), Op.SET_SUM: _set_sum,
        Op.SEQ: _seq, Op.SEQ_GET: _seq_get, Op.SEQ_SET: _seq_set, Op.LEN: _length,
        Op.HEAD: _end(head=True), Op.LAST: _end(head=False), Op.TAIL: _tail,
        Op.APPEND: _append, Op.CONCAT: _concat, Op.PREFIX: _cut(prefix=True), Op.SUFFIX: _cut(prefix=False),
        Op.IN_SEQ: _contains, Op.SEQ_ITEMS: _items, Op.BAG: _bag, Op.BAG_ADD: _bag_add,
        Op.BAG_REMOVE: _bag_remove, Op.BAG_COUNT: _bag_count, Op.BAG_UNION: _bag_union,
        Op.IN_BAG: _contains, Op.BAG_CARD: _length, Op.BAG_ITEMS: _items,
    }
)  # fmt: skip
