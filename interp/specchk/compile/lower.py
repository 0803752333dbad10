"""Lowering a spec under a model to a `Program`.

One pass over the declarations that the model selects, in declaration order; the result is verified
(`ir.verify`) before anyone sees it.  Properties left out by a model's selection are named in
`left_out`; `liveness`, `fair` and `refines` that a model does select are refused by the caller
(`unsupported`), never dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from specchk.compile.constants import evaluate_constant
from specchk.compile.ground import Ground
from specchk.compile.lower_ops import LowerOps
from specchk.compile.scope import Scope
from specchk.compile.store import stored
from specchk.ir.nodes import (
    Assign,
    Bind,
    Block,
    Choice,
    Either,
    Expr,
    Guard,
    Local,
    Step,
    Stmt,
    Unwrap,
    Value,
    When,
)  # fmt: skip
from specchk.ir.program import Action, Constant, Point, Program, Property, Start, Variable
from specchk.ir.types import Map, Option, Record, Seq, Set, Type, cardinality
from specchk.lang.check import types as lang
from specchk.lang.check.models import FixedModel, sorts_of
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report
from specchk.lang.text.source import Span

MAX_INSTANCES = 1 << 20


class Lowering(LowerOps):
    """Statements and declarations; the tables of slots and coverage points."""

    def __init__(self, checked: CheckedSpec, model: FixedModel) -> None:
        super().__init__(Ground(checked, model, self._constant))
        self.spec = checked.spec
        self.model = model
        self.points: list[Point] = []
        self._point_at: dict[tuple[str, int, int, str], int] = {}
        self._owner = ""

    def _constant(self, node: tree.Expr, home: Spec, _: Type | None) -> Value:
        return evaluate_constant(self.lower(node, Scope(home)))

    def point(self, kind: str, label: str, span: Span) -> int:
        """The coverage point at a span; one for all inlined copies."""
        key = (span.source.path, span.start, span.end, f"{kind}{label if kind == 'branch' else ''}")
        if key not in self._point_at:
            self._point_at[key] = len(self.points)
            self.points.append(Point(kind, self._owner, label, span))
        return self._point_at[key]

    # ------------------------------------------------------------ statements

    def block(self, body: tuple[decls.Stmt, ...], scope: Scope) -> Block:
        """Statements in order; lets reach to the end of the block."""
        out: list[Stmt] = []
        for stmt in body:
            scope = self._statement(stmt, scope, out)
        return tuple(out)

    def _statement(self, stmt: decls.Stmt, scope: Scope, out: list[Stmt]) -> Scope:
        match stmt:
            case decls.Require():
                out.append(Guard(self.lower(stmt.condition, scope)))
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
                out.append(Either(branches, points))
            case decls.When():
                out.append(self._when(stmt, scope))
            case decls.Skip():
                pass
        return scope

    def _branch(self, label: str, body: tuple[decls.Stmt, ...]) -> int:
        return self.point("branch", label, body[0].span.to(body[-1].span))

    def _when(self, stmt: decls.When, scope: Scope) -> When:
        condition = self.lower(stmt.condition, scope)
        then = self._branch("when", stmt.then)
        orelse = (
            self._branch("else", stmt.orelse)
            if stmt.orelse
            else self.point("branch", "not", stmt.condition.span)
        )
        return When(condition, self.block(stmt.then, scope), self.block(stmt.orelse, scope), (then, orelse))

    def _let(self, stmt: decls.Let, scope: Scope, out: list[Stmt]) -> Scope:
        value = self.lower(stmt.value, scope)
        kind = value.type
        if stmt.unwraps:
            assert isinstance(kind, Option)
            kind = kind.item
        local = self.local(stmt.name, kind, stmt.span)
        out.append(Unwrap(local, value) if stmt.unwraps else Bind(local, value))
        return scope.bind(stmt.name, local)

    def _any(self, binders: tuple[tree.Binder, ...], body: tuple[decls.Stmt, ...], scope: Scope) -> Choice:
        (local, domain), *_ = self.binders(binders[:1], scope)[0]
        inner = scope.bind(binders[0].name, local)
        rest = self.block(body, inner) if len(binders) == 1 else (self._any(binders[1:], body, inner),)
        return Choice(local, domain, rest)

    def _assign(self, stmt: decls.Assign, scope: Scope) -> Assign:
        slot, kind = self.slots[stmt.target.text]
        path, place = self._path(stmt.path, kind, scope)
        return Assign(slot, path, stored(self.lower(stmt.value, scope), place), stmt.span)

    def _assign_in(self, stmt: decls.AssignIn, scope: Scope) -> Choice:
        slot, kind = self.slots[stmt.target.text]
        path, place = self._path(stmt.path, kind, scope)
        domain = self.domain(stmt.domain, scope)
        assert isinstance(domain.type, Set)
        local = self.local(stmt.target.text, domain.type.item, stmt.span)
        return Choice(local, domain, (Assign(slot, path, stored(local, place), stmt.span),))

    def _path(
        self, path: tuple[tree.Accessor, ...], kind: Type, scope: Scope
    ) -> tuple[tuple[Step, ...], Type]:
        steps = []
        for accessor in path:
            if accessor.field is not None:
                assert isinstance(kind, Record)
                index = kind.index(accessor.field)
                steps.append(Step(index, None, kind))
                kind = kind.fields[index][1]
            else:
                assert accessor.index is not None
                assert isinstance(kind, Map | Seq)
                steps.append(Step(None, self.lower(accessor.index, scope), kind))
                kind = kind.value if isinstance(kind, Map) else kind.item
        return tuple(steps), kind

    # ------------------------------------------------------------ declarations

    def action(self, decl: decls.Action) -> Action:
        """One action with its parameters as locals 0, 1, ..."""
        self.next_local = 0
        self._owner = decl.name
        point = self.point("action", decl.name, decl.span)
        scope = Scope(self.spec, points="branch")
        params: list[Local] = []
        instances = 1
        for param in decl.params:
            kind = self.ground.type(self.facts.declared[id(param.type)], self.spec)
            instances *= cardinality(kind)
            local = self.local(param.name, kind, param.span)
            params.append(local)
            scope = scope.bind(param.name, local)
        if instances > MAX_INSTANCES:
            message = f"`{decl.name}` has {instances} instances, too many to enumerate in each state"
            hint = "choose smaller constants, or let a parameter range over a set in the state"
            raise self.error("S510", decl.span, message, hint)
        body = self.block(decl.body, scope)
        return Action(decl.name, tuple(params), body, self.next_local, point, decl.span)

    def property(self, decl: decls.Property) -> Property:
        """One invariant, step invariant, witness or constraint."""
        points = "implication" if decl.kind in ("invariant", "step invariant") else ""
        return self.predicate(decl.kind, decl.name, decl.lets, decl.conjuncts, decl.span, points)

    def predicate(
        self, kind: str, name: str, lets: tuple[decls.Let, ...], conjuncts: tuple[tree.Expr, ...], span: Span,
        points: str = "",
    ) -> Property:  # fmt: skip
        """A named conjunct list over one or two states."""
        self.next_local = 0
        self._owner = name
        body = self.conjunction(lets, conjuncts, Scope(self.spec, points=points), span)
        return Property(kind, name, body, self.next_local, span)

    def expression(self, node: tree.Expr) -> tuple[Expr, int]:
        """A lone expression over one state, with the number of its locals."""
        self.next_local = 0
        return self.lower(node, Scope(self.spec)), self.next_local

    def variables(self) -> tuple[tuple[Variable, ...], tuple[Start, ...]]:
        """The state variables and how they start."""
        variables, starts = [], []
        for slot, decl in enumerate(self.spec.variables.values()):
            kind = self.ground.type(self.facts.declared[id(decl.type)], self.spec)
            self.slots[decl.name] = (slot, kind)
            variables.append(Variable(decl.name, kind, decl.span))
        for decl, variable in zip(self.spec.variables.values(), variables, strict=True):
            value = (
                stored(self.lower(decl.initial, Scope(self.spec)), variable.type) if decl.initial else None
            )
            choices = self.lower(decl.choices, Scope(self.spec)) if decl.choices else None
            if choices is not None:
                choices = stored(choices, Set(variable.type))
            starts.append(Start(value, choices))
        return tuple(variables), tuple(starts)


@dataclass(frozen=True, slots=True)
class _Selected:
    actions: list[decls.Action]
    properties: list[decls.Property]
    left_out: tuple[str, ...]


def _select(spec: Spec, model: FixedModel) -> _Selected:
    actions = list(spec.actions.values())
    if model.actions is not None:
        wanted = {name.text for name in model.actions}
        actions = [action for action in actions if action.name in wanted]
    properties = list(spec.properties.values())
    if model.properties is not None:
        wanted = {name.text for name in model.properties}
        properties = [prop for prop in properties if prop.name in wanted or prop.kind == "constraint"]
    kept = {prop.name for prop in properties}
    left_out = tuple(name for name in spec.properties if name not in kept)
    return _Selected(actions, properties, left_out)


def lower(checked: CheckedSpec, model: FixedModel) -> tuple[Program, Lowering]:
    """The program of a spec under a model, and the lowering for further expressions over it.

    Raises `SpecError` for what only shows with the constants known, and for selected properties
    that no engine checks yet.
    """
    spec = checked.spec
    selected = _select(spec, model)
    _refuse_unsupported(spec, model, selected)
    lowering = Lowering(checked, model)
    variables, starts = lowering.variables()
    properties = [lowering.property(p) for p in selected.properties]
    actions = tuple(lowering.action(a) for a in selected.actions)
    program = Program(
        spec=spec.name, path=spec.source.path, model=model.name,
        sorts=tuple(lowering.ground.sort(full) for full in sorts_of(spec)),
        constants=_constants(lowering),
        variables=variables, starts=starts,
        inits=tuple(lowering.predicate("init", "init", i.lets, i.conjuncts, i.span) for i in spec.inits),
        actions=actions,
        invariants=_of_kind(properties, "invariant"), step_invariants=_of_kind(properties, "step invariant"),
        witnesses=_of_kind(properties, "reachable"), constraints=_of_kind(properties, "constraint"),
        deadlock_ok=_deadlock(lowering), points=tuple(lowering.points),
        horizons=_horizons(lowering, selected.actions), left_out=selected.left_out,
    )  # fmt: skip
    return program, lowering


def ground(checked: CheckedSpec, model: FixedModel) -> None:
    """Only what a model decides: constants in range, types finite, initial values; else `SpecError`."""
    lowering = Lowering(checked, model)
    lowering.variables()
    _constants(lowering)


def _of_kind(properties: list[Property], kind: str) -> tuple[Property, ...]:
    return tuple(prop for prop in properties if prop.kind == kind)


def _constants(lowering: Lowering) -> tuple[Constant, ...]:
    ground = lowering.ground
    return tuple(Constant(full, *ground.constant(full)) for full in ground._consts)


def _deadlock(lowering: Lowering) -> Property | None:
    spec = lowering.spec
    if not spec.deadlock:
        return None
    ok = [d.when or tree.BoolLiteral(d.span, value=True) for d in spec.deadlock]
    either = ok[0]
    for other in ok[1:]:
        either = tree.Binary(other.span, "or", either, other)
    return lowering.predicate("deadlock ok", "deadlock", (), (either,), spec.deadlock[0].span)


def _refuse_unsupported(spec: Spec, model: FixedModel, selected: _Selected) -> None:
    report = Report()
    hint = "omit it from the model: select properties with `properties a, b` or --property"
    for prop in selected.properties:
        if prop.kind == "liveness":
            report.add(
                "S601",
                prop.span,
                f"liveness is not checked yet, so `{prop.name}` has no verdict",
                hint,
            )
    if model.properties is None:
        for fair in spec.fair:
            report.add("S602", fair.span, "fairness matters to liveness only, which is not checked yet", hint)
        for refines in spec.refines:
            report.add("S603", refines.span, "refinement is not checked yet", hint)
    report.stop_if_any()


def _horizons(lowering: Lowering, actions: list[decls.Action]) -> tuple[str, ...]:
    """The horizons of variables, of parameters and of types whose values are listed."""
    declared = [decl.type for decl in lowering.spec.variables.values()]
    declared += [param.type for action in actions for param in action.params]
    found: dict[str, None] = {}
    for kind in (*[lowering.facts.declared[id(node)] for node in declared], *lowering.listed):
        for node in _horizon_nodes(kind):
            value = lowering.ground.bound(node, lowering.spec)
            text = node.span.text if node.span.text == str(value) else f"{node.span.text}={value}"
            found[text if not text.isdigit() else f"upto {text}"] = None
    return tuple(found)


def _horizon_nodes(kind: lang.Type) -> list[tree.Expr]:
    match kind:
        case lang.Int():
            return [kind.high] if kind.horizon and kind.high is not None else []
        case lang.Option() | lang.Set() | lang.Seq() | lang.Bag():
            return _horizon_nodes(kind.item)
        case lang.Map():
            return _horizon_nodes(kind.key) + _horizon_nodes(kind.value)
        case lang.Record():
            return [node for _, item in kind.fields for node in _horizon_nodes(item)]
        case lang.Union():
            return [node for _, record in kind.variants for node in _horizon_nodes(record)]
    return []
