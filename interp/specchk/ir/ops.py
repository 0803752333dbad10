"""The strict operators, one card each: all facts that passes and engines may rely on.

An operator is a member of `Op`, and its card is its declaration, so that none is without one.  Its
meaning is a rule on the page `meaning.rules`, or a text in `meaning.operators`.  Engines read the rules that
are in terms of other operators, and have tables of rules for the rest (`native.values.operators` and what it
imports, `symbolic.induction.encode.ops`; for TLA+ `report.tla.operators`): search for `Op.UNION`, not for
the word.  `tests/laws/test_operators.py` tries every operator on edge values and compares with its card.

Types of results carry intervals, by interval arithmetic: this makes every integer of the core bounded.  A
result is marked `horizon` when an operand is, so that no engine mistakes a limit of enumeration for
a fact of the protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from specchk.ir.ranges import narrowest
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
    has_horizon,
    hull,
    is_empty,
    item_of,
    of_shape,
    partial_map,
)  # fmt: skip

Kinds = tuple[Type, ...]  # the types of an operator's arguments
Rule = Callable[[Kinds, int], Type]  # and `data`
Partial = Callable[[Kinds], bool]
Parts = Callable[[Type, int, int], Sequence[Type]]  # from the type, `data` and the number of arguments
Mark = Literal["", "sign", "truth"]


def never(_: Kinds) -> bool:
    """The totality of an operator that always has a value."""
    return False


def always(_: Kinds) -> bool:
    """The totality of an operator that may be undefined, whatever the types of its arguments."""
    return True


class Card(Struct, frozen=True):
    """The facts about one operator.

    | member       | is |
    |--------------|----|
    | `word`       | the word of the language, "" for an operator with its own syntax |
    | `shapes`     | the shape of each argument, `object` if any shape is allowed; None: as in `part_types` |
    | `result`     | the type of the result; None for a literal, whose node has it: an empty one does not |
    | `partial`    | whether it may have no value though its arguments have |
    | `part_types` | if the result is built from the arguments: their types in a result of some type |
    | `marks`      | the tracer's record: the `sign` of two sides, the `truth` of a bool that is read |
    | `is_part`    | whether the value is a part of the first argument, or that with other content |
    | `loops`      | whether its code visits items one by one, so that it is not computed needlessly |
    """

    word: str
    shapes: tuple[type, ...] | None
    result: Rule | None
    partial: Partial = never
    part_types: Parts | None = None
    marks: Mark = ""
    is_part: bool = False
    loops: bool = False

    def accepts(self, kinds: Kinds) -> bool:
        """Whether the arguments have the right number and shapes; one without a value has every shape."""
        if self.shapes is None or len(kinds) != len(self.shapes):
            return self.shapes is None
        return all(isinstance(k, shape) or is_empty(k) for k, shape in zip(kinds, self.shapes, strict=True))


def _item(kind: Type) -> Type:
    item = item_of(kind)
    return narrowest(item) if isinstance(kind, Seq | Bag) and kind.limit == 0 else item


def _limit(kind: Type) -> int:
    assert isinstance(kind, Seq | Bag)
    return kind.limit


def _bool(_: Kinds, __: int) -> Type:
    return BOOL


def _subsets(kinds: Kinds, _: int) -> Type:
    return Set(kinds[0], of_shape(kinds[0], Set).room)


def _maps(kinds: Kinds, _: int) -> Type:
    kind = partial_map(_item(kinds[0]), _item(kinds[1]))
    room = max(of_shape(kinds[0], Set).room, of_shape(kinds[1], Set).room)
    return Set(replace(kind, room=room), room)


def _compared(kinds: Kinds, _: int) -> Type:
    hull(*kinds)  # of two types that have none, no value is one of the other
    return BOOL


def _member(kinds: Kinds, _: int) -> Type:
    hull(kinds[0], _item(kinds[1]))
    return BOOL


def _rest(kinds: Kinds, _: int) -> Type:
    hull(*kinds)
    return kinds[0]


def _first(kinds: Kinds, _: int) -> Type:
    return kinds[0]


def _content(kinds: Kinds, _: int) -> Type:
    return _item(kinds[0])


def _contents(kinds: Kinds, _: int) -> Type:
    return Set(_item(kinds[0]))


def _without(kinds: Kinds, _: int) -> Type:
    hull(_item(kinds[0]), kinds[1])
    return kinds[0]


def _counted(kinds: Kinds, data: int) -> Type:
    _without(kinds, data)
    return _size(kinds, data)


def _size(kinds: Kinds, _: int) -> Type:
    return Int(0, _limit(kinds[0]))


def _card(kinds: Kinds, _: int) -> Type:
    kind = of_shape(kinds[0], Set)
    item = kind.pair[0] if kind.keyed else kind.item
    # At most as many offsets as the horizon lets be listed: a limit of enumeration, and marked as one.
    return Int(0, cardinality(item), has_horizon(item))


def _numbers(ends: Callable[[Int, Int], tuple[int, int]]) -> Rule:
    """The type rule of an operator on two numbers, from the function that gives its interval."""

    def rule(kinds: Kinds, _: int) -> Type:
        a, b = (of_shape(kind, Int) for kind in kinds)
        # The ends of an interval without a number have no meaning, and no result can be derived from them.
        low, high = (0, -1) if is_empty(a) or is_empty(b) else ends(a, b)
        return Int(low, high, a.horizon or b.horizon)

    return rule


def _product(a: Int, b: Int) -> tuple[int, int]:
    # A product is linear in each of its numbers, so its extremes over the box are at corners; the signs
    # decide at which.
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(corners), max(corners)


def _quotient(a: Int, b: Int) -> tuple[int, int]:
    if a.low >= 0 and b.low > 0:
        return a.low // b.high, a.high // b.low
    # With mixed signs one safe interval must suffice: a divisor is at least 1 in size if there is a value, so
    # the result is at most as large as `a`; one more is added for rounding down.
    most = max(abs(a.low), abs(a.high))
    return -most - 1, most


def _negative(kinds: Kinds, _: int) -> Type:
    a = of_shape(kinds[0], Int)
    return Int(-a.high, -a.low, a.horizon)


def _range(kinds: Kinds, _: int) -> Type:
    a, b = (of_shape(kind, Int) for kind in kinds)
    # From a.low to below it is the interval without a number: all of these ranges are empty.
    return Set(Int(a.low, max(a.low - 1, b.high), a.horizon or b.horizon))


def total(item: Type, times: int) -> Int:
    """The type of the sum of at most `times` numbers."""
    number = of_shape(item, Int)
    return Int(min(0, number.low) * times, max(0, number.high) * times, number.horizon)


def _sum(kinds: Kinds, _: int) -> Type:
    item = _item(kinds[0])
    return total(item, cardinality(item))


def _field(kinds: Kinds, data: int) -> Type:
    return of_shape(kinds[0], Record).fields[data][1]


def _with_field(kinds: Kinds, data: int) -> Type:
    fields = list(of_shape(kinds[0], Record).fields)
    fields[data] = (fields[data][0], kinds[1])
    return Record(tuple(fields))


def _value(kinds: Kinds, _: int) -> Type:
    kind = of_shape(kinds[0], Map)
    hull(kind.key, kinds[1])
    return kind.value


def _with_value(kinds: Kinds, _: int) -> Type:
    kind = of_shape(kinds[0], Map)
    hull(kind.key, kinds[1])
    return Map(kind.key, hull(kind.value, kinds[2]))


def _with_item(kinds: Kinds, _: int) -> Type:
    return Seq(hull(_item(kinds[0]), kinds[2]), _limit(kinds[0]))


def _longer(shape: type[Seq | Bag]) -> Rule:
    return lambda kinds, _: shape(hull(_item(kinds[0]), kinds[1]), _limit(kinds[0]) + 1)


def _joined(shape: type[Seq | Bag]) -> Rule:
    return lambda kinds, _: shape(hull(_item(kinds[0]), _item(kinds[1])), _limit(kinds[0]) + _limit(kinds[1]))


def _by_zero(kinds: Kinds) -> bool:
    divisor = of_shape(kinds[1], Int)
    # Either end may be that of a horizon (`5 - offset`), and on open numbers zero may lie beyond it.
    return divisor.horizon or divisor.low <= 0 <= divisor.high


def _off_the_keys(kinds: Kinds) -> bool:
    key = kinds[1]
    # An offset fits up to its horizon only; on open numbers (`meaning.moves`) it may be beyond the last key.
    return not fits(key, of_shape(kinds[0], Map).key) or (isinstance(key, Int) and key.horizon)


def _decreased(a: Int, b: Int) -> tuple[int, int]:
    return max(0, a.low), min(a.high, b.high - 1)


def _may_not_decrease(kinds: Kinds) -> bool:
    new, old = (of_shape(kind, Int) for kind in kinds)
    return new.horizon or old.horizon or new.low < 0 or new.high >= old.low


def _long_range(kinds: Kinds) -> bool:
    low, high = (of_shape(kind, Int) for kind in kinds)
    return high.high - low.low >= 1 << MAX_LISTED_BITS


def _many_subsets(kinds: Kinds) -> bool:
    return cardinality(_item(kinds[0])) > MAX_LISTED_BITS


def _many_maps(kinds: Kinds) -> bool:
    return cardinality(Map(*map(_item, kinds))) > 1 << MAX_LISTED_BITS


def _fields(kind: Type, _: int, __: int) -> Sequence[Type]:
    return [item for _, item in of_shape(kind, Record).fields]


def _payload(kind: Type, data: int, _: int) -> Sequence[Type]:
    return [of_shape(kind, Union).variants[data][1]]


def _values(kind: Type, _: int, __: int) -> Sequence[Type]:
    return [of_shape(kind, Map).value] * cardinality(of_shape(kind, Map).key)


def _items(kind: Type, _: int, count: int) -> Sequence[Type]:
    """As many items as the limit allows."""
    return [item_of(kind)] * (min(count, kind.limit) if isinstance(kind, Seq | Bag) else count)


class Op(Enum):
    """The strict operators; `data` in `Apply` is a field or variant index, if one is needed."""

    card: Card

    def __new__(cls, card: Card) -> Op:
        """Members are numbered; files and other processes identify operators by these numbers."""
        op = object.__new__(cls)
        op._value_ = len(cls.__members__) + 1
        op.card = card
        return op

    EQ = Card("==", (object, object), _compared, marks="sign")
    NE = Card("!=", (object, object), _compared, marks="sign")
    LT = Card("<", (Int, Int), _bool, marks="sign")
    LE = Card("<=", (Int, Int), _bool, marks="sign")
    NOT = Card("not", (Bool,), _bool)
    NEG = Card("-", (Int,), _negative)
    ADD = Card("+", (Int, Int), _numbers(lambda a, b: (a.low + b.low, a.high + b.high)))
    SUB = Card("-", (Int, Int), _numbers(lambda a, b: (a.low - b.high, a.high - b.low)))
    MUL = Card("*", (Int, Int), _numbers(_product))
    DIV = Card("//", (Int, Int), _numbers(_quotient), _by_zero)  # floor
    MOD = Card("%", (Int, Int), _numbers(lambda _, b: (min(0, b.low + 1), max(0, b.high - 1))), _by_zero)
    MIN = Card(
        "min", (Int, Int), _numbers(lambda a, b: (min(a.low, b.low), min(a.high, b.high))), marks="sign"
    )
    MAX = Card(
        "max", (Int, Int), _numbers(lambda a, b: (max(a.low, b.low), max(a.high, b.high))), marks="sign"
    )
    RECORD = Card("", None, None, part_types=_fields)  # fields in order
    FIELD = Card("", (Record,), _field, marks="truth", is_part=True)
    WITH_FIELD = Card("", (Record, object), _with_field)
    VARIANT = Card("", None, None, part_types=_payload)
    IS_VARIANT = Card("", (Union,), _bool, marks="truth")
    SOME = Card("some", (object,), lambda kinds, _: Option(kinds[0]), part_types=_items)
    GET = Card("get", (Option,), _content, always, marks="truth", is_part=True)
    GET_OR = Card("get", (Option, object), lambda kinds, _: hull(_item(kinds[0]), kinds[1]), marks="truth")
    MAP = Card("", None, None, part_types=_values)  # values in key order
    MAP_GET = Card("", (Map, object), _value, _off_the_keys, marks="truth", is_part=True)
    MAP_SET = Card("", (Map, object, object), _with_value, _off_the_keys)
    SET = Card("{}", None, None, part_types=_items)
    RANGE = Card("..", (Int, Int), _range, _long_range)
    IN_SET = Card("in", (object, Set), _member, marks="truth")
    SUBSET = Card("subset", (Set, Set), _compared, marks="truth", loops=True)
    UNION = Card("union", (Set, Set), lambda kinds, _: hull(*kinds))
    INTERSECT = Card("intersect", (Set, Set), _rest)
    DIFFERENCE = Card("-", (Set, Set), _rest)
    CARD = Card("card", (Set,), _card)
    SUBSETS = Card("subsets", (Set,), _subsets, _many_subsets, is_part=True, loops=True)
    MAPS = Card("maps", (Set, Set), _maps, _many_maps, loops=True)  # the partial maps with just these keys
    SET_MIN = Card("min", (Set,), _content, always, loops=True)
    SET_MAX = Card("max", (Set,), _content, always, loops=True)
    SET_SUM = Card("sum", (Set,), _sum, loops=True)
    SEQ = Card("[]", None, None, part_types=_items)
    SEQ_GET = Card("", (Seq, Int), _content, always, marks="truth", is_part=True)
    SEQ_SET = Card("", (Seq, Int, object), _with_item, always)
    LEN = Card("len", (Seq,), _size)
    HEAD = Card("head", (Seq,), _content, always, marks="truth", is_part=True)
    LAST = Card("last", (Seq,), _content, always, marks="truth", is_part=True)
    TAIL = Card("tail", (Seq,), _first, always, is_part=True)
    APPEND = Card("append", (Seq, object), _longer(Seq))
    CONCAT = Card("++", (Seq, Seq), _joined(Seq))
    PREFIX = Card("prefix", (Seq, Int), _first, always, is_part=True)  # the first n
    SUFFIX = Card("suffix", (Seq, Int), _first, always, is_part=True)  # all but the first n
    IN_SEQ = Card("in", (object, Seq), _member, marks="truth", loops=True)
    SEQ_ITEMS = Card("elements", (Seq,), _contents, loops=True)
    BAG = Card("", None, None, part_types=_items, loops=True)
    BAG_ADD = Card("add", (Bag, object), _longer(Bag), loops=True)
    BAG_REMOVE = Card("remove", (Bag, object), _without, always, is_part=True, loops=True)
    BAG_COUNT = Card("count", (Bag, object), _counted, loops=True)
    BAG_UNION = Card("union", (Bag, Bag), _joined(Bag), loops=True)
    IN_BAG = Card("in", (object, Bag), _member, marks="truth", loops=True)
    BAG_CARD = Card("card", (Bag,), _size)
    BAG_ITEMS = Card("elements", (Bag,), _contents, loops=True)
    # Of a recursive call: the new measure, where it is a number from 0 on that is below the old one.
    DECREASED = Card("", (Int, Int), _numbers(_decreased), _may_not_decrease)


_BY_WORD = MappingProxyType(
    {word: [op for op in Op if op.card.word == word] for word in frozenset(op.card.word for op in Op)}
)


def named(word: str, kinds: Kinds) -> Op:
    """The operator for a keyword of the language, given arguments of these types."""
    return next(op for op in _BY_WORD[word] if op.card.accepts(kinds))
