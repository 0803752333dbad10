"""Lowering temporal properties and fairness.

A property is a conjunction of formulas of four forms (`ir.program.Form`), each with state predicates only.
A `forall` over constants is a conjunction, too: one clause for each of its values.  No other temporal
formula has a meaning here, and each is refused with its place (S601); nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, product

from specchk.compile.expressions import ExpressionLowering
from specchk.compile.ground import evaluate_constant
from specchk.compile.scope import Scope
from specchk.ir.nodes import Const, Expr, Local, Value, Var
from specchk.ir.program import Clause, Fairness, Form, Liveness, Property
from specchk.ir.types import cardinality, item_of
from specchk.ir.walk import inside
from specchk.lang.check.levels import children
from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Report, refusal
from specchk.lang.text.source import Span
from specchk.meaning.values import show, universe

MAX_CLAUSES = 1 << 12
MAX_CONDITIONS = 1024
_OPERATORS = frozenset({"leadsto", "eventually", "always"})
_CONSTANT = "a `forall` around a temporal formula ranges over constants"
Bindings = tuple[tuple[str, str], ...]  # names and values, as a report shows them
Bound = tuple[Scope, Bindings]
Predicate = Callable[[tree.Expr, Scope], Property]  # a predicate of one state
_FORMS = "`P leadsto Q`, `eventually Q`, `always eventually Q` or `eventually always P`"


class TemporalLowering:
    """The clauses of one temporal property."""

    def __init__(
        self, decl: decls.Property, spec: Spec, predicate: Predicate, expressions: ExpressionLowering
    ) -> None:
        self.decl = decl
        self.spec = spec
        self.predicate = predicate
        self.expressions = expressions
        self.report = Report()
        self.clauses: list[Clause] = []

    def lower(self) -> Liveness:
        """The lowered property; raises `SpecError` for every formula of another form."""
        for conjunct in self.decl.conjuncts:
            self._formula(conjunct, Scope(self.spec), ())
        self.report.stop_if_any()
        return Liveness(self.decl.name, tuple(self.clauses), self.decl.span)

    def _formula(self, node: tree.Expr, scope: Scope, bound: Bindings) -> None:
        match node:
            case tree.Binary(op="and") if is_temporal(node):
                self._formula(node.left, scope, bound)
                self._formula(node.right, scope, bound)
            case tree.Quantified(kind="forall") if is_temporal(node.body):
                for inner, names in _scopes(node.binders, scope, bound, self._domain):
                    self._formula(node.body, inner, names)
            case tree.Binary(op="leadsto"):
                self._clause(Form.LEADS_TO, node.left, node.right, node.span, scope, bound)
            case tree.Unary(op="always", operand=tree.Unary(op="eventually") as inner_node):
                self._clause(Form.ALWAYS_EVENTUALLY, None, inner_node.operand, node.span, scope, bound)
            case tree.Unary(op="eventually", operand=tree.Unary(op="always") as inner_node):
                self._clause(Form.EVENTUALLY_ALWAYS, None, inner_node.operand, node.span, scope, bound)
            case tree.Unary(op="eventually"):
                self._clause(Form.EVENTUALLY, None, node.operand, node.span, scope, bound)
            case _:
                self._refuse(node, _hint(node))

    def _refuse(self, node: tree.Expr, hint: str) -> None:
        self.report.add("S601", node.span, "no engine checks a temporal formula of this form", hint)

    def _clause(
        self, form: Form, trigger: tree.Expr | None, goal: tree.Expr, span: Span, scope: Scope,
        bound: Bindings,
    ) -> None:  # fmt: skip
        nested = [part for part in (trigger, goal) if part is not None and is_temporal(part)]
        for part in nested:
            self._refuse(part, f"its operands are predicates of one state: write {_FORMS}")
        if nested:
            return
        if len(self.clauses) >= MAX_CLAUSES:
            message = f"`{self.decl.name}` has more than {MAX_CLAUSES} clauses"
            raise refusal("S604", span, message, "quantify over fewer values, or choose smaller constants")
        first = self.predicate(trigger, scope) if trigger is not None else None
        self.clauses.append(Clause(form, first, self.predicate(goal, scope), bound, span))

    def _domain(self, binder: tree.Binder, scope: Scope) -> list[Const]:
        # A name of a `let` line is no part of the scope: it means another value in every state.
        lines = {name for line in self.decl.lets for name in tree.names_in(line.bound)} - set(scope.names)
        if any(isinstance(part, tree.Name) and part.text in lines for part in below(binder.domain)):
            self._refuse(binder.domain, _CONSTANT)
            return []
        domain = self.expressions.domain(binder.domain, scope)
        if any(isinstance(part, Var | Local) for part in inside(domain)):
            self._refuse(binder.domain, _CONSTANT)
            return []
        return _items(domain, binder)


def _scopes(
    binders: tuple[tree.Binder, ...], scope: Scope, bound: Bindings, items: Callable[..., list[Const]]
) -> Iterator[Bound]:
    """The scopes of a `forall`, one for each choice of values, with names and values for display."""
    if not binders:
        yield scope, bound
        return
    first, rest = binders[0], binders[1:]
    for value in items(first, scope):
        pair = (tree.shown(first.bound), show(value.value, value.type))
        yield from _scopes(rest, scope.bind(first.bound, value), (*bound, pair), items)


def _items(domain: Expr, binder: tree.Binder) -> list[Const]:
    values = evaluate_constant(domain)
    assert isinstance(values, tuple)
    # Marked like the set that they come from: a property of these may fail for larger ones.
    is_open = any(isinstance(part, Const) and part.ends_at_horizon for part in inside(domain))
    return [Const(item_of(domain.type), binder.span, value, is_open) for value in values]


def fair_actions(
    spec: Spec, actions: Mapping[str, Sequence[Local]], expressions: ExpressionLowering
) -> tuple[Fairness, ...]:
    """The fairness that a spec declares for actions with these parameters; that of others is omitted."""
    positions = {name: index for index, name in enumerate(actions)}
    declared: dict[Fairness, None] = {}
    conditions = 0
    for is_strong, item in [(fair.strong, item) for fair in spec.fair for item in fair.actions]:
        written = (item,) if isinstance(item, decls.FairAction) else item.actions
        parts = [part for part in written if part.action.full in positions]
        kept = [tuple(at for at, name in enumerate(part.params) if name != "_") for part in parts]
        if isinstance(item, decls.FairEither) and item.binders:
            choices = _bound_choices(item.binders, Scope(spec), expressions)
        else:
            choices = _own_choices([(part.params, actions[part.action.full]) for part in parts], item.span)
        # One more than may be, so that too many are seen without listing them all.
        values = list(islice(choices, MAX_CONDITIONS + 1)) if parts else []
        rows = tuple(
            tuple(tuple(row[part.params[at]] for at in ats) for part, ats in zip(parts, kept, strict=True))
            for row in values
        )
        indices = (positions[part.action.full] for part in parts)
        fairness = Fairness(tuple(zip(indices, kept, strict=True)), is_strong, rows, item.span)
        if not rows or fairness in declared:
            continue
        declared[fairness] = None
        conditions += len(rows)
        _limited(conditions, item.span)
    return tuple(declared)


def _limited(conditions: int, span: Span) -> None:
    if conditions > MAX_CONDITIONS:
        message = f"with `{span.text}` there are more than {MAX_CONDITIONS} fairness conditions"
        hint = "omit parameters (`_`), or choose smaller constants"
        raise refusal("S604", span, message, hint)


def _own_choices(
    parts: Sequence[tuple[Sequence[str], Sequence[Local]]], span: Span
) -> Iterator[Mapping[str, Value]]:
    """The values of the parameters that actions fix by their own names, the same value for the same name."""
    domains: dict[str, set[Value]] = {}
    for names, params in parts:
        for name, param in zip(names, params, strict=bool(names)):
            if name != "_":
                _limited(cardinality(param.type), span)  # before its values are listed
                domains.setdefault(name, set()).update(universe(param.type))
    return (dict(zip(domains, row, strict=True)) for row in product(*map(sorted, domains.values())))


def _bound_choices(
    binders: tuple[tree.Binder, ...], scope: Scope, expressions: ExpressionLowering
) -> Iterator[Mapping[str, Value]]:
    """The values of the names that a `forall` of fairness binds."""

    def items(binder: tree.Binder, scope: Scope) -> list[Const]:
        return _items(expressions.domain(binder.domain, scope), binder)

    for inner, _ in _scopes(binders, scope, (), items):
        yield {name: evaluate_constant(value) for name, value in inner.names.items()}


def is_temporal(node: tree.Node) -> bool:
    """Whether an expression contains a temporal operator."""
    return any(isinstance(part, tree.Binary | tree.Unary) and part.op in _OPERATORS for part in below(node))


def below(node: tree.Node) -> Iterator[tree.Node]:
    """A node and everything below it."""
    yield node
    for part in children(node):
        yield from below(part)


def _hint(node: tree.Expr) -> str:
    """A hint for rewriting a formula that has none of the four forms."""
    match node:
        case _ if not is_temporal(node):
            return f"a predicate of one state is an `invariant`; a temporal property is {_FORMS}"
        case tree.Unary(op="always"):
            return "what is true in every state is an `invariant`; `P leadsto Q` is true at every P already"
        case tree.Binary(op="implies"):
            return "write `P leadsto Q`, which is required wherever P is true"
        case tree.Binary(op="or") | tree.Quantified(kind="exists"):
            return f"put the choice into the predicates of one formula: {_FORMS}"
    return f"write {_FORMS}, conjunctions of these, and `forall` around them"
