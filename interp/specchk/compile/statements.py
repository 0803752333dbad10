"""Lowering statements: from an action's block to the core's."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from msgspec.structs import replace

from specchk.compile.expressions import ExpressionLowering
from specchk.compile.nodes.partial_maps import is_partial_map
from specchk.compile.scope import Scope
from specchk.compile.store import stored
from specchk.ir import nodes
from specchk.ir.nodes import Assign, Block, Choice, Const, Expr, Local, PathStep, Stmt, When
from specchk.ir.types import Type, item_of
from specchk.ir.typing import part_at
from specchk.lang.syntax import decls, tree

Store = Callable[[Expr, Type], Expr]


class StatementLowering:
    """Lowers the statements of one program, with the expressions inside; `store` is like `store.stored`."""

    def __init__(self, expressions: ExpressionLowering, store: Store = stored) -> None:
        self.expressions = expressions
        self.store = store
        self.lower = expressions.lower
        self.points = expressions.points

    def block(self, body: tuple[decls.Stmt, ...], scope: Scope) -> Block:
        """The core of statements in order; a `let` is in scope until the end of the block."""
        out: list[Stmt] = []
        for stmt in body:
            scope = self._statement(stmt, scope, out)
        return tuple(out)

    def _statement(self, stmt: decls.Stmt, scope: Scope, out: list[Stmt]) -> Scope:
        match stmt:
            case decls.Require():
                out.append(nodes.Guard(self.lower(stmt.condition, scope)))
            case decls.Let():
                return self._let(stmt, scope, out)
            case decls.Assign():
                out.append(self._assign(stmt, scope))
            case decls.AssignIn():
                out.append(self._assign_in(stmt, scope))
            case decls.Any():
                out.append(self._any(stmt.binders, stmt.body, scope))
            case decls.Either():
                branches = tuple(self.block(branch, scope) for branch in stmt.branches)
                points = tuple(
                    self._branch(f"either {n}", branch) for n, branch in enumerate(stmt.branches, 1)
                )
                out.append(nodes.Either(branches, points))
            case decls.When():
                out.append(self._when(stmt, scope))
            case decls.CallHelper():
                self._call(stmt.call, scope, out)
            case decls.Skip():
                pass
        return scope

    def _call(self, call: tree.CallExpr, scope: Scope, out: list[Stmt]) -> None:
        """The statements of a helper action, its parameters bound to the arguments' values."""
        self.expressions.count(call.span)
        helper = scope.home.helpers[call.callee.text]
        # None of the caller's names, and none for the rest of the caller's block: names bound in it end
        # with it.
        inner = replace(scope, names={})
        for param, arg in zip(helper.params, call.args, strict=True):
            value: Expr = self.lower(arg.value, scope)
            # Evaluated once, at the call, even if the helper action never reads it: an argument without a
            # value is undefined here.  An argument that certainly has a value is inserted where it is read.
            if not isinstance(value, Const | Local | nodes.Var):
                local = self.expressions.local(param.name, value.type, arg.span)
                out.append(nodes.Bind(local, value))
                value = local
            inner = inner.bind(param.name, value)
        out.extend(self.block(helper.body, inner))

    def _branch(self, label: str, body: tuple[decls.Stmt, ...]) -> int:
        return self.points.at("branch", label, body[0].span.to(body[-1].span))

    def _when(self, stmt: decls.When, scope: Scope) -> When:
        condition = self.lower(stmt.condition, scope)
        # Without an `else` there is nevertheless a point for it: a condition that always holds is reported.
        then = self._branch("when", stmt.then)
        orelse = (
            self._branch("else", stmt.orelse)
            if stmt.orelse
            else self.points.at("branch", "not", stmt.condition.span)
        )
        return When(condition, self.block(stmt.then, scope), self.block(stmt.orelse, scope), (then, orelse))

    def _let(self, stmt: decls.Let, scope: Scope, out: list[Stmt]) -> Scope:
        value = self.lower(stmt.value, scope)
        kind = item_of(value.type) if stmt.unwraps else value.type
        local = self.expressions.local(stmt.bound, kind, stmt.span)
        out.append(nodes.Unwrap(local, value) if stmt.unwraps else nodes.Bind(local, value))
        return scope.bind(stmt.bound, local)

    def _any(self, binders: tuple[tree.Binder, ...], body: tuple[decls.Stmt, ...], scope: Scope) -> Choice:
        # A choice for each binder, and not one of tuples: the domain of a later one may read an earlier one.
        (local, domain), *_ = self.expressions.binders(binders[:1], scope)[0]
        inner = scope.bind(binders[0].bound, local)
        rest = self.block(body, inner) if len(binders) == 1 else (self._any(binders[1:], body, inner),)
        return Choice(local, domain, rest)

    def _assign(self, stmt: decls.Assign, scope: Scope) -> Assign:
        slot, path, place = self._place(stmt, scope)
        return self._written(stmt, slot, path, self.store(self.lower(stmt.value, scope), place), scope)

    def _assign_in(self, stmt: decls.AssignIn, scope: Scope) -> Choice:
        slot, path, place = self._place(stmt, scope)
        domain = self.expressions.domain(stmt.domain, scope)
        local = self.expressions.local(stmt.target.text, item_of(domain.type), stmt.span)
        return Choice(local, domain, (self._written(stmt, slot, path, self.store(local, place), scope),))

    def _written(
        self,
        stmt: decls.Assign | decls.AssignIn,
        slot: int,
        path: tuple[PathStep, ...],
        value: Expr,
        scope: Scope,
    ) -> Assign:
        """The assignment to a place; for a place inside a partial map, it assigns the whole map."""
        inside = next((at for at, step in enumerate(path) if is_partial_map(step.container)), None)
        if inside is None:
            return Assign(slot, path, value, stmt.span)
        # Keys are added and removed, so the value of a key has no fixed place that could be written.
        partial = self.expressions.partial
        base = self.expressions.names.variable(scope.home.prefix + stmt.target.text, stmt.target.span, scope)
        for step, accessor in zip(path[:inside], stmt.path, strict=False):
            base = partial.part(accessor.span, base, step)
        rest = [
            (step, accessor.span) for step, accessor in zip(path[inside:], stmt.path[inside:], strict=True)
        ]
        whole = partial.updated(stmt.span, base, rest, value)
        return Assign(slot, path[:inside], self.store(whole, base.type), stmt.span)

    def _place(
        self, stmt: decls.Assign | decls.AssignIn, scope: Scope
    ) -> tuple[int, tuple[PathStep, ...], Type]:
        """The written variable, the path to the place in it, and the type of the place."""
        slot, kind = self.expressions.names.slots[scope.home.prefix + stmt.target.text]
        path = self.expressions.path(stmt.path, kind, scope)
        return slot, path, reduce(part_at, path, kind)
