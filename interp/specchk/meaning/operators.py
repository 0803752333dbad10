"""THE meaning of the strict operators: operator -> rule, total over `Op` (checked by a test of the laws).

A rule gets the expression (for its type, `data` and span) and its arguments' functions, and gives
the expression's function.  Arguments are evaluated left to right.  What an operator means beyond Python's
own is on the page of rules (`meaning.rules`), which is called.  Where Python has the operator, the rule is a
text instead (`TextRule`), from which its function is made, and that of an expression around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from specchk.ir.nodes import Apply
from specchk.ir.ops import Op, never
from specchk.ir.types import Int, Map, Type, fits, of_shape
from specchk.ir.types import show as show_type
from specchk.lang.text.source import Span
from specchk.meaning import rules
from specchk.meaning.texts.joined import Fn, RuleText, applied, called, filled, function_of, named
from specchk.meaning.texts.places import is_position
from specchk.meaning.undefined import Undefined, fault
from specchk.meaning.values import positions

Rule = Callable[[Apply, list[Fn]], Fn]


def replaced(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    """The items with the one at an index replaced."""
    # Half of the time of `(*items[:index], item, *items[index + 1 :])`.
    changed = list(items)
    changed[index] = item
    return tuple(changed)


class TextRule(Struct, frozen=True):
    """A rule that produces text: the expression's, from the texts of its arguments."""

    text: Callable[[Apply, Sequence[RuleText]], RuleText]

    def __call__(self, expr: Apply, args: list[Fn]) -> Fn:
        """The function of the expression, built from the functions of its arguments."""
        return function_of(self.text(expr, [called(arg) for arg in args]))


def _code(code: str) -> TextRule:
    """The rule of an operator that Python has; `DATA` in the code is the expression's `data`."""
    return TextRule(lambda expr, parts: filled(code.replace("DATA", str(expr.data)), parts))


def _called(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule as a function of the expression's span, for its faults, and of the arguments' values."""

    def value(span: Span, *values: Any) -> Any:
        try:
            return rule(*values)
        except rules.NoValue as nothing:
            raise Undefined(span, str(nothing)) from None

    return value


def _by_rule(op: Op, rule: Callable[..., Any]) -> TextRule:
    if op.card.partial is never:
        return TextRule(lambda expr, parts: applied(rule, parts))
    value = _called(rule)
    return TextRule(lambda expr, parts: applied(value, [RuleText("{}", (expr.span,)), *parts]))


def _chosen(code: str) -> TextRule:
    return TextRule(lambda expr, parts: named(code, parts))


def _tuple(_: Apply, parts: Sequence[RuleText]) -> RuleText:
    return filled(f"({'{}, ' * len(parts)})", parts)


def _map_get(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    of, key = parts
    return filled("{}[{}]", (of, _key_position(expr, key)))


def _map_set(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    of, key, value = parts
    return applied(replaced, (of, _key_position(expr, key), value))


def _with_field(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    of, value = parts
    return applied(replaced, (of, RuleText(str(expr.data)), value))


def _set(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    items = _tuple(expr, parts)
    return items if len(parts) < 2 else applied(rules.distinct, [items])


def _get(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    missing = RuleText("{}", (fault(expr.span, "`get` of none"),))
    return named("(x[0] if (x := {}) else {}())", [*parts, missing])


def _key_position(expr: Apply, key: RuleText) -> RuleText:
    """The position of a key in its map's tuple; undefined if it is not in the key type."""
    kind = of_shape(expr.args[0].type, Map)
    return position_of(kind.key, expr.args[1].type, key, expr.span)


def position_of(wanted: Type, found: Type, key: RuleText, span: Span) -> RuleText:
    """The position of a key of type `found` in the tuple of a map over `wanted`; undefined if not in it."""
    # A range that begins at 0 is its own position: the common case costs nothing.
    if is_position(wanted, found):
        return key
    if isinstance(wanted, Int) and isinstance(found, Int):
        low, high = wanted.low, wanted.high
        if fits(found, wanted):
            return filled("({} - {})", [key, RuleText("{}", (low,))])

        def in_range(value: Any) -> Any:
            if not low <= value <= high:
                raise Undefined(span, f"the key {value} is outside {show_type(wanted)}")
            return value - low

        return applied(in_range, [key])
    # Keys that are no numbers: their position is found by value, once for all maps over the type.
    table = positions(wanted)

    def known(value: Any) -> Any:
        if value not in table:
            raise Undefined(span, f"the key is outside {show_type(wanted)}")
        return table[value]

    return applied(known, [key])


def _seq_set(expr: Apply, args: list[Fn]) -> Fn:
    (seq, index, value), span, item_at = args, expr.span, _called(rules.RULES[Op.SEQ_GET])

    # No text: the index is checked before the value is evaluated; where both are wrong the kernel's code,
    # which leaves at the first, reports the same.
    def seq_set(e: Any) -> Any:
        items, position = seq(e), index(e)
        item_at(span, items, position)
        return replaced(items, position, value(e))

    return seq_set


RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        **{op: _by_rule(op, rule) for op, rule in rules.RULES.items()},
        Op.EQ: _code("({} == {})"), Op.NE: _code("({} != {})"),
        Op.LT: _code("({} < {})"), Op.LE: _code("({} <= {})"), Op.NOT: _code("(not {})"),
        Op.NEG: _code("(-{})"), Op.ADD: _code("({} + {})"),
        Op.SUB: _code("({} - {})"), Op.MUL: _code("({} * {})"),
        # As `min` and `max` of Python choose and compare, without a call.
        Op.MIN: _chosen("(y if ((x := {}) is None or (y := {}) < x) else x)"),
        Op.MAX: _chosen("(y if ((x := {}) is None or (y := {}) > x) else x)"),
        Op.RECORD: TextRule(_tuple), Op.FIELD: _code("{}[DATA]"), Op.WITH_FIELD: TextRule(_with_field),
        Op.VARIANT: _code("(DATA, {})"), Op.IS_VARIANT: _code("({}[0] == DATA)"),
        Op.SOME: TextRule(_tuple), Op.GET: TextRule(_get),
        Op.MAP: TextRule(_tuple), Op.MAP_GET: TextRule(_map_get), Op.MAP_SET: TextRule(_map_set),
        Op.SET: TextRule(_set), Op.IN_SET: _code("({} in {})"), Op.CARD: _code("len({})"),
        Op.SEQ: TextRule(_tuple), Op.SEQ_SET: _seq_set, Op.LEN: _code("len({})"),
        Op.APPEND: _code("(*{}, {})"), Op.CONCAT: _code("({} + {})"), Op.IN_SEQ: _code("({} in {})"),
        Op.BAG: TextRule(lambda expr, parts: filled("tuple(sorted({}))", [_tuple(expr, parts)])),
        Op.IN_BAG: _code("({} in {})"), Op.BAG_CARD: _code("len({})"),
    }
)  # fmt: skip
