"""Checking declarations: actions, properties, initial values, definitions, constants."""

from __future__ import annotations

from specchk.lang.check import types
from specchk.lang.check.checker import Checker, Context
from specchk.lang.check.declared.circles import circles, recursions
from specchk.lang.check.declared.statements import StatementChecker
from specchk.lang.check.levels import Level, children
from specchk.lang.check.model_rules import check_imports, check_mappings, map_sorts
from specchk.lang.check.models import once
from specchk.lang.check.spec import Role, Spec
from specchk.lang.check.types import BOOL, UNKNOWN, Type, enumerable, show, unbounded_part
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import nearest
from specchk.lang.text.source import Span


def check_declarations(checker: Checker, spec: Spec) -> None:
    """Check all declarations of a namespace except its models and scenarios."""
    map_sorts(checker, spec)  # before anything of a refined spec is typed
    for other in (*spec.imports.values(), *spec.refined.values()):
        check_declarations(checker, other)
    _types(checker, spec)
    _constants(checker, spec)
    for definition in spec.defs.values():
        for node in (definition.returns, *[node for p in definition.params for node in _types_of(p)]):
            if node is not None:
                checker.resolver.resolve(node, spec)
                _bounds(checker, node, spec)
        checker.returns(definition, spec, definition)
        if spec.role is Role.LIBRARY:
            most, place = Level.CONSTANT, "an imported definition has no state to read"
        else:
            most, place = Level.STATE, "a definition is a state expression"
        checker.levels.demand(definition, most, place)
    recursions(spec, checker.facts, checker.report)
    check_imports(checker, spec)
    # Only what can be imported: variables, actions and properties of a library take no part here.
    if spec.role is Role.LIBRARY:
        return
    for variable in spec.variables.values():
        _variable(checker, variable, spec)
    for init in spec.inits:
        _conjuncts(checker, init, spec, Level.STATE, "`init` describes a state")
    statements = StatementChecker(checker)
    statements.helpers(spec)
    for param in [param for helper in spec.helpers.values() for param in helper.params]:
        _bounds(checker, param.type, spec)
    for action in spec.actions.values():
        _action(checker, action, spec, statements)
    circles(spec, checker.facts, checker.report)
    for item in [item for fair in spec.fair for item in fair.actions]:
        _fair(checker, item, spec)
    # What else a refined spec claims of itself is checked where it is the spec that runs.
    if spec.role is Role.REFINED:
        return
    for prop in spec.properties.values():
        _property(checker, prop, spec)
    _deadlock(checker, spec)
    check_mappings(checker, spec)
    for view in spec.views:
        _view(checker, view, spec)


def _types(checker: Checker, spec: Spec) -> None:
    for decl in spec.types.values():
        checker.resolver.declared(decl.name, spec, decl)
    places = [d.type for d in spec.types.values()] + [d.type for d in spec.consts.values()]
    for node in places + [d.type for d in spec.variables.values()]:
        _bounds(checker, node, spec)


def _bounds(checker: Checker, node: tree.Node, spec: Spec) -> None:
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
        checker.integer(bound, Context(spec))
        checker.levels.demand(bound, Level.CONSTANT, "a bound is a constant")
    for part in children(node):
        _bounds(checker, part, spec)


def _constants(checker: Checker, spec: Spec) -> None:
    for const in spec.consts.values():
        kind = checker.resolver.resolve(const.type, spec)
        if const.default is not None:
            _constant(checker, const.default, spec, kind, "a default is a constant")
    for assume in spec.assumes:
        _conjuncts(checker, assume, spec, Level.CONSTANT, "an assumption is one about constants")


def _constant(checker: Checker, node: tree.Expr, spec: Spec, kind: Type, place: str) -> None:
    checker.typed(node, Context(spec), kind, Level.CONSTANT, place)


def _variable(checker: Checker, decl: decls.Var, spec: Spec) -> None:
    kind = checker.resolver.resolve(decl.type, spec)
    part = unbounded_part(kind)
    if part is not None:
        message = f"a variable's type is finite, but {part} is not"
        hint = "use a range `0..N`, `nat upto N`, or a limit `upto N`"
        checker.report.add("S307", decl.type.span, message, hint)
    if decl.initial is not None:
        _constant(checker, decl.initial, spec, kind, "an initial value is a constant")
    if decl.choices is not None:
        _constant(checker, decl.choices, spec, types.Set(kind), "an initial choice is a constant")
    # An `init` block may describe any variable; whether it does only the initial states show.
    is_given = decl.initial is not None or decl.choices is not None or spec.inits
    # A lost `init`, or a word for it of another language, may describe it.
    if not is_given and not any(word.lower().startswith("init") for word in checker.report.lost):
        any_value = "describe it in `init:` (any value: `init: true`)"
        hint = f"give it one with `= e`, a choice with `in S`, or {any_value}"
        checker.report.add("S310", decl.span, f"`{decl.name}` has no initial value", hint)


def _property(checker: Checker, decl: decls.Property, spec: Spec) -> None:
    most, place = {
        "step invariant": (Level.ACTION, "a step invariant relates two states"),
        "liveness": (Level.TEMPORAL, ""),
    }.get(decl.kind, (Level.STATE, f"`{decl.kind}` describes a state"))
    _conjuncts(checker, decl, spec, most, place)


def _conjuncts(
    checker: Checker, decl: decls.Init | decls.Assume | decls.Property, spec: Spec, most: Level, place: str
) -> None:
    context = checker.lets(decl.lets, Context(spec))
    for conjunct in decl.conjuncts:
        checker.check(conjunct, context, BOOL)
    for node in (*decl.lets, *decl.conjuncts):
        checker.levels.demand(node, most, place)


def _action(checker: Checker, decl: decls.Action, spec: Spec, statements: StatementChecker) -> None:
    for param in decl.params:
        kind = checker.resolver.resolve(param.type, spec)
        _bounds(checker, param.type, spec)
        if not enumerable(kind):
            message = f"the values of {show(kind)} cannot be listed"
            checker.report.add("S307", param.span, message, "an action's parameters range over finite types")
    statements.block(decl.body, checker.inside(decl, spec), [])


def _view(checker: Checker, view: decls.View, spec: Spec) -> None:
    lane = _lane(checker, view, spec)
    if lane is None:
        checker.unknown(view.sort, spec.sorts, "sort", spec)
        return
    context = Context(spec).bind(view.lane, lane)
    # In each of these a later line would replace an earlier one, as a later view does.
    for lines in (view.logs, view.marks, view.labels):
        given: dict[str, Span] = {}
        for item in lines:
            checker.settle(item.value, context)
            checker.levels.demand(item.value, Level.STATE, "a view shows one state")
            once("view", item.name, item.span, given, checker.report)
    given = {}
    for name in view.hidden:
        if name.full not in spec.variables:
            checker.unknown(name, spec.variables, "variable", spec)
    for arrow in view.arrows:
        _arrow(checker, arrow, lane, spec)
        once("view", arrow.action, arrow.span, given, checker.report)


def _lane(checker: Checker, view: decls.View, spec: Spec) -> types.Sort | types.Enum | None:
    """Check the type whose values are the lanes: a sort, or a declared enum."""
    if view.sort.full in spec.sorts:
        return types.Sort(view.sort.full)
    if view.sort.full in spec.types:
        found = checker.resolver.declared(view.sort.full, spec, view.sort)
        return found if isinstance(found, types.Enum) else None
    return None


def _arrow(checker: Checker, arrow: decls.Arrow, lane: types.Sort | types.Enum, spec: Spec) -> None:
    action = spec.actions.get(arrow.action)
    if action is None or len(action.params) != len(arrow.params):
        what, known = (
            ("these are not the parameters of", ()) if action else ("there is no action", spec.actions)
        )
        checker.report.add("S203", arrow.span, f"{what} `{arrow.action}`", nearest(arrow.action, known))
        return
    context = Context(spec)
    for name, param in zip(arrow.params, action.params, strict=True):
        context = context.bind(name, checker.resolver.resolve(param.type, spec))
    for node in (arrow.source, arrow.target):
        found = checker.settle(node, context)
        if found not in (lane, types.Option(lane), UNKNOWN):
            checker.mismatch(node.span, found, lane)
        checker.levels.demand(node, Level.STATE, "an arrow is drawn from the state before the step")


def _deadlock(checker: Checker, spec: Spec) -> None:
    for ok in spec.deadlock:
        if ok.when is not None:
            checker.boolean(ok.when, Context(spec))
            checker.levels.demand(ok.when, Level.STATE, "`deadlock ok` describes a state")


def _fair(checker: Checker, item: decls.FairAction | decls.FairEither, spec: Spec) -> None:
    binders, actions = ((), (item,)) if isinstance(item, decls.FairAction) else (item.binders, item.actions)
    bound = dict(checker.bind(binders, Context(spec)).locals)
    for binder in binders:
        checker.levels.demand(binder.domain, Level.CONSTANT, "a `forall` of fairness ranges over constants")
    for one in actions:
        action = spec.actions.get(one.action.full)
        if action is None:
            checker.unknown(one.action, spec.actions, "action", spec)
            continue
        if one.params:
            _fair_params(checker, one, action, spec, bound, is_bound=bool(binders))


def _fair_params(
    checker: Checker, item: decls.FairAction, action: decls.Action, spec: Spec, bound: dict[str, Type], *,
    is_bound: bool,
) -> None:  # fmt: skip
    names = [param.name for param in action.params]
    kinds = [checker.resolver.resolve(param.type, spec) for param in action.params]
    # Without `forall` the parameter's own name and no other: a constant or an element would read as one
    # instance.  The same name in another action is the same value.
    fits = len(item.params) == len(names) and all(
        given == "_" or (given in bound if is_bound else given == name)
        for given, name in zip(item.params, names, strict=True)
    )
    note = [(action.span.word(action.name), "declared here")]
    if not fits:
        hint = f"`{action.name}({', '.join(names)})` is fairness for each of their values, with `_` for any"
        if is_bound:
            hint = "write names that the `forall` binds, or `_` for any value"
        message = f"the parameters of `{action.name}` are ({', '.join(names)}), not these"
        checker.report.add("S602", item.span, message, hint, note)
        return
    for given, kind in zip(item.params, kinds, strict=True):
        if given != "_" and types.join(known := bound.setdefault(given, kind), kind) is None:
            message = f"`{given}` is {show(known)}, but `{action.name}` takes {show(kind)}"
            checker.report.add("S602", item.span, message, "bind each by a name of its own: `forall`", note)


def _types_of(param: decls.Param | decls.OperatorParam) -> tuple[tree.TypeExpr, ...]:
    return (*param.params, param.result) if isinstance(param, decls.OperatorParam) else (param.type,)
