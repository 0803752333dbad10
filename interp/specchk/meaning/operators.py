"""THE meaning of the strict operators: operator -> rule, total over `Op` (a law test holds it).

A rule gets the expression (for its type, `data` and span) and its arguments' functions, and gives
the expression's function.  Arguments are evaluated left to right.  Where Python has the operator, the rule
is a text (`TextRule`), from which its function is made, and that of an expression around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from types import MappingProxyType
from typing import Any

from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.types import MAX_LISTED_BITS, Bool, Enum, Int, Map, Sort, Type, fits, of_shape
from specchk.ir.types import show as show_type
from specchk.meaning.texts.joined import Fn, RuleText, called, filled, function_of
from specchk.meaning.undefined import Undefined
from specchk.meaning.values import positions

Rule = Callable[[Apply, list[Fn]], Fn]


def operator(expr: Apply, args: list[Fn]) -> Fn:
    """The function of a strict operator application."""
    return RULES[expr.op](expr, args)


def distinct(items: Iterable[Any]) -> tuple[Any, ...]:
    """A set's value: the items ascending, each once.

    By order and equality alone: open numbers (`meaning.paths`) are equal where no hash can show it.
    """
    ascending = sorted(items)
    if len(ascending) < 2:
        return tuple(ascending)
    return tuple([item for at, item in enumerate(ascending) if not at or item != ascending[at - 1]])


def replaced(items: tuple[Any, ...], index: int, item: Any) -> tuple[Any, ...]:
    """The items with another one at an index."""
    # Half of the time of `(*items[:index], item, *items[index + 1 :])`.
    changed = list(items)
    changed[index] = item
    return tuple(changed)


@dataclass(frozen=True, slots=True)
class TextRule:
    """A rule that is a text: the expression's, of those of its arguments."""

    text: Callable[[Apply, Sequence[RuleText]], RuleText]

    def __call__(self, expr: Apply, args: list[Fn]) -> Fn:
        """The function of the expression, by functions of its arguments."""
        return function_of(self.text(expr, [called(arg) for arg in args]))


def _code(code: str) -> TextRule:
    return TextRule(lambda expr, parts: filled(code, parts))


def _tuple(_: Apply, parts: Sequence[RuleText]) -> RuleText:
    return filled(f"({'{}, ' * len(parts)})", parts)


def _field(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    return filled(f"{{}}[{expr.data}]", parts)


def _variant(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    return filled(f"({expr.data}, {{}})", parts)


def _is_variant(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    return filled(f"({{}}[0] == {expr.data})", parts)


def _map_get(expr: Apply, parts: Sequence[RuleText]) -> RuleText:
    of, key = parts
    if not is_position(expr):
        key = called(key_position(expr, function_of(key)))
    return filled("{}[{}]", (of, key))


def _unary(fn: Callable[[Any], Any]) -> Rule:
    def rule(_: Apply, args: list[Fn]) -> Fn:
        (a,) = args
        return lambda e: fn(a(e))

    return rule


def _binary(fn: Callable[[Any, Any], Any]) -> Rule:
    def rule(_: Apply, args: list[Fn]) -> Fn:
        a, b = args
        return lambda e: fn(a(e), b(e))

    return rule


def _sorted(_: Apply, args: list[Fn]) -> Fn:
    return lambda e: tuple(sorted([arg(e) for arg in args]))


def _set(_: Apply, args: list[Fn]) -> Fn:
    return lambda e: distinct([arg(e) for arg in args])


def _divided(fn: Callable[[int, int], int]) -> Rule:
    def rule(expr: Apply, args: list[Fn]) -> Fn:
        a, b = args
        span = expr.span

        def divide(e: Any) -> Any:
            left, right = a(e), b(e)
            if right == 0:
                raise Undefined(span, "division by zero")
            return fn(left, right)

        return divide

    return rule


def _with_field(expr: Apply, args: list[Fn]) -> Fn:
    a, b = args
    index = expr.data

    def with_field(e: Any) -> Any:
        return replaced(a(e), index, b(e))

    return with_field


def _get(expr: Apply, args: list[Fn]) -> Fn:
    (a,) = args
    span = expr.span

    def get(e: Any) -> Any:
        option = a(e)
        if not option:
            raise Undefined(span, "`get` of none")
        return option[0]

    return get


def _get_or(_: Apply, args: list[Fn]) -> Fn:
    a, b = args

    def get_or(e: Any) -> Any:
        # Strict, as all operators here: the default is evaluated even where it is not used, so its faults
        # count.
        option, default = a(e), b(e)
        return option[0] if option else default

    return get_or


def key_position(expr: Apply, key: Fn) -> Fn:
    """The position of a key in its map's tuple; undefined outside the key type."""
    kind = of_shape(expr.args[0].type, Map)
    return position_of(kind.key, expr.args[1].type, key, expr)


def is_position(expr: Apply) -> bool:
    """Whether the key of a map access, as it is, is the position in the map's tuple."""
    kind, key = of_shape(expr.args[0].type, Map), expr.args[1].type
    if isinstance(kind.key, Int):
        return kind.key.low == 0 and fits(key, kind.key)
    return isinstance(kind.key, Bool | Enum | Sort)


def position_of(wanted: Type, found: Type, key: Fn, at: Any) -> Fn:
    """As `key_position`, for a key of type `found` into a map over `wanted`; `at` has the span."""
    span = at.span
    if isinstance(wanted, Bool | Enum | Sort):
        return key
    if isinstance(wanted, Int) and isinstance(found, Int):
        low, high = wanted.low, wanted.high
        if fits(found, wanted):
            # A range that begins at 0 is its own position: the common case costs nothing.
            return key if low == 0 else lambda e: key(e) - low

        def in_range(e: Any) -> Any:
            value = key(e)
            if not low <= value <= high:
                raise Undefined(span, f"the key {value} is outside {show_type(wanted)}")
            return value - low

        return in_range
    # Keys that are no numbers: their position is found by value, once for all maps over the type.
    table = positions(wanted)

    def known(e: Any) -> Any:
        value = key(e)
        if value not in table:
            raise Undefined(span, f"the key is outside {show_type(wanted)}")
        return table[value]

    return known


def _map_set(expr: Apply, args: list[Fn]) -> Fn:
    a, at, value = args[0], key_position(expr, args[1]), args[2]

    def map_set(e: Any) -> Any:
        return replaced(a(e), at(e), value(e))

    return map_set


def _extreme(fn: Callable[[Any], Any], name: str) -> Rule:
    def rule(expr: Apply, args: list[Fn]) -> Fn:
        (a,) = args
        span = expr.span

        def extreme(e: Any) -> Any:
            items = a(e)
            if not items:
                raise Undefined(span, f"`{name}` of an empty collection")
            return fn(items)

        return extreme

    return rule


def _subsets(expr: Apply, args: list[Fn]) -> Fn:
    (a,) = args
    span = expr.span

    def subsets(e: Any) -> Any:
        items = a(e)
        if len(items) > MAX_LISTED_BITS:
            raise Undefined(span, f"the subsets of {len(items)} items are too many to list")
        return tuple(sorted(chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))))

    return subsets


def _range(expr: Apply, args: list[Fn]) -> Fn:
    a, b = args
    span = expr.span

    def numbers(e: Any) -> Any:
        low, high = a(e), b(e)
        # A shift and no comparison: on open numbers it raises `NotSymbolic`, where a comparison would fork.
        # Of an empty range the difference is negative, and so is what is left of it.
        if high - low >> MAX_LISTED_BITS:
            if high < low:
                return ()
            raise Undefined(span, f"the set {low}..{high} is too large to list")
        return tuple(range(low, high + 1))

    return numbers


def sequence_index(expr: Any, seq: Fn, index: Fn) -> Fn:
    """A position in a sequence as (sequence, position); undefined outside it."""
    span = expr.span

    def at(e: Any) -> Any:
        items, position = seq(e), index(e)
        if not 0 <= position < len(items):
            raise Undefined(span, f"index {position} of a sequence of length {len(items)}")
        return items, position

    return at


def _seq_get(expr: Apply, args: list[Fn]) -> Fn:
    at = sequence_index(expr, args[0], args[1])

    def seq_get(e: Any) -> Any:
        items, position = at(e)
        return items[position]

    return seq_get


def _seq_set(expr: Apply, args: list[Fn]) -> Fn:
    at, value = sequence_index(expr, args[0], args[1]), args[2]

    # The index is checked before the value is evaluated: where both are wrong the kernel's code, which leaves
    # at the first, reports the same.
    def seq_set(e: Any) -> Any:
        items, position = at(e)
        return replaced(items, position, value(e))

    return seq_set


def _cut(fn: Callable[[Any, int], Any], name: str) -> Rule:
    def rule(expr: Apply, args: list[Fn]) -> Fn:
        a, b = args
        span = expr.span

        def cut(e: Any) -> Any:
            items, size = a(e), b(e)
            if not 0 <= size <= len(items):
                raise Undefined(span, f"`{name}` of {size} from a sequence of length {len(items)}")
            return fn(items, size)

        return cut

    return rule


def _bag_remove(expr: Apply, args: list[Fn]) -> Fn:
    a, b = args
    span = expr.span

    def remove(e: Any) -> Any:
        items, item = a(e), b(e)
        if item not in items:
            raise Undefined(span, "`remove` of an item that is not in the bag")
        index = items.index(item)
        return (*items[:index], *items[index + 1 :])

    return remove


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
        Op.MIN: _code("min({}, {})"), Op.MAX: _code("max({}, {})"),
        Op.RECORD: TextRule(_tuple), Op.FIELD: TextRule(_field), Op.WITH_FIELD: _with_field,
        Op.VARIANT: TextRule(_variant), Op.IS_VARIANT: TextRule(_is_variant),
        Op.SOME: TextRule(_tuple), Op.GET: _get, Op.GET_OR: _get_or,
        Op.MAP: TextRule(_tuple), Op.MAP_GET: TextRule(_map_get), Op.MAP_SET: _map_set,
        Op.SET: _set, Op.RANGE: _range, Op.IN_SET: _code("({} in {})"),
        Op.SUBSET: _binary(lambda a, b: all(x in b for x in a)), Op.UNION: _binary(_merge),
        Op.INTERSECT: _binary(lambda a, b: tuple([x for x in a if x in b])),
        Op.DIFFERENCE: _binary(lambda a, b: tuple([x for x in a if x not in b])),
        Op.CARD: _code("len({})"), Op.SUBSETS: _subsets,
        Op.SET_MIN: _extreme(min, "min"), Op.SET_MAX: _extreme(max, "max"), Op.SET_SUM: _code("sum({})"),
        Op.SEQ: TextRule(_tuple), Op.SEQ_GET: _seq_get, Op.SEQ_SET: _seq_set, Op.LEN: _code("len({})"),
        Op.HEAD: _extreme(lambda s: s[0], "head"), Op.LAST: _extreme(lambda s: s[-1], "last"),
        Op.TAIL: _extreme(lambda s: s[1:], "tail"),
        Op.APPEND: _code("(*{}, {})"), Op.CONCAT: _code("({} + {})"),
        Op.PREFIX: _cut(lambda s, n: s[:n], "prefix"), Op.SUFFIX: _cut(lambda s, n: s[n:], "suffix"),
        Op.IN_SEQ: _code("({} in {})"), Op.SEQ_ITEMS: _unary(distinct),
        Op.BAG: _sorted, Op.BAG_ADD: _binary(lambda a, b: tuple(sorted((*a, b)))), Op.BAG_REMOVE: _bag_remove,
        Op.BAG_COUNT: _binary(lambda a, b: a.count(b)),
        Op.BAG_UNION: _binary(lambda a, b: tuple(sorted(a + b))),
        Op.IN_BAG: _code("({} in {})"), Op.BAG_CARD: _code("len({})"), Op.BAG_ITEMS: _unary(distinct),
    }
)  # fmt: skip
