"""The operators on sequences and bags as instructions: slots above a length.

Slots beyond the length are 0 in every code, so cutting, shifting and joining keep codes canonical.
"""

from __future__ import annotations

from types import MappingProxyType

from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.types import Bag, Seq, Set, hull, of_shape
from specchk.native.machine.asm import Val
from specchk.native.machine.layout import length_bits, mask, width
from specchk.native.values.codes import register
from specchk.native.values.rules import Emitter, Rule, args_of


def _seq(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Seq)
    out: Val = len(expr.args)
    for index, arg in enumerate(expr.args):
        item = e.of_type(arg, kind.item)
        out = e.asm.bor(
            out, e.codes.placed(kind.item, item, e.codes.slot_offset(kind, index), register(kind))
        )
    return out


def _seq_get(e: Emitter, expr: Apply) -> Val:
    kind, (items, index) = of_shape(expr.args[0].type, Seq), args_of(e, expr)
    check_index(e, kind, items, index)
    # The check has already left; but code follows it, and a slot that the type lacks has no place.
    if isinstance(index, int) and not 0 <= index < kind.limit:
        return 0
    return e.codes.slot(kind, items, index) if kind.limit else 0


def check_index(e: Emitter, kind: Seq, items: Val, index: Val) -> None:
    """Leave for `undefined` unless an index is inside a sequence."""
    inside = e.asm.both(e.asm.cmp("<=", 0, index), e.asm.cmp("<", index, e.codes.length(kind, items)))
    e.asm.leave_if(e.asm.negate(inside), e.undefined)


def _seq_set(e: Emitter, expr: Apply) -> Val:
    base, index, value = expr.args
    kind, wanted = of_shape(base.type, Seq), of_shape(expr.type, Seq)
    items, at = e.value(base), e.value(index)
    check_index(e, kind, items, at)
    code = e.codes.code(wanted.item, e.of_type(value, wanted.item))
    # As for `SEQ_GET`: never reached, and there is no such slot.
    if not kind.limit or (isinstance(at, int) and not 0 <= at < kind.limit):
        return 0
    old = e.codes.convert(items, kind, wanted)
    return e.asm.with_bits(old, e.codes.slot_offset(wanted, at), width(wanted.item), code, register(wanted))


def _length(e: Emitter, expr: Apply) -> Val:
    kind = expr.args[0].type
    assert isinstance(kind, Seq | Bag)
    return e.codes.length(kind, e.value(expr.args[0]))


def _cut(*, prefix: bool) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        kind, (items, size) = of_shape(expr.args[0].type, Seq), args_of(e, expr)
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
    # The slots from `size` on are the lowest bits: they are shifted out, and zeros are shifted in.
    cut = e.asm.mul(e.asm.sub(kind.limit, size), width(kind.item))
    slots = e.asm.val(e.asm.shr(items, length_bits(kind)), shape)
    kept = e.asm.shl(e.asm.shr(slots, cut), cut, shape)
    return e.asm.bor(e.asm.shl(kept, length_bits(kind), shape), e.asm.resize(size, shape))


def _without_first(e: Emitter, kind: Seq, items: Val, size: Val) -> Val:
    shape = register(kind)
    moved = e.asm.shl(_slots(e, kind, items), e.asm.mul(size, width(kind.item)), shape)
    kept = e.asm.band(moved, mask(width(kind)))
    return e.asm.bor(kept, e.asm.resize(e.asm.sub(e.codes.length(kind, items), size), shape))


def _concat(e: Emitter, expr: Apply) -> Val:
    kind, (left, right) = of_shape(expr.type, Seq), expr.args
    a, b = e.of_type(left, kind), e.of_type(right, kind)
    if not kind.limit:
        return 0
    by = e.asm.mul(e.codes.length(kind, a), width(kind.item))
    # A constant has no register, and a shift by a computed number needs one.
    if not isinstance(by, int) and isinstance(b, int):
        b = e.asm.val(b, register(kind))
    moved = e.asm.shr(_slots(e, kind, b), by)
    moved = e.asm.band(moved, mask(register(kind).width) & ~mask(length_bits(kind)))
    return e.asm.add(e.asm.bor(a, moved), e.asm.resize(e.codes.length(kind, b), register(kind)))


def _contains(e: Emitter, expr: Apply) -> Val:
    (item, items), kind = expr.args, expr.args[1].type
    assert isinstance(kind, Seq | Bag)
    common = type(kind)(hull(kind.item, item.type), kind.limit)
    wanted = e.of_type(item, common.item)
    return e.domains.contains(common, e.of_type(items, common), wanted)


def _bag_count(e: Emitter, expr: Apply) -> Val:
    (items, item), kind = expr.args, of_shape(expr.args[0].type, Bag)
    common = Bag(hull(kind.item, item.type), kind.limit)
    return e.domains.count(common, e.of_type(items, common), e.of_type(item, common.item))


def _items(e: Emitter, expr: Apply) -> Val:
    kind = expr.args[0].type
    assert isinstance(kind, Seq | Bag)
    return e.domains.mask_of(kind, e.value(expr.args[0]), of_shape(expr.type, Set))


def _bag(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Bag)
    out: Val = 0
    for arg in expr.args:
        out = e.domains.added(kind, e.asm.val(out, register(kind)), e.of_type(arg, kind.item))
    return out


def _bag_add(e: Emitter, expr: Apply) -> Val:
    kind, (base, value) = of_shape(expr.type, Bag), expr.args
    bag, item = e.asm.val(e.of_type(base, kind), register(kind)), e.of_type(value, kind.item)
    return e.domains.added(kind, bag, item)


def _bag_remove(e: Emitter, expr: Apply) -> Val:
    (base, item), kind = expr.args, of_shape(expr.args[0].type, Bag)
    bag, value = e.asm.val(e.value(base), register(kind)), e.value(item)
    present = e.codes.within(value, item.type, kind.item)
    e.asm.leave_if(e.asm.negate(present), e.undefined)
    wanted = e.codes.convert(value, item.type, kind.item)
    e.asm.leave_if(e.asm.negate(e.domains.contains(kind, bag, wanted)), e.undefined)
    return e.domains.removed(kind, bag, wanted) if kind.limit else 0


def _bag_union(e: Emitter, expr: Apply) -> Val:
    left, right = expr.args
    kind, other = of_shape(expr.type, Bag), of_shape(right.type, Bag)
    out, more = e.asm.val(e.of_type(left, kind), register(kind)), e.value(right)
    size = e.codes.length(other, more)
    for index in range(other.limit):
        item = e.codes.convert(e.codes.slot(other, more, index), other.item, kind.item)
        grown = e.domains.added(kind, out, item)
        # Added to a copy in any case: a branch for each slot would cost more than the addition.
        out = e.asm.val(e.asm.select(e.asm.cmp("<", index, size), grown, out, register(kind)), register(kind))
    return out


SEQUENCE_RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.SEQ: _seq, Op.SEQ_GET: _seq_get, Op.SEQ_SET: _seq_set, Op.LEN: _length,
        Op.CONCAT: _concat, Op.PREFIX: _cut(prefix=True), Op.SUFFIX: _cut(prefix=False),
        Op.IN_SEQ: _contains, Op.SEQ_ITEMS: _items, Op.BAG: _bag, Op.BAG_ADD: _bag_add,
        Op.BAG_REMOVE: _bag_remove, Op.BAG_COUNT: _bag_count, Op.BAG_UNION: _bag_union,
        Op.IN_BAG: _contains, Op.BAG_CARD: _length, Op.BAG_ITEMS: _items,
    }
)  # fmt: skip
