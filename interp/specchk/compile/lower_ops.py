"""Lowering operators, built-in functions, literals and updates."""

from __future__ import annotations

from functools import reduce
from types import MappingProxyType

from specchk.compile.lower_expr import LowerExpr
from specchk.compile.scope import Scope
from specchk.ir.nodes import And, Apply, Const, Expr, Or
from specchk.ir.ops import Op
from specchk.ir.totality import is_total
from specchk.ir.types import BOOL, Bag, Map, Record, Seq, Set, Type, Union, hull
from specchk.lang.syntax import tree
from specchk.lang.text.source import Span

_PLAIN = MappingProxyType(
    {
        "==": Op.EQ,
        "!=": Op.NE,
        "iff": Op.EQ,
        "<": Op.LT,
        "<=": Op.LE,
        "+": Op.ADD,
        "-": Op.SUB,
        "*": Op.MUL,
        "//": Op.DIV,
        "%": Op.MOD,
        "..": Op.RANGE,
        "subset": Op.SUBSET,
        "++": Op.CONCAT,
        "intersect": Op.INTERSECT,
    }
)
_FLIPPED = MappingProxyType({">": Op.LT, ">=": Op.LE})
_CONTAINS = MappingProxyType({Set: Op.IN_SET, Seq: Op.IN_SEQ, Bag: Op.IN_BAG})
_BUILTIN_OPS = MappingProxyType(
    {
        "subsets": Op.SUBSETS,
        "some": Op.SOME,
        "len": Op.LEN,
        "head": Op.HEAD,
        "last": Op.LAST,
        "tail": Op.TAIL,
        "append": Op.APPEND,
        "prefix": Op.PREFIX,
        "suffix": Op.SUFFIX,
        "add": Op.BAG_ADD,
        "remove": Op.BAG_REMOVE,
        "count": Op.BAG_COUNT,
        "sum": Op.SET_SUM,
    }
)


class LowerOps(LowerExpr):
    """Everything strict."""

    def _operator(self, node: tree.Unary | tree.Binary, scope: Scope) -> Expr:
        if isinstance(node, tree.Unary):
            assert node.op in ("not", "-"), "temporal operators are refused before lowering"
            operand = self.lower(node.operand, scope)
            return self.apply(node.span, Op.NOT if node.op == "not" else Op.NEG, operand)
        if node.op in ("and", "or"):
            return self._junction(node, scope)
        if node.op == "implies":
            return self.implication(node, scope)
        if node.op == "is":
            return self._is(node, scope)
        left, right = self.lower(node.left, scope), self.lower(node.right, scope)
        if node.op in ("in", "not in"):
            found = self.apply(node.span, _CONTAINS[type(right.type)], left, right)
            return found if node.op == "in" else self.apply(node.span, Op.NOT, found)
        if node.op in _FLIPPED:
            return self._flipped(node, left, right)
        return self.apply(node.span, _choose(node.op, left.type), left, right)

    def _flipped(self, node: tree.Binary, left: Expr, right: Expr) -> Expr:
        """`a > b` as `b < a`, still evaluated left to right where that can be seen."""
        if is_total(left) or is_total(right):
            return self.apply(node.span, _FLIPPED[node.op], right, left)
        opposite = Op.LE if node.op == ">" else Op.LT
        return self.apply(node.span, Op.NOT, self.apply(node.span, opposite, left, right))

    def _junction(self, node: tree.Binary, scope: Scope) -> Expr:
        left: tree.Expr = node
        chain: list[tree.Expr] = []
        while isinstance(left, tree.Binary) and left.op == node.op:
            chain.append(left.right)
            left = left.left
        parts = tuple(self.lower(part, scope) for part in [left, *reversed(chain)])
        return (And if node.op == "and" else Or)(BOOL, node.span, parts)

    def _is(self, node: tree.Binary, scope: Scope) -> Expr:
        left = self.lower(node.left, scope)
        assert isinstance(left.type, Union)
        assert isinstance(node.right, tree.Name)
        return self.apply(node.span, Op.IS_VARIANT, left, data=left.type.index(node.right.text))

    def builtin(self, node: tree.Call, args: list[Expr], scope: Scope) -> Expr:
        """A built-in function applied to lowered arguments."""
        name, span = node.callee.text, node.span
        if name in ("min", "max"):
            if len(args) == 1:
                return self.apply(span, Op.SET_MIN if name == "min" else Op.SET_MAX, args[0])
            op = Op.MIN if name == "min" else Op.MAX
            return reduce(lambda a, b: self.apply(span, op, a, b), args)
        if name == "card":
            return self.apply(span, Op.BAG_CARD if isinstance(args[0].type, Bag) else Op.CARD, args[0])
        if name == "elements":
            return self.apply(span, Op.BAG_ITEMS if isinstance(args[0].type, Bag) else Op.SEQ_ITEMS, args[0])
        if name == "get":
            return self.apply(span, Op.GET if len(args) == 1 else Op.GET_OR, *args)
        return self.apply(span, _BUILTIN_OPS[name], *args)

    def _literal(self, node: tree.Expr, scope: Scope) -> Expr:
        match node:
            case tree.SetLiteral() | tree.SeqLiteral():
                return self._items(node, scope)
            case tree.PairLiteral():
                return self._pairs(node, scope)
            case tree.With():
                return self._with(node, scope)
        raise AssertionError(f"no lowering for {type(node).__name__}")

    def _items(self, node: tree.SetLiteral | tree.SeqLiteral, scope: Scope) -> Expr:
        args = tuple(self.lower(item, scope) for item in node.items)
        ground = self._ground(node, scope)
        assert isinstance(ground, Set | Seq | Bag)
        item = _hull(args, ground.item)
        match ground:
            case Set():
                return Apply(Set(item), node.span, Op.SET, args)
            case Seq():
                return Apply(Seq(item, len(args)), node.span, Op.SEQ, args)
            case Bag():
                return Apply(Bag(item, len(args)), node.span, Op.BAG, args)

    def _pairs(self, node: tree.PairLiteral, scope: Scope) -> Expr:
        ground = self._ground(node, scope)
        if isinstance(ground, Map):
            return self._map(node, ground, scope)
        fields = {p.key.text: self.lower(p.value, scope) for p in node.pairs if isinstance(p.key, tree.Name)}
        return self.record(node.span, fields)

    def _map(self, node: tree.PairLiteral, ground: Map, scope: Scope) -> Expr:
        given = {}
        for pair in node.pairs:
            key = self.lower(pair.key, scope)
            value = key.value if isinstance(key, Const) else None
            if value is None or value in given:
                message = "each key of a map literal is one constant, given once"
                raise self.error(
                    "S309", pair.key.span, message, "write `{ k: v for k in T }` to compute the values"
                )
            given[value] = self.lower(pair.value, scope)
        keys = self.universe.values(ground.key)
        if set(given) != set(keys):
            message = f"a map has a value for every key of its type: {len(given)} of {len(keys)} given"
            raise self.error("S309", node.span, message, "give the others, or write `{ k: v for k in T }`")
        args = tuple(given[key] for key in keys)
        return Apply(Map(ground.key, _hull(args, ground.value)), node.span, Op.MAP, args)

    def _with(self, node: tree.With, scope: Scope) -> Expr:
        base = self.lower(node.base, scope)
        return self.let(f"{node.base.span.text[:20]}", base, node.base.span, scope,
                        lambda inner: self._changed(node, base, inner, scope))  # fmt: skip

    def _changed(self, node: tree.With, base: Expr, inner: Scope, scope: Scope) -> Expr:
        result = inner.names[f"{node.base.span.text[:20]}"]
        for change in node.changes:
            value = self.lower(change.value, scope)
            result = self._updated(result, change.path, value, scope, node.span)
        return result

    def _updated(
        self, base: Expr, path: tuple[tree.Accessor, ...], value: Expr, scope: Scope, span: Span
    ) -> Expr:  # fmt: skip
        """`base` with the place at `path` replaced."""
        if not path:
            return value
        step, rest = path[0], path[1:]
        if step.field is not None:
            assert isinstance(base.type, Record)
            index = base.type.index(step.field)
            inner = self._updated(self.apply(span, Op.FIELD, base, data=index), rest, value, scope, span)
            return self.apply(span, Op.WITH_FIELD, base, inner, data=index)
        assert step.index is not None
        key = self.lower(step.index, scope)
        inner = self._updated(self.at(base, key, step.span), rest, value, scope, span)
        return self.apply(
            step.span, Op.MAP_SET if isinstance(base.type, Map) else Op.SEQ_SET, base, key, inner
        )


def _hull(args: tuple[Expr, ...], empty: Type) -> Type:
    return reduce(hull, (arg.type for arg in args)) if args else empty


def _choose(op: str, left: Type) -> Op:
    if op == "-" and isinstance(left, Set):
        return Op.DIFFERENCE
    if op == "union":
        return Op.BAG_UNION if isinstance(left, Bag) else Op.UNION
    return _PLAIN[op]
