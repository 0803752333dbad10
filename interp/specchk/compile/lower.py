"""Lowering a spec under a model to a `Program`.

One pass over the declarations that the model selects, in declaration order; the result is verified
(`ir.verify`) before it is used.  Properties left out by a model's selection are named in
`left_out`; a temporal formula outside the fragment (`temporal`) is refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from math import prod

from msgspec import Struct

from specchk.compile.expressions import ExpressionLowering
from specchk.compile.ground import evaluate_constant
from specchk.compile.refine import RefinementLowering, as_is
from specchk.compile.scope import Points, Scope
from specchk.compile.statements import StatementLowering, Store
from specchk.compile.store import stored
from specchk.compile.temporal import TemporalLowering, fair_actions
from specchk.ir.nodes import Expr, Local
from specchk.ir.program import Action, Constant, Liveness, Program, Property, Start, Variable
from specchk.ir.types import Set, Type, cardinality, has_horizon_keys
from specchk.lang.check import types as lang
from specchk.lang.check.models import FixedModel, consts_of, sorts_of
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span

MAX_INSTANCES = 1 << 20


class Lowering:
    """The lowering of one spec under a model: its declarations, and further expressions over its states."""

    def __init__(
        self, checked: CheckedSpec, model: FixedModel, spec: Spec | None = None, store: Store = stored
    ) -> None:
        self.checked = checked
        self.spec = spec if spec is not None else checked.spec  # or one that it refines
        self.model = model
        self.points = Points()
        self.expressions = ExpressionLowering(checked, model, self.points)
        self.statements = StatementLowering(self.expressions, store)
        self.ground = self.expressions.ground

    def _begin(self, owner: str) -> None:
        """Restart the numbering of locals, and count coverage points as the owner's."""
        self.expressions.next_local = 0
        self.points.owner = self.expressions.names.owner = owner

    def action(self, decl: decls.Action) -> Action:
        """One action with its parameters as locals 0, 1, ..."""
        self._begin(decl.name)
        point = self.points.at("action", decl.name, decl.span)
        params = self.parameters(decl)
        scope = Scope(self.spec, points="branch").bind_all([param.name for param in decl.params], params)
        body = self.statements.block(decl.body, scope)
        return Action(decl.name, params, body, self.expressions.next_local, point, decl.span)

    def parameters(self, decl: decls.Action) -> tuple[Local, ...]:
        """The parameters of an action, whose instances are few enough to enumerate; raises `SpecError`."""
        params = tuple([
            self.expressions.local(param.name, self.ground.declared(param.type, self.spec), param.span)
            for param in decl.params
        ])  # fmt: skip
        instances = prod(cardinality(param.type) for param in params)
        if instances > MAX_INSTANCES:
            message = f"`{decl.name}` has {instances} instances, too many to enumerate in each state"
            hint = "choose smaller constants, or let a parameter range over a set in the state"
            raise refusal("S510", decl.span, message, hint)
        return params

    def property(self, decl: decls.Property) -> Property:
        """One invariant, step invariant, witness or constraint."""
        points = "implication" if decl.kind in ("invariant", "step invariant") else ""
        return self.predicate(decl.kind, decl.name, decl.lets, decl.conjuncts, decl.span, points)

    def predicate(
        self, kind: str, name: str, lets: tuple[decls.Let, ...], conjuncts: tuple[tree.Expr, ...], span: Span,
        points: str = "", scope: Scope | None = None,
    ) -> Property:  # fmt: skip
        """A named conjunct list over one or two states; names of `scope` are bound around it."""
        self._begin(name)
        around = scope if scope is not None else Scope(self.spec, points=points)
        body = self.expressions.conjunction(lets, conjuncts, around, span)
        return Property(kind, name, body, self.expressions.next_local, span)

    def liveness(self, decl: decls.Property) -> Liveness:
        """One temporal property."""

        def predicate(node: tree.Expr, scope: Scope) -> Property:
            # With the `let` lines around each predicate: their names mean values of the state it is true of.
            return self.predicate("liveness", decl.name, decl.lets, (node,), node.span, scope=scope)

        return TemporalLowering(decl, self.spec, predicate, self.expressions).lower()

    def expression(self, node: tree.Expr, names: Mapping[str, Expr] | None = None) -> tuple[Expr, int]:
        """A lone expression over one state, with its number of locals; `names` are bound around it."""
        self.expressions.next_local = 0
        body = self.expressions.lower(node, Scope(self.spec, names or {}))
        return body, self.expressions.next_local

    def views(self) -> None:
        """Lower all expressions of views, which a picture lowers for each lane; raises `SpecError`."""
        for view in self.spec.views:
            full = view.sort.full
            enum = self.spec.types.get(full)
            lanes = self.ground.sort(full) if enum is None else self.ground.declared(enum, self.spec)
            lane: Expr = self.expressions.local(view.lane, lanes, view.span)
            for item in (*view.logs, *view.marks, *view.labels):
                self.expression(item.value, {view.lane: lane})
            for arrow in view.arrows:
                params = self.spec.actions[arrow.action].params
                kinds = [self.ground.declared(param.type, self.spec) for param in params]
                names: dict[str, Expr] = {
                    name: self.expressions.local(name, kind, arrow.span)
                    for name, kind in zip(arrow.params, kinds, strict=True)
                }
                self.expression(arrow.source, names)
                self.expression(arrow.target, names)

    def scenarios(self) -> None:
        """Lower all expressions of the model's scenarios, as a run of them does; raises `SpecError`."""
        for scenario in self.spec.scenarios.values():
            for line in scenario.steps if scenario.model.text == self.model.name else ():
                if isinstance(line, decls.Assert):
                    self.expression(line.condition)
                    continue
                for node in (*[arg.value for arg in line.call.args], line.where):
                    if node is not None:
                        self.expression(node)

    def definitions(self) -> list[tuple[str, tuple[Type, ...], Type]]:
        """The value definitions with a declared result: names, types of parameters and of the result."""
        signatures: list[tuple[str, tuple[Type, ...], Type]] = []
        for decl in self.spec.defs.values():
            plain = [param.type for param in decl.params if isinstance(param, decls.Param)]
            if decl.returns is not None and len(plain) == len(decl.params):
                kinds = tuple([self.ground.declared(node, self.spec) for node in plain])
                signatures.append((decl.name, kinds, self.ground.declared(decl.returns, self.spec)))
        return signatures

    def named_types(self) -> dict[Type, str]:
        """The types that have a name in the spec; if several names, the first."""
        names: dict[Type, str] = {}
        for decl in self.spec.types.values():
            names.setdefault(self.ground.declared(decl, self.spec), decl.name)
        return names

    def variables(self) -> tuple[tuple[Variable, ...], tuple[Start, ...]]:
        """The state variables and their initial values."""
        variables, starts = [], []
        for slot, decl in enumerate(self.spec.variables.values()):
            kind = self.ground.declared(decl.type, self.spec)
            self.expressions.names.slots[self.spec.prefix + decl.name] = (slot, kind)
            variables.append(Variable(decl.name, kind, decl.span))
        for decl, variable in zip(self.spec.variables.values(), variables, strict=True):
            starts.append(
                Start(self._start(decl.initial, variable.type), self._start(decl.choices, Set(variable.type)))
            )
        return tuple(variables), tuple(starts)

    def _start(self, node: tree.Expr | None, kind: Type) -> Expr | None:
        return stored(self.expressions.lower(node, Scope(self.spec)), kind) if node is not None else None


class _Selected(Struct, frozen=True):
    actions: list[decls.Action]
    properties: list[decls.Property]
    refines: list[decls.Refines]
    left_out: tuple[str, ...]
    left_out_actions: tuple[str, ...]


def _select(spec: Spec, model: FixedModel) -> _Selected:
    actions = list(spec.actions.values())
    if model.actions is not None:
        wanted = {name.text for name in model.actions}
        actions = [action for action in actions if action.name in wanted]
    properties = list(spec.properties.values())
    if model.properties is not None:
        wanted = {name.text for name in model.properties}
        # A constraint is no claim that may be left unchecked: it defines which states there are.
        properties = [prop for prop in properties if prop.name in wanted or prop.kind == "constraint"]
    refines = [decl for decl in spec.refines if model.properties is None or decl.alias in wanted]
    kept = {prop.name for prop in properties} | {decl.alias for decl in refines}
    left_out = tuple(name for name in (*spec.properties, *spec.refined) if name not in kept)
    omitted = tuple(action.name for action in spec.actions.values() if action not in actions)
    return _Selected(actions, properties, refines, left_out, omitted)


def lower(checked: CheckedSpec, model: FixedModel) -> tuple[Program, Lowering]:
    """The program of a spec under a model, and the lowering for further expressions over it.

    Raises `SpecError` for what only shows with the constants known, and for what no engine checks.
    """
    spec = checked.spec
    selected = _select(spec, model)
    lowering = Lowering(checked, model)
    # Variables before everything that reads their slots.  Coverage points and listed types are complete only
    # when all is lowered, so `points` and `horizons` follow all else among the arguments, which Python
    # evaluates in their order.
    variables, starts = lowering.variables()
    _assumed(lowering)
    properties = [lowering.property(p) for p in selected.properties if p.kind != "liveness"]
    liveness = tuple(lowering.liveness(p) for p in selected.properties if p.kind == "liveness")
    actions = tuple(lowering.action(a) for a in selected.actions)
    refinements = [_refinement(lowering, decl) for decl in selected.refines]
    refined = tuple(refinement.lower() for refinement in refinements)
    of_claims = [refinement.expressions for refinement in refinements]
    is_temporal = liveness or any(claim.abstract.fairness for claim in refined)
    params = {action.name: action.params for action in actions}
    program = Program(
        spec=spec.name, path=spec.source.path, model=model.name,
        sorts=tuple(lowering.ground.sort(full) for full in sorts_of(spec)),
        constants=_constants(lowering),
        variables=variables, starts=starts,
        inits=tuple(lowering.predicate("init", "init", i.lets, i.conjuncts, i.span) for i in spec.inits),
        actions=actions,
        invariants=_of_kind(properties, "invariant"),
        step_invariants=(*_of_kind(properties, "step invariant"), *refined),
        witnesses=_of_kind(properties, "reachable"), constraints=_of_kind(properties, "constraint"),
        deadlock_ok=_deadlock(lowering), points=tuple(lowering.points.listed),
        horizons=_horizons(lowering, selected.actions, refinements), left_out=selected.left_out,
        # Safety does not depend on fairness, so without a temporal property there is none.
        liveness=liveness, fairness=fair_actions(spec, params, lowering.expressions) if is_temporal else (),
        left_out_actions=selected.left_out_actions,
        folds=tuple(chain(*[each.names.folds for each in (lowering.expressions, *of_claims)])),
        ignored=_ignored(spec, model), ignored_at=model.ignored[0].span if model.ignored else None,
    )  # fmt: skip
    # Pictures lower views, where a rejection would come after the verdict.
    lowering.views()
    return program, lowering


def _ignored(spec: Spec, model: FixedModel) -> tuple[int, ...]:
    """The positions of the variables ignored by a model, in declaration order."""
    names = {name.text for name in model.ignored}
    return tuple(slot for slot, name in enumerate(spec.variables) if name in names)


def _refinement(lowering: Lowering, decl: decls.Refines) -> RefinementLowering:
    checked, model = lowering.checked, lowering.model
    other = checked.spec.refined[decl.alias]
    of_other = Lowering(checked, model, other, as_is)
    variables, starts = of_other.variables()
    actions = tuple(of_other.action(action) for action in other.actions.values())
    of_it = [other.prefix + name for name in other.consts]
    params = {action.name: action.params for action in actions}
    fairness = fair_actions(other, params, of_other.expressions)
    # Without the place of its file, which is in no identity of a search.
    abstract = Program(
        spec=other.name, path="", model="",
        sorts=tuple(lowering.ground.sort(full) for full in sorts_of(checked.spec)),
        constants=tuple(_constant(lowering, full) for full in of_it),
        variables=variables, starts=starts,
        inits=tuple(of_other.predicate("init", "init", i.lets, i.conjuncts, i.span) for i in other.inits),
        actions=actions, invariants=(), step_invariants=(), witnesses=(), constraints=(), deadlock_ok=None,
        points=tuple(of_other.points.listed), horizons=(), left_out=(), fairness=fairness,
        folds=tuple(of_other.expressions.names.folds),
    )  # fmt: skip
    expressions = ExpressionLowering(checked, model, Points())
    expressions.names.slots.update(lowering.expressions.names.slots)
    return RefinementLowering(checked.spec, decl, abstract, expressions, lowering.points)


def ground(checked: CheckedSpec, model: FixedModel) -> None:
    """Only what a model determines, from constants to views and its scenarios; raises `SpecError`."""
    lowering = Lowering(checked, model)
    lowering.variables()
    _constants(lowering)
    _assumed(lowering)
    _claims_of_time(lowering, _select(checked.spec, model))
    lowering.views()
    lowering.scenarios()


def _claims_of_time(lowering: Lowering, selected: _Selected) -> None:
    """Reject temporal properties, and fairness, that no engine checks under these constants."""
    liveness = [lowering.liveness(prop) for prop in selected.properties if prop.kind == "liveness"]
    refined = [lowering.spec.refined[decl.alias] for decl in selected.refines]
    for other in refined:
        of_other = Lowering(lowering.checked, lowering.model, other, as_is)
        others = {action.name: of_other.parameters(action) for action in other.actions.values()}
        fair_actions(other, others, of_other.expressions)
    params = {action.name: lowering.parameters(action) for action in selected.actions}
    if liveness or any(other.fair for other in refined):
        fair_actions(lowering.spec, params, lowering.expressions)


def _assumed(lowering: Lowering) -> None:
    """Reject constants that violate an assumption of the spec, or of one that it imports or refines."""
    spec = lowering.spec
    for home in (spec, *spec.imports.values(), *spec.refined.values()):
        for assumption in home.assumes:
            for node in assumption.conjuncts:
                claim = lowering.expressions.conjunction(assumption.lets, (node,), Scope(home), node.span)
                if not evaluate_constant(claim):
                    message = f"model `{lowering.model.name}` breaks this assumption"
                    hint = "give the constants other values, in the model or with --set"
                    raise refusal("S512", node.span, message, hint)


def _of_kind(properties: list[Property], kind: str) -> tuple[Property, ...]:
    return tuple(prop for prop in properties if prop.kind == kind)


def _constants(lowering: Lowering) -> tuple[Constant, ...]:
    return tuple(_constant(lowering, full) for full in consts_of(lowering.spec))


def _constant(lowering: Lowering, full: str) -> Constant:
    ground = lowering.ground
    return Constant(full, *ground.constant(full), ground.place(full), not ground.is_given(full))


def _deadlock(lowering: Lowering) -> Property | None:
    spec = lowering.spec
    if not spec.deadlock:
        return None
    ok = [d.when or tree.BoolLiteral(d.span, value=True) for d in spec.deadlock]
    either = ok[0]
    for other in ok[1:]:
        either = tree.Binary(other.span, "or", either, other)
    return lowering.predicate("deadlock ok", "deadlock", (), (either,), spec.deadlock[0].span)


def _horizons(
    lowering: Lowering, actions: list[decls.Action], refinements: list[RefinementLowering]
) -> tuple[str, ...]:  # fmt: skip
    """The horizons of variables, parameters, constants' keys, and types whose values are enumerated."""
    declared = [(decl.name, decl.type) for decl in lowering.spec.variables.values()]
    declared += [
        (full, decl.type) for full, (decl, _) in consts_of(lowering.spec).items()
        if has_horizon_keys(lowering.ground.constant(full)[0])
    ]  # fmt: skip
    declared += [(param.name, param.type) for action in actions for param in action.params]
    types = lowering.expressions.facts.declared
    listed = [
        *lowering.expressions.names.listed,
        *(kind for refinement in refinements for kind in refinement.listed),
    ]
    # A number as a horizon has no name of its own: it is that of what has the type.
    limits: dict[str, dict[str, None]] = {}
    for owner, kind in (
        *((name, types[id(node)]) for name, node in declared),
        *(("", kind) for kind in listed),
    ):
        for node in _horizon_nodes(kind):
            value = lowering.ground.bound(node, lowering.spec)
            text = node.span.text if node.span.text == str(value) else f"{node.span.text}={value}"
            owners = limits.setdefault(text if not text.isdigit() else f"upto {text}", {})
            if text.isdigit() and owner:
                owners[owner] = None
    return tuple(f"{_together(tuple(owners))}{text}" for text, owners in limits.items())


def _together(names: tuple[str, ...]) -> str:
    """`a and b `, of more than two `a and 3 more `."""
    rest = names[1] if len(names) == 2 else f"{len(names) - 1} more"
    return "".join(f"{name} " for name in names) if len(names) < 2 else f"{names[0]} and {rest} "


def _horizon_nodes(kind: lang.Type) -> list[tree.Expr]:
    if isinstance(kind, lang.Int):
        return [kind.high] if kind.horizon and kind.high is not None else []
    return [node for part in lang.parts(kind) for node in _horizon_nodes(part)]
