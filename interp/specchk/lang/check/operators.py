"""Types of unary and binary operators."""

from __future__ import annotations

from msgspec.structs import replace

from specchk.lang.check import types
from specchk.lang.check.access import apart_hint
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.types import BOOL, INT, UNKNOWN, Type, join, lifts, show
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import nearest


def check_unary(checker: Checker, node: tree.Unary, context: Context, _: Type | None) -> Type:
    """`not`, `-`, `eventually`, `always`."""
    if node.op == "-":
        checker.integer(node.operand, context)
        return INT
    checker.boolean(node.operand, context)
    return BOOL


def check_binary(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    """Every binary operator."""
    match node.op:
        case "and" | "or" | "implies" | "iff" | "leadsto":
            checker.boolean(node.left, context)
            checker.boolean(node.right, context)
        case "==" | "!=":
            # Either side may be the one that shows the type (`s == {}`, `{} == s`): the right is checked with
            # the left's, and the left again if the right has more.
            checker.meet(node.left, checker.check(node.left, context), node.right, context)
        case "<" | "<=" | ">" | ">=":
            _ordered(checker, node, context)
        case "in" | "not in":
            _membership(checker, node, context)
        case "subset":
            _set_pair(checker, node, context, None)
        case "is":
            _is(checker, node, context)
        case "..":
            checker.integer(node.left, context)
            checker.integer(node.right, context)
            return types.Set(INT)
        case "union" | "intersect":
            return _set_pair(checker, node, context, expected)
        case "++":
            return _concatenation(checker, node, context, expected)
        case "-":
            return _difference(checker, node, context, expected)
        case _:
            return _arithmetic(checker, node, context)
    return BOOL


def _arithmetic(checker: Checker, node: tree.Binary, context: Context) -> Type:
    left = checker.infer(node.left, context, INT)
    # A collection is reported: the other operand would only repeat it.
    if isinstance(left, types.Set | types.Seq | types.Bag):
        right = checker.check(node.right, context)
        is_item = node.op == "+" and isinstance(left, types.Set) and join(right, left.item) is not None
        one = f"one item is added with `{node.left.span.text} union {{{node.right.span.text}}}`"
        checker.mismatch(node.left.span, left, INT, one if is_item else None)
        return left
    checker.expect(node.left, left, INT)
    checker.integer(node.right, context)
    return INT


def _ordered(checker: Checker, node: tree.Binary, context: Context) -> None:
    sides = [(side, checker.check(side, context)) for side in (node.left, node.right)]
    for side, found in sides:
        if not isinstance(found, types.Int) and found != UNKNOWN:
            other = "only numbers have an order; everything else is compared with == and !="
            of_sets = "sets are compared with `subset`" if isinstance(found, types.Set) else None
            hint = of_sets or apart_hint(found) or other
            checker.report.add("S304", side.span, f"{show(found)} has no order", hint)
            return


def _membership(checker: Checker, node: tree.Binary, context: Context) -> None:
    # The container first: it has the type that a `none` or a record on the left needs.
    container = checker.check(node.right, context)
    if isinstance(container, types.Set | types.Seq | types.Bag):
        found = checker.operand(node.left, context, container.item)
        if lifts(container, types.Set(found)):
            checker.expect(node.right, container, types.Set(found))
            return
        found = checker.expect(node.left, found, container.item)
        joined = join(found, container.item) or container.item
        if joined != container.item:
            checker.check(node.right, context, replace(container, item=joined))
    elif isinstance(container, types.PartialMap):
        checker.check(node.left, context, container.key)
    else:
        checker.check(node.left, context)
        whole = "a map's keys are all of its type's values"
        hint = whole if isinstance(container, types.Map) else apart_hint(container)
        checker.unfit(node.right.span, container, f"expected a set, found {show(container)}", hint)


def _set_pair(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    """Both sides are sets (or bags, for `union`) of one type, which is the result."""
    shapes = (types.Set, types.Bag) if node.op == "union" else (types.Set,)
    hint = expected if isinstance(expected, shapes) else None
    return _with_right(checker, node, checker.check(node.left, context, hint), context, hint)


def _difference(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    """An operation on numbers or on sets, according to the left side."""
    hint = expected if isinstance(expected, types.Set) else None
    # Inferred once, before it is clear whether the hint applies: a second check would double the work with
    # each minus of a chain.
    left = checker.infer(node.left, context, hint)
    if isinstance(left, types.Int):
        checker.integer(node.right, context)
        return INT
    return _with_right(checker, node, checker.expect(node.left, left, hint), context, hint)


def _with_right(checker: Checker, node: tree.Binary, left: Type, context: Context, hint: Type | None) -> Type:
    """The right side, checked after the left; the left is checked again if the right determines more."""
    shapes = (types.Set, types.Bag) if node.op == "union" else (types.Set,)
    if not isinstance(left, shapes) and left != UNKNOWN:
        checker.report.add("S301", node.left.span, f"expected a set, found {show(left)}")
        checker.check(node.right, context)
        return UNKNOWN
    if left == UNKNOWN:
        return checker.agreed(node.left, context, left, checker.check(node.right, context, hint))
    return checker.meet(node.left, left, node.right, context)


def _concatenation(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    left = checker.check(node.left, context, expected if isinstance(expected, types.Seq) else None)
    if not isinstance(left, types.Seq):
        checker.unfit(node.left.span, left, f"expected a sequence, found {show(left)}")
        return UNKNOWN
    joined = checker.agreed(node.left, context, left, checker.check(node.right, context, left))
    return types.Seq(joined.item) if isinstance(joined, types.Seq) else UNKNOWN


def _is(checker: Checker, node: tree.Binary, context: Context) -> None:
    union = checker.check(node.left, context)
    tag = node.right
    if isinstance(union, types.Union) and isinstance(tag, tree.Name):
        if union.get(tag.text) is None:
            checker.report.add("S305", tag.span, f"{union.name} has no variant `{tag.text}`",
                               nearest(tag.text, (t for t, _ in union.variants)))  # fmt: skip
    elif not isinstance(union, types.Union):
        checker.unfit(node.left.span, union, f"`is` tests for a variant of a union, not of {show(union)}")
