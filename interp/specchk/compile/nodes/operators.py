"""Core nodes from lowered operands: operators, built-in functions, literals, updates.

Nothing here reads trees or scopes.  An overloaded word is decided by the types of its operands, with the
cards of the operators (`ir.ops`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, reduce

from msgspec.structs import replace

from specchk.ir.nodes import And, Apply, Const, Expr, Local, PathStep, Value
from specchk.ir.ops import Op, named
from specchk.ir.totality import is_total
from specchk.ir.types import BOOL, Bag, Map, Record, Seq, Set, Type, Union, hull, of_shape
from specchk.ir.typing import kinds, result_type
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span

Path = Sequence[tuple[PathStep, Span]]
Fresh = Callable[[tree.Bound, Type, Span], Local]  # a local with a slot of its own
Bind = Callable[[tree.Bound, Expr, Span, Callable[[Expr], Expr]], Expr]  # of one name in a body


def in_turn(
    let: Bind, bindings: Sequence[tuple[tree.Bound, Expr, Span]], body: Callable[..., Expr], *values: Expr
) -> Expr:
    """Bind names in a body that takes their values; the first names have `values` already."""
    if len(values) == len(bindings):
        return body(*values)
    # No function of Python between two names, only one of C: a recursion nests as deep as Python allows.
    return let(*bindings[len(values)], partial(in_turn, let, bindings, body, *values))


def conjoined(span: Span, parts: Sequence[Expr]) -> Expr:
    """The conjunction of predicates; true without any, where `And` of nothing has no such value."""
    if len(parts) == 1:
        return parts[0]
    return And(BOOL, span, tuple(parts)) if parts else Const(BOOL, span, True)


def applied(span: Span, op: Op, *args: Expr, data: int = 0) -> Expr:
    """A strict operator application, with its type computed."""
    return Apply(result_type(op, args, data), span, op, args, data)


def of_word(span: Span, word: str, *args: Expr) -> Expr:
    """The application of a keyword operator to these operands."""
    return applied(span, named(word, kinds(args)), *args)


def binary(span: Span, word: str, left: Expr, right: Expr) -> Expr:
    """A binary operator that evaluates both of its sides."""
    match word:
        case ">" | ">=":
            return _flipped(span, word, left, right)
        case "iff":
            return applied(span, Op.EQ, left, right)
    return of_word(span, word, left, right)


def _flipped(span: Span, word: str, left: Expr, right: Expr) -> Expr:
    """`a > b` as `b < a`, still evaluated left to right if the order is observable."""
    if is_total(left) or is_total(right):
        return applied(span, Op.LT if word == ">" else Op.LE, right, left)
    return applied(span, Op.NOT, applied(span, Op.LE if word == ">" else Op.LT, left, right))


def builtin(span: Span, name: str, args: Sequence[Expr]) -> Expr:
    """A built-in function; only `min` and `max` take more than two arguments."""
    if len(args) > 2:
        return reduce(lambda a, b: of_word(span, name, a, b), args)
    return of_word(span, name, *args)


def is_variant(span: Span, operand: Expr, tag: str) -> Expr:
    """`operand is tag`."""
    return applied(span, Op.IS_VARIANT, operand, data=of_shape(operand.type, Union).index(tag))


def as_set(span: Span, items: Expr) -> Expr:
    """The items of a set, sequence or bag, as a set."""
    return items if isinstance(items.type, Set) else of_word(span, "elements", items)


def field(span: Span, base: Expr, name: str) -> Expr:
    """`base.name`."""
    return applied(span, Op.FIELD, base, data=of_shape(base.type, Record).index(name))


def at(span: Span, base: Expr, key: Expr) -> Expr:
    """`base[key]`."""
    return applied(span, Op.MAP_GET if isinstance(base.type, Map) else Op.SEQ_GET, base, key)


def record(span: Span, fields: Mapping[str, Expr]) -> Expr:
    """A record with the given fields."""
    # Fields are evaluated in this order, and not in the text's: of two faults all engines report the same.
    names = sorted(fields)
    kind = Record(tuple((name, fields[name].type) for name in names))
    return Apply(kind, span, Op.RECORD, tuple(fields[name] for name in names))


def tuple_of(span: Span, items: Sequence[Expr]) -> Expr:
    """A tuple with the given parts, evaluated from left to right."""
    return record(span, {str(number): item for number, item in enumerate(items, 1)})


def variant(span: Span, kind: Union, tag: str, fields: Mapping[str, Expr]) -> Expr:
    """A value of a union; its type is narrowed to the given fields."""
    index = kind.index(tag)
    payload = record(span, fields)
    variants = list(kind.variants)
    variants[index] = (tag, of_shape(payload.type, Record))
    return Apply(Union(kind.name, tuple(variants)), span, Op.VARIANT, (payload,), index)


def collection(span: Span, kind: Set | Seq | Bag, args: tuple[Expr, ...]) -> Expr:
    """A set, sequence or bag with the given items; `kind` is the type if it is empty."""
    item = _hull(args, kind.item)
    match kind:
        case Set():
            return Apply(replace(kind, item=item), span, Op.SET, args)
        case Seq():
            return Apply(Seq(item, len(args)), span, Op.SEQ, args)
        case Bag():
            return Apply(Bag(item, len(args)), span, Op.BAG, args)


def total_map(
    node: tree.PairLiteral, kind: Map, keys: Collection[Value], lower: Callable[[tree.Expr], Expr]
) -> Expr:
    """The map of a literal, which must give each of `keys` once; raises `SpecError`."""
    given = {}
    for pair in node.pairs:
        key = lower(pair.key)
        value = key.value if isinstance(key, Const) else None
        if value is None or value in given:
            message = "each key of a map literal is one constant, given once"
            hint = "write `{ k: v for k in T }` to compute the values"
            raise refusal("S309", pair.key.span, message, hint)
        given[value] = lower(pair.value)
    if set(given) != set(keys):
        message = f"a map has a value for every key of its type: {len(given)} of {len(keys)} given"
        raise refusal("S309", node.span, message, "give the others, or write `{ k: v for k in T }`")
    args = tuple(given[key] for key in keys)
    return Apply(Map(kind.key, _hull(args, kind.value)), node.span, Op.MAP, args)


def _hull(args: tuple[Expr, ...], empty: Type) -> Type:
    return reduce(hull, (arg.type for arg in args)) if args else empty
