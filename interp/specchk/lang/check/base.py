"""What every part of the expression checker shares: contexts, errors, and the recursive entry.

Checking is bidirectional: `check(node, context, expected)` gives a node's type and records it in
the facts; `expected` flows inwards to literals whose type their text does not show (`{}`, `none`,
`{ a: 1 }`), and a mismatch is reported at the innermost place where it can be seen.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from specchk.lang.check.declare import TypeResolver
from specchk.lang.check.spec import Facts, Spec
from specchk.lang.check.types import (
    BOOL,
    INT,
    UNKNOWN,
    Bag,
    Bool,
    Enum,
    Int,
    Option,
    Record,
    Seq,
    Set,
    Sort,
    Type,
    Union,
    is_complete,
    join,
    show,
)  # fmt: skip
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import Report, nearest
from specchk.lang.text.source import Span


@dataclass(frozen=True, slots=True)
class Context:
    """The context of an expression: its namespace and the names bound around it.

    `elements` are the sort elements that models and scenarios may name (name -> sort type);
    `properties` says whether invariants may be used as boolean names (scenario asserts, the REPL).
    """

    spec: Spec
    locals: Mapping[str, Type] = field(default_factory=dict)
    elements: Mapping[str, Type] = field(default_factory=dict)
    properties: bool = False

    def bind(self, name: str, kind: Type) -> Context:
        """The context inside a binder."""
        return replace(self, locals={**self.locals, name: kind})


class Base:
    """State and helpers of the checker; the mixins add one `check_*` method a construct."""

    def __init__(self, facts: Facts, report: Report) -> None:
        self.facts = facts
        self.report = report
        self.resolver = TypeResolver(facts, report)

    @abstractmethod
    def infer(self, node: tree.Expr, context: Context, expected: Type | None) -> Type:
        """The type of a node from its parts; `expected` is advice, not a demand."""

    def check(self, node: tree.Expr, context: Context, expected: Type | None = None) -> Type:
        """The type of `node`, recorded; a mismatch with `expected` is reported."""
        found = self.infer(node, context, expected)
        if expected is not None:
            joined = join(found, expected)
            if joined is None:
                self.mismatch(node.span, found, expected)
                joined = expected
            found = joined if not is_complete(found) else found
        self.facts.types[id(node)] = found
        return found

    def settle(self, node: tree.Expr, context: Context, known: Type | None = None) -> Type:
        """`check`, with a diagnostic when the type stays unknown."""
        found = self.check(node, context, known)
        if not is_complete(found) and not self.report.found:
            self.report.add(
                "S303",
                node.span,
                f"the type of this cannot be inferred: {show(found)}",
                "use it where its type is declared, e.g. in a variable or a parameter",
            )
        return found

    def boolean(self, node: tree.Expr, context: Context) -> None:
        """Check that `node` is a truth value."""
        self.check(node, context, BOOL)

    def integer(self, node: tree.Expr, context: Context) -> None:
        """Check that `node` is a number."""
        self.check(node, context, INT)

    def mismatch(self, span: Span, found: Type, expected: Type) -> None:
        """Report a wrong type, unless one side is already in error."""
        hint = None
        if isinstance(expected, Option) and join(found, expected.item) is not None:
            hint = f"wrap it: `some({span.text})`"
        elif isinstance(found, Option) and join(found.item, expected) is not None:
            hint = "unwrap it: `let x = ... else skip`, `get(...)` or `match`"
        self.report.add("S301", span, f"expected {show(expected)}, found {show(found)}", hint)

    def elements(self, node: tree.Expr, context: Context) -> Type:
        """The element type of something iterated over: a set, sequence or bag."""
        found = self.check(node, context)
        match found:
            case Set() | Seq() | Bag():
                return found.item
            case type_ if type_ == UNKNOWN:
                return UNKNOWN
        self.report.add("S301", node.span, f"expected a set to choose from, found {show(found)}",
                        "`0..n` is the set of the numbers from 0 to n")  # fmt: skip
        return UNKNOWN

    def bind(self, binders: tuple[tree.Binder, ...], context: Context) -> Context:
        """The context inside `x in S, y in T`; later domains see earlier names."""
        for binder in binders:
            kind = self.elements(binder.domain, context)
            self.facts.binders[id(binder)] = kind
            self.fresh(binder.name, binder.span, context)
            context = context.bind(binder.name, kind)
        return context

    def fresh(self, name: str, span: Span, context: Context) -> None:
        """Report a bound name that would hide another."""
        if name == "_":
            return
        if name in context.locals or name in context.spec.variables or name in context.spec.consts:
            self.report.add("S208", span.word(name), f"`{name}` is already bound here and cannot be shadowed",
                            f"choose another name, e.g. `{name}2`")  # fmt: skip

    def unknown(self, name: tree.Name, table: Collection[str], what: str, spec: Spec) -> None:
        """Report a name that is not in a table of the spec."""
        if name.qualifier is None and name.text in spec.declared:
            self.report.add(
                "S203",
                name.span,
                f"`{name.full}` is not {_article(what)}",
                nearest(name.text, table),
                [(spec.declared[name.text], "declared here")],
            )
            return
        self.report.add("S201", name.span, f"there is no {what} `{name.full}`", nearest(name.text, table))

    def enumerable(self, kind: Type) -> bool:
        """Whether the values of a type can be listed once a model fixes the bounds."""
        match kind:
            case Int():
                return kind.high is not None
            case Bool() | Enum() | Sort():
                return True
            case Option():
                return self.enumerable(kind.item)
            case Record():
                return all(self.enumerable(item) for _, item in kind.fields)
            case Union():
                return all(self.enumerable(record) for _, record in kind.variants)
            case Set():
                return self.enumerable(kind.item)
        return kind == UNKNOWN


def _article(what: str) -> str:
    return f"an {what}" if what[0] in "aeiou" else f"a {what}"
