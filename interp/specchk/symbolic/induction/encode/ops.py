"""The strict operators on trees: operator -> rule, with `meaning.rules` total over `Op` (by a test).

A rule gets the application (for its types and `data`), the trees of its arguments, and the scope, in which it
notes the condition under which it has no value.  Each is the meaning of the operator with the undecided parts
left open; tests/symbolic compares them.  Operators in terms of others are read (`encode.exprs`).

For `--prove` and `--depth`; zones and hulls run the rules of `meaning` themselves (`meaning.moves`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import add, mul, sub
from types import MappingProxyType

from specchk.ir.nodes import Apply
from specchk.ir.ops import Op
from specchk.ir.types import Bool, Enum, Int, Map, Sort, Type, Union, of_shape
from specchk.meaning.values import positions
from specchk.symbolic.induction.encode import collections as of
from specchk.symbolic.induction.encode import numbers
from specchk.symbolic.induction.encode.bools import Truth, disj, negation
from specchk.symbolic.induction.encode.merge import count, equal, has, merge, select, set_of, tag_is
from specchk.symbolic.induction.encode.scope import StepScope
from specchk.symbolic.induction.encode.states import keys
from specchk.symbolic.induction.encode.trees import BagOf, CannotEncode, Opt, Tree, expanded, plain, tagged

Rule = Callable[[Apply, Sequence[Tree], StepScope], Tree]


def _pure(fn: Callable[..., Tree]) -> Rule:
    return lambda expr, args, scope: fn(*args)


def _tuple(_: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    return tuple(args)


def _divided(fn: Callable[[Tree, Tree], Tree]) -> Rule:
    def rule(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
        scope.fail(numbers.equal_numbers(args[1], 0))
        return fn(args[0], args[1])

    return rule


def _with_field(expr: Apply, args: Sequence[Tree], _: StepScope) -> Tree:
    old = args[0]
    return (*old[: expr.data], args[1], *old[expr.data + 1 :])


def _variant(expr: Apply, args: Sequence[Tree], _: StepScope) -> Tree:
    return tagged(expr.data, args[0], len(of_shape(expr.type, Union).variants))


def _get(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    scope.fail(negation(args[0].present))
    return args[0].item


def decided_position(kind: Type, key: Tree) -> int | None:
    """The position of a key in a map over `kind`; None if it is not decided, or not in the map."""
    value = key if isinstance(key, int) else plain(key)
    return None if value is None else positions(kind).get(value)


def key_guards(kind: Type, key: Tree, scope: StepScope) -> list[Truth]:
    """For each position of a map over `kind`, whether it is the key's; a fault outside the type."""
    known, values = keys(kind), expanded(key)
    if values is None:
        if not isinstance(kind, Int | Bool | Enum | Sort):
            raise CannotEncode("this key cannot be listed")
        # An offset as a key: its values cannot be listed, but it can be compared with each position.
        guards: list[Truth] = [numbers.equal_numbers(key, value) for value in known]
        beyond = negation(disj(guards))
    else:
        # `expanded` may list one value several times, each time with a guard.
        table = positions(kind)
        guards = [False] * len(known)
        for value, guard in values:
            if value in table:
                guards[table[value]] = disj((guards[table[value]], guard))
        beyond = disj([guard for value, guard in values if value not in table])
    scope.fail(beyond)
    return guards


def _map_get(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    guards = key_guards(of_shape(expr.args[0].type, Map).key, args[1], scope)
    entry = select(list(zip(guards, args[0], strict=True)))
    # Any value of the type if there cannot be an entry, which is a fault.
    return args[0][0] if entry is None and args[0] else entry


def _map_set(expr: Apply, args: Sequence[Tree], scope: StepScope) -> Tree:
    guards = key_guards(of_shape(expr.args[0].type, Map).key, args[1], scope)
    # Any position may be the one that is written: it has the new value under its guard, else the old one.
    return tuple([merge(guard, args[2], old) for guard, old in zip(guards, args[0], strict=True)])


RULES: MappingProxyType[Op, Rule] = MappingProxyType(
    {
        Op.EQ: _pure(equal), Op.LT: _pure(numbers.less), Op.LE: _pure(numbers.at_most),
        Op.NOT: _pure(negation), Op.ADD: _pure(partial(numbers.combine, add)),
        Op.SUB: _pure(partial(numbers.combine, sub)), Op.MUL: _pure(partial(numbers.combine, mul)),
        Op.DIV: _divided(numbers.quotient), Op.MOD: _divided(numbers.remainder),
        Op.RECORD: _tuple, Op.FIELD: lambda expr, args, scope: args[0][expr.data], Op.WITH_FIELD: _with_field,
        Op.VARIANT: _variant, Op.IS_VARIANT: lambda expr, args, scope: tag_is(args[0], expr.data),
        Op.SOME: _pure(lambda item: Opt(True, item)), Op.GET: _get,
        Op.MAP: _tuple, Op.MAP_GET: _map_get, Op.MAP_SET: _map_set,
        Op.SET: lambda expr, args, scope: set_of([(arg, True) for arg in args]),
        Op.RANGE: of.range_of, Op.IN_SET: _pure(lambda item, a: has(a, item)),
        Op.UNION: _pure(of.union), Op.CARD: _pure(of.cardinality),
        Op.SUBSETS: _pure(of.subsets), Op.MAPS: _pure(of.maps),
        Op.SEQ: _pure(of.seq_of), Op.SEQ_GET: of.seq_get, Op.SEQ_SET: of.seq_set,
        Op.LEN: _pure(lambda s: s.length), Op.CONCAT: _pure(of.concat),
        Op.PREFIX: of.prefix, Op.SUFFIX: of.suffix,
        Op.IN_SEQ: _pure(lambda item, s: has(of.seq_items(s), item)),
        Op.SEQ_ITEMS: _pure(of.seq_items), Op.IN_BAG: _pure(lambda item, b: has(set_of(b.items), item)),
        Op.BAG: _pure(lambda *items: BagOf(tuple([(item, True) for item in items]))),
        Op.BAG_ADD: _pure(lambda b, item: BagOf((*b.items, (item, True)))), Op.BAG_REMOVE: of.bag_remove,
        Op.BAG_COUNT: _pure(count), Op.BAG_UNION: _pure(lambda a, b: BagOf((*a.items, *b.items))),
        Op.BAG_CARD: _pure(lambda b: numbers.counted([guard for _, guard in b.items])),
        Op.BAG_ITEMS: _pure(lambda b: set_of(b.items)),
    }
)  # fmt: skip
