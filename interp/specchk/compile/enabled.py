"""Lowering `enabled`: the enabling condition of an action, as an expression."""

from __future__ import annotations

from msgspec.structs import replace

from specchk.compile.names import Names
from specchk.compile.nodes import operators
from specchk.compile.scope import Lowerings, Scope
from specchk.ir.nodes import And, Case, Const, Expr, If, Or, Quantifier
from specchk.ir.ops import Op
from specchk.ir.types import BOOL, Set, Type, fits, item_of
from specchk.lang.check import types as lang
from specchk.lang.check.lambdas import is_any
from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Span


class EnabledLowering:
    """`enabled(act)`: the enabling condition of an action as a predicate of one state.

        require p      p and ...                    any x in S: b      (exists x in S: b) and ...
        let x = e      let x = e: ...               x' in S            (exists x in S: true) and ...
        let .. skip    false where it is none       either, when       `or`, `if`, and what follows

    The statements after a block read none of the block's names, so they are not repeated in each branch.  The
    assigned values are not evaluated: a step that a horizon or a constraint cuts off is enabled, as in
    `meaning.behaviours.fairness`, and one whose values are undefined is a fault of the step.
    """

    def __init__(self, names: Names, lowerings: Lowerings) -> None:
        self.names = names
        self.facts = names.facts
        self.make = lowerings

    def lower(self, node: tree.CallExpr, scope: Scope) -> Expr:
        """Whether some instance selected by the argument has a path on which all conditions hold."""
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
        # No coverage points: the condition is about a step, and takes none of its branches.
        inner = replace(scope, home=home, names={}, operators={}, points="", owner="")
        pairs = tuple(zip(action.params, given, strict=True))
        return self._instances(action, pairs, inner, node.span)

    def _selected(self, home: Spec, name: str) -> bool:
        """Whether the model selects the action; a refined spec has all of its own actions."""
        ground = self.names.ground
        only = ground.model.actions
        return home is not ground.checked.spec or only is None or name in {one.text for one in only}

    def _instances(
        self, action: decls.Action, pairs: tuple[tuple[decls.Param, Expr | None], ...], scope: Scope,
        span: Span,
    ) -> Expr:  # fmt: skip
        """The predicate for some values of the remaining parameters, or for the given values."""
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
            # As for a step that a scenario names: a value outside the parameter's type is not an instance.
            is_value = operators.applied(span, Op.IN_SET, known, self._all(param, kind, span))
            return And(BOOL, span, (is_value, body))

        return self.make.let(param.name, value, span, bound)

    def _all(self, param: decls.Param, kind: Type, span: Span) -> Expr:
        """The set of all values of a parameter."""
        self.names.listed.append(lang.Set(self.facts.declared[id(param.type)]))
        return self.names.all_values(Set(kind), span)

    def _block(self, body: tuple[decls.Stmt, ...], scope: Scope, span: Span) -> Expr:
        """The condition that some path through the statements meets all conditions."""
        parts: list[Expr] = []
        for index, stmt in enumerate(body):
            if isinstance(stmt, decls.Let):
                parts.append(self._let(stmt, body[index + 1 :], scope, span))
                break
            part = self._statement(stmt, scope, span)
            if part is not None:
                parts.append(part)
        return operators.conjoined(span, parts)

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
        """The condition of a statement; None if it has none."""
        match stmt:
            case decls.Require():
                return self.make.expression(stmt.condition, scope)
            case decls.AssignIn():
                # Place and value do not matter; but where there is nothing to choose from, there is no step.
                domain = self.make.domain(stmt.domain, scope)
                local = self.make.local("_", item_of(domain.type), stmt.span)
                return Quantifier(BOOL, stmt.span, False, local, domain, Const(BOOL, stmt.span, True))
            case decls.Any():
                binders, inner = self.make.binders(stmt.binders, scope)
                found = self._block(stmt.body, inner, stmt.span)
                # The first binder is the outermost: the domain of a later one may read it.
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
        names = [param.name for param in helper.params]

        def body(*known: Expr) -> Expr:
            return self._block(helper.body, replace(scope, names={}).bind_all(names, known), call.span)

        bindings = [(name, value, call.span) for name, value in zip(names, values, strict=True)]
        return operators.in_turn(self.make.let, bindings, body)
