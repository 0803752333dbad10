"""From grammar rules to tree nodes, bottom-up and without recursion.

One attribute a grammar rule: in the table of its class where the node is made of the children in their
order, else a method.  It is called with the rule's extent and its already built children; optional parts that
are absent are None.  Children are typed `Any` here: the grammar is what guarantees their kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any as Child

from lark import Token, Tree
from msgspec.structs import replace

from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Source, Span

# Passes recurse some frames for each level; so deep a tree stays within Python's limit of 1000.
MAX_DEPTH = 120

Extent = tuple[int, int]  # the offsets of a rule's text in its chunk

_EMPTY = Source("", "")


class TooDeep(Exception):
    """An expression or block is nested deeper than the passes' recursion allows."""

    def __init__(self, span: Span) -> None:
        self.span = span
        super().__init__("nested too deeply")


class _Base:
    """Positions, depth and the small shapes that every rule uses."""

    def __init__(self) -> None:
        self._begin(_EMPTY, 0)

    def _begin(self, source: Source, offset: int) -> None:
        self._source = source
        self._offset = offset
        self._depths: dict[int, int] = {}
        self._alive: list[object] = []

    def build(self, parsed: Tree[Token], source: Source, offset: int) -> Child:
        """The node of Lark's tree for a chunk of `source` that starts at character `offset`.

        Raises `TooDeep` with the first place that is nested too deeply.
        """
        self._begin(source, offset)
        built: dict[int, Child] = {}  # by the identity of Lark's trees
        for rule in parsed.iter_subtrees():  # parts before wholes
            parts = [built[id(part)] if isinstance(part, Tree) else part for part in rule.children]
            built[id(rule)] = getattr(self, rule.data)((rule.meta.start_pos, rule.meta.end_pos), parts)
        return built[id(parsed)]

    def span(self, at: Extent) -> Span:
        """The place of a rule's text in the source."""
        return Span(self._source, self._offset + at[0], self._offset + at[1])

    def _name(self, token: Token) -> tree.Name:
        start = self._offset + (token.start_pos or 0)
        return tree.Name(Span(self._source, start, start + len(token)), str(token))

    def _deep(self, node: Child, children: list[Child]) -> Child:
        """`node`, once its depth is known to be within bounds."""
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
    """The children that are present: absent optional parts are None."""
    return tuple(child for child in children if child is not None)


def joined(children: Iterable[Child]) -> tuple[Child, ...]:
    """The children, with tuples replaced by their items."""
    return tuple(item for child in children for item in (child if isinstance(child, tuple) else (child,)))


def leaf(kind: Callable[..., Child], *leading: object, rest: int | None = None) -> Child:
    """The rule for a node with the arguments `leading` and the rule's children in order, names as text.

    The children from number `rest` on are one part, a tuple of those that are there.
    """

    def rule(self: _Base, at: Extent, children: list[Child]) -> Child:
        parts = _plain(children)
        if rest is not None:
            parts[rest:] = [present(parts[rest:])]
        return kind(self.span(at), *leading, *parts)

    return rule


def node(kind: Callable[..., Child], *leading: object, rest: int | None = None) -> Child:
    """As `leaf`, for a node that adds to the depth of its tree."""
    made = leaf(kind, *leading, rest=rest)

    def rule(self: _Base, at: Extent, children: list[Child]) -> Child:
        return self._deep(made(self, at, children), children)

    return rule


def group(_: _Base, __: Extent, children: list[Child]) -> Child:
    """The rule that returns the tuple of its children, names as text."""
    return present(_plain(children))


def _plain(children: list[Child]) -> list[Child]:
    return [str(child) if isinstance(child, Token) else child for child in children]


class _Expressions(_Base):
    """Rules of expressions."""

    forall = node(tree.Quantified, "forall")
    exists = node(tree.Quantified, "exists")
    choose = node(tree.Quantified, "choose")
    filter_ = node(tree.Quantified, "filter")
    leadsto = node(tree.Binary, "leadsto")
    iff = node(tree.Binary, "iff")
    implies = node(tree.Binary, "implies")
    or_ = node(tree.Binary, "or")
    and_ = node(tree.Binary, "and")
    in_ = node(tree.Binary, "in")
    not_in = node(tree.Binary, "not in")
    range_ = node(tree.Binary, "..")
    add = node(tree.Binary, "+")
    sub = node(tree.Binary, "-")
    concat = node(tree.Binary, "++")
    union_ = node(tree.Binary, "union")
    intersect = node(tree.Binary, "intersect")
    mul = node(tree.Binary, "*")
    div = node(tree.Binary, "//")
    mod = node(tree.Binary, "%")
    not_ = node(tree.Unary, "not")
    neg = node(tree.Unary, "-")
    eventually = node(tree.Unary, "eventually")
    always = node(tree.Unary, "always")
    if_else = node(tree.IfElse)
    let_in = node(tree.LetIn)
    prime = node(tree.Prime)
    index = node(tree.Index)
    field = node(tree.Field)
    name = leaf(tree.Name)
    true = leaf(tree.BoolLiteral, True)
    false = leaf(tree.BoolLiteral, False)
    none = leaf(tree.NoneLiteral)
    match = node(tree.Match, rest=1)
    arm = node(tree.Arm)
    pattern = leaf(tree.Pattern)
    some_pattern = leaf(tree.Pattern, "some")
    none_pattern = leaf(tree.Pattern, "none", None)
    empty_set = leaf(tree.SetLiteral, ())
    set_lit = node(tree.SetLiteral, rest=0)
    set_comp = node(tree.SetComp)
    pair_lit = node(tree.PairLiteral, rest=0)
    pair = node(tree.Pair)
    with_ = node(tree.With, rest=1)
    change_field = leaf(partial(tree.Accessor, index=None))
    change_index = leaf(tree.Accessor, None)
    empty_seq = leaf(tree.SeqLiteral, ())
    seq_lit = node(tree.SeqLiteral, rest=0)
    tuple_lit = node(tree.TupleLiteral, rest=0)
    binder = leaf(tree.Binder)
    args = group

    def lambda_(self, at: Extent, c: list[Child]) -> Child:
        return self._deep(tree.Lambda(self.span(at), tuple(c[1:-1]), c[-1]), c)

    arg = node(tree.Argument)

    def compare(self, at: Extent, c: list[Child]) -> Child:
        return self._deep(tree.Binary(self.span(at), str(c[1]), c[0], c[2]), c)

    def is_(self, at: Extent, c: list[Child]) -> Child:
        return self._deep(tree.Binary(self.span(at), "is", c[0], self._name(c[1])), c)

    def call(self, at: Extent, c: list[Child]) -> Child:
        return self._deep(tree.CallExpr(self.span(at), self._callee(c[0]), c[1] or ()), c)

    def fold(self, at: Extent, c: list[Child]) -> Child:
        return self._deep(tree.Fold(self.span(at), self._callee(c[0]), *c[1:]), c)

    def bound_call(self, at: Extent, c: list[Child]) -> Child:
        args = tuple(tree.Argument(arg.span, arg) for arg in present(c[1:]))
        return self._deep(tree.CallExpr(self.span(at), self._name(c[0]), args), c)

    def number_name(self, at: Extent, c: list[Child]) -> Child:
        # `Sizes.first` parses as a name of a file; in an expression it is the field of a record, too.
        (name,) = c
        if name.qualifier is None:
            return name
        return self._deep(tree.Field(self.span(at), tree.Name(name.span, name.qualifier), name.text), c)

    def _callee(self, node: Child) -> tree.Name:
        # `log.truncate(...)` parses as a call of a field; that it is a module's definition is recognized
        # only here.
        if isinstance(node, tree.Field) and isinstance(node.base, tree.Name):
            return tree.Name(node.span, node.name, node.base.text)
        if isinstance(node, tree.Name):
            return node
        # The called expression is not a name, as in `f(x)(y)`. A name that no table can contain makes it an
        # ordinary error of the checker, with its place.
        return tree.Name(node.span, node.span.text)

    def dotted(self, at: Extent, c: list[Child]) -> Child:
        if c[1] is None:
            return tree.Name(self.span(at), str(c[0]))
        return tree.Name(self.span(at), str(c[1]), str(c[0]))

    def int_lit(self, at: Extent, c: list[Child]) -> Child:
        return tree.IntLiteral(self.span(at), int(c[0]))

    def neg_lit(self, at: Extent, c: list[Child]) -> Child:
        return tree.IntLiteral(self.span(at), -int(c[0]))

    def parens(self, _: Extent, c: list[Child]) -> Child:
        return c[0]

    def map_comp(self, at: Extent, c: list[Child]) -> Child:
        pair, binder, condition = c
        if condition is not None:
            # The keys are those of a set by a condition; its body has nodes of its own, as facts are by node.
            body = replace(pair.key)
            keys = self._deep(tree.SetComp(condition.span, body, (binder,), condition), [binder, condition])
            binder = tree.Binder(binder.span, binder.bound, keys)
        return self._deep(tree.MapComp(self.span(at), pair.key, pair.value, binder), [*c, binder.domain])

    def change(self, at: Extent, c: list[Child]) -> Child:
        return self._deep(tree.Change(self.span(at), tuple(c[:-1]), c[-1]), c)

    def accessor(self, at: Extent, c: list[Child]) -> Child:
        if isinstance(c[0], Token):
            return tree.Accessor(self.span(at), str(c[0]), None)
        return tree.Accessor(self.span(at), None, c[0])

    def binders(self, _: Extent, c: list[Child]) -> Child:
        return joined(c)

    def binder_group(self, at: Extent, c: list[Child]) -> Child:
        return tuple(tree.Binder(self.span(at), bound, c[-1]) for bound in c[:-1])

    def bound_name(self, _: Extent, c: list[Child]) -> Child:
        return str(c[0]) if isinstance(c[0], Token) else tuple(c)

    def labelled(self, at: Extent, c: list[Child]) -> Child:
        return self._deep(tree.Argument(self.span(at), c[1], str(c[0])), c)


def _named(span: Span, text: str) -> tree.NamedType:
    return tree.NamedType(span, tree.Name(span, text))


class _Types(_Expressions):
    """Rules of types."""

    named_type = leaf(tree.NamedType)
    bool_type = leaf(_named, "bool")
    int_type = leaf(_named, "int")
    nat_type = leaf(tree.NatType)
    range_type = leaf(tree.RangeType)
    enum_type = leaf(tree.EnumType, rest=0)
    record_type = node(tree.RecordType, rest=0)
    field_type = node(tree.FieldType)
    set_type = node(tree.SetType)
    seq_type = node(tree.SeqType)
    bag_type = node(tree.BagType)
    partial_map_type = node(tree.PartialMapType)
    tuple_type = node(tree.TupleType, rest=0)
    option_type = node(tree.OptionType)
    map_type = node(tree.MapType)
    union = node(tree.UnionType, rest=0)
    variant = node(tree.VariantType, rest=1)
    bare = leaf(partial(tree.VariantType, fields=()))


def _payload(subject: Child, pattern: tree.Pattern) -> decls.Let:
    """The name that a case binds: where the case is another, it is not read."""
    at = pattern.span

    def call(name: str, value: Child) -> tree.CallExpr:
        return tree.CallExpr(at, tree.Name(at, name), (tree.Argument(at, value),))

    own = tree.Arm(at, pattern, call("some", tree.Name(at, pattern.bound or "")))
    rest = tree.Arm(at, tree.Pattern(at, "_", None), tree.NoneLiteral(at))
    return decls.Let(at, pattern.bound or "", call("get", tree.Match(at, subject, (own, rest))))


def _assigned(kind: Callable[..., Child]) -> Child:
    def rule(self: _Base, at: Extent, c: list[Child]) -> Child:
        return kind(self.span(at), self._name(c[0]), tuple(c[1:-1]), c[-1])

    return rule


class Statements(_Types):
    """Rules of action bodies; a block is a tuple of statements."""

    simple_line = group
    require = leaf(decls.Require)
    let = leaf(decls.Let)
    let_stmt = leaf(decls.Let)
    let_unwrap = leaf(partial(decls.Let, unwraps=True))
    skip = leaf(decls.Skip)
    any_ = node(decls.Any)
    assign = _assigned(decls.Assign)
    assign_in = _assigned(decls.AssignIn)

    def call_helper(self, at: Extent, c: list[Child]) -> Child:
        span = self.span(at)
        return decls.CallHelper(span, tree.CallExpr(span, self._name(c[0]), c[1] or ()))

    def block(self, at: Extent, c: list[Child]) -> Child:
        statements = joined(c)
        if any(self._depths.get(id(s), 0) > MAX_DEPTH - 2 for s in statements):
            raise TooDeep(self.span(at))
        return statements

    def either(self, at: Extent, c: list[Child]) -> Child:
        branches = tuple(child for child in c if isinstance(child, tuple))
        return self._deep(decls.Either(self.span(at), branches), c)

    def match_case(self, at: Extent, c: list[Child]) -> Child:
        return (self.span(at), *c)

    def match_cases(self, at: Extent, c: list[Child]) -> Child:
        """A chain of `when`, each of a `match` that is true for one case."""
        subject, *cases = c
        patterns = [pattern for _, pattern, _ in cases]
        orelse: tuple[Child, ...] = ()
        for index, (span, pattern, block) in reversed(list(enumerate(cases))):
            if pattern.bound not in (None, "_"):
                block = (_payload(subject, pattern), *block)
            if 0 < index == len(cases) - 1:  # the rest
                orelse = block
                continue
            rest = tree.Pattern(pattern.span, "_", None)
            # The first has all cases, so that one which is missing, double or unknown is reported.
            arms = [(one, one is pattern) for one in (patterns if index == 0 else (pattern, rest))]
            condition = tree.Match(
                subject.span if index == 0 else pattern.span, subject,
                tuple(tree.Arm(one.span, one, tree.BoolLiteral(one.span, value)) for one, value in arms),
            )  # fmt: skip
            step = decls.When(span if index else self.span(at), condition, block, orelse)
            orelse = (self._deep(step, [subject, *block, *orelse]),)
        return orelse[0]

    def when(self, at: Extent, c: list[Child]) -> Child:
        blocks = [child for child in c[1:] if isinstance(child, tuple)]
        orelse = blocks[1] if len(blocks) > 1 else ()
        return self._deep(decls.When(self.span(at), c[0], blocks[0], orelse), c)
