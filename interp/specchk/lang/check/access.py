"""Types of parts: fields, elements of maps and sequences, and places at the end of a path."""

from __future__ import annotations

from specchk.lang.check.builtins import BUILTINS
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.names import check_as_name, foreign_hint
from specchk.lang.check.types import UNKNOWN, Map, Option, PartialMap, Record, Seq, Type, Union, show
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import nearest


def check_index(checker: Checker, node: tree.Index, context: Context, _: Type | None) -> Type:
    """`m[k]`, `s[i]`."""
    base = checker.check(node.base, context)
    return element_at(checker, base, node.key, node.base, context)


def element_at(checker: Checker, base: Type, key: tree.Expr, base_node: tree.Node, context: Context) -> Type:
    """The type of an element of a map or sequence, the key checked."""
    if isinstance(base, Map | PartialMap):
        checker.check(key, context, base.key)
        return base.value
    if isinstance(base, Seq):
        checker.integer(key, context)
        return base.item
    checker.check(key, context)
    checker.unfit(
        base_node.span, base, f"only maps and sequences are indexed, this is {show(base)}", apart_hint(base)
    )
    return UNKNOWN


def check_field(checker: Checker, node: tree.Field, context: Context, expected: Type | None) -> Type:
    """`r.f`, or a name of an imported file."""
    base = node.base
    # `log.truncate` and `r.f` parse alike; a local name hides an import, as it hides every other name.
    if isinstance(base, tree.Name) and base.text not in context.locals and context.spec.lookup(base.text):
        return check_as_name(checker, node, tree.Name(node.span, node.name, base.text), context, expected)
    return field_of(checker, checker.check(base, context), node.name, node)


def field_of(checker: Checker, base: Type, name: str, node: tree.Field | tree.Accessor | tree.Change) -> Type:
    """The type of a record's field."""
    if isinstance(base, Record):
        kind = base.get(name)
        if base.is_tuple:
            checker.report.add("S305", node.span, "the parts of a tuple have no names", apart_hint(base))
        elif kind is None:
            checker.report.add("S305", node.span, f"{show(base)} has no field `{name}`",
                               nearest(name, (f for f, _ in base.fields)))  # fmt: skip
        return kind or UNKNOWN
    apart = "take it apart with `match`" if isinstance(base, Union) else None
    prefix = (
        f"functions are written in prefix form: `{name}(...)`" if name in BUILTINS else foreign_hint(name)
    )
    hint = apart_hint(base) or apart or prefix
    checker.unfit(node.span, base, f"only records have fields, this is {show(base)}", hint)
    return UNKNOWN


def place_at(
    checker: Checker, base: Type, path: tuple[tree.Accessor, ...], start: tree.Node, context: Context
) -> Type:
    """The type at the end of an update path."""
    before: tree.Node = start
    for step in path:
        if step.field is not None:
            base = field_of(checker, base, step.field, step)
        elif step.index is not None:
            base = element_at(checker, base, step.index, before, context)
        before = step
    return base


def outside_of_partial(base: Type, path: tuple[tree.Accessor, ...]) -> tuple[tree.Accessor, ...]:
    """The path to the outermost partial map on a path: an assignment inside it assigns all of it."""
    for at, step in enumerate(path):
        match base:
            case PartialMap():
                return path[:at]
            case Map():
                base = base.value
            case Seq():
                base = base.item
            case Record() if step.field is not None:
                base = base.get(step.field) or UNKNOWN
    return path


def apart_hint(base: Type) -> str | None:
    """A hint on reading the content of an option or the parts of a tuple."""
    if isinstance(base, Record) and base.is_tuple:
        names = ", ".join("xyzuvwabc"[: len(base.fields)])
        return f"take it apart: `let ({names}) = ...`, `for ({names}) in ...`"
    return "unwrap it: `let x = ... else skip`, `get(...)` or `match`" if isinstance(base, Option) else None
