"""Lowering calls: definitions and operators are inlined, built-ins become nodes, folds are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from specchk.compile.enabled import EnabledLowering
from specchk.compile.ground import fold
from specchk.compile.names import Names
from specchk.compile.nodes import operators
from specchk.compile.nodes.partial_maps import is_partial_map
from specchk.compile.recursion import RecursionLowering, bounded
from specchk.compile.scope import Closure, Lowerings, Scope
from specchk.ir import types
from specchk.ir.nodes import Const, Expr, If, Local, Value, Var
from specchk.ir.ops import Op
from specchk.ir.program import ElementFold
from specchk.ir.types import (
    cardinality,
    has_horizon,
    hull,
    item_of,
    of_shape,
)
from specchk.ir.typing import sorts_in
from specchk.ir.walk import inside
from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span

MAX_FOLDED = 256  # items that a fold goes through: each is a copy of its operator


class _Item(Struct, frozen=True):
    """A place of a fold: its item and, if the item may be absent, the condition that it is present."""

    is_there: Expr | None
    value: Expr


class CallLowering:
    """The calls of one program."""

    def __init__(self, names: Names, lowerings: Lowerings) -> None:
        self.names = names
        self.facts = names.facts
        self.make = lowerings
        self.enabled = EnabledLowering(names, lowerings)
        self.recursion = RecursionLowering(names, lowerings)

    def lower(self, node: tree.CallExpr, scope: Scope) -> Expr:
        """The core of a call."""
        ref = self.facts.ref(node)
        if ref.kind == "builtin":
            if ref.name == "fold":
                return self._fold(node, scope)
            if ref.name == "enabled":
                return self.enabled.lower(node, scope)
            args = [self.make.expression(arg.value, scope) for arg in node.args]
            if is_partial_map(args[0].type) and ref.name in ("keys", "get", "remove"):
                table = self.make.partial
                rules: Mapping[str, Callable[..., Expr]]
                rules = {"keys": table.keys, "get": table.get, "remove": table.remove}
                return rules[ref.name](node.span, *args)
            return operators.builtin(node.span, node.callee.text, args)
        if ref.kind == "constructor":
            return self._construct(node, scope)
        if ref.kind == "operator":
            closure = scope.operators[ref.name]
            args = [self.make.expression(arg.value, scope) for arg in node.args]
            primed = closure.scope.primed or scope.primed
            # The calls around this place, and not those around the operator's text: each is to have an end.
            here = replace(closure.scope, primed=primed, calls=scope.calls)
            return self._applied(replace(closure, scope=here), args, node.span)
        home = ref.home
        assert home is not None
        decl = home.defs[ref.name]
        pairs = list(zip(decl.params, node.args, strict=True))
        values = [arg.value for param, arg in pairs if isinstance(param, decls.Param)]
        given = {
            p.name: self._closure(a.value, scope) for p, a in pairs if isinstance(p, decls.OperatorParam)
        }
        args = [self.make.expression(value, scope) for value in values]
        return self._applied(self._of_def(decl, home, given, scope), args, node.span)

    def _of_def(self, decl: decls.Def, home: Spec, operators: Mapping[str, Closure], scope: Scope) -> Closure:
        # None of the caller's names: a definition means the same wherever it is used.  Its arguments are
        # lowered already, and slots are never used twice, so nothing is captured.
        inner = replace(scope, home=home, operators=operators, names={}, owner="")
        names = tuple(param.name for param in decl.params if isinstance(param, decls.Param))
        return Closure(names, decl.lets, decl.value, inner, decl if decl.measure is not None else None)

    def _closure(self, node: tree.Expr, scope: Scope) -> Closure:
        """The operator given as an argument; names in a lambda have their meaning at the argument's place."""
        if isinstance(node, tree.Lambda):
            return Closure(node.params, (), node.body, scope)
        ref = self.facts.ref(node)
        if ref.kind == "operator":
            return scope.operators[ref.name]
        assert ref.home is not None
        return self._of_def(ref.home.defs[ref.name], ref.home, {}, scope)

    def _applied(self, closure: Closure, args: Sequence[Expr], span: Span) -> Expr:
        """The value of an operator applied to arguments, with the span of the call."""
        # By `let` and not by substitution: an argument is evaluated once and before the body, so that its
        # fault counts even where the body does not use the parameter, and a body that uses it twice does not
        # double it.
        bindings = [(name, arg, arg.span) for name, arg in zip(closure.params, args, strict=True)]
        below = self.make.below
        lowered_body = partial(self.make.expression, closure.body)

        def body(*values: Expr) -> Expr:
            scope = closure.scope.bind_all(closure.params, values)
            if closure.decl is None:
                return below(closure.lets, scope, lowered_body)
            return self.recursion.lower(
                closure.decl, scope, span, lambda inner: below(closure.lets, inner, lowered_body)
            )

        return operators.in_turn(self.make.let, bindings, body)

    def _construct(self, node: tree.CallExpr, scope: Scope) -> Expr:
        kind = of_shape(self.names.type_of(node, scope), types.Union)
        fields = {arg.label or "": self.make.expression(arg.value, scope) for arg in node.args}
        return operators.variant(node.span, kind, node.callee.text, fields)

    def _fold(self, node: tree.CallExpr, scope: Scope) -> Expr:
        """`fold(S, start, (acc, x) => e)`: one step for each possible item, ascending or in order."""
        items, start, operator = [arg.value for arg in node.args]
        closure = self._closure(operator, scope)

        def over(domain: Expr) -> Expr:
            found = self._items(items, domain)
            if isinstance(domain.type, types.Set):
                sorts = sorts_in(domain.type.item)
                self.names.folds += [ElementFold(sort, self.names.owner, node.span) for sort in sorts]
            begin = self.make.expression(start, scope)

            def step(value: Expr, item: Expr) -> Expr:
                new = self._applied(closure, [value, item], node.span)
                bounded("`fold`", new.type, node.span)
                return new

            def steps(value: Expr) -> Expr:
                return self._steps(node.span, value, found, step)

            return self.make.let("_fold", begin, start.span, steps)

        return self.make.let("_items", self.make.expression(items, scope), items.span, over)

    def _steps(
        self, span: Span, value: Expr, items: Sequence[_Item], step: Callable[[Expr, Expr], Expr]
    ) -> Expr:
        """The result of all steps in turn from an initial value, which is bound to a name."""
        if not items:
            return value
        if len(items) == 1:
            new, is_there = step(value, items[0].value), items[0].is_there
            return new if is_there is None else If(hull(new.type, value.type), span, is_there, new, value)
        # Halves in halves: a chain of as many bound values as there are items would nest too deeply.
        middle = len(items) // 2
        first, rest = self._steps(span, value, items[:middle], step), items[middle:]
        return self.make.let("_fold", first, first.span, lambda mid: self._steps(span, mid, rest, step))

    def _items(self, node: tree.Expr, domain: Expr) -> list[_Item]:
        """The items that a fold may iterate over: those of a constant, else as many as the type allows."""
        span = node.span
        if isinstance(domain.type, types.Seq):
            self._bounded(domain.type.limit, span)
            length = operators.of_word(span, "len", domain)
            places = [Const(types.Int(n, n), span, n) for n in range(domain.type.limit)]
            return [
                _Item(operators.of_word(span, "<", at, length), operators.at(span, domain, at))
                for at in places
            ]
        kind = of_shape(domain.type, types.Set)
        known = self._known(domain)
        if known is not None:
            self._bounded(len(known), span)
            return [_Item(None, _constant(kind, span, value)) for value in known]
        item = item_of(kind)
        self._bounded(cardinality(item), span)
        if has_horizon(item):
            # Numbers above the horizon exist: an engine that supports them must see that they are omitted.
            self.names.listed.append(self.facts.type_of(node))
            domain = operators.of_word(span, "intersect", domain, self.names.all_values(kind, span))
        values = [_constant(kind, span, value) for value in self.names.universe.values(item)]
        return [_Item(operators.applied(span, Op.IN_SET, value, domain), value) for value in values]

    def _known(self, domain: Expr) -> tuple[Value, ...] | None:
        """The items of a constant set, ascending."""
        for part in inside(domain):
            if isinstance(part, Var | Local) or (isinstance(part, Const) and part.ends_at_horizon):
                return None
        found = fold(domain)
        return found if isinstance(found, tuple) else None

    def _bounded(self, size: int, span: Span) -> None:
        if size > MAX_FOLDED:
            hint = "choose smaller constants, or a set of a smaller type"
            message = f"`fold` ranges over at most {MAX_FOLDED} items, and there may be {size} here"
            raise refusal("S510", span, message, hint)


def _constant(kind: types.Set, span: Span, value: Value) -> Const:
    """An item of a set; the type of a number is narrowed to it, so that sums are not wider than necessary."""
    if isinstance(kind.item, types.Int) and isinstance(value, int):
        return Const(types.Int(value, value), span, value)
    return Const(kind.item, span, value)
