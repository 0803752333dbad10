"""Checking declarations: actions, properties, initial values, definitions, constants."""

from __future__ import annotations

from specchk.lang.check.access import place_at
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.levels import Level, children
from specchk.lang.check.model_rules import Refinements
from specchk.lang.check.spec import Role, Spec
from specchk.lang.check.types import (
    BOOL,
    UNKNOWN,
    Enum,
    Option,
    Set,
    Sort,
    Type,
    enumerable,
    show,
    unbounded_part,
)  # fmt: skip
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import nearest
from specchk.lang.text.source import Span

Place = tuple[str, tuple[tree.Accessor, ...], Span]


class Declarations:
    """Checks every declaration of one namespace (models and scenarios: lang/check/model_rules.py)."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.report = checker.report

    def check(self, spec: Spec) -> None:
        """Check all of a namespace but its models and scenarios."""
        refinements = Refinements(self.checker)
        refinements.sorts(spec)  # before anything of a refined spec is typed
        for other in (*spec.imports.values(), *spec.refined.values()):
            self.check(other)
        self._types(spec)
        for const in spec.consts.values():
            self._const(const, spec)
        for definition in spec.defs.values():
            for node in (definition.returns, *(param.type for param in definition.params)):
                if node is not None:
                    self.checker.resolver.resolve(node, spec)
                    self._bounds(node, spec)
            self.checker.returns(definition, spec, definition)
            if spec.role is Role.LIBRARY:
                most, place = Level.CONSTANT, "an imported definition has no state to read"
            else:
                most, place = Level.STATE, "a definition is a state expression"
            self.checker.levels.demand(definition, most, place)
        # Only what can be imported: variables, actions and properties of a library take no part here.
        if spec.role is Role.LIBRARY:
            return
        for variable in spec.variables.values():
            self._variable(variable, spec)
        for init in spec.inits:
            self._conjuncts(init.lets, init.conjuncts, spec, Level.STATE, "`init` describes a state")
        for action in spec.actions.values():
            self._action(action, spec)
        for item in [item for fair in spec.fair for item in fair.actions]:
            self._fair(item, spec)
        # What else a refined spec claims of itself is checked where it is the spec that runs.
        if spec.role is Role.REFINED:
            return
        for prop in spec.properties.values():
            self._property(prop, spec)
        self._deadlock(spec)
        refinements.mappings(spec)
        for view in spec.views:
            self._view(view, spec)

    def _types(self, spec: Spec) -> None:
        for decl in spec.types.values():
            self.checker.resolver.declared(decl.name, spec, decl)
        places = [d.type for d in spec.types.values()] + [d.type for d in spec.consts.values()]
        for node in places + [d.type for d in spec.variables.values()]:
            self._bounds(node, spec)

    def _bounds(self, node: tree.Node, spec: Spec) -> None:
        """Bounds inside a type expression are constant integers."""
        bounds: tuple[tree.Expr, ...] = ()
        match node:
            case tree.RangeType():
                bounds = (node.low, node.high)
            case tree.NatType():
                bounds = (node.horizon,)
            case tree.SeqType() | tree.BagType():
                bounds = (node.limit,)
        for bound in bounds:
            self.checker.integer(bound, Context(spec))
            self.checker.levels.demand(bound, Level.CONSTANT, "a bound is a constant")
        for part in children(node):
            self._bounds(part, spec)

    def _const(self, decl: decls.Const, spec: Spec) -> None:
        kind = self.checker.resolver.resolve(decl.type, spec)
        if decl.default is not None:
            self._constant(decl.default, spec, kind, "a default is a constant")

    def _constant(self, node: tree.Expr, spec: Spec, kind: Type, place: str) -> None:
        self.checker.typed(node, Context(spec), kind, Level.CONSTANT, place)

    def _variable(self, decl: decls.Var, spec: Spec) -> None:
        kind = self.checker.resolver.resolve(decl.type, spec)
        self._finite(kind, decl.type)
        if decl.initial is not None:
            self._constant(decl.initial, spec, kind, "an initial value is a constant")
        if decl.choices is not None:
            self._constant(decl.choices, spec, Set(kind), "an initial choice is a constant")
        # An `init` block may describe any variable; whether it does only the initial states show.
        if (
            decl.initial is None
            and decl.choices is None
            and not spec.inits
            and "init" not in self.report.lost
        ):
            self.report.add(
                "S310",
                decl.span,
                f"`{decl.name}` has no initial value",
                "give it one with `= e`, a choice with `in S`, or describe it in `init:` "
                "(any value: `init: true`)",
            )

    def _finite(self, kind: Type, node: tree.TypeExpr) -> None:
        part = unbounded_part(kind)
        if part is not None:
            self.report.add("S307", node.span, f"a variable's type is finite, but {part} is not",
                            "use a range `0..N`, `nat upto N`, or a limit `upto N`")  # fmt: skip

    def _property(self, decl: decls.Property, spec: Spec) -> None:
        most, place = {
            "step invariant": (Level.ACTION, "a step invariant relates two states"),
            "liveness": (Level.TEMPORAL, ""),
        }.get(decl.kind, (Level.STATE, f"`{decl.kind}` describes a state"))
        self._conjuncts(decl.lets, decl.conjuncts, spec, most, place)

    def _conjuncts(
        self,
        lets: tuple[decls.Let, ...],
        conjuncts: tuple[tree.Expr, ...],
        spec: Spec,
        most: Level,
        place: str,
    ) -> None:
        context = self.checker.lets(lets, Context(spec))
        for conjunct in conjuncts:
            self.checker.check(conjunct, context, BOOL)
        for node in (*lets, *conjuncts):
            self.checker.levels.demand(node, most, place)

    def _action(self, decl: decls.Action, spec: Spec) -> None:
        context = Context(spec)
        for param in decl.params:
            kind = self.checker.resolver.resolve(param.type, spec)
            self._bounds(param.type, spec)
            if not enumerable(kind):
                self.report.add("S307", param.span, f"the values of {show(kind)} cannot be listed",
                                "an action's parameters range over finite types")  # fmt: skip
            self.checker.fresh(param.name, param.span, context)
            context = context.bind(param.name, kind)
        StatementChecker(self.checker).block(decl.body, context, [])

    def _view(self, view: decls.View, spec: Spec) -> None:
        lane = self._lane(view, spec)
        if lane is None:
            self.checker.unknown(view.sort, spec.sorts, "sort", spec)
            return
        context = Context(spec).bind(view.lane, lane)
        parts = [item.value for item in (*view.marks, *view.labels)]
        for node in parts + ([view.log] if view.log is not None else []):
            self.checker.settle(node, context)
            self.checker.levels.demand(node, Level.STATE, "a view shows one state")
        for name in view.hidden:
            if name.full not in spec.variables:
                self.checker.unknown(name, spec.variables, "variable", spec)
        for arrow in view.arrows:
            self._arrow(arrow, lane, spec)

    def _lane(self, view: decls.View, spec: Spec) -> Sort | Enum | None:
        """The type whose values are the lanes: a sort, or a declared enum."""
        if view.sort.full in spec.sorts:
            return Sort(view.sort.full)
        if view.sort.full in spec.types:
            found = self.checker.resolver.declared(view.sort.full, spec, view.sort)
            return found if isinstance(found, Enum) else None
        return None

    def _arrow(self, arrow: decls.Arrow, lane: Sort | Enum, spec: Spec) -> None:
        action = spec.actions.get(arrow.action)
        if action is None or len(action.params) != len(arrow.params):
            what = "there is no action" if action is None else "these are not the parameters of"
            self.report.add(
                "S203", arrow.span, f"{what} `{arrow.action}`", nearest(arrow.action, spec.actions)
            )
            return
        context = Context(spec)
        for name, param in zip(arrow.params, action.params, strict=True):
            context = context.bind(name, self.checker.resolver.resolve(param.type, spec))
        for node in (arrow.source, arrow.target):
            found = self.checker.settle(node, context)
            if found not in (lane, Option(lane), UNKNOWN):
                self.checker.mismatch(node.span, found, lane)
            self.checker.levels.demand(node, Level.STATE, "an arrow is drawn from the state before the step")

    def _deadlock(self, spec: Spec) -> None:
        for ok in spec.deadlock:
            if ok.when is not None:
                self.checker.boolean(ok.when, Context(spec))
                self.checker.levels.demand(ok.when, Level.STATE, "`deadlock ok` describes a state")

    def _fair(self, item: decls.FairAction, spec: Spec) -> None:
        action = spec.actions.get(item.action.full)
        if action is None:
            self.checker.unknown(item.action, spec.actions, "action", spec)
            return
        names = [param.name for param in action.params]
        given = list(item.params)
        # The parameter's own name and no other: a constant or an element would read as one instance.
        fits = len(given) == len(names) and all(g in (n, "_") for g, n in zip(given, names, strict=True))
        if given and not fits:
            self.report.add(
                "S602", item.span, f"the parameters of `{action.name}` are ({', '.join(names)}), not these",
                f"`{action.name}({', '.join(names)})` is fairness for each of their values, with `_` for any",
                [(action.span.word(action.name), "declared here")],
            )  # fmt: skip


class StatementChecker:
    """Checks one action body; `assigned` are the places written on the path so far."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker

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
        self.checker.fresh(stmt.name, stmt.span, context)
        if stmt.unwraps:
            if not isinstance(kind, Option) and kind != UNKNOWN:
                self.checker.report.add(
                    "S301",
                    stmt.value.span,
                    f"`else skip` unwraps an option, this is {show(kind)}",
                    "leave out `else skip`",
                )
            kind = kind.item if isinstance(kind, Option) else UNKNOWN
        return context.bind(stmt.name, kind)

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
        for other, path, first in assigned:
            if other == name and _same_place(path, stmt.path):
                message = f"`{name}'` is assigned twice on this path"
                hint = "keep one assignment, or put them into branches"
                self.checker.report.add("S404", stmt.span, message, hint, [(first, "first assigned here")])
        return [*assigned, (name, stmt.path, stmt.span)]


def _in_scope(assigned: list[Place], context: Context) -> list[Place]:
    """The places whose indices still mean what they meant, once inner names are out of scope."""
    return [place for place in assigned if all(_means_the_same(node, context) for node in place[1])]


def _means_the_same(node: tree.Node, context: Context) -> bool:
    if isinstance(node, tree.Name) and node.qualifier is None:
        return node.text in context.locals or node.text in context.spec.declared
    return all(_means_the_same(part, context) for part in children(node))


def _same_place(a: tuple[tree.Accessor, ...], b: tuple[tree.Accessor, ...]) -> bool:
    """Whether one path is certainly a prefix of the other (equal text, so equal index)."""
    return all(x == y for x, y in zip(a, b, strict=False))


def _merge(branches: list[list[Place]]) -> list[Place]:
    # A place that one branch assigns is assigned behind all of them: on that branch a second assignment would
    # be an error, and which branch is taken is not known here.
    merged: list[Place] = []
    for branch in branches:
        merged.extend(place for place in branch if place not in merged)
    return merged
