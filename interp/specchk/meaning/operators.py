"""THE meaning of the strict operators: operator -> rule, total over `Op` (checked by a test of the laws).

A rule gets the expression (for its type, `data` and span) and its arguments' functions, and gives
the expression's function.  Arguments are evaluated left to right.  Where Python has the operator, the rule
is a text (`TextRule`), from which its function is made, and that of an expression around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, combinations, pairwise, product
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.types import MAX_LISTED_BITS, Int, Map, Type, fits, of_shape, power
from specchk.ir.types import show as show_type
from specchk.lang.text.source import Span
from specchk.meaning.texts.joined import Fn, RuleText, applied, called, filled, function_of, named
from specchk.meaning.texts.places import is_position
from specchk.meaning.undefined import Undefined, fault
from specchk.meaning.values import positions

Rule = Callable[[Apply, list[Fn]], Fn]


def distinct(items: Iterable[Any]) -> tuple[Any, ...]:
    """A set's value: the distinct items, ascending.

    By order and equality alone: open numbers (`meaning.paths`) are equal where no hash can show it.
    """
    ascending = sorted(items)
    if len(ascending) < 2:
        return tuple(ascending)
    return (ascending[0], *[item for before, item in pairwise(ascending) if item != before])


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


def _checked(fn: Callable[..., Any]) -> TextRule:
    """The rule of a function of the expression's span, for its faults, and of the arguments' values."""
    return TextRule(lambda expr, parts: applied(fn, [RuleText("{}", (expr.span,)), *parts]))


def _function(fn: Callable[..., Any]) -> TextRule:
    return TextRule(lambda expr, parts: applied(fn, parts))


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
    return items if len(parts) < 2 else applied(distinct, [items])


def _get(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    missing = RuleText("{}", (fault(expr.span, "`get` of none"),))
    return named("(x[0] if (x := {}) else {}())", [*parts, missing])


def _get_or(option: Any, default: Any) -> Any:
    # Strict, as all operators here: the default is evaluated even where it is not used, so its faults count.
    return option[0] if option else default


def _divided(fn: Callable[[int, int], int]) -> TextRule:
    def divide(span: Span, left: Any, right: Any) -> Any:
        if right == 0:
            raise Undefined(span, "division by zero")
        return fn(left, right)

    return _checked(divide)


def _decreased(span: Span, new: Any, old: Any) -> Any:
    if new < 0:
        raise Undefined(span, f"the measure of this recursion is below 0: {new}")
    if new >= old:
        raise Undefined(span, f"the measure of this recursion does not decrease: {old}, then {new}")
    return new


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


def _extreme(fn: Callable[[Any], Any], name: str) -> TextRule:
    def extreme(span: Span, items: Any) -> Any:
        if not items:
            raise Undefined(span, f"`{name}` of an empty collection")
        return fn(items)

    return _checked(extreme)


def _subsets(span: Span, items: Any) -> Any:
    if len(items) > MAX_LISTED_BITS:
        raise Undefined(span, f"the subsets of {len(items)} items are too many to list")
    return tuple(sorted(chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))))


def _maps(span: Span, keys: Any, values: Any) -> Any:
    if power(len(values), len(keys)) > 1 << MAX_LISTED_BITS:
        raise Undefined(span, f"the maps from {len(keys)} keys to {len(values)} values are too many to list")
    return tuple(product(*[[(key, value) for value in values] for key in keys]))


def _range(span: Span, low: Any, high: Any) -> Any:
    # A shift, not a comparison: on open numbers it raises `NotSymbolic`, where a comparison would fork.
    # For an empty range the difference is negative, and so is the result.
    if high - low >> MAX_LISTED_BITS:
        if high < low:
            return ()
        raise Undefined(span, f"the set {low}..{high} is too large to list")
    return tuple(range(low, high + 1))


def _item_at(span: Span, items: Any, position: Any) -> Any:
    if not 0 <= position < len(items):
        raise Undefined(span, f"index {position} of a sequence of length {len(items)}")
    return items[position]


def _seq_set(expr: Apply, args: list[Fn]) -> Fn:
    (seq, index, value), span = args, expr.span

    # No text: the index is checked before the value is evaluated; where both are wrong the kernel's code,
    # which leaves at the first, reports the same.
    def seq_set(e: Any) -> Any:
        items, position = seq(e), index(e)
        _item_at(span, items, position)
        return replaced(items, position, value(e))

    return seq_set


def _cut(fn: Callable[[Any, int], Any], name: str) -> TextRule:
    def cut(span: Span, items: Any, size: Any) -> Any:
        if not 0 <= size <= len(items):
            raise Undefined(span, f"`{name}` of {size} from a sequence of length {len(items)}")
        return fn(items, size)

    return _checked(cut)


def _bag_remove(span: Span, items: Any, item: Any) -> Any:
    if item not in items:
        raise Undefined(span, "`remove` of an item that is not in the bag")
    index = items.index(item)
    return (*items[:index], *items[index + 1 :])


def _merge(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    if not b:
        return a
    return distinct((*a, *b)) if a else b


RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.EQ: _code("({} == {})"), Op.NE: _code("({} != {})"),
        Op.LT: _code("({} < {})"), Op.LE: _code("({} <= {})"), Op.NOT: _code("(not {})"),
        Op.NEG: _code("(-{})"), Op.ADD: _code("({} + {})"),
        Op.SUB: _code("({} - {})"), Op.MUL: _code("({} * {})"),
        Op.DIV: _divided(lambda a, b: a // b), Op.MOD: _divided(lambda a, b: a % b),
        # As `min` and `max` of Python choose and compare, without a call.
        Op.MIN: _chosen("(y if ((x := {}) is None or (y := {}) < x) else x)"),
        Op.MAX: _chosen("(y if ((x := {}) is None or (y := {}) > x) else x)"),
        Op.RECORD: TextRule(_tuple), Op.FIELD: _code("{}[DATA]"), Op.WITH_FIELD: TextRule(_with_field),
        Op.VARIANT: _code("(DATA, {})"), Op.IS_VARIANT: _code("({}[0] == DATA)"),
        Op.SOME: TextRule(_tuple), Op.GET: TextRule(_get), Op.GET_OR: _function(_get_or),
        Op.MAP: TextRule(_tuple), Op.MAP_GET: TextRule(_map_get), Op.MAP_SET: TextRule(_map_set),
        Op.SET: TextRule(_set), Op.RANGE: _checked(_range), Op.IN_SET: _code("({} in {})"),
        Op.SUBSET: _function(lambda a, b: all(x in b for x in a)), Op.UNION: _function(_merge),
        Op.INTERSECT: _function(lambda a, b: tuple([x for x in a if x in b])),
        Op.DIFFERENCE: _function(lambda a, b: tuple([x for x in a if x not in b])),
        Op.CARD: _code("len({})"), Op.SUBSETS: _checked(_subsets), Op.MAPS: _checked(_maps),
        Op.SET_MIN: _extreme(min, "min"), Op.SET_MAX: _extreme(max, "max"), Op.SET_SUM: _code("sum({})"),
        Op.SEQ: TextRule(_tuple), Op.SEQ_GET: _checked(_item_at), Op.SEQ_SET: _seq_set,
        Op.LEN: _code("len({})"),
        Op.HEAD: _extreme(lambda s: s[0], "head"), Op.LAST: _extreme(lambda s: s[-1], "last"),
        Op.TAIL: _extreme(lambda s: s[1:], "tail"),
        Op.APPEND: _code("(*{}, {})"), Op.CONCAT: _code("({} + {})"),
        Op.PREFIX: _cut(lambda s, n: s[:n], "prefix"), Op.SUFFIX: _cut(lambda s, n: s[n:], "suffix"),
        Op.IN_SEQ: _code("({} in {})"), Op.SEQ_ITEMS: _function(distinct),
        Op.BAG: TextRule(lambda expr, parts: filled("tuple(sorted({}))", [_tuple(expr, parts)])),
        Op.BAG_ADD: _function(lambda a, b: tuple(sorted((*a, b)))),
        Op.BAG_REMOVE: _checked(_bag_remove),
        Op.BAG_COUNT: _function(lambda a, b: a.count(b)),
        Op.BAG_UNION: _function(lambda a, b: tuple(sorted(a + b))),
        Op.IN_BAG: _code("({} in {})"), Op.BAG_CARD: _code("len({})"), Op.BAG_ITEMS: _function(distinct),
        Op.DECREASED: _checked(_decreased),
    }
)  # fmt: skip
