"""Lowering calls: definitions and operators are put in, built-in functions are nodes, folds unrolled.

What an action requires, in `enabled`, is put in, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from specchk.compile import operators
from specchk.compile.ground import fold, refusal
from specchk.compile.names import Names
from specchk.compile.partial_maps import is_partial_map
from specchk.compile.scope import Closure, Lowerings, Scope
from specchk.ir.nodes import And, Case, Const, Expr, If, Local, Or, Quantifier, Value, Var
from specchk.ir.ops import Op
from specchk.ir.types import (
    BOOL,
    MAX_LISTED_BITS,
    Int,
    Seq,
    Set,
    Type,
    Union,
    cardinality,
    components,
    fits,
    has_horizon,
    hull,
    item_of,
    of_shape,
    partial_map,
    show,
)  # fmt: skip
from specchk.ir.typing import sorts_in
from specchk.ir.walk import inside
from specchk.lang.check import types as lang
from specchk.lang.check.lambdas import is_any
from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Span

MAX_BITS = 4096  # of a number in a step; a model's own bounds are far below
MAX_FOLDED = 256  # items that a fold goes through: each is a copy of its operator


@dataclass(frozen=True, slots=True)
class _Item:
    """A place of a fold: its item and, if that may be missing, the condition that it is there."""

    is_there: Expr | None
    value: Expr


class CallLowering:
    """The calls of one program."""

    def __init__(self, names: Names, lowerings: Lowerings) -> None:
        self.names = names
        self.facts = names.facts
        self.make = lowerings
        self.enabled = EnabledLowering(names, lowerings)

    def lower(self, node: tree.CallExpr, scope: Scope) -> Expr:
        """The core of a call."""
        ref = self.facts.ref(node)
        if ref.kind == "builtin":
            if ref.name == "fold":
                return self._fold(node, scope)
            if ref.name == "enabled":
                return self.enabled.lower(node, scope)
            if ref.name == "maps":
                return self._maps(node, scope)
            args = [self.make.expression(arg.value, scope) for arg in node.args]
            if is_partial_map(args[0].type) and ref.name in ("keys", "get", "remove"):
                return self._of_partial_map(node, args)
            return operators.builtin(node.span, node.callee.text, args)
        if ref.kind == "constructor":
            return self._construct(node, scope)
        if ref.kind == "operator":
            closure = scope.operators[ref.name]
            args = [self.make.expression(arg.value, scope) for arg in node.args]
            primed = closure.scope.primed or scope.primed
            return self._applied(replace(closure, scope=replace(closure.scope, primed=primed)), args)
        home = ref.home
        assert home is not None
        decl = home.defs[ref.name]
        pairs = list(zip(decl.params, node.args, strict=True))
        values = [arg.value for param, arg in pairs if isinstance(param, decls.Param)]
        given = {
            p.name: self._closure(a.value, scope) for p, a in pairs if isinstance(p, decls.OperatorParam)
        }
        args = [self.make.expression(value, scope) for value in values]
        closure = self._of_def(decl, replace(scope, home=home, operators=given))
        return self._applied(closure, args)

    def _of_partial_map(self, node: tree.CallExpr, args: list[Expr]) -> Expr:
        match node.callee.text:
            case "keys":
                return self.make.partial.keys(node.span, args[0])
            case "get":
                return self.make.partial.get(node.span, args[0], args[1], args[2])
        return self.make.partial.remove(node.span, args[0], args[1])

    def _of_def(self, decl: decls.Def, scope: Scope) -> Closure:
        # None of the caller's names: a definition means the same wherever it is used.  Its arguments are
        # lowered already, and slots are never used twice, so nothing is captured.
        inner = replace(scope, names={}, owner="")
        names = tuple(param.name for param in decl.params if isinstance(param, decls.Param))
        return Closure(names, decl.lets, decl.value, inner)

    def _closure(self, node: tree.Expr, scope: Scope) -> Closure:
        """The operator that an argument is; names in a lambda mean what they mean where it is written."""
        if isinstance(node, tree.Lambda):
            return Closure(node.params, (), node.body, scope)
        ref = self.facts.ref(node)
        if ref.kind == "operator":
            return scope.operators[ref.name]
        assert ref.home is not None
        return self._of_def(ref.home.defs[ref.name], replace(scope, home=ref.home, operators={}))

    def _applied(self, closure: Closure, args: Sequence[Expr]) -> Expr:
        """The operator's value with the arguments for its parameters."""
        # By `let` and not by substitution: an argument is evaluated once and before the body, so that its
        # fault counts even where the body does not use the parameter, and a body that uses it twice does not
        # double it.
        if args:
            name, rest = closure.params[0], closure.params[1:]

            def bound(value: Expr) -> Expr:
                inner = replace(closure, params=rest, scope=closure.scope.bind(name, value))
                return self._applied(inner, args[1:])

            return self.make.let(name, args[0], args[0].span, bound)
        return self.make.below(
            closure.lets, closure.scope, lambda inner: self.make.expression(closure.body, inner)
        )

    def _construct(self, node: tree.CallExpr, scope: Scope) -> Expr:
        kind = of_shape(self.names.type_of(node, scope), Union)
        fields = {arg.label or "": self.make.expression(arg.value, scope) for arg in node.args}
        return operators.variant(node.span, kind, node.callee.text, fields)

    def _fold(self, node: tree.CallExpr, scope: Scope) -> Expr:
        """`fold(S, start, (acc, x) => e)`, a step for each item that there may be, ascending or in order."""
        items, start, operator = [arg.value for arg in node.args]
        closure = self._closure(operator, scope)

        def over(domain: Expr) -> Expr:
            found = self._items(items, domain)
            if isinstance(domain.type, Set):
                self.names.folded |= set(sorts_in(domain.type.item))
            begin = self.make.expression(start, scope)

            def step(value: Expr, item: _Item) -> Expr:
                new = self._applied(closure, [value, item.value])
                self._narrow(new.type, node.span)
                if item.is_there is None:
                    return new
                return If(hull(new.type, value.type), node.span, item.is_there, new, value)

            return self.make.let("fold", begin, start.span, lambda value: self._steps(value, found, step))

        return self.make.let("items", self.make.expression(items, scope), items.span, over)

    def _maps(self, node: tree.CallExpr, scope: Scope) -> Expr:
        """`maps(S, T)`: a step for each key that there may be; whatever their order, the set is the same."""
        keys, values = [arg.value for arg in node.args]
        domain, range_ = self.make.expression(keys, scope), self.make.expression(values, scope)
        kind = partial_map(item_of(domain.type), item_of(range_.type))
        count = cardinality(kind.pair[1]) ** min(cardinality(kind.pair[0]), MAX_LISTED_BITS + 1)
        if count > 1 << MAX_LISTED_BITS:
            message = (
                f"of maps from {show(kind.pair[0])} to {show(kind.pair[1])} there may be too many to list"
            )
            hint = "choose smaller constants, or a value for each key in turn: `any v in T:`"
            raise refusal("S510", node.span, message, hint)

        def over(found: Expr, given: Expr) -> Expr:
            def step(made: Expr, item: _Item) -> Expr:
                more = self.make.partial.with_key(node.span, made, item.value, given)
                if item.is_there is None:
                    return more
                return If(hull(more.type, made.type), node.span, item.is_there, more, made)

            empty = Const(Set(kind), node.span, ((),))
            return self._steps(empty, self._items(keys, found), step)

        def under(found: Expr) -> Expr:
            return self.make.let("values", range_, values.span, lambda given: over(found, given))

        return self.make.let("keys", domain, keys.span, under)

    def _steps(self, value: Expr, items: Sequence[_Item], step: Callable[[Expr, _Item], Expr]) -> Expr:
        """All steps in turn from a value, which has a name."""
        if len(items) < 2:
            return step(value, items[0]) if items else value
        # Halves in halves: a chain of as many bound values as there are items would nest too deeply.
        middle = len(items) // 2
        first = self._steps(value, items[:middle], step)
        return self.make.let("fold", first, first.span, lambda mid: self._steps(mid, items[middle:], step))

    def _items(self, node: tree.Expr, domain: Expr) -> list[_Item]:
        """The items that a fold may meet: those of a constant, else all that there is room for."""
        span = node.span
        if isinstance(domain.type, Seq):
            self._bounded(domain.type.limit, span)
            length = operators.of_word(span, "len", domain)
            places = [Const(Int(n, n), span, n) for n in range(domain.type.limit)]
            return [
                _Item(operators.of_word(span, "<", at, length), operators.at(span, domain, at))
                for at in places
            ]
        kind = of_shape(domain.type, Set)
        known = self._known(domain)
        if known is not None:
            self._bounded(len(known), span)
            return [_Item(None, _constant(kind, span, value)) for value in known]
        item = item_of(kind)
        self._bounded(cardinality(item), span)
        if has_horizon(item):
            # Numbers above the horizon exist: an engine that knows them has to see that they are left out.
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

    def _narrow(self, kind: Type, span: Span) -> None:
        """Refuse numbers whose interval grows with each step: squares double its length."""
        ends = [end for part in components(kind) if isinstance(part, Int) for end in (part.low, part.high)]
        if any(abs(end or 0).bit_length() > MAX_BITS for end in ends):
            hint = "bound each step, as in `min(acc * acc, N)`"
            raise refusal(
                "S510", span, f"the numbers of this `fold` may have more than {MAX_BITS} bits", hint
            )

    def _bounded(self, size: int, span: Span) -> None:
        if size > MAX_FOLDED:
            hint = "fold over a set of a smaller type, or over a sequence"
            message = f"`fold` goes through at most {MAX_FOLDED} items, and there may be {size} here"
            raise refusal("S510", span, message, hint)


def _constant(kind: Set, span: Span, value: Value) -> Const:
    """An item of a set; a number has no other values, so that sums are not wider than they are."""
    if isinstance(kind.item, Int) and isinstance(value, int):
        return Const(Int(value, value), span, value)
    return Const(kind.item, span, value)


class EnabledLowering:
    """`enabled(act)`: the conditions of an action as a predicate of one state.

        require p      p and ...                    any x in S: b      (exists x in S: b) and ...
        let x = e      let x = e: ...               x' in S            (exists x in S: true) and ...
        let .. skip    false where it is none       either, when       `or`, `if`, and what follows

    What follows a block reads none of the block's names, so it is not repeated in each branch.  What a step
    would assign is not evaluated: a step that a horizon or a constraint cuts off is enabled, as in
    `meaning.behaviours.fairness`, and one whose values are undefined is a fault of the step.
    """

    def __init__(self, names: Names, lowerings: Lowerings) -> None:
        self.names = names
        self.facts = names.facts
        self.make = lowerings

    def lower(self, node: tree.CallExpr, scope: Scope) -> Expr:
        """Whether some instance that the argument names has a way on which all conditions hold."""
        (arg,) = [arg.value for arg in node.args]
        ref = self.facts.ref(arg)
        home = ref.home
        assert home is not None
        if not self._selected(home, ref.name):
            return Const(BOOL, node.span, False)
        action = home.actions[ref.name]
        given: list[Expr | None] = [None] * len(action.params)
        if isinstance(arg, tree.CallExpr):
            nodes = [one.value for one in arg.args]
            given = [None if is_any(one) else self.make.expression(one, scope) for one in nodes]
        inner = replace(scope, home=home, names={}, operators={}, points="", owner="")
        pairs = tuple(zip(action.params, given, strict=True))
        return self._instances(action, pairs, inner, node.span)

    def _selected(self, home: Spec, name: str) -> bool:
        """Whether the model has the action; a refined spec has all of its own."""
        ground = self.names.ground
        only = ground.model.actions
        return home is not ground.checked.spec or only is None or name in {one.text for one in only}

    def _instances(
        self, action: decls.Action, pairs: tuple[tuple[decls.Param, Expr | None], ...], scope: Scope,
        span: Span,
    ) -> Expr:  # fmt: skip
        """The predicate for some values of the parameters that are left, or those that are given."""
        if not pairs:
            return self._block(action.body, scope, span)
        (param, value), rest = pairs[0], pairs[1:]
        kind = self.names.ground.declared(param.type, scope.home)
        if value is None:
            local = self.make.local(param.name, kind, span)
            body = self._instances(action, rest, scope.bind(param.name, local), span)
            return Quantifier(BOOL, span, False, local, self._all(param, kind, span), body)

        def bound(known: Expr) -> Expr:
            body = self._instances(action, rest, scope.bind(param.name, known), span)
            if fits(known.type, kind):
                return body
            # As for a step that a scenario names: what is no value of the parameter's type is no instance.
            is_value = operators.applied(span, Op.IN_SET, known, self._all(param, kind, span))
            return And(BOOL, span, (is_value, body))

        return self.make.let(param.name, value, span, bound)

    def _all(self, param: decls.Param, kind: Type, span: Span) -> Expr:
        """The set of all values of a parameter."""
        self.names.listed.append(lang.Set(self.facts.declared[id(param.type)]))
        return self.names.all_values(Set(kind), span)

    def _block(self, body: tuple[decls.Stmt, ...], scope: Scope, span: Span) -> Expr:
        """That some way through the statements meets all conditions."""
        parts: list[Expr] = []
        for index, stmt in enumerate(body):
            if isinstance(stmt, decls.Let):
                parts.append(self._let(stmt, body[index + 1 :], scope, span))
                break
            part = self._statement(stmt, scope, span)
            if part is not None:
                parts.append(part)
        if len(parts) == 1:
            return parts[0]
        return And(BOOL, span, tuple(parts)) if parts else Const(BOOL, span, True)

    def _let(self, stmt: decls.Let, rest: tuple[decls.Stmt, ...], scope: Scope, span: Span) -> Expr:
        value = self.make.expression(stmt.value, scope)
        if stmt.unwraps:
            local = self.make.local(stmt.bound, item_of(value.type), stmt.span)
            body = self._block(rest, scope.bind(stmt.bound, local), span)
            no = Const(BOOL, stmt.span, False)
            return Case(BOOL, stmt.span, value, ((1, local, body),), no)
        return self.make.let(
            stmt.bound, value, stmt.span, lambda known: self._block(rest, scope.bind(stmt.bound, known), span)
        )

    def _statement(self, stmt: decls.Stmt, scope: Scope, span: Span) -> Expr | None:
        """The condition that a statement is; None for one that has none."""
        match stmt:
            case decls.Require():
                return self.make.expression(stmt.condition, scope)
            case decls.AssignIn():
                domain = self.make.domain(stmt.domain, scope)
                local = self.make.local("_", item_of(domain.type), stmt.span)
                return Quantifier(BOOL, stmt.span, False, local, domain, Const(BOOL, stmt.span, True))
            case decls.Any():
                binders, inner = self.make.binders(stmt.binders, scope)
                found = self._block(stmt.body, inner, stmt.span)
                for local, domain in reversed(binders):
                    found = Quantifier(BOOL, stmt.span, False, local, domain, found)
                return found
            case decls.Either():
                branches = [self._block(branch, scope, stmt.span) for branch in stmt.branches]
                return Or(BOOL, stmt.span, tuple(branches))
            case decls.When():
                condition = self.make.expression(stmt.condition, scope)
                then = self._block(stmt.then, scope, stmt.span)
                return If(BOOL, stmt.span, condition, then, self._block(stmt.orelse, scope, stmt.span))
            case decls.CallHelper():
                return self._call(stmt.call, scope)
        return None

    def _call(self, call: tree.CallExpr, scope: Scope) -> Expr:
        """The conditions of a helper action, its parameters bound to the arguments' values."""
        self.make.count(call.span)
        helper = scope.home.helpers[call.callee.text]
        # By the caller's names: they end where the helper action's begin.
        values = [self.make.expression(arg.value, scope) for arg in call.args]
        pairs = tuple(zip([param.name for param in helper.params], values, strict=True))

        def bound(pairs: tuple[tuple[str, Expr], ...], inner: Scope) -> Expr:
            if not pairs:
                return self._block(helper.body, inner, call.span)
            (name, value), rest = pairs[0], pairs[1:]
            return self.make.let(name, value, call.span, lambda known: bound(rest, inner.bind(name, known)))

        return bound(pairs, replace(scope, names={}))
