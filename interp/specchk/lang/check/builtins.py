"""The built-in functions: one table, name to signature, and one of their meanings, for readers."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType

from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.lambdas import check_enabled, check_item_fold
from specchk.lang.check.types import INT, UNKNOWN, Bag, Int, Option, PartialMap, Seq, Set, Type, show
from specchk.lang.syntax import tree

Arguments = tuple[tree.Expr, ...]
Rule = Callable[[Checker, Arguments, Context, "Type | None"], Type]


_NAMES: MappingProxyType[tuple[type, ...], str] = MappingProxyType(
    {(Set, Bag, PartialMap): "set, bag or `map[K, V]`", (PartialMap,): "`map[K, V]`",
     (Bag, PartialMap): "bag or `map[K, V]`", (Option, PartialMap): "option or `map[K, V]`"}
)  # fmt: skip


def _container(
    checker: Checker, node: tree.Expr, context: Context, shapes: tuple[type, ...],
    expected: Type | None = None,
) -> Type:  # fmt: skip
    actual = checker.check(node, context, expected)
    if not isinstance(actual, shapes):
        names = _NAMES.get(shapes) or " or ".join(shape.__name__.lower() for shape in shapes)
        sizes: dict[tuple[type, ...], str] = {
            (Seq,): "the number of its items is `card(...)`",
            (Set, Bag, PartialMap): "its length is `len(...)`",
        }
        hint = sizes.get(shapes) if isinstance(actual, Set | Seq | Bag) else None
        checker.unfit(node.span, actual, f"expected a {names}, found {show(actual)}", hint)
        return UNKNOWN
    return actual


def _item(kind: Type) -> Type:
    return kind.item if isinstance(kind, Set | Seq | Bag | Option) else UNKNOWN


def _extreme(checker: Checker, args: Arguments, context: Context, _: Type | None) -> Type:
    if len(args) > 1:
        for arg in args:
            checker.integer(arg, context)
        return INT
    return _sum(checker, args, context, None)


def _sum(checker: Checker, args: Arguments, context: Context, _: Type | None) -> Type:
    actual = checker.infer(args[0], context, Set(INT))
    if actual == UNKNOWN:
        checker.unfit(args[0].span, actual, "")
    return INT if isinstance(checker.expect(args[0], actual, Set(INT)), Set) else UNKNOWN


def _of(*shapes: type, result: Callable[[Type], Type]) -> Rule:
    """The rule of a function of one collection, whose type determines that of the result."""
    return lambda checker, args, context, _: result(_container(checker, args[0], context, shapes))


def _subsets(checker: Checker, args: Arguments, context: Context, expected: Type | None) -> Type:
    hint = expected.item if isinstance(expected, Set) and isinstance(expected.item, Set) else None
    return Set(Set(_item(_container(checker, args[0], context, (Set,), hint))))


def _maps(checker: Checker, args: Arguments, context: Context, expected: Type | None) -> Type:
    wanted = expected.item if isinstance(expected, Set) and isinstance(expected.item, PartialMap) else None
    hints = (Set(wanted.key), Set(wanted.value)) if wanted is not None else (None, None)
    sides = [_container(checker, arg, context, (Set,), hint) for arg, hint in zip(args, hints, strict=True)]
    return Set(PartialMap(_item(sides[0]), _item(sides[1])))


def _some(checker: Checker, args: Arguments, context: Context, expected: Type | None) -> Type:
    return Option(checker.check(args[0], context, expected.item if isinstance(expected, Option) else None))


def _get(checker: Checker, args: Arguments, context: Context, expected: Type | None) -> Type:
    if len(args) > 2:
        return _get_key(checker, args, context)
    of = checker.check(args[0], context)
    if isinstance(of, PartialMap):
        span = args[0].span
        checker.report.add("S302", span, "`get` of a `map[K, V]` takes 3 arguments: `get(m, k, d)`",
                           f"the value of a key that is there is `{span.text}[k]`")  # fmt: skip
        return of.value
    option = _container(checker, args[0], context, (Option,))
    item = _item(option)
    if len(args) == 2:
        default = checker.check(args[1], context, item if item != UNKNOWN else expected)
        return _item(checker.agreed(args[0], context, option, Option(default)))
    return item


def _get_key(checker: Checker, args: Arguments, context: Context) -> Type:
    """`get(m, k, d)`: the value of a key, or d."""
    container = _container(checker, args[0], context, (PartialMap,))
    kinds = (container.key, container.value) if isinstance(container, PartialMap) else (None, None)
    for arg, kind in zip(args[1:], kinds, strict=True):
        checker.check(arg, context, kind)
    return kinds[1] or UNKNOWN


def _keys(kind: Type) -> Type:
    return Set(kind.key) if isinstance(kind, PartialMap) else UNKNOWN


def _changed(*shapes: type) -> Rule:
    """The rule of `add` and `remove`: a bag with one item more or fewer, or a partial map without a key."""

    def rule(checker: Checker, args: Arguments, context: Context, expected: Type | None) -> Type:
        # Only `{}` needs it, which may be either of the two: a value that has a type shows its own.
        hint = expected if isinstance(expected, shapes) else None
        container = _container(checker, args[0], context, shapes, hint)
        if isinstance(container, PartialMap):
            checker.check(args[1], context, container.key)
            return container
        item = _item(container)
        checker.check(args[1], context, item if item != UNKNOWN else None)
        return Bag(item)

    return rule


def _tail(checker: Checker, args: Arguments, context: Context, expected: Type | None) -> Type:
    container = _container(checker, args[0], context, (Seq,), expected if isinstance(expected, Seq) else None)
    for arg in args[1:]:
        checker.integer(arg, context)
    return Seq(_item(container))


def _append(checker: Checker, args: Arguments, context: Context, expected: Type | None) -> Type:
    container = _container(checker, args[0], context, (Seq,), expected if isinstance(expected, Seq) else None)
    item = checker.check(args[1], context, _item(container) if _item(container) != UNKNOWN else None)
    return Seq(_item(checker.agreed(args[0], context, container, Seq(item))))


def _count(checker: Checker, args: Arguments, context: Context, _: Type | None) -> Type:
    container = _container(checker, args[0], context, (Bag,))
    checker.check(args[1], context, _item(container))
    return INT


# name -> (fewest arguments, most, rule)
BUILTINS: MappingProxyType[str, tuple[int, int, Rule]] = MappingProxyType(
    {
        "min": (1, 99, _extreme), "max": (1, 99, _extreme), "sum": (1, 1, _sum),
        "card": (1, 1, _of(Set, Bag, PartialMap, result=lambda _: INT)),
        "subsets": (1, 1, _subsets), "some": (1, 1, _some), "get": (1, 3, _get),
        "len": (1, 1, _of(Seq, result=lambda _: INT)), "keys": (1, 1, _of(PartialMap, result=_keys)),
        "maps": (2, 2, _maps), "head": (1, 1, _of(Seq, result=_item)), "last": (1, 1, _of(Seq, result=_item)),
        "tail": (1, 1, _tail), "prefix": (2, 2, _tail), "suffix": (2, 2, _tail), "append": (2, 2, _append),
        "elements": (1, 1, _of(Seq, Bag, result=lambda kind: Set(_item(kind)))),
        "add": (2, 2, _changed(Bag)), "remove": (2, 2, _changed(Bag, PartialMap)), "count": (2, 2, _count),
        "fold": (3, 3, check_item_fold), "enabled": (1, 1, check_enabled),
    }
)  # fmt: skip
# function | on | is
_TABLE = """
min(a, b, ..), max(a, b, ..) | ints | the smallest, largest
min(S), max(S) | sets of ints | the same; undefined on `{}`
min(e for x in S), max(..), sum(..) | ints | over a bag of values: equal values count
sum(S), card(S) | sets | the sum, the number of elements
subsets(S) | set | the set of all subsets
maps(S, T) | sets | the set of all partial maps with just the keys S and values in T
some(x), get(o), get(o, d) | options | wrap; unwrap, undefined on none; unwrap or d
len(s), head(s), last(s), tail(s) | sequences | undefined on `[]`, except for len
append(s, x), prefix(s, n), suffix(s, n) | sequences | s then x; the first n; all but the first n
elements(s) | sequences, bags | the set of its items
fold(s, start, (acc, x) => e) | sets, sequences | e for each item in turn, acc being the value before
enabled(act), enabled(act(x, _)) | actions | whether an instance is enabled
keys(m), remove(m, k), get(m, k, d) | partial maps | remove is undefined if k is not a key; m[k], or d
add(b, x), remove(b, x), count(b, x), card(b) | bags | remove is undefined if x is not in b
"""


def _meanings() -> dict[str, tuple[str, ...]]:
    meanings: dict[str, tuple[str, ...]] = {}
    for row in _TABLE.strip().splitlines():
        calls, kinds, meaning = row.split(" | ")
        for name in dict.fromkeys(re.findall(r"(\w+)\(", calls)):
            if name in BUILTINS:
                meanings[name] = (*meanings.get(name, ()), f"`{calls}` on {kinds}: {meaning}")
    return meanings


# name -> the rows of the table that describe it
MEANINGS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(_meanings())
FOLDS = frozenset({"min", "max", "sum"})
QUANTIFIERS = frozenset({"all", "every", "any", "some", "forall", "exists"})  # in other languages


def check_fold(checker: Checker, node: tree.Fold, context: Context, _: Type | None) -> Type:
    """`min(e for x in S if c)`: an int over every choice of the binders."""
    # Not summed over a sequence or bag: whether equal items count once or twice would depend on the reader.
    inner = checker.bind(node.binders, context)
    for binder in node.binders:
        if isinstance(checker.facts.types.get(id(binder.domain)), Seq | Bag):
            message = "a fold ranges over a set, in which equal items count once"
            hint = f"say which: `elements({binder.domain.span.text})`, or an index `i in 0..len(...) - 1`"
            checker.report.add("S301", binder.domain.span, message, hint)
    if node.condition is not None:
        checker.boolean(node.condition, inner)
    actual = checker.check(node.body, inner)
    if node.callee.full not in FOLDS:
        hint = "min, max and sum do; sets are written `{ e for x in S }`"
        if node.callee.full in QUANTIFIERS:
            hint = "of every one of a set, `forall x in S: p`; of at least one, `exists x in S: p`"
        checker.report.add(
            "S302", node.callee.span, f"`{node.callee.full}` does not take a comprehension", hint
        )
        return UNKNOWN
    if not isinstance(actual, Int) and actual != UNKNOWN:
        checker.mismatch(node.body.span, actual, INT)
    return INT
