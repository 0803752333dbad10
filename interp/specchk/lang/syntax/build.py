"""From grammar rules to tree nodes, bottom-up and without recursion.

One method a grammar rule, in the order of grammar.lark.  A method gets the rule's position and its
already built children; optional parts that are absent are None.  Children are typed `Any` here and
nowhere else: the grammar is what guarantees their kinds.
"""

from __future__ import annotations

from typing import Any as Child

from lark import Token, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Source, Span

# Passes recurse some frames for each level; so deep a tree stays within Python's limit of 1000.
MAX_DEPTH = 120

_EMPTY = Source("", "")


class TooDeep(Exception):
    """An expression or block is nested deeper than the passes' recursion allows."""

    def __init__(self, span: Span) -> None:
        self.span = span
        super().__init__("nested too deeply")


class _Base(Transformer_NonRecursive[Token, Child]):
    """Positions, depth and the small shapes every rule uses."""

    def __init__(self) -> None:
        super().__init__()
        self.begin(_EMPTY, 0)

    def begin(self, source: Source, offset: int) -> None:
        """Build for a chunk of `source` that starts at character `offset`."""
        self._source = source
        self._offset = offset
        self._depths: dict[int, int] = {}
        self._alive: list[object] = []

    def span(self, meta: Meta) -> Span:
        """The place of a rule's text in the source."""
        if meta.empty:
            return Span(self._source, self._offset, self._offset)
        return Span(self._source, self._offset + meta.start_pos, self._offset + meta.end_pos)

    def _at(self, token: Token) -> Span:
        start = self._offset + (token.start_pos or 0)
        return Span(self._source, start, start + len(token))

    def _deep(self, node: Child, children: list[Child]) -> Child:
        """`node`, after a check that its depth is within bounds."""
        depth = 1 + max((self._depths.get(id(child), 0) for child in _flat(children)), default=0)
        if depth > MAX_DEPTH:
            raise TooDeep(node.span)
        # By identity: equal nodes at different places have depths of their own.
        self._depths[id(node)] = depth
        self._alive.append(node)  # ids stay unique while the chunk is built
        return node


def _flat(children: list[Child]) -> list[Child]:
    out: list[Child] = []
    for child in children:
        out.extend(_flat(list(child))) if isinstance(child, tuple | list) else out.append(child)
    return out


def present(children: list[Child]) -> tuple[Child, ...]:
    """The children that are there: absent optional parts are None."""
    return tuple(child for child in children if child is not None)


def _binary(op: str) -> Child:
    def rule(self: _Base, meta: Meta, children: list[Child]) -> Child:
        return self._deep(tree.Binary(self.span(meta), op, children[0], children[-1]), children)

    return rule


def _unary(op: str) -> Child:
    def rule(self: _Base, meta: Meta, children: list[Child]) -> Child:
        return self._deep(tree.Unary(self.span(meta), op, children[0]), children)

    return rule


def _quantified(kind: str) -> Child:
    def rule(self: _Base, meta: Meta, children: list[Child]) -> Child:
        return self._deep(tree.Quantified(self.span(meta), kind, children[0], children[1]), children)

    return rule


@v_args(meta=True)
class _Expressions(_Base):
    """Rules of expressions."""

    forall = _quantified("forall")
    exists = _quantified("exists")
    choose = _quantified("choose")
    filter_ = _quantified("filter")
    leadsto = _binary("leadsto")
    iff = _binary("iff")
    implies = _binary("implies")
    or_ = _binary("or")
    and_ = _binary("and")
    in_ = _binary("in")
    not_in = _binary("not in")
    range_ = _binary("..")
    add = _binary("+")
    sub = _binary("-")
    concat = _binary("++")
    union_ = _binary("union")
    intersect = _binary("intersect")
    mul = _binary("*")
    div = _binary("//")
    mod = _binary("%")
    not_ = _unary("not")
    neg = _unary("-")
    eventually = _unary("eventually")
    always = _unary("always")

    def compare(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Binary(self.span(meta), str(c[1]), c[0], c[2]), c)

    def is_(self, meta: Meta, c: list[Child]) -> Child:
        tag = tree.Name(self._at(c[1]), str(c[1]))
        return self._deep(tree.Binary(self.span(meta), "is", c[0], tag), c)

    def if_else(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.IfElse(self.span(meta), *c), c)

    def let_in(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.LetIn(self.span(meta), str(c[0]), c[1], c[2]), c)

    def prime(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Prime(self.span(meta), c[0]), c)

    def index(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Index(self.span(meta), c[0], c[1]), c)

    def field(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Field(self.span(meta), c[0], str(c[1]), self._at(c[1])), c)

    def call(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.CallExpr(self.span(meta), self._callee(c[0]), c[1] or ()), c)

    def fold(self, meta: Meta, c: list[Child]) -> Child:
        node = tree.Fold(self.span(meta), self._callee(c[0]), c[1], c[2], c[3])
        return self._deep(node, c)

    def _callee(self, node: Child) -> tree.Name:
        # `log.truncate(...)` parses as a field that is called; what it is, a module's definition, is seen
        # only here.
        if isinstance(node, tree.Field) and isinstance(node.base, tree.Name):
            return tree.Name(node.span, node.name, node.base.text)
        if isinstance(node, tree.Name):
            return node
        # What is called is no name, as in `f(x)(y)`. A name that no table can have makes it an ordinary error
        # of the checker, with its place.
        return tree.Name(node.span, node.span.text)

    def name(self, meta: Meta, c: list[Child]) -> Child:
        return tree.Name(self.span(meta), str(c[0]))

    def dotted(self, meta: Meta, c: list[Child]) -> Child:
        if c[1] is None:
            return tree.Name(self.span(meta), str(c[0]))
        return tree.Name(self.span(meta), str(c[1]), str(c[0]))

    def int_lit(self, meta: Meta, c: list[Child]) -> Child:
        return tree.IntLiteral(self.span(meta), int(c[0]))

    def neg_lit(self, meta: Meta, c: list[Child]) -> Child:
        return tree.IntLiteral(self.span(meta), -int(c[0]))

    def true(self, meta: Meta, _: list[Child]) -> Child:
        return tree.BoolLiteral(self.span(meta), value=True)

    def false(self, meta: Meta, _: list[Child]) -> Child:
        return tree.BoolLiteral(self.span(meta), value=False)

    def none(self, meta: Meta, _: list[Child]) -> Child:
        return tree.NoneLiteral(self.span(meta))

    def parens(self, _: Meta, c: list[Child]) -> Child:
        return c[0]

    def match(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Match(self.span(meta), c[0], present(c[1:])), c)

    def arm(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Arm(self.span(meta), c[0], c[1]), c)

    def pattern(self, meta: Meta, c: list[Child]) -> Child:
        return tree.Pattern(self.span(meta), str(c[0]), str(c[1]) if c[1] is not None else None)

    def some_pattern(self, meta: Meta, c: list[Child]) -> Child:
        return tree.Pattern(self.span(meta), "some", str(c[0]))

    def none_pattern(self, meta: Meta, _: list[Child]) -> Child:
        return tree.Pattern(self.span(meta), "none", None)

    def empty_set(self, meta: Meta, _: list[Child]) -> Child:
        return tree.SetLiteral(self.span(meta), ())

    def set_lit(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.SetLiteral(self.span(meta), present(c)), c)

    def set_comp(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.SetComp(self.span(meta), c[0], c[1], c[2]), c)

    def pair_lit(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.PairLiteral(self.span(meta), present(c)), c)

    def map_comp(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.MapComp(self.span(meta), c[0].key, c[0].value, c[1]), c)

    def pair(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Pair(self.span(meta), c[0], c[1]), c)

    def with_(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.With(self.span(meta), c[0], present(c[1:])), c)

    def change(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Change(self.span(meta), tuple(c[:-1]), c[-1]), c)

    def change_field(self, meta: Meta, c: list[Child]) -> Child:
        return tree.Accessor(self.span(meta), str(c[0]), None)

    def change_index(self, meta: Meta, c: list[Child]) -> Child:
        return tree.Accessor(self.span(meta), None, c[0])

    def accessor(self, meta: Meta, c: list[Child]) -> Child:
        if isinstance(c[0], Token):
            return tree.Accessor(self.span(meta), str(c[0]), None)
        return tree.Accessor(self.span(meta), None, c[0])

    def empty_seq(self, meta: Meta, _: list[Child]) -> Child:
        return tree.SeqLiteral(self.span(meta), ())

    def seq_lit(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.SeqLiteral(self.span(meta), present(c)), c)

    def binders(self, _: Meta, c: list[Child]) -> Child:
        return tuple(binder for group in c for binder in group)

    def binder_group(self, meta: Meta, c: list[Child]) -> Child:
        return tuple(tree.Binder(self.span(meta), str(name), c[-1]) for name in c[:-1])

    def binder(self, meta: Meta, c: list[Child]) -> Child:
        return tree.Binder(self.span(meta), str(c[0]), c[1])

    def args(self, _: Meta, c: list[Child]) -> Child:
        return present(c)

    def arg(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Argument(self.span(meta), c[0]), c)

    def labelled(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.Argument(self.span(meta), c[1], str(c[0])), c)


@v_args(meta=True)
class _Types(_Expressions):
    """Rules of types."""

    def named_type(self, meta: Meta, c: list[Child]) -> Child:
        return tree.NamedType(self.span(meta), c[0])

    def bool_type(self, meta: Meta, _: list[Child]) -> Child:
        return tree.NamedType(self.span(meta), tree.Name(self.span(meta), "bool"))

    def int_type(self, meta: Meta, _: list[Child]) -> Child:
        return tree.NamedType(self.span(meta), tree.Name(self.span(meta), "int"))

    def nat_type(self, meta: Meta, c: list[Child]) -> Child:
        return tree.NatType(self.span(meta), c[0])

    def range_type(self, meta: Meta, c: list[Child]) -> Child:
        return tree.RangeType(self.span(meta), c[0], c[1])

    def enum_type(self, meta: Meta, c: list[Child]) -> Child:
        return tree.EnumType(self.span(meta), tuple(str(name) for name in present(c)))

    def record_type(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.RecordType(self.span(meta), present(c)), c)

    def field_type(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.FieldType(self.span(meta), str(c[0]), c[1]), c)

    def set_type(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.SetType(self.span(meta), c[0]), c)

    def seq_type(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.SeqType(self.span(meta), c[0], c[1]), c)

    def bag_type(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.BagType(self.span(meta), c[0], c[1]), c)

    def option_type(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.OptionType(self.span(meta), c[0]), c)

    def map_type(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.MapType(self.span(meta), c[0], c[1]), c)

    def union(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.UnionType(self.span(meta), tuple(c)), c)

    def variant(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(tree.VariantType(self.span(meta), str(c[0]), present(c[1:])), c)

    def bare(self, meta: Meta, c: list[Child]) -> Child:
        return tree.VariantType(self.span(meta), str(c[0]), ())


@v_args(meta=True)
class Statements(_Types):
    """Rules of action bodies; a block is a tuple of statements."""

    def block(self, meta: Meta, c: list[Child]) -> Child:
        statements: list[Child] = []
        for child in c:
            statements.extend(child) if isinstance(child, tuple) else statements.append(child)
        if any(self._depths.get(id(s), 0) > MAX_DEPTH - 2 for s in statements):
            raise TooDeep(self.span(meta))
        return tuple(statements)

    def simple_line(self, _: Meta, c: list[Child]) -> Child:
        return tuple(c)

    def require(self, meta: Meta, c: list[Child]) -> Child:
        return decls.Require(self.span(meta), c[0])

    def let(self, meta: Meta, c: list[Child]) -> Child:
        return decls.Let(self.span(meta), str(c[0]), c[1])

    def let_stmt(self, meta: Meta, c: list[Child]) -> Child:
        return decls.Let(self.span(meta), str(c[0]), c[1])

    def let_unwrap(self, meta: Meta, c: list[Child]) -> Child:
        return decls.Let(self.span(meta), str(c[0]), c[1], unwraps=True)

    def assign(self, meta: Meta, c: list[Child]) -> Child:
        return decls.Assign(self.span(meta), self._target(c[0]), tuple(c[1:-1]), c[-1])

    def assign_in(self, meta: Meta, c: list[Child]) -> Child:
        return decls.AssignIn(self.span(meta), self._target(c[0]), tuple(c[1:-1]), c[-1])

    def _target(self, token: Token) -> tree.Name:
        return tree.Name(self._at(token), str(token))

    def skip(self, meta: Meta, _: list[Child]) -> Child:
        return decls.Skip(self.span(meta))

    def any_(self, meta: Meta, c: list[Child]) -> Child:
        return self._deep(decls.Any(self.span(meta), c[0], c[1]), c)

    def either(self, meta: Meta, c: list[Child]) -> Child:
        branches = tuple(child for child in c if isinstance(child, tuple))
        return self._deep(decls.Either(self.span(meta), branches), c)

    def when(self, meta: Meta, c: list[Child]) -> Child:
        blocks = [child for child in c[1:] if isinstance(child, tuple)]
        orelse = blocks[1] if len(blocks) > 1 else ()
        return self._deep(decls.When(self.span(meta), c[0], blocks[0], orelse), c)
