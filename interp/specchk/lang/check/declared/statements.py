"""Checking the statements of actions and of helper actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec.structs import replace

from specchk.lang.check.access import outside_of_partial, place_at
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.levels import Level, children
from specchk.lang.check.spec import Spec
from specchk.lang.check.types import UNKNOWN, Option, Set, show
from specchk.lang.syntax import decls, tree
from specchk.lang.syntax.habits import statement_hint
from specchk.lang.text.diagnostics import nearest
from specchk.lang.text.source import Span

Place = tuple[str, tuple[tree.Accessor, ...], Span]
Node = TypeVar("Node", bound=tree.Node)
LOCAL = "(local)"  # the qualifier of a local name in a place, which no text has


class StatementChecker:
    """Checks the bodies of actions; `assigned` are the places written on the current path."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self._written: dict[str, list[Place]] = {}  # by helper actions that are checked

    def helpers(self, spec: Spec) -> None:
        """Check the helper actions of a spec, callees before callers, and all of them before any action."""
        calls = {name: list(_called(decl.body, spec)) for name, decl in spec.helpers.items()}
        # With a stack of our own: a chain of calls may be longer than Python's.
        for first in spec.helpers:
            way = [(first, iter(calls[first]))] if first not in self._written else []
            while way:
                name, rest = way[-1]
                call = next((one for one in rest if one.callee.text not in self._written), None)
                if call is None:
                    way.pop()
                    helper = spec.helpers[name]
                    self._written[name] = self.block(helper.body, self.checker.inside(helper, spec), [])
                elif any(name == call.callee.text for name, _ in way):
                    self._recursive(call, [name for name, _ in way])
                else:
                    way.append((call.callee.text, iter(calls[call.callee.text])))

    def _recursive(self, call: tree.CallExpr, way: list[str]) -> None:
        circle = [*way[way.index(call.callee.text) :], call.callee.text]
        self.checker.report.add(
            "S206", call.span, f"helper actions may not be recursive: {' -> '.join(circle)}",
            "a loop is an action that is enabled while there is something to do",
        )  # fmt: skip

    def block(self, body: tuple[decls.Stmt, ...], context: Context, assigned: list[Place]) -> list[Place]:
        """Check statements in order; returns the places they write."""
        for stmt in body:
            context, assigned = self._statement(stmt, context, assigned)
        return assigned

    def _statement(
        self, stmt: decls.Stmt, context: Context, assigned: list[Place]
    ) -> tuple[Context, list[Place]]:
        match stmt:
            case decls.Require():
                self._condition(stmt.condition, context)
            case decls.Let():
                context = self._let(stmt, context)
            case decls.Assign() | decls.AssignIn():
                assigned = self._assign(stmt, context, assigned)
            case decls.Any():
                inner = self.checker.bind(stmt.binders, context)
                for binder in stmt.binders:
                    self._state(binder.domain)
                assigned = _in_scope(self.block(stmt.body, inner, assigned), context)
            case decls.Either():
                assigned = _merge([self.block(branch, context, assigned) for branch in stmt.branches])
                assigned = _in_scope(assigned, context)
            case decls.When():
                self._condition(stmt.condition, context)
                then = self.block(stmt.then, context, assigned)
                assigned = _merge([then, self.block(stmt.orelse, context, assigned)])
                assigned = _in_scope(assigned, context)
            case decls.CallHelper():
                assigned = self._call(stmt.call, context, assigned)
            case decls.Skip():
                pass
        return context, assigned

    def _condition(self, node: tree.Expr, context: Context) -> None:
        self.checker.boolean(node, context)
        self._state(node)

    def _state(self, node: tree.Node) -> None:
        self.checker.levels.demand(node, Level.STATE, "an action reads the state before its step")

    def _let(self, stmt: decls.Let, context: Context) -> Context:
        kind = self.checker.settle(stmt.value, context)
        self._state(stmt.value)
        if stmt.unwraps:
            if not isinstance(kind, Option) and kind != UNKNOWN:
                self.checker.report.add(
                    "S301",
                    stmt.value.span,
                    f"`else skip` unwraps an option, this is {show(kind)}",
                    "leave out `else skip`",
                )
            kind = kind.item if isinstance(kind, Option) else UNKNOWN
        return self.checker.bound(stmt.bound, kind, stmt, context)

    def _assign(
        self, stmt: decls.Assign | decls.AssignIn, context: Context, assigned: list[Place]
    ) -> list[Place]:
        name = stmt.target.text
        decl = context.spec.variables.get(name)
        if decl is None:
            self.checker.unknown(stmt.target, context.spec.variables, "variable", context.spec)
            return assigned
        kind = self.checker.resolver.resolve(decl.type, context.spec)
        place = place_at(self.checker, kind, stmt.path, stmt.target, context)
        value = stmt.value if isinstance(stmt, decls.Assign) else stmt.domain
        self.checker.check(value, context, place if isinstance(stmt, decls.Assign) else Set(place))
        for node in (*stmt.path, value):
            self._state(node)
        path = tuple([self._marked(step) for step in outside_of_partial(kind, stmt.path)])
        return self._writes((name, path, stmt.span), assigned)

    def _marked(self, node: Node) -> Node:
        """A part of a place with its local names marked, since an enum member may have the same name."""
        if isinstance(node, tree.Name):
            ref = self.checker.facts.refs.get(id(node))
            return replace(node, qualifier=LOCAL) if ref is not None and ref.kind == "local" else node
        changed: dict[str, Any] = {}
        for name in node.__struct_fields__:
            value = getattr(node, name)
            if isinstance(value, tree.Node):
                changed[name] = self._marked(value)
            elif isinstance(value, tuple):
                changed[name] = tuple(
                    [self._marked(part) if isinstance(part, tree.Node) else part for part in value]
                )
        return replace(node, **changed)

    def _writes(self, place: Place, assigned: list[Place]) -> list[Place]:
        name, path, span = place
        for other, before, first in assigned:
            # Certainly the same place, or around it or in it: equal text implies an equal index.
            if other == name and all(a == b for a, b in zip(before, path, strict=False)):
                message = f"`{name}'` is assigned twice on this path"
                hint = "keep one assignment, or put them into branches"
                self.checker.report.add("S404", span, message, hint, [(first, "first assigned here")])
        return [*assigned, place]

    def _call(self, call: tree.CallExpr, context: Context, assigned: list[Place]) -> list[Place]:
        """Check a call of a helper action, which writes the places that its body writes."""
        name, values = call.callee.text, [arg.value for arg in call.args]
        helper = context.spec.helpers.get(name)
        kinds = [self.checker.resolver.resolve(p.type, context.spec) for p in helper.params] if helper else []
        for index, value in enumerate(values):
            self.checker.check(value, context, kinds[index] if index < len(kinds) else None)
            self._state(value)
        if helper is None:
            self._no_helper(call, context)
            return assigned
        self.checker.refuse_labels(name, call.args)
        if not self.checker.check_count(helper, len(values), call.span):
            return assigned
        marked = [self._marked(value) for value in values]
        given = dict(zip([param.name for param in helper.params], marked, strict=True))
        places: list[Place] = []
        for variable, path, _ in self._written.get(name, ()):
            at = _with_arguments(path, given, context)
            if at is not None:
                places.append((variable, at, call.span))
        # For each call only what precedes it: its own branches are never two on one path.
        for place in places:
            self._writes(place, assigned)
        return [*assigned, *places]

    def _no_helper(self, call: tree.CallExpr, context: Context) -> None:
        name, spec = call.callee.text, context.spec
        if name in spec.actions:
            self.checker.report.add(
                "S203", call.callee.span, f"`{name}` is an action, which is a step of its own",
                f"statements that several actions share are a `helper action {name}`",
                [(spec.declared[name], "declared here")],
            )  # fmt: skip
        elif name in spec.defs:
            self.checker.report.add(
                "S203", call.callee.span, f"`{name}` is a definition, which is a value and no statement",
                f"a guard is `require {call.span.text}`", [(spec.declared[name], "declared here")],
            )  # fmt: skip
        else:
            hint = statement_hint(name) or nearest(name, spec.helpers)
            hint = hint or "statements that several actions share are a `helper action`"
            self.checker.report.add("S201", call.callee.span, f"there is no helper action `{name}`", hint)


def _called(body: tuple[decls.Stmt, ...], spec: Spec) -> Iterator[tree.CallExpr]:
    """The calls of helper actions in statements."""
    for stmt in body:
        match stmt:
            case decls.CallHelper():
                if stmt.call.callee.text in spec.helpers:
                    yield stmt.call
            case decls.Any():
                yield from _called(stmt.body, spec)
            case decls.Either():
                for branch in stmt.branches:
                    yield from _called(branch, spec)
            case decls.When():
                yield from _called((*stmt.then, *stmt.orelse), spec)


def _with_arguments(
    path: tuple[tree.Accessor, ...], given: dict[str, tree.Expr], context: Context
) -> tuple[tree.Accessor, ...] | None:
    """The place that a helper action writes, as its caller names it; None if the caller cannot."""
    found = []
    for step in path:
        index = step.index
        if isinstance(index, tree.Name) and index.qualifier == LOCAL and index.text in given:
            found.append(replace(step, index=given[index.text]))
        elif index is None or _means_the_same(index, Context(context.spec)):
            found.append(step)
        else:
            return None
    return tuple(found)


def _in_scope(assigned: list[Place], context: Context) -> list[Place]:
    """The places whose indices keep their meaning after inner names go out of scope."""
    return [place for place in assigned if all(_means_the_same(node, context) for node in place[1])]


def _means_the_same(node: tree.Node, context: Context) -> bool:
    if isinstance(node, tree.Name) and node.qualifier == LOCAL:
        return node.text in context.locals
    return all(_means_the_same(part, context) for part in children(node))


def _merge(branches: list[list[Place]]) -> list[Place]:
    # A place that one branch assigns is assigned behind all of them: on that branch a second assignment would
    # be an error, and which branch is taken is not known here.
    return list(dict.fromkeys(place for branch in branches for place in branch))
