"""Lowering expressions: from the checked tree to core nodes.

Names become slots and constants, definitions are inlined.  A `Scope` gives the meaning of each local name,
and whether variables are read before or after the step; `operators` creates the nodes of strict operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from msgspec.structs import replace

from specchk.compile.calls import CallLowering
from specchk.compile.ground import Ground, different_keys, evaluate_constant
from specchk.compile.names import Names
from specchk.compile.nodes import operators
from specchk.compile.nodes.partial_maps import PartialMaps, is_partial_map
from specchk.compile.nodes.unions import element_of, lifted, member
from specchk.compile.scope import Lowerings, Points, Scope
from specchk.ir import nodes, types
from specchk.ir.nodes import Const, Expr, Local, PathStep, Value, Var
from specchk.ir.types import BOOL, DifferentKeys, Type, hull, item_of, of_shape
from specchk.ir.typing import folded, part_at
from specchk.ir.walk import inside
from specchk.lang.check.models import FixedModel
from specchk.lang.check.spec import Spec
from specchk.lang.frontend import CheckedSpec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span

MAX_NODES = 200_000


class ExpressionLowering:
    """Lowers the expressions of one program; the slots of locals increase within one action or property."""

    def __init__(self, checked: CheckedSpec, model: FixedModel, points: Points) -> None:
        self.ground = Ground(checked, model, self._constant)
        self.facts = checked.facts
        self.names = Names(self.ground, self.facts)
        self.points = points
        self.partial = PartialMaps(self.local, self.let)
        lowerings = Lowerings(
            self.lower, self.let, self.below, self.local, self.domain, self.binders, self.count, self.partial
        )
        self.calls = CallLowering(self.names, lowerings)
        self.next_local = 0
        self._made = 0

    def _constant(self, node: tree.Expr, home: Spec) -> tuple[Type, Value]:
        lowered = self.lower(node, Scope(home))
        if any(isinstance(part, Const) and part.ends_at_horizon for part in inside(lowered)):
            # As a plain number nothing in a verdict would show where it comes from.
            hint = "name the constant of its horizon: `nat upto N` has N + 1 values that are searched"
            message = "this depends on where a horizon ends, which is not a number of the protocol"
            raise refusal("S503", node.span, message, hint)
        return lowered.type, evaluate_constant(lowered)

    def local(self, bound: tree.Bound, kind: Type, span: Span) -> Local:
        """A fresh local."""
        self.next_local += 1
        return Local(kind, span, self.next_local - 1, tree.shown(bound))

    def count(self, span: Span) -> None:
        """Count lowered nodes: nested definitions and helper actions can grow without bound."""
        self._made += 1
        if self._made > MAX_NODES:
            hint = "name the repeated part with `let`, so that it is computed once"
            raise refusal("S509", span, "the definitions expand to too large an expression here", hint)

    def lower(self, node: tree.Expr, scope: Scope) -> Expr:
        """The core of one expression, as a value of the type required by its place."""
        found, wanted = self._lower(node, scope), self.facts.lifted.get(id(node))
        return found if wanted is None else lifted(found, self.ground.type(wanted, scope.home), self.local)

    def _lower(self, node: tree.Expr, scope: Scope) -> Expr:
        self.count(node.span)
        try:
            match node:
                case tree.Name() | tree.Field() | tree.Index():
                    return self._access(node, scope)
                case tree.IntLiteral() | tree.BoolLiteral() | tree.NoneLiteral():
                    return self._literal(node, scope)
                case tree.Unary() | tree.Binary():
                    return self._operator(node, scope)
                case tree.Prime():
                    return replace(self.lower(node.operand, replace(scope, primed=True)), span=node.span)
                case tree.CallExpr():
                    return self.calls.lower(node, scope)
                case tree.IfElse():
                    return self._if(node, scope)
                case tree.LetIn():
                    value = self.lower(node.value, scope)
                    return self.let(
                        node.bound, value, node.span,
                        lambda x: self.lower(node.body, scope.bind(node.bound, x)),
                    )  # fmt: skip
                case tree.Match():
                    return self._match(node, scope)
                case tree.Quantified() | tree.Fold() | tree.SetComp() | tree.MapComp():
                    return self._binding(node, scope)
                case tree.SetLiteral() | tree.SeqLiteral():
                    return self._items(node, scope)
                case tree.TupleLiteral():
                    return operators.tuple_of(node.span, [self.lower(item, scope) for item in node.items])
                case tree.PairLiteral():
                    return self._pairs(node, scope)
                case tree.With():
                    return self._changed(node, node.changes, self.lower(node.base, scope), scope)
                case tree.Lambda():
                    raise AssertionError("an operator is put in where it is called")
                case _:
                    assert_never(node)
        except DifferentKeys as difference:
            raise different_keys(difference, node.span) from None

    def _literal(self, node: tree.IntLiteral | tree.BoolLiteral | tree.NoneLiteral, scope: Scope) -> Const:
        match node:
            case tree.IntLiteral():
                return Const(types.Int(node.value, node.value), node.span, node.value)
            case tree.BoolLiteral():
                return Const(BOOL, node.span, node.value)
        return Const(self.names.type_of(node, scope), node.span, ())

    def let(self, bound: tree.Bound, value: Expr, span: Span, body: Callable[[Expr], Expr]) -> Expr:
        """Bind a name in a body: an atom is substituted, any other value is evaluated once."""
        if isinstance(value, Const | Local | Var):
            return body(value)
        local = self.local(bound, value.type, span)
        inner = body(local)
        return nodes.Let(inner.type, span, local, value, inner)

    def _access(self, node: tree.Name | tree.Field | tree.Index, scope: Scope) -> Expr:
        if isinstance(node, tree.Name) or id(node) in self.facts.refs:
            return self._name(node, scope)
        base = self.lower(node.base, scope)
        if isinstance(node, tree.Index):
            key = self.lower(node.key, scope)
            return self.partial.part(node.span, base, PathStep(None, key, base.type))
        return operators.field(node.span, base, node.name)

    def _name(self, node: tree.Name | tree.Field | tree.Index, scope: Scope) -> Expr:
        ref = self.facts.ref(node)
        if ref.kind == "property" and ref.home is not None:
            prop = ref.home.properties[ref.name]
            return self.conjunction(prop.lets, prop.conjuncts, replace(scope, names={}, owner=""), prop.span)
        return self.names.of(node, ref, scope)

    def conjunction(
        self, lets: tuple[decls.Let, ...], conjuncts: tuple[tree.Expr, ...], scope: Scope, span: Span
    ) -> Expr:  # fmt: skip
        """`let` lines and the conjuncts below them."""

        def conjoined(inner: Scope) -> Expr:
            return operators.conjoined(span, [self.lower(conjunct, inner) for conjunct in conjuncts])

        return self.below(lets, scope, conjoined)

    def below(self, lets: tuple[decls.Let, ...], scope: Scope, body: Callable[[Scope], Expr]) -> Expr:
        """The expression below `let` lines."""
        if not lets:
            return body(scope)
        first, rest = lets[0], lets[1:]
        value = self.lower(first.value, scope)
        return self.let(
            first.bound, value, first.span, lambda x: self.below(rest, scope.bind(first.bound, x), body)
        )

    def _operator(self, node: tree.Unary | tree.Binary, scope: Scope) -> Expr:
        if isinstance(node, tree.Unary):
            assert node.op in ("not", "-"), "temporal operators are refused before lowering"
            return operators.of_word(node.span, node.op, self.lower(node.operand, scope))
        match node.op:
            case "and" | "or":
                return self._junction(node, scope)
            case "implies":
                return self._implication(node, scope)
            case "is":
                assert isinstance(node.right, tree.Name)
                return operators.is_variant(node.span, self.lower(node.left, scope), node.right.text)
            case "in" | "not in":
                found = self._member(node, scope)
                return found if node.op == "in" else operators.of_word(node.span, "not", found)
        left, right = self.lower(node.left, scope), self.lower(node.right, scope)
        return operators.binary(node.span, node.op, left, right)

    def _member(self, node: tree.Binary, scope: Scope) -> Expr:
        left = self.lower(node.left, scope)
        if id(node.right) in self.facts.lifted:
            return self.let("item", left, node.span, lambda item: member(
                node.span, item, self._lower(node.right, scope), self.local, self.let))  # fmt: skip
        right = self.lower(node.right, scope)
        if is_partial_map(right.type):
            return self.partial.has(node.span, left, right)
        return operators.binary(node.span, "in", left, right)

    def _junction(self, node: tree.Binary, scope: Scope) -> Expr:
        left: tree.Expr = node
        chain: list[tree.Expr] = []
        while isinstance(left, tree.Binary) and left.op == node.op:
            chain.append(left.right)
            left = left.left
        parts = tuple(self.lower(part, scope) for part in [left, *reversed(chain)])
        return (nodes.And if node.op == "and" else nodes.Or)(BOOL, node.span, parts)

    def _items(self, node: tree.SetLiteral | tree.SeqLiteral, scope: Scope) -> Expr:
        args = tuple(self.lower(item, scope) for item in node.items)
        kind = self.names.type_of(node, scope)
        assert isinstance(kind, types.Set | types.Seq | types.Bag)
        return operators.collection(node.span, kind, args)

    def _pairs(self, node: tree.PairLiteral, scope: Scope) -> Expr:
        kind = self.names.type_of(node, scope)
        if isinstance(kind, types.Map):
            return operators.total_map(
                node, kind, self.names.universe.values(kind.key), lambda e: self.lower(e, scope)
            )
        if is_partial_map(kind):
            pairs = [(self.lower(p.key, scope), self.lower(p.value, scope)) for p in node.pairs]
            return self.partial.literal(node.span, pairs)
        fields = {p.key.text: self.lower(p.value, scope) for p in node.pairs if isinstance(p.key, tree.Name)}
        return operators.record(node.span, fields)

    def _changed(self, node: tree.With, changes: Sequence[tree.Change], base: Expr, scope: Scope) -> Expr:
        if not changes:
            return base
        first = changes[0]

        def changed(old: Expr) -> Expr:
            value = self.lower(first.value, scope)
            steps = self.path(first.path, old.type, scope)
            spans = (accessor.span for accessor in first.path)
            new = self.partial.updated(node.span, old, list(zip(steps, spans, strict=True)), value)
            return self._changed(node, changes[1:], new, scope)

        # A change deeper inside reads the changed value at each step of its path.
        if len(first.path) == 1 and len(changes) < len(node.changes):
            return changed(base)
        return self.let(node.base.span.text[:20], base, node.base.span, changed)

    def path(self, path: tuple[tree.Accessor, ...], kind: Type, scope: Scope) -> tuple[PathStep, ...]:
        """The path steps from a value of a type to a place inside it."""
        steps = []
        for accessor in path:
            field = kind.index(accessor.field) if accessor.field and isinstance(kind, types.Record) else None
            key = self.lower(accessor.index, scope) if accessor.index is not None else None
            steps.append(PathStep(field, key, kind))
            kind = part_at(kind, steps[-1])
        return tuple(steps)

    def _if(self, node: tree.IfElse, scope: Scope) -> Expr:
        condition = self.lower(node.condition, scope)
        then, orelse = self.lower(node.then, scope), self.lower(node.orelse, scope)
        kind = hull(then.type, orelse.type)
        if scope.points == "branch":
            then = self.points.counted(then, "branch", "then", node.then.span, scope)
            orelse = self.points.counted(orelse, "branch", "else", node.orelse.span, scope)
        return nodes.If(kind, node.span, condition, then, orelse)

    def _implication(self, node: tree.Binary, scope: Scope) -> Expr:
        """`a implies b`; its antecedent is counted in properties."""
        left, right = self.lower(node.left, scope), self.lower(node.right, scope)
        if scope.points == "implication":
            # The consequent is evaluated exactly where the antecedent is true, so its count is the
            # antecedent's.
            span = node.left.span
            right = self.points.counted(right, "implication", span.text, span, scope)
        return nodes.Implies(BOOL, node.span, left, right)

    def _match(self, node: tree.Match, scope: Scope) -> Expr:
        scrutinee = self.lower(node.scrutinee, scope)
        arms: list[tuple[int, Local | None, Expr]] = []
        default: Expr | None = None
        for arm in node.arms:
            tag, payload = self._tag(arm.pattern, scrutinee.type)
            local = (
                self.local(arm.pattern.bound, payload, arm.span) if arm.pattern.bound and payload else None
            )
            inner = scope.bind(local.name, element_of(local)) if local else scope
            body = self.lower(arm.body, inner)
            if scope.points == "branch":
                body = self.points.counted(body, "branch", arm.pattern.tag, arm.span, scope)
            if tag is None:
                default = body
            else:
                arms.append((tag, local, body))
        bodies = [body for _, _, body in arms] + ([default] if default is not None else [])
        kind = bodies[0].type
        for body in bodies[1:]:
            kind = hull(kind, body.type)
        if not isinstance(scrutinee.type, types.Enum):
            return nodes.Case(kind, node.span, scrutinee, tuple(arms), default)

        def compared(value: Expr) -> Expr:
            """The arm of a member: all but the last one, or the default, by comparing."""
            tests = arms if default is not None else arms[:-1]
            chosen = bodies[-1]
            for tag, _, body in reversed(tests):
                member = Const(value.type, value.span, tag)
                is_member = operators.of_word(value.span, "==", value, member)
                chosen = nodes.If(kind, node.span, is_member, body, chosen)
            return chosen

        return self.let("_case", scrutinee, node.scrutinee.span, compared)

    def _tag(self, pattern: tree.Pattern, kind: Type) -> tuple[int | None, Type | None]:
        if pattern.tag == "_":
            return None, None
        if isinstance(kind, types.Option):
            return (1, kind.item) if pattern.tag == "some" else (0, None)
        if isinstance(kind, types.Enum):
            return kind.members.index(pattern.tag), None
        assert isinstance(kind, types.Union)
        index = kind.index(pattern.tag)
        return index, kind.variants[index][1]

    def domain(self, node: tree.Expr, scope: Scope) -> Expr:
        """The domain of a binder, as a set."""
        found = self.lower(node, scope)
        return (
            self.partial.keys(node.span, found)
            if is_partial_map(found.type)
            else operators.as_set(node.span, found)
        )

    def _binding(self, node: tree.Quantified | tree.Fold | tree.SetComp | tree.MapComp, scope: Scope) -> Expr:
        if isinstance(node, tree.MapComp):
            return self._map_comp(node, scope)
        if isinstance(node, tree.Quantified):
            return self._quantified(node, scope)
        binders, inner = self.binders(node.binders, scope)
        condition = self.lower(node.condition, inner) if node.condition is not None else None
        body = self.lower(node.body, inner)
        if isinstance(node, tree.SetComp):
            return nodes.Collect(types.Set(body.type), node.span, nodes.Gather.SET, binders, condition, body)
        gather = nodes.Gather[node.callee.text.upper()]
        return nodes.Collect(folded(gather, binders, body.type), node.span, gather, binders, condition, body)

    def binders(
        self, binders: tuple[tree.Binder, ...], scope: Scope
    ) -> tuple[tuple[tuple[Local, Expr], ...], Scope]:
        """The locals of binders with their domains, and the scope inside."""
        pairs = []
        for binder in binders:
            domain = self.domain(binder.domain, scope)
            local = self.local(binder.bound, item_of(domain.type), binder.span)
            pairs.append((local, domain))
            scope = scope.bind(binder.bound, local)
        return tuple(pairs), scope

    def _quantified(self, node: tree.Quantified, scope: Scope) -> Expr:
        binders, inner = self.binders(node.binders, scope)
        body = self.lower(node.body, inner)
        if node.kind in ("forall", "exists"):
            every = node.kind == "forall"
            # A domain may read the names of those before it.
            for (local, domain), binder in zip(reversed(binders), reversed(node.binders), strict=True):
                if every:
                    body = self.points.per_item(body, domain, binder.domain.span, scope)
                body = nodes.Quantifier(BOOL, node.span, every, local, domain, body)
            return body
        local, domain = binders[0]
        if node.kind == "choose":
            return nodes.Choose(local.type, node.span, local, domain, body)
        return nodes.Collect(domain.type, node.span, nodes.Gather.SET, ((local, domain),), body, local)

    def _map_comp(self, node: tree.MapComp, scope: Scope) -> Expr:
        if is_partial_map(self.names.type_of(node, scope)):
            ((local, domain),), inner = self.binders((node.binder,), scope)
            return self.partial.made_of(node.span, local, domain, self.lower(node.value, inner))
        kind = of_shape(self.names.type_of(node, scope), types.Map)
        local = self.local(node.binder.bound, kind.key, node.binder.span)
        domain = self.domain(node.binder.domain, scope)
        is_constant = not any(isinstance(part, Var | Local) for part in inside(domain))
        if not is_constant or evaluate_constant(domain) != self.names.universe.values(kind.key):
            hint = "write `for k in T`, with T the type of its keys, or declare a `map[T, V]`"
            raise refusal("S309", domain.span, "a map has a value for every key of its type", hint)
        body = self.lower(node.value, scope.bind(node.binder.bound, local))
        return nodes.MapOf(types.Map(kind.key, body.type), node.span, local, body)
