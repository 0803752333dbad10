"""An operator's rule (`meaning.rules`) as an expression of the core, for engines without one of their own."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType

from specchk.ir.nodes import Apply, Collect, Const, Expr, Gather, If, Local, Quantifier
from specchk.ir.ops import Kinds, Op, named
from specchk.ir.types import BOOL, Int, Option, Seq, Type, hull, item_of
from specchk.ir.typing import folded, kinds, result_type
from specchk.lang.text.source import Span
from specchk.meaning import rules

_WORDS: MappingProxyType[type[ast.AST], str] = MappingProxyType({
    ast.Eq: "==", ast.Lt: "<", ast.LtE: "<=", ast.In: "in", ast.Sub: "-", ast.Not: "not",
})  # fmt: skip


def read(expr: Apply) -> tuple[list[Expr], Expr]:
    """The rule of an operator on arguments of these types, which are the locals from slot 0 on.

    That is the conditions of which each, if it holds, says that there is no value, and the value.
    """
    return _read(expr.op, kinds(expr.args), expr.span)


# The same place is encoded for each instance of an action: read again, it cost a seventh of the encoding.
@lru_cache(maxsize=1 << 12)
def _read(op: Op, arguments: Kinds, span: Span) -> tuple[list[Expr], Expr]:
    rule, reader = _page()[op.name], _RuleReader(span)
    for argument, kind in zip(rule.args.args, arguments, strict=True):
        reader.name(argument.arg, kind)
    faults, node = [], rule.body
    while isinstance(node, ast.IfExp) and isinstance(node.body, ast.Call):
        faults.append(reader.expression(node.test))
        node = node.orelse
    return faults, reader.expression(node)


@cache
def _page() -> Mapping[str, ast.Lambda]:
    """The rules as they are written, by the name of the operator."""
    tables = [node for node in ast.walk(ast.parse(inspect.getsource(rules))) if isinstance(node, ast.Dict)]
    return {
        key.attr: rule
        for table in tables
        for key, rule in zip(table.keys, table.values, strict=True)
        if isinstance(key, ast.Attribute) and isinstance(rule, ast.Lambda)
    }


class _RuleReader:
    def __init__(self, span: Span) -> None:
        self.span = span
        self.locals: dict[str, Local] = {}

    def name(self, name: str, kind: Type) -> Local:
        """A new name for values of a type."""
        self.locals[name] = Local(kind, self.span, len(self.locals), name)
        return self.locals[name]

    def expression(self, node: ast.expr) -> Expr:
        """The expression that is written so."""
        match node:
            case ast.Name(id=name):
                return self.locals[name]
            case ast.Constant(value=int(number)):
                return Const(Int(number, number), self.span, number)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition, then, other = map(self.expression, (test, body, orelse))
                return If(hull(then.type, other.type), self.span, condition, then, other)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Tuple(elts=[])]):
                whole = self.expression(left)
                return self._applied(Op.EQ, whole, Const(whole.type, self.span, ()))
            case ast.Compare(left=left, ops=[ast.NotIn()], comparators=[right]):
                return self._applied(Op.NOT, self._worded("in", left, right))
            case ast.Compare(left=left, ops=[op], comparators=[right]) | ast.BinOp(left, op, right):
                return self._worded(_WORDS[type(op)], left, right)
            case ast.UnaryOp(op=op, operand=operand):
                return self._worded(_WORDS[type(op)], operand)
            case ast.Tuple(elts=[ast.Starred(value=items), last]):
                item = self.expression(last)
                end = Apply(Seq(item.type, 1), self.span, Op.SEQ, (item,))
                return self._applied(Op.CONCAT, self.expression(items), end)
            case ast.Subscript(value=items, slice=ast.Slice(lower=ast.expr() as first)):
                return self._worded("suffix", items, first)
            case ast.Subscript(value=items, slice=at):
                whole = self.expression(items)
                if isinstance(whole.type, Option):
                    return self._applied(Op.GET, whole)
                return self._applied(Op.SEQ_GET, whole, self.expression(at))
            case ast.Call(
                func=ast.Name(id=word), args=[ast.GeneratorExp(part, [loop]) | ast.ListComp(part, [loop])]
            ):
                return self._loop(word, part, loop)
            case ast.Call(func=ast.Name(id=word), args=args):
                return self._worded(word, *args)
        raise AssertionError(f"not in the language of rules: {ast.unparse(node)}")

    def _loop(self, word: str, part: ast.expr, loop: ast.comprehension) -> Expr:
        assert isinstance(loop.target, ast.Name)
        domain = self.expression(loop.iter)
        local = self.name(loop.target.id, item_of(domain.type))
        body, conditions = self.expression(part), [*map(self.expression, loop.ifs), None]
        if word in ("all", "any"):
            return Quantifier(BOOL, self.span, word == "all", local, domain, body)
        gather = Gather.SET if word == "tuple" else Gather[word.upper()]
        binders = ((local, domain),)
        kind = domain.type if word == "tuple" else folded(gather, binders, body.type)
        return Collect(kind, self.span, gather, binders, conditions[0], body)

    def _worded(self, word: str, *nodes: ast.expr) -> Expr:
        args = tuple(map(self.expression, nodes))
        return self._applied(named(word, kinds(args)), *args)

    def _applied(self, op: Op, *args: Expr) -> Expr:
        return Apply(result_type(op, args), self.span, op, args)
