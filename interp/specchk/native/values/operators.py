"""The strict operators as instructions: operator -> rule, with the page of rules total over `Op` (by a law).

`meaning.rules` defines the operators; here they are only translated, and those in terms of others only where
reading their rules was measured to be slower.  Sets, sequences and bags have rooms of their own (`set_rules`,
`sequence_rules`).
"""

from __future__ import annotations

from types import MappingProxyType

from specchk.ir.nodes import Apply, Expr
from specchk.ir.ops import Op
from specchk.ir.types import Bool, Enum, Map, Option, Record, Sort, Type, Union, hull, of_shape
from specchk.native.machine.asm import I64, Val
from specchk.native.machine.layout import field_offset, width
from specchk.native.values.codes import register
from specchk.native.values.rules import Emitter, Rule, args_of
from specchk.native.values.sequence_rules import SEQUENCE_RULES
from specchk.native.values.set_rules import SET_RULES


def _equal(e: Emitter, expr: Apply) -> Val:
    a, b = expr.args
    # A value has other bits in a type with other bounds, so both sides are converted to one type first.
    common = hull(a.type, b.type)
    return e.asm.cmp("==", e.of_type(a, common), e.of_type(b, common))


def _compare(op: str) -> Rule:
    return lambda e, expr: e.asm.cmp(op, e.value(expr.args[0]), e.value(expr.args[1]))


def _arithmetic(name: str) -> Rule:
    def rule(e: Emitter, expr: Apply) -> Val:
        a, b = args_of(e, expr)
        result: Val = getattr(e.asm, name)(a, b)
        return result

    return rule


def _floor(e: Emitter, expr: Apply, *, modulo: bool) -> Val:
    a, b = args_of(e, expr)
    e.asm.leave_if(e.asm.cmp("==", b, 0), e.undefined)
    # The code has already left if b is 0; the code that follows is unreachable then, but must exist.
    if isinstance(a, int) and isinstance(b, int):
        return 0 if b == 0 else a % b if modulo else a // b
    left, right = e.asm.val(a), e.asm.val(b)
    quotient, rest = e.asm.b.sdiv(left, right), e.asm.b.srem(left, right)
    # LLVM rounds to zero, and specs round down: one less if signs differ and there is a remainder.
    crooked = e.asm.both(e.asm.cmp("!=", rest, 0), e.asm.cmp("<", e.asm.b.xor(rest, right), 0))
    if modulo:
        return e.asm.select(crooked, e.asm.add(rest, right), rest)
    return e.asm.select(crooked, e.asm.sub(quotient, 1), quotient)


def _record(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Record)
    return e.codes.joined(
        kind, [e.of_type(a, item) for a, (_, item) in zip(expr.args, kind.fields, strict=True)]
    )


def _field(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.args[0].type, Record)
    return e.codes.field(kind, e.value(expr.args[0]), expr.data)


def _with_field(e: Emitter, expr: Apply) -> Val:
    kind, (base, value) = of_shape(expr.type, Record), expr.args
    old, item = e.of_type(base, kind), kind.fields[expr.data][1]
    code = e.codes.code(item, e.of_type(value, item))
    return e.asm.with_bits(old, field_offset(kind, expr.data), width(item), code, register(kind))


def _variant(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Union)
    return e.codes.variant(kind, expr.data, e.of_type(expr.args[0], kind.variants[expr.data][1]))


def _is_variant(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.args[0].type, Union)
    return e.asm.cmp("==", e.codes.tag(kind, e.value(expr.args[0])), expr.data)


def _some(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Option)
    return e.codes.some(kind, e.of_type(expr.args[0], kind.item))


def _get(e: Emitter, expr: Apply) -> Val:
    kind, option = of_shape(expr.args[0].type, Option), e.value(expr.args[0])
    e.asm.leave_if(e.asm.negate(e.codes.is_some(kind, option)), e.undefined)
    return e.codes.unwrapped(kind, option)


def _map(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.type, Map)
    return e.codes.joined(kind, (e.of_type(arg, kind.value) for arg in expr.args))


def key_position(e: Emitter, wanted: Type, key: Expr) -> Val:
    """The position of a key among a map's keys; leaves for `undefined` if it is not one of them."""
    value, given = e.value(key), key.type
    # These have no bounds that a key could exceed, and their codes are their positions.
    if isinstance(wanted, Bool | Enum | Sort):
        return e.asm.resize(value, I64)
    inside = e.codes.within(value, given, wanted)
    e.asm.leave_if(e.asm.negate(inside), e.undefined)
    # No key of this type is one of the map's: there is nothing to convert, and the code has already left.
    if inside is False:
        return 0
    return e.codes.rank(wanted, e.codes.convert(value, given, wanted))


def _map_get(e: Emitter, expr: Apply) -> Val:
    kind = of_shape(expr.args[0].type, Map)
    whole = e.value(expr.args[0])
    offset = e.codes.key_offset(kind, key_position(e, kind.key, expr.args[1]))
    return e.codes.part(kind.value, whole, offset, register(kind))


def _map_set(e: Emitter, expr: Apply) -> Val:
    kind, (base, key, value) = of_shape(expr.type, Map), expr.args
    old, at = e.of_type(base, kind), key_position(e, kind.key, key)
    code = e.codes.code(kind.value, e.of_type(value, kind.value))
    return e.asm.with_bits(old, e.codes.key_offset(kind, at), width(kind.value), code, register(kind))


RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.EQ: _equal, Op.LT: _compare("<"), Op.LE: _compare("<="),
        Op.NOT: lambda e, x: e.asm.negate(e.value(x.args[0])),
        Op.ADD: _arithmetic("add"), Op.SUB: _arithmetic("sub"), Op.MUL: _arithmetic("mul"),
        Op.DIV: lambda e, x: _floor(e, x, modulo=False), Op.MOD: lambda e, x: _floor(e, x, modulo=True),
        Op.RECORD: _record, Op.FIELD: _field, Op.WITH_FIELD: _with_field,
        Op.VARIANT: _variant, Op.IS_VARIANT: _is_variant, Op.SOME: _some, Op.GET: _get,
        Op.MAP: _map, Op.MAP_GET: _map_get, Op.MAP_SET: _map_set,
        **SET_RULES, **SEQUENCE_RULES,
    }
)  # fmt: skip
