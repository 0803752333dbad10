"""The expression checker: one total dispatch over the tree's expressions, and calls."""

from __future__ import annotations

from typing import assert_never

from specchk.lang.check.base import Context
from specchk.lang.check.builtins import BUILTINS, check_fold
from specchk.lang.check.forms import Forms
from specchk.lang.check.spec import Ref, Spec
from specchk.lang.check.types import BOOL, INT, UNKNOWN, Option, Record, Type, Union, show
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import counted, nearest


class Checker(Forms):
    """Types of all expressions; `lang.check.declarations` checks the statements around them."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._returns: dict[int, Type] = {}
        self.open_defs: list[decls.Def] = []  # whose bodies are being checked, outermost first

    def infer(self, node: tree.Expr, context: Context, expected: Type | None) -> Type:
        """See `Base.infer`."""
        match node:
            case tree.Name():
                return self.check_name(node, context, expected)
            case tree.IntLiteral():
                return INT
            case tree.BoolLiteral():
                return BOOL
            case tree.NoneLiteral():
                return expected if isinstance(expected, Option) else Option(UNKNOWN)
            case tree.Unary():
                return self.check_unary(node, context)
            case tree.Binary():
                return self.check_binary(node, context, expected)
            case tree.Prime():
                return self.check(node.operand, context, expected)
            case tree.Index():
                return self.check_index(node, context)
            case tree.Field():
                return self.check_field(node, context, expected)
            case tree.Call():
                return self.check_call(node, context, expected)
            case tree.Fold():
                return check_fold(self, node, context)
            case _:
                return self._infer_form(node, context, expected)

    def _infer_form(
        self,
        node: tree.Quantified | tree.IfElse | tree.LetIn | tree.Match | tree.SetLiteral | tree.SeqLiteral
        | tree.PairLiteral | tree.SetComp | tree.MapComp | tree.With,
        context: Context,
        expected: Type | None,
    ) -> Type:  # fmt: skip
        match node:
            case tree.Quantified():
                return self.check_quantified(node, context)
            case tree.IfElse():
                return self.check_if(node, context, expected)
            case tree.LetIn():
                return self.check_let(node, context, expected)
            case tree.Match():
                return self.check_match(node, context, expected)
            case tree.SetLiteral():
                return self.check_set(node, context, expected)
            case tree.SeqLiteral():
                return self.check_seq(node, context, expected)
            case tree.PairLiteral():
                return self.check_pairs(node, context, expected)
            case tree.SetComp():
                return self.check_set_comp(node, context, expected)
            case tree.MapComp():
                return self.check_map_comp(node, context, expected)
            case tree.With():
                return self.check_with(node, context, expected)
            case _:
                assert_never(node)

    def check_call(self, node: tree.Call, context: Context, expected: Type | None) -> Type:
        """A definition, built-in or constructor applied to arguments."""
        home = context.spec.lookup(node.callee.qualifier)
        name = node.callee.text
        if home is not None and name in home.variants:
            return self._construct(node, home, context)
        if home is not None and name in home.defs:
            return self._apply(node, home, context)
        if node.callee.qualifier is None and name in BUILTINS:
            return self._builtin(node, context, expected)
        for arg in node.args:
            self.check(arg.value, context)
        self._not_callable(node, home, context)
        return UNKNOWN

    def _not_callable(self, node: tree.Call, home: Spec | None, context: Context) -> None:
        name = node.callee.text
        if home is None:
            self.no_import(node.callee, context)
        elif name in home.declared or name in context.locals:
            what = "an action" if name in home.actions else "not a definition"
            self.report.add(
                "S203",
                node.callee.span,
                f"`{name}` is {what}, it cannot be called in an expression",
                "maps are indexed with brackets: `m[k]`" if name in home.variables else None,
            )
        else:
            known = [*home.defs, *home.variants, *BUILTINS]
            self.report.add(
                "S201", node.callee.span, f"no definition `{name}` is known here", nearest(name, known)
            )

    def _builtin(self, node: tree.Call, context: Context, expected: Type | None) -> Type:
        self.facts.refs[id(node)] = Ref("builtin", node.callee.text)
        fewest, most, rule = BUILTINS[node.callee.text]
        values = self._positional(node)
        if not fewest <= len(values) <= most:
            wanted = str(fewest) if fewest == most else f"{fewest} to {most}"
            self.report.add(
                "S302", node.span, f"`{node.callee.text}` takes {counted(wanted)}, not {len(values)}"
            )
            for value in values:
                self.check(value, context)
            return UNKNOWN
        return rule(self, values, context, expected)

    def _positional(self, node: tree.Call) -> tuple[tree.Expr, ...]:
        for arg in node.args:
            if arg.label is not None:
                self.report.add(
                    "S302",
                    arg.span,
                    f"`{node.callee.text}` takes its arguments by position",
                    "labels are for the fields of a union's constructor",
                )
        return tuple(arg.value for arg in node.args)

    def _apply(self, node: tree.Call, home: Spec, context: Context) -> Type:
        decl = home.defs[node.callee.text]
        self.facts.refs[id(node)] = Ref("def", decl.name, home)
        values = self._positional(node)
        if len(values) != len(decl.params):
            self.report.add(
                "S302",
                node.span,
                f"`{decl.name}` takes {counted(len(decl.params))}, not {len(values)}",
                notes=[(decl.span.word(decl.name), "declared here")],
            )
        for value, param in zip(values, decl.params, strict=False):
            self.check(value, context, self.resolver.resolve(param.type, home))
        for value in values[len(decl.params) :]:
            self.check(value, context)
        return self.returns(decl, home, node)

    def returns(self, decl: decls.Def, home: Spec, use: tree.Node) -> Type:
        """The type of a definition's value; checks its body on first use."""
        known = self._returns.get(id(decl))
        if known is not None:
            return known
        met = next((index for index, open_ in enumerate(self.open_defs) if open_ is decl), None)
        if met is not None:
            circle = [*self.open_defs[met:], decl]
            self.report.add("S206", use.span,
                            f"definitions may not be recursive: {' -> '.join(d.name for d in circle)}",
                            "iterate with a quantifier, a comprehension, min, max or sum")  # fmt: skip
            return UNKNOWN
        self.open_defs.append(decl)
        found = self._body(decl, home)
        self.open_defs.pop()
        self._returns[id(decl)] = found
        return found

    def _body(self, decl: decls.Def, home: Spec) -> Type:
        context = Context(home)
        for param in decl.params:
            self.fresh(param.name, param.span, context)
            context = context.bind(param.name, self.resolver.resolve(param.type, home))
        context = self.lets(decl.lets, context)
        wanted = self.resolver.resolve(decl.returns, home) if decl.returns is not None else None
        found = self.settle(decl.value, context, wanted)
        return wanted if wanted is not None else found

    def lets(self, lets: tuple[decls.Let, ...], context: Context) -> Context:
        """The context after `let` lines."""
        for let in lets:
            kind = self.settle(let.value, context)
            self.fresh(let.name, let.span, context)
            context = context.bind(let.name, kind)
        return context

    def _construct(self, node: tree.Call, home: Spec, context: Context) -> Type:
        tag = node.callee.text
        owner = home.variants[tag]
        kind = self.resolver.declared(owner, home, home.types[owner])
        self.facts.refs[id(node)] = Ref("constructor", tag, home)
        fields = (kind.get(tag) if isinstance(kind, Union) else None) or Record(())
        given: set[str] = set()
        strangers = False
        for arg in node.args:
            label = arg.label or ""
            wanted = fields.get(label)
            if wanted is None:
                strangers = True
                self.report.add("S305", arg.span, f"`{tag}` has no field `{label}`" if label else
                                f"the fields of `{tag}` are given by name",
                                f"it is {tag}({show(fields)[2:-2]})")  # fmt: skip
            given.add(label)
            self.check(arg.value, context, wanted)
        missing = [name for name, _ in fields.fields if name not in given]
        if missing and not strangers:
            self.report.add(
                "S305", node.span, f"`{tag}` lacks {', '.join(missing)}", f"it is {tag}({show(fields)[2:-2]})"
            )
        return kind
