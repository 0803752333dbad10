"""Checking declarations: actions, properties, initial values, definitions, constants."""

from __future__ import annotations

from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.declared.circles import circles, recursions
from specchk.lang.check.declared.statements import StatementChecker
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


class Declarations:
    """Checks every declaration of one namespace (models and scenarios: lang/check/model_rules.py)."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.report = checker.report

    def check(self, spec: Spec) -> None:
        """Check all declarations of a namespace except its models and scenarios."""
        refinements = Refinements(self.checker)
        refinements.sorts(spec)  # before anything of a refined spec is typed
        for other in (*spec.imports.values(), *spec.refined.values()):
            self.check(other)
        self._types(spec)
        self._constants(spec)
        for definition in spec.defs.values():
            for node in (definition.returns, *[node for p in definition.params for node in _types_of(p)]):
                if node is not None:
                    self.checker.resolver.resolve(node, spec)
                    self._bounds(node, spec)
            self.checker.returns(definition, spec, definition)
            if spec.role is Role.LIBRARY:
                most, place = Level.CONSTANT, "an imported definition has no state to read"
            else:
                most, place = Level.STATE, "a definition is a state expression"
            self.checker.levels.demand(definition, most, place)
        recursions(spec, self.checker.facts, self.report)
        refinements.imports(spec)
        # Only what can be imported: variables, actions and properties of a library take no part here.
        if spec.role is Role.LIBRARY:
            return
        for variable in spec.variables.values():
            self._variable(variable, spec)
        for init in spec.inits:
            self._conjuncts(init.lets, init.conjuncts, spec, Level.STATE, "`init` describes a state")
        statements = StatementChecker(self.checker)
        statements.helpers(spec)
        for param in [param for helper in spec.helpers.values() for param in helper.params]:
            self._bounds(param.type, spec)
        for action in spec.actions.values():
            self._action(action, spec, statements)
        circles(spec, self.checker.facts, self.report)
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
        """Check that the bounds inside a type expression are constant integers."""
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

    def _constants(self, spec: Spec) -> None:
        for const in spec.consts.values():
            self._const(const, spec)
        for one in spec.assumes:
            place = "an assumption is one about constants"
            self._conjuncts(one.lets, one.conjuncts, spec, Level.CONSTANT, place)

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

    def _action(self, decl: decls.Action, spec: Spec, statements: StatementChecker) -> None:
        context = Context(spec)
        for param in decl.params:
            kind = self.checker.resolver.resolve(param.type, spec)
            self._bounds(param.type, spec)
            if not enumerable(kind):
                self.report.add("S307", param.span, f"the values of {show(kind)} cannot be listed",
                                "an action's parameters range over finite types")  # fmt: skip
            self.checker.fresh(param.name, param.span, context)
            context = context.bind(param.name, kind)
        statements.block(decl.body, context, [])

    def _view(self, view: decls.View, spec: Spec) -> None:
        lane = self._lane(view, spec)
        if lane is None:
            self.checker.unknown(view.sort, spec.sorts, "sort", spec)
            return
        context = Context(spec).bind(view.lane, lane)
        # In each of these a later line would replace an earlier one, as a later view does.
        for lines in (view.logs, view.marks, view.labels):
            given: dict[str, Span] = {}
            for item in lines:
                self.checker.settle(item.value, context)
                self.checker.levels.demand(item.value, Level.STATE, "a view shows one state")
                self._once(item.name, item.span, given)
        given = {}
        for name in view.hidden:
            if name.full not in spec.variables:
                self.checker.unknown(name, spec.variables, "variable", spec)
        for arrow in view.arrows:
            self._arrow(arrow, lane, spec)
            self._once(arrow.action, arrow.span, given)

    def _once(self, name: str, span: Span, given: dict[str, Span]) -> None:
        """Report a repeated line of a view; otherwise note it."""
        if name in given:
            self.report.add("S202", span, f"this view has `{name}` twice", "remove one of them",
                            [(given[name], "first given here")])  # fmt: skip
        given.setdefault(name, span)

    def _lane(self, view: decls.View, spec: Spec) -> Sort | Enum | None:
        """Check the type whose values are the lanes: a sort, or a declared enum."""
        if view.sort.full in spec.sorts:
            return Sort(view.sort.full)
        if view.sort.full in spec.types:
            found = self.checker.resolver.declared(view.sort.full, spec, view.sort)
            return found if isinstance(found, Enum) else None
        return None

    def _arrow(self, arrow: decls.Arrow, lane: Sort | Enum, spec: Spec) -> None:
        action = spec.actions.get(arrow.action)
        if action is None or len(action.params) != len(arrow.params):
            what, known = (
                ("these are not the parameters of", ()) if action else ("there is no action", spec.actions)
            )
            self.report.add("S203", arrow.span, f"{what} `{arrow.action}`", nearest(arrow.action, known))
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


def _types_of(param: decls.Param | decls.OperatorParam) -> tuple[tree.TypeExpr, ...]:
    return (*param.params, param.result) if isinstance(param, decls.OperatorParam) else (param.type,)
