"""The syntax tree: immutable values, one class for each construct, each with its span.

Facts about the tree (the meaning of a name, an expression's type) are stored in `lang.facts`, keyed by node
identity.  Equality ignores spans, so `parse(format(x)) == parse(x)` is a plain comparison.
"""

from __future__ import annotations

from specchk.identity import Identified
from specchk.lang.text.source import Span

# The names bound by a binder, a `let` or an operator: one, or one for each part of a tuple, as in
# `for (x, y) in S`; a part may be taken apart, too.
Bound = str | tuple["Bound", ...]


def shown(bound: Bound) -> str:
    """Bound names as written."""
    return bound if isinstance(bound, str) else f"({', '.join(map(shown, bound))})"


def names_in(bound: Bound) -> list[str]:
    """The bound names."""
    return [bound] if isinstance(bound, str) else [name for part in bound for name in names_in(part)]


class Node(Identified, frozen=True):
    """A piece of a spec; `span` is its place and does not count in comparisons."""

    span: Span


class Name(Node, frozen=True):
    """`leo`, or `log.truncate` when `qualifier` is set."""

    text: str
    qualifier: str | None = None

    @property
    def full(self) -> str:
        """The name as written."""
        return f"{self.qualifier}.{self.text}" if self.qualifier else self.text


class IntLiteral(Node, frozen=True):
    """`3`."""

    value: int


class BoolLiteral(Node, frozen=True):
    """`true`, `false`."""

    value: bool


class NoneLiteral(Node, frozen=True):
    """`none`."""


class Unary(Node, frozen=True):
    """`not e`, `-e`, and the temporal `eventually e`, `always e`."""

    op: str
    operand: Expr


class Binary(Node, frozen=True):
    """`a op b`; op is the source text (`and`, `+`, `==`, `in`, `not in`, `..`, `leadsto`, ...)."""

    op: str
    left: Expr
    right: Expr


class Prime(Node, frozen=True):
    """`e'`: `e` in the state after the step."""

    operand: Expr


class Index(Node, frozen=True):
    """`m[k]` on maps and sequences."""

    base: Expr
    key: Expr


class Field(Node, frozen=True):
    """`r.f`."""

    base: Expr
    name: str


class Argument(Node, frozen=True):
    """One argument of a call; `label` is set in `Fetch(offset: 1)`."""

    value: Expr
    label: str | None = None


class Lambda(Node, frozen=True):
    """`(a, b) => a + b`: an anonymous operator, as an argument."""

    params: tuple[Bound, ...]
    body: Expr


class CallExpr(Node, frozen=True):
    """A definition, built-in function or union constructor applied to arguments."""

    callee: Name
    args: tuple[Argument, ...]


class Binder(Node, frozen=True):
    """`x in S`, `(x, y) in S`: the bound names and their domain."""

    bound: Bound
    domain: Expr


class Fold(Node, frozen=True):
    """`min(e for x in S if c)`: a built-in over a bag of values."""

    callee: Name
    body: Expr
    binders: tuple[Binder, ...]
    condition: Expr | None


class Quantified(Node, frozen=True):
    """`forall`, `exists`, `choose`, `filter` over binders; the last two take one binder."""

    kind: str
    binders: tuple[Binder, ...]
    body: Expr


class IfElse(Node, frozen=True):
    """`if c then a else b`."""

    condition: Expr
    then: Expr
    orelse: Expr


class LetIn(Node, frozen=True):
    """`let x = e: body`."""

    bound: Bound
    value: Expr
    body: Expr


class Pattern(Node, frozen=True):
    """`some v`, `none`, `Fetch f`, `Ping`, or `_` for the rest."""

    tag: str
    bound: str | None


class Arm(Node, frozen=True):
    """One arm of a match."""

    pattern: Pattern
    body: Expr


class Match(Node, frozen=True):
    """`match e { some v: a, none: b }`."""

    scrutinee: Expr
    arms: tuple[Arm, ...]


class SetLiteral(Node, frozen=True):
    """`{a, b}`; `{}` is the empty set or bag."""

    items: tuple[Expr, ...]


class SeqLiteral(Node, frozen=True):
    """`[a, b]`."""

    items: tuple[Expr, ...]


class TupleLiteral(Node, frozen=True):
    """`(a, b)`."""

    items: tuple[Expr, ...]


class Pair(Node, frozen=True):
    """`key: value` in a record or map literal."""

    key: Expr
    value: Expr


class PairLiteral(Node, frozen=True):
    """`{ end: 1, hw: 0 }`: a record, or a map, depending on its type."""

    pairs: tuple[Pair, ...]


class SetComp(Node, frozen=True):
    """`{ e for x in S if c }`."""

    body: Expr
    binders: tuple[Binder, ...]
    condition: Expr | None


class MapComp(Node, frozen=True):
    """`{ k: e for k in K }`, total over the type `K`."""

    key: Expr
    value: Expr
    binder: Binder


class Accessor(Node, frozen=True):
    """One step of an update path: a field name or an index."""

    field: str | None
    index: Expr | None


class Change(Node, frozen=True):
    """`path: e` in a `with` update."""

    path: tuple[Accessor, ...]
    value: Expr


class With(Node, frozen=True):
    """`{ r with f: e, [k].g: e2 }`: a copy with changes."""

    base: Expr
    changes: tuple[Change, ...]


Expr = (
    Name | IntLiteral | BoolLiteral | NoneLiteral | Unary | Binary | Prime | Index | Field | CallExpr
    | Fold | Quantified | IfElse | LetIn | Match | SetLiteral | SeqLiteral | TupleLiteral | PairLiteral
    | SetComp | MapComp | With | Lambda
)  # fmt: skip


class NamedType(Node, frozen=True):
    """A sort or a declared type, by name; `bool` and `int` too."""

    name: Name


class RangeType(Node, frozen=True):
    """`a..b`, both ends included."""

    low: Expr
    high: Expr


class NatType(Node, frozen=True):
    """`nat upto N`: an offset; N is the horizon of the enumerating engines."""

    horizon: Expr


class EnumType(Node, frozen=True):
    """`enum {a, b}`."""

    members: tuple[str, ...]


class OptionType(Node, frozen=True):
    """`T?`."""

    item: TypeExpr


class FieldType(Node, frozen=True):
    """`name: T` in a record or variant."""

    name: str
    type: TypeExpr


class RecordType(Node, frozen=True):
    """`{ a: A, b: B }`."""

    fields: tuple[FieldType, ...]


class VariantType(Node, frozen=True):
    """`Fetch(offset: Offset)` in a union."""

    name: str
    fields: tuple[FieldType, ...]


class UnionType(Node, frozen=True):
    """`Fetch(offset: Offset) | Ping`."""

    variants: tuple[VariantType, ...]


class MapType(Node, frozen=True):
    """`K -> V`, total."""

    key: TypeExpr
    value: TypeExpr


class SetType(Node, frozen=True):
    """`set[T]`."""

    item: TypeExpr


class SeqType(Node, frozen=True):
    """`seq[T] upto N`."""

    item: TypeExpr
    limit: Expr


class BagType(Node, frozen=True):
    """`bag[T] upto N`."""

    item: TypeExpr
    limit: Expr


class PartialMapType(Node, frozen=True):
    """`map[K, V]`."""

    key: TypeExpr
    value: TypeExpr


class TupleType(Node, frozen=True):
    """`(A, B)`."""

    items: tuple[TypeExpr, ...]


TypeExpr = (
    NamedType | RangeType | NatType | EnumType | OptionType | RecordType | UnionType | MapType
    | SetType | SeqType | BagType | PartialMapType | TupleType
)  # fmt: skip
