"""Lowering expressions: from the checked tree to the core.

Names become slots and constants, definitions are inlined, overloaded operators are decided by the
operands' types.  A `Scope` says what each local name stands for and whether variables are read
before or after the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from specchk.compile.constants import evaluate_constant
from specchk.compile.ground import Ground
from specchk.compile.scope import Scope
from specchk.ir.nodes import (
    And,
    Apply,
    Case,
    Choose,
    Collect,
    Const,
    Cover,
    Expr,
    Gather,
    If,
    Implies,
    Let,
    Local,
    MapOf,
    Op,
    Quantifier,
    Var,
)  # fmt: skip
from specchk.ir.types import (
    BOOL,
    Bag,
    Int,
    Map,
    Option,
    Record,
    Seq,
    Set,
    Sort,
    Type,
    Union,
    cardinality,
    has_horizon,
    hull,
)  # fmt: skip
from specchk.ir.typing import folded, result_type
from specchk.ir.walk import inside
from specchk.lang.check import types as lang
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import Diagnostic, SpecError
from specchk.lang.text.source import Span
from specchk.meaning.values import Values

MAX_NODES = 200_000
MAX_UNIVERSE = 1 << 20


class LowerExpr:
    """One program's expression lowering; slots count up within one action or property."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.universe = Values()
        self.facts = ground.checked.facts
        self.slots: dict[str, tuple[int, Type]] = {}
        self.next_local = 0
        self.listed: list[lang.Type] = []  # types of which all values are listed
        self._made = 0

    # ------------------------------------------------------------ helpers

    def point(self, kind: str, label: str, span: Span) -> int:
        """The coverage point of a place (lower.py keeps the table)."""
        raise NotImplementedError

    def error(self, code: str, span: Span, message: str, hint: str) -> SpecError:
        """A finding that only shows once the constants are known."""
        return SpecError([Diagnostic(code, message, span, hint)])

    def local(self, name: str, kind: Type, span: Span) -> Local:
        """A fresh local."""
        self.next_local += 1
        return Local(kind, span, self.next_local - 1, name)

    def apply(self, span: Span, op: Op, *args: Expr, data: int = 0) -> Expr:
        """A strict operator with its type computed."""
        return Apply(result_type(op, args, data), span, op, args, data)

    def _is_constant(self, expr: Expr) -> bool:
        return not any(isinstance(node, Var | Local) for node in inside(expr))

    def lower(self, node: tree.Expr, scope: Scope) -> Expr:
        """The core of one expression."""
        self._made += 1
        if self._made > MAX_NODES:
            hint = "name the repeated part with `let`, so that it is computed once"
            raise self.error(
                "S509", node.span, "the definitions expand to too large an expression here", hint
            )
        match node:
            case tree.Name() | tree.Field() | tree.Index():
                return self._access(node, scope)
            case tree.IntLiteral():
                return Const(Int(node.value, node.value), node.span, node.value)
            case tree.BoolLiteral():
                return Const(BOOL, node.span, node.value)
            case tree.NoneLiteral():
                return Const(self._ground(node, scope), node.span, ())
            case tree.Unary() | tree.Binary():
                return self._operator(node, scope)
            case tree.Prime():
                return replace(self.lower(node.operand, replace(scope, primed=True)), span=node.span)
            case tree.Call():
                return self._call(node, scope)
            case tree.IfElse():
                return self._if(node, scope)
            case tree.LetIn():
                value = self.lower(node.value, scope)
                return self.let(
                    node.name, value, node.span, scope, lambda inner: self.lower(node.body, inner)
                )
            case tree.Match():
                return self._match(node, scope)
            case tree.Quantified() | tree.Fold() | tree.SetComp() | tree.MapComp():
                return self._binding(node, scope)
            case _:
                return self._literal(node, scope)

    def _ground(self, node: tree.Expr, scope: Scope) -> Type:
        return self.ground.type(self.facts.type_of(node), scope.home)

    def let(self, name: str, value: Expr, span: Span, scope: Scope, body: object) -> Expr:
        """Bind a name: atoms are substituted, anything else is evaluated once."""
        assert callable(body)
        if isinstance(value, Const | Local | Var):
            result = body(scope.bind(name, value))
        else:
            local = self.local(name, value.type, span)
            inner = body(scope.bind(name, local))
            result = Let(inner.type, span, local, value, inner)
        assert isinstance(result, Expr)
        return result

    # ------------------------------------------------------------ names and accesses

    def _access(self, node: tree.Name | tree.Field | tree.Index, scope: Scope) -> Expr:
        if isinstance(node, tree.Name) or id(node) in self.facts.refs:
            return self._name(node, scope)
        if isinstance(node, tree.Index):
            return self.at(self.lower(node.base, scope), self.lower(node.key, scope), node.span)
        base = self.lower(node.base, scope)
        assert isinstance(base.type, Record)
        return self.apply(node.span, Op.FIELD, base, data=base.type.index(node.name))

    def at(self, base: Expr, key: Expr, span: Span) -> Expr:
        """`base[key]`."""
        return self.apply(span, Op.MAP_GET if isinstance(base.type, Map) else Op.SEQ_GET, base, key)

    def _name(self, node: tree.Name | tree.Field | tree.Index, scope: Scope) -> Expr:
        ref = self.facts.ref(node)
        name, span = ref.name, node.span
        if ref.kind == "local":
            found = scope.names[name]
            return replace(found, span=span)
        if ref.kind == "element":
            kind = self._ground(node, scope)
            assert isinstance(kind, Sort)
            return Const(kind, span, kind.members.index(name))
        if ref.kind == "first":
            return Const(self.ground.sort(name), span, 0)
        home = ref.home
        assert home is not None
        if ref.kind == "variable":
            slot, kind = self.slots[name]
            return Var(kind, span, slot, scope.primed)
        if ref.kind == "constant":
            kind, value = self.ground.constant(home.prefix + name)
            return Const(kind, span, value)
        if ref.kind == "member":
            return Const(self._ground(node, scope), span, home.members[name][1])
        if ref.kind == "constructor":
            kind = self._ground(node, scope)
            assert isinstance(kind, Union)
            return Const(kind, span, (kind.index(name), ()))
        if ref.kind == "property":
            prop = home.properties[name]
            return self.conjunction(prop.lets, prop.conjuncts, replace(scope, names={}), prop.span)
        self.listed.append(self.facts.type_of(node))
        return self.all_values(self._ground(node, scope), span)

    def all_values(self, kind: Type, span: Span) -> Expr:
        """The set of all values of a type, `kind` being the set type."""
        assert isinstance(kind, Set)
        if cardinality(kind.item) > MAX_UNIVERSE:
            hint = "choose smaller constants, or iterate over a set in the state"
            raise self.error(
                "S510", span, f"a set of {cardinality(kind.item)} values is too large to list", hint
            )
        return Const(kind, span, self.universe.values(kind.item), has_horizon(kind.item))

    def conjunction(
        self, lets: tuple[decls.Let, ...], conjuncts: tuple[tree.Expr, ...], scope: Scope, span: Span
    ) -> Expr:  # fmt: skip
        """`let` lines and the conjuncts below them."""
        if lets:
            first = lets[0]
            value = self.lower(first.value, scope)
            return self.let(first.name, value, first.span, scope,
                            lambda inner: self.conjunction(lets[1:], conjuncts, inner, span))  # fmt: skip
        parts = tuple(self.lower(conjunct, scope) for conjunct in conjuncts)
        return parts[0] if len(parts) == 1 else And(BOOL, span, parts)

    # ------------------------------------------------------------ calls

    def _call(self, node: tree.Call, scope: Scope) -> Expr:
        ref = self.facts.ref(node)
        if ref.kind == "builtin":
            return self.builtin(node, [self.lower(arg.value, scope) for arg in node.args], scope)
        if ref.kind == "constructor":
            return self._construct(node, scope)
        home = ref.home
        assert home is not None
        decl = home.defs[ref.name]
        args = [self.lower(arg.value, scope) for arg in node.args]
        inner = Scope(home, {}, scope.primed, scope.points)
        return self._inline(decl, args, inner)

    def _inline(self, decl: decls.Def, args: list[Expr], scope: Scope) -> Expr:
        """The definition's value with the arguments for its parameters."""
        if args:
            name = decl.params[len(decl.params) - len(args)].name
            return self.let(
                name, args[0], args[0].span, scope, lambda inner: self._inline(decl, args[1:], inner)
            )
        return self._lets(decl.lets, decl.value, scope)

    def _lets(self, lets: tuple[decls.Let, ...], value: tree.Expr, scope: Scope) -> Expr:
        if not lets:
            return self.lower(value, scope)
        first = lets[0]
        bound = self.lower(first.value, scope)
        return self.let(
            first.name, bound, first.span, scope, lambda inner: self._lets(lets[1:], value, inner)
        )

    def _construct(self, node: tree.Call, scope: Scope) -> Expr:
        kind = self._ground(node, scope)
        assert isinstance(kind, Union)
        tag = kind.index(node.callee.text)
        given = {arg.label: self.lower(arg.value, scope) for arg in node.args}
        fields = kind.variants[tag][1].fields
        record = self.record(node.span, {name: given[name] for name, _ in fields})
        variants = tuple(
            (name, record.type if index == tag else old) for index, (name, old) in enumerate(kind.variants)
        )
        assert all(isinstance(item, Record) for _, item in variants)
        return Apply(Union(kind.name, variants), node.span, Op.VARIANT, (record,), tag)  # type: ignore[arg-type]

    def record(self, span: Span, fields: Mapping[str, Expr]) -> Expr:
        """A record of the given fields."""
        names = sorted(fields)
        kind = Record(tuple((name, fields[name].type) for name in names))
        return Apply(kind, span, Op.RECORD, tuple(fields[name] for name in names))

    def builtin(self, node: tree.Call, args: list[Expr], scope: Scope) -> Expr:
        """A built-in function (see `lower_ops`)."""
        raise NotImplementedError

    def _operator(self, node: tree.Unary | tree.Binary, scope: Scope) -> Expr:
        raise NotImplementedError

    def _literal(self, node: tree.Expr, scope: Scope) -> Expr:
        raise NotImplementedError

    # ------------------------------------------------------------ branching and binding

    def _if(self, node: tree.IfElse, scope: Scope) -> Expr:
        condition = self.lower(node.condition, scope)
        then, orelse = self.lower(node.then, scope), self.lower(node.orelse, scope)
        kind = hull(then.type, orelse.type)
        if scope.points == "branch":
            then = self._covered(then, "then", node.then.span)
            orelse = self._covered(orelse, "else", node.orelse.span)
        return If(kind, node.span, condition, then, orelse)

    def _covered(self, body: Expr, label: str, span: Span) -> Expr:
        return Cover(body.type, body.span, self.point("branch", label, span), body)

    def implication(self, node: tree.Binary, scope: Scope) -> Expr:
        """`a implies b`, its antecedent counted in properties."""
        left, right = self.lower(node.left, scope), self.lower(node.right, scope)
        if scope.points == "implication":
            right = Cover(
                BOOL, right.span, self.point("implication", node.left.span.text, node.left.span), right
            )
        return Implies(BOOL, node.span, left, right)

    def _match(self, node: tree.Match, scope: Scope) -> Expr:
        scrutinee = self.lower(node.scrutinee, scope)
        arms: list[tuple[int, Local | None, Expr]] = []
        default: Expr | None = None
        for arm in node.arms:
            tag, payload = self._tag(arm.pattern, scrutinee.type)
            local = (
                self.local(arm.pattern.bound, payload, arm.span) if arm.pattern.bound and payload else None
            )
            inner = scope.bind(local.name, local) if local else scope
            body = self.lower(arm.body, inner)
            if scope.points == "branch":
                body = self._covered(body, arm.pattern.tag, arm.span)
            if tag is None:
                default = body
            else:
                arms.append((tag, local, body))
        bodies = [body for _, _, body in arms] + ([default] if default is not None else [])
        kind = bodies[0].type
        for body in bodies[1:]:
            kind = hull(kind, body.type)
        return Case(kind, node.span, scrutinee, tuple(arms), default)

    def _tag(self, pattern: tree.Pattern, kind: Type) -> tuple[int | None, Type | None]:
        if pattern.tag == "_":
            return None, None
        if isinstance(kind, Option):
            return (1, kind.item) if pattern.tag == "some" else (0, None)
        assert isinstance(kind, Union)
        index = kind.index(pattern.tag)
        return index, kind.variants[index][1]

    def domain(self, node: tree.Expr, scope: Scope) -> Expr:
        """The domain of a binder, as a set."""
        found = self.lower(node, scope)
        if isinstance(found.type, Seq):
            return self.apply(node.span, Op.SEQ_ITEMS, found)
        if isinstance(found.type, Bag):
            return self.apply(node.span, Op.BAG_ITEMS, found)
        return found

    def _binding(self, node: tree.Quantified | tree.Fold | tree.SetComp | tree.MapComp, scope: Scope) -> Expr:
        if isinstance(node, tree.MapComp):
            return self._map_comp(node, scope)
        if isinstance(node, tree.Quantified):
            return self._quantified(node, scope)
        binders, inner = self.binders(node.binders, scope)
        condition = self.lower(node.condition, inner) if node.condition is not None else None
        body = self.lower(node.body, inner)
        if isinstance(node, tree.SetComp):
            return Collect(Set(body.type), node.span, Gather.SET, binders, condition, body)
        gather = Gather[node.callee.text.upper()]
        return Collect(folded(gather, binders, body.type), node.span, gather, binders, condition, body)

    def binders(
        self, binders: tuple[tree.Binder, ...], scope: Scope
    ) -> tuple[tuple[tuple[Local, Expr], ...], Scope]:
        """Locals with their domains, and the scope inside."""
        found = []
        for binder in binders:
            domain = self.domain(binder.domain, scope)
            assert isinstance(domain.type, Set)
            local = self.local(binder.name, domain.type.item, binder.span)
            found.append((local, domain))
            scope = scope.bind(binder.name, local)
        return tuple(found), scope

    def _quantified(self, node: tree.Quantified, scope: Scope) -> Expr:
        binders, inner = self.binders(node.binders, scope)
        body = self.lower(node.body, inner)
        if node.kind in ("forall", "exists"):
            for local, domain in reversed(binders):
                body = Quantifier(BOOL, node.span, node.kind == "forall", local, domain, body)
            return body
        local, domain = binders[0]
        if node.kind == "choose":
            return Choose(local.type, node.span, local, domain, body)
        return Collect(domain.type, node.span, Gather.SET, ((local, domain),), body, local)

    def _map_comp(self, node: tree.MapComp, scope: Scope) -> Expr:
        kind = self._ground(node, scope)
        assert isinstance(kind, Map)
        local = self.local(node.binder.name, kind.key, node.binder.span)
        domain = self.domain(node.binder.domain, scope)
        if not self._is_constant(domain) or evaluate_constant(domain) != self.universe.values(kind.key):
            hint = "write `for k in T`, with T the type of its keys"
            raise self.error("S309", domain.span, "a map has a value for every key of its type", hint)
        body = self.lower(node.value, scope.bind(node.binder.name, local))
        return MapOf(Map(kind.key, body.type), node.span, local, body)
