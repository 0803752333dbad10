"""The checker of expressions: the state that all of its rules share.

Checking is bidirectional: `check(node, context, expected)` gives a node's type and records it in
the facts; `expected` is passed inwards to literals whose text does not determine their type (`{}`, `none`,
`{ a: 1 }`), and a mismatch is reported at the innermost place where it is visible.

The rules are functions of a checker, a module for each subject (`names`, `access`, `operators`, `forms`,
`calls`, `builtins`); `expressions` chooses the rule of a node and makes checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.lang.check import types
from specchk.lang.check.declare import TypeResolver
from specchk.lang.check.levels import Level, LevelChecker
from specchk.lang.check.spec import Facts, Spec
from specchk.lang.check.types import BOOL, INT, UNKNOWN, Type, is_complete, join, lifts, show
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report, counted, nearest
from specchk.lang.text.source import Span


class Signature(Struct, frozen=True):
    """The types of an operator's parameters and of its value."""

    params: tuple[Type, ...]
    result: Type

    @property
    def shown(self) -> str:
        """The signature as written in a definition's parameter."""
        return f"({', '.join(show(kind) for kind in self.params)}) => {show(self.result)}"


class Context(Struct, frozen=True):
    """The context of an expression: its namespace and the names bound around it.

    `elements` are the sort elements that models and scenarios may name (name -> sort type);
    `properties` is whether invariants may be used as boolean names (scenario asserts, the REPL).
    `operators` are the parameters of a definition that are operators.
    """

    spec: Spec
    locals: Mapping[str, Type] = field(default_factory=dict)
    elements: Mapping[str, Type] = field(default_factory=dict)
    properties: bool = False
    operators: Mapping[str, Signature] = field(default_factory=dict)

    def bind(self, name: str, kind: Type) -> Context:
        """The context inside a binder."""
        return replace(self, locals={**self.locals, name: kind})


Called = decls.Def | decls.Action | decls.Helper  # by a name, with arguments
Infer = Callable[["Checker", tree.Expr, Context, "Type | None"], Type]


class Checker:
    """Infers types of expressions by `rules`, one for each node kind; `expected` is only advice to them."""

    def __init__(self, facts: Facts, report: Report, rules: Infer) -> None:
        self.facts = facts
        self.report = report
        self.resolver = TypeResolver(facts, report)
        self.levels = LevelChecker(facts, report)
        self.open_defs: list[decls.Def] = []  # definitions whose bodies are being checked, outermost first
        self._rules = rules
        self._returns: dict[int, Type] = {}
        self._scalars: dict[int, tuple[tree.Expr, Context]] = {}  # with their node, so that ids stay unique

    def check(self, node: tree.Expr, context: Context, expected: Type | None = None) -> Type:
        """The type of `node`, recorded; a mismatch with `expected` is reported."""
        return self.expect(node, self.infer(node, context, expected), expected)

    def typed(self, node: tree.Expr, context: Context, kind: Type, most: Level, place: str) -> None:
        """Check that `node` has a type, and no part above the level that its place allows."""
        self.check(node, context, kind)
        self.levels.demand(node, most, place)

    def infer(self, node: tree.Expr, context: Context, advice: Type | None = None) -> Type:
        """The type of `node`, recorded, but not compared with the expected type."""
        actual = self.facts.types[id(node)] = self._rules(self, node, context, advice)
        return actual

    def expect(self, node: tree.Expr, actual: Type, expected: Type | None) -> Type:
        """The type of an inferred `node`, recorded; a mismatch with `expected` is reported."""
        self.facts.lifted.pop(id(node), None)
        if expected is not None:
            if lifts(actual, expected):
                self.facts.types[id(node)], self.facts.lifted[id(node)] = actual, expected
                return expected
            joined = join(actual, expected)
            if joined is None:
                self.mismatch(node.span, actual, expected)
                joined = expected
            # A complete type stays as it is: a join would give a record the other's order of fields, and take
            # the bounds off a number. Only holes, as the item of `{}`, are filled from outside.
            actual = joined if not is_complete(actual) else actual
        self.facts.types[id(node)] = actual
        return actual

    def agreed(self, node: tree.Expr, context: Context, actual: Type, other: Type) -> Type:
        """The common type of a checked `node` and another expression, which may determine more of it."""
        joined = join(actual, other) or actual
        # Again, since the literals in it have no complete type yet: in `{} union s` the set determines it.
        if joined != actual:
            self.check(node, context, joined)
        return joined

    def meet(self, left: tree.Expr, left_type: Type, right: tree.Expr, context: Context) -> Type:
        """The common type of two operands, the left one checked; an element of a sort may be lifted."""
        actual = self.operand(right, context, left_type)
        if lifts(left_type, actual):
            return self.expect(left, left_type, actual)
        return self.agreed(
            left, context, left_type, self.expect(right, actual, left_type if left_type != UNKNOWN else None)
        )

    def operand(self, node: tree.Expr, context: Context, other: Type) -> Type:
        """The type of an operand, inferred; it may be lifted to the known type of the other operand."""
        sort = other.item if isinstance(other, types.Set) else other
        if isinstance(sort, types.Sort) and not context.elements:
            # With the other's type for advice, an `if` would demand it of its branches.
            actual = self.infer(node, context)
            if is_complete(actual):
                return actual
        return self.infer(node, context, other if other != UNKNOWN else None)

    def settle(self, node: tree.Expr, context: Context, expected: Type | None = None) -> Type:
        """As `check`, with a diagnostic if the type remains unknown."""
        actual = self.check(node, context, expected)
        # Only where nothing is wrong so far: a type that stays open is mostly the consequence of an error
        # that is reported already.
        if not is_complete(actual) and not self.report.found:
            self.report.add(
                "S303",
                node.span,
                f"the type of this cannot be inferred: {show(actual)}",
                "use it where its type is declared, e.g. in a variable or a parameter",
            )
        return actual

    def boolean(self, node: tree.Expr, context: Context) -> None:
        """Check that `node` is a truth value."""
        self._scalar(node, context, BOOL)

    def integer(self, node: tree.Expr, context: Context) -> None:
        """Check that `node` is a number."""
        self._scalar(node, context, INT)

    def _scalar(self, node: tree.Expr, context: Context, kind: Type) -> None:
        # Parts are checked again where their place shows more of their type. A scalar has no holes to be
        # filled: nested conditions, checked again each, would double the work with every level.
        if self._scalars.get(id(node)) != (node, context):
            self._scalars[id(node)] = (node, context)
            actual = self.infer(node, context, kind)
            if actual == UNKNOWN and kind == BOOL:
                self.unfit(node.span, actual, "")
            self.expect(node, actual, kind)

    def mismatch(self, span: Span, actual: Type, expected: Type, hint: str | None = None) -> None:
        """Report a wrong type, unless one side has an error already; without a `hint` with the usual one."""
        if hint is not None:
            pass
        elif isinstance(expected, types.Option) and join(actual, expected.item) is not None:
            hint = f"wrap it: `some({span.text})`"
        elif isinstance(actual, types.Option) and actual.item != UNKNOWN and join(actual.item, expected):
            hint = "unwrap it: `let x = ... else skip`, `get(...)` or `match`"
        elif isinstance(actual, types.Union) and lifts(expected, actual):
            hint = f"take it apart: `match {span.text} {{ {show(expected)} x: ..., _: ... }}`"
        else:
            hint = _collection_hint(span, actual, expected)
        self.report.add("S301", span, f"expected {show(expected)}, found {show(actual)}", hint)

    def unfit(self, span: Span, actual: Type, message: str, hint: str | None = None) -> None:
        """Report a value whose type does not allow this use; if unknown, only without other errors."""
        if actual != UNKNOWN:
            self.report.add("S301", span, message, hint)
        elif not self.report.found:  # otherwise the reason may have been reported already
            self.report.add("S301", span, "this has no type: it is an item of `{}`, `[]` or `none`",
                            "nothing here gives the empty one a type; write one that has items")  # fmt: skip

    def elements(self, node: tree.Expr, context: Context) -> Type:
        """The element type of an iterated value: a set, sequence or bag, or the keys of a partial map."""
        actual = self.check(node, context)
        if isinstance(actual, types.Set | types.Seq | types.Bag):
            return actual.item
        if isinstance(actual, types.PartialMap):
            return actual.key
        self.unfit(node.span, actual, f"expected a set to choose from, found {show(actual)}",
                   "`0..n` is the set of numbers from 0 to n")  # fmt: skip
        return UNKNOWN

    def bind(self, binders: tuple[tree.Binder, ...], context: Context) -> Context:
        """The context inside `x in S, y in T`; later domains see earlier names."""
        for binder in binders:
            kind = self.elements(binder.domain, context)
            self.facts.binders[id(binder)] = kind
            context = self.bound(binder.bound, kind, binder, context)
        return context

    def bound(self, bound: tree.Bound, kind: Type, node: tree.Node, context: Context) -> Context:
        """The context in which a name has a type, or the names of a tuple have the types of its parts."""
        if isinstance(bound, str):
            self.fresh(bound, node.span, context)
            return context.bind(bound, kind)
        parts = [part for _, part in kind.fields] if isinstance(kind, types.Record) and kind.is_tuple else []
        if len(parts) != len(bound):
            message = f"`{tree.shown(bound)}` takes a tuple of {len(bound)} apart, this is {show(kind)}"
            hint = (
                "a record's parts have names: `x.f`" if isinstance(kind, types.Record) and not parts else None
            )
            if isinstance(node, tree.Binder) and not isinstance(kind, types.Record):
                hint = "names that are each an item are bound without parentheses: `x, y in S`"
            self.unfit(node.span, kind, message, hint)
            parts = [UNKNOWN] * len(bound)
        for name, part in zip(bound, parts, strict=True):
            context = self.bound(name, part, node, context)
        return context

    def fresh(self, name: str, span: Span, context: Context) -> None:
        """Report a bound name that would hide another."""
        if name == "_":
            return
        bound = (context.locals, context.operators, context.spec.variables, context.spec.consts)
        if any(name in table for table in bound):
            self.report.add("S208", span.word(name), f"`{name}` is already bound here and cannot be shadowed",
                            f"choose another name, e.g. `{name}2`")  # fmt: skip

    def returns(self, decl: decls.Def, home: Spec, use: tree.Node) -> Type:
        """The type of a definition's value; checks its body on first use."""
        returns = self._returns.get(id(decl))
        if returns is not None:
            return returns
        if any(open_ is decl for open_ in self.open_defs):
            return self._returned_again(decl, home, use)
        # Bodies are checked when a use needs their type, so definitions may be in any order; one whose check
        # is in progress depends on itself.
        self.open_defs.append(decl)
        actual = self._body(decl, home)
        self.open_defs.pop()
        self._returns[id(decl)] = actual
        return actual

    def _returned_again(self, decl: decls.Def, home: Spec, use: tree.Node) -> Type:
        """The type of a recursive call's value: the declared one."""
        if decl.returns is not None:
            return self.resolver.resolve(decl.returns, home)
        if decl.measure is not None:
            message = f"`{decl.name}` is recursive, and its result has no declared type"
            self.report.add("S303", use.span, message, f"declare it: `def {decl.name}(...): T`",
                            [(decl.span.word(decl.name), "declared here")])  # fmt: skip
        return UNKNOWN

    def _body(self, decl: decls.Def, home: Spec) -> Type:
        context = self.inside(decl, home)
        if decl.measure is not None:
            self._measure(decl.measure, context)
        context = self.lets(decl.lets, context)
        wanted = self.resolver.resolve(decl.returns, home) if decl.returns is not None else None
        actual = self.settle(decl.value, context, wanted)
        # As declared, also where the body is wrong: the error is the body's, and none of its callers'.
        return wanted if wanted is not None else actual

    def _measure(self, node: tree.Expr, context: Context) -> None:
        """Check that the measure of a recursion is a number, or a collection (measured by its size)."""
        actual = self.check(node, context)
        if not isinstance(actual, types.Int | types.Set | types.Seq | types.Bag | types.PartialMap):
            message = f"a measure is a number or a collection, whose size counts, and this is {show(actual)}"
            self.unfit(node.span, actual, message, "it decreases with each recursive call: `len(s)`, `n`")

    def inside(self, decl: Called, home: Spec) -> Context:
        """The context inside a declaration with parameters."""
        context = Context(home)
        for param in decl.params:
            self.fresh(param.name, param.span, context)
            if isinstance(param, decls.OperatorParam):
                signature = self.signature(param, home)
                context = replace(context, operators={**context.operators, param.name: signature})
            else:
                context = context.bind(param.name, self.resolver.resolve(param.type, home))
        return context

    def refuse_labels(self, name: str, args: tuple[tree.Argument, ...], hint: str | None = None) -> None:
        """Report arguments with a label."""
        for arg in args:
            if arg.label is not None:
                self.report.add("S302", arg.span, f"`{name}` takes its arguments by position", hint)

    def check_count(self, decl: Called, given: int, span: Span, hint: str | None = None) -> bool:
        """Whether a call gives a declaration as many arguments as parameters; else it is reported."""
        if given != len(decl.params):
            message = f"`{decl.name}` takes {counted(len(decl.params))}, not {given}"
            self.report.add("S302", span, message, hint, [(decl.span.word(decl.name), "declared here")])
        return given == len(decl.params)

    def signature(self, param: decls.OperatorParam, home: Spec) -> Signature:
        """The signature declared by a definition's parameter."""
        params = tuple(self.resolver.resolve(node, home) for node in param.params)
        return Signature(params, self.resolver.resolve(param.result, home))

    def lets(self, lets: tuple[decls.Let, ...], context: Context) -> Context:
        """The context after `let` lines."""
        for let in lets:
            context = self.bound(let.bound, self.settle(let.value, context), let, context)
        return context

    def unknown(self, name: tree.Name, table: Collection[str], noun: str, spec: Spec) -> None:
        """Report a name that is not in a table of the spec."""
        if name.qualifier is None and name.text in spec.declared:
            message = f"`{name.full}` is not {'an' if noun[0] in 'aeiou' else 'a'} {noun}"
            hint = nearest(name.text, table)
            if noun == "action" and name.text in spec.helpers:
                hint = "a helper action is not a step of its own: name the actions that call it"
            note = (spec.declared[name.text], "declared here")
            self.report.add("S203", name.span, message, hint, [note])
            return
        self.report.add("S201", name.span, f"there is no {noun} `{name.full}`", nearest(name.text, table))


def _collection_hint(span: Span, actual: Type, expected: Type) -> str | None:
    """Hints for making a collection from an item, or a number from a collection."""
    match expected, actual:
        case ((types.Set() | types.Bag()), _) if join(actual, expected.item) is not None:
            return f"write `{{{span.text}}}`, the set of it alone"
        case types.Seq(), _ if join(actual, expected.item) is not None:
            return f"write `[{span.text}]`, the sequence of it alone"
        case types.Seq(), types.Set(types.Unknown()):
            return "the empty sequence is `[]`"
        case types.Map(), types.Set(types.Unknown()):
            return "a map has a value for each key: `{ k: e for k in K }`"
        case types.Map(), _ if join(actual, expected.value) is not None:
            keys = show(expected.key) if isinstance(expected.key, types.Sort | types.Enum) else "K"
            return f"a map has a value for each key: `{{ k: {span.text} for k in {keys} }}`"
        case types.Int(), types.Set() | types.Bag():
            return "sets and bags are joined by `union`; the number of items is `card(...)`"
        case types.Int(), types.Seq():
            return "sequences are joined by `++`; the number of items is `len(...)`"
    return None
