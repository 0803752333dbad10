"""Types of unary and binary operators."""

from __future__ import annotations

from msgspec.structs import replace

from specchk.lang.check.access import apart_hint
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.types import (
    BOOL,
    INT,
    UNKNOWN,
    Bag,
    Int,
    Map,
    PartialMap,
    Seq,
    Set,
    Type,
    Union,
    join,
    lifts,
    show,
)  # fmt: skip
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import nearest

_LOGIC = frozenset({"and", "or", "implies", "iff"})
_ORDER = frozenset({"<", "<=", ">", ">="})


def check_unary(checker: Checker, node: tree.Unary, context: Context, _: Type | None) -> Type:
    """`not`, `-`, `eventually`, `always`."""
    if node.op == "-":
        checker.integer(node.operand, context)
        return INT
    checker.boolean(node.operand, context)
    return BOOL


def check_binary(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    """Every binary operator."""
    op = node.op
    if op in _LOGIC or op == "leadsto":
        checker.boolean(node.left, context)
        checker.boolean(node.right, context)
        return BOOL
    if op in ("==", "!="):
        _same(checker, node.left, node.right, context)
        return BOOL
    if op in _ORDER:
        _ordered(checker, node, context)
        return BOOL
    if op in ("in", "not in"):
        return _membership(checker, node, context)
    if op == "subset":
        _set_pair(checker, node, context, None)
        return BOOL
    if op == "is":
        return _is(checker, node, context)
    return _value_operator(checker, node, context, expected)


def _value_operator(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    if node.op == "..":
        checker.integer(node.left, context)
        checker.integer(node.right, context)
        return Set(INT)
    if node.op in ("union", "intersect"):
        return _set_pair(checker, node, context, expected)
    if node.op == "++":
        return _concatenation(checker, node, context, expected)
    if node.op == "-":
        return _difference(checker, node, context, expected)
    checker.integer(node.left, context)
    left = checker.facts.types[id(node.left)]
    if isinstance(left, Set | Seq | Bag):  # which is reported: the other operand would only repeat it
        checker.check(node.right, context)
        return left
    checker.integer(node.right, context)
    return INT


def _same(checker: Checker, left: tree.Expr, right: tree.Expr, context: Context) -> Type:
    """Both sides have one type; a side of unknown type takes the other's."""
    # Either side may be the one that shows the type (`s == {}`, `{} == s`): the right is checked with the
    # left's, and the left again if the right has more.
    a = checker.check(left, context)
    return checker.meet(left, a, right, context)


def _ordered(checker: Checker, node: tree.Binary, context: Context) -> None:
    sides = [(side, checker.check(side, context)) for side in (node.left, node.right)]
    for side, found in sides:
        if not isinstance(found, Int) and found != UNKNOWN:
            checker.report.add("S304", side.span, f"{show(found)} has no order", _order_hint(found))
            return


def _membership(checker: Checker, node: tree.Binary, context: Context) -> Type:
    # The container first: it has the type that a `none` or a record on the left needs.
    container = checker.check(node.right, context)
    if isinstance(container, Set | Seq | Bag):
        found = checker.operand(node.left, context, container.item)
        if lifts(container, Set(found)):
            checker.expect(node.right, container, Set(found))
            return BOOL
        found = checker.expect(node.left, found, container.item)
        joined = join(found, container.item) or container.item
        if joined != container.item:
            checker.check(node.right, context, replace(container, item=joined))
        return BOOL
    if isinstance(container, PartialMap):
        checker.check(node.left, context, container.key)
        return BOOL
    checker.check(node.left, context)
    message = f"expected a set, found {show(container)}"
    checker.unfit(node.right.span, container, message, _membership_hint(container))
    return BOOL


def _set_pair(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    """Both sides are sets (or bags, for `union`) of one type, which is the result."""
    shapes = (Set, Bag) if node.op == "union" else (Set,)
    hint = expected if isinstance(expected, shapes) else None
    return _with_right(checker, node, checker.check(node.left, context, hint), context, hint)


def _difference(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    """An operation on numbers or on sets, according to the left side."""
    hint = expected if isinstance(expected, Set) else None
    # Inferred once, before it is clear whether the hint applies: a second check would double the work with
    # each minus of a chain.
    left = checker.infer(node.left, context, hint)
    if isinstance(left, Int):
        checker.integer(node.right, context)
        return INT
    return _with_right(checker, node, checker.expect(node.left, left, hint), context, hint)


def _with_right(checker: Checker, node: tree.Binary, left: Type, context: Context, hint: Type | None) -> Type:
    """The right side, checked after the left; the left is checked again if the right determines more."""
    shapes = (Set, Bag) if node.op == "union" else (Set,)
    if not isinstance(left, shapes) and left != UNKNOWN:
        checker.report.add("S301", node.left.span, f"expected a set, found {show(left)}")
        checker.check(node.right, context)
        return UNKNOWN
    if left == UNKNOWN:
        return checker.agreed(node.left, context, left, checker.check(node.right, context, hint))
    return checker.meet(node.left, left, node.right, context)


def _concatenation(checker: Checker, node: tree.Binary, context: Context, expected: Type | None) -> Type:
    left = checker.check(node.left, context, expected if isinstance(expected, Seq) else None)
    if not isinstance(left, Seq):
        checker.unfit(node.left.span, left, f"expected a sequence, found {show(left)}")
        return UNKNOWN
    joined = checker.agreed(node.left, context, left, checker.check(node.right, context, left))
    return Seq(joined.item) if isinstance(joined, Seq) else UNKNOWN


def _is(checker: Checker, node: tree.Binary, context: Context) -> Type:
    union = checker.check(node.left, context)
    tag = node.right
    if isinstance(union, Union) and isinstance(tag, tree.Name):
        if union.get(tag.text) is None:
            checker.report.add("S305", tag.span, f"{union.name} has no variant `{tag.text}`",
                               nearest(tag.text, (t for t, _ in union.variants)))  # fmt: skip
    elif not isinstance(union, Union):
        checker.unfit(node.left.span, union, f"`is` tests for a variant of a union, not of {show(union)}")
    return BOOL


def _order_hint(found: Type) -> str | None:
    if isinstance(found, Set):
        return "sets are compared with `subset`"
    return apart_hint(found) or "only numbers have an order; everything else is compared with == and !="


def _membership_hint(container: Type) -> str | None:
    return (
        "a map's keys are all of its type's values" if isinstance(container, Map) else apart_hint(container)
    )
