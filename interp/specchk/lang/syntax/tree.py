"""The syntax tree: immutable values, one class for each construct, each with its span.

Facts about the tree (the meaning of a name, an expression's type) are stored in `lang.facts`, keyed by node
identity.  Equality ignores spans, so `parse(format(x)) == parse(x)` is a plain comparison.
"""

from __future__ import annotations

from specchk.deferred import dataclass, field
from specchk.lang.syntax.bound import Bound
from specchk.lang.text.source import Span


@dataclass(frozen=True, slots=True, eq=True)
class Node:
    """A piece of a spec; `span` is its place and does not count in comparisons."""

    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Name(Node):
    """`leo`, or `log.truncate` when `qualifier` is set."""

    text: str
    qualifier: str | None = None

    @property
    def full(self) -> str:
        """The name as written."""
        return f"{self.qualifier}.{self.text}" if self.qualifier else self.text


@dataclass(frozen=True, slots=True)
class IntLiteral(Node):
    """`3`."""

    value: int


@dataclass(frozen=True, slots=True)
class BoolLiteral(Node):
    """`true`, `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class NoneLiteral(Node):
    """`none`."""


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`not e`, `-e`, and the temporal `eventually e`, `always e`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`a op b`; op is the source text (`and`, `+`, `==`, `in`, `not in`, `..`, `leadsto`, ...)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Prime(Node):
    """`e'`: `e` in the state after the step."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Index(Node):
    """`m[k]` on maps and sequences."""

    base: Expr
    key: Expr


@dataclass(frozen=True, slots=True)
class Field(Node):
    """`r.f`."""

    base: Expr
    name: str


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """One argument of a call; `label` is set in `Fetch(offset: 1)`."""

    value: Expr
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """`(a, b) => a + b`: an anonymous operator, as an argument."""

    params: tuple[Bound, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class CallExpr(Node):
    """A definition, built-in function or union constructor applied to arguments."""

    callee: Name
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Binder(Node):
    """`x in S`, `(x, y) in S`: the bound names and their domain."""

    bound: Bound
    domain: Expr


@dataclass(frozen=True, slots=True)
class Fold(Node):
    """`min(e for x in S if c)`: a built-in over a bag of values."""

    callee: Name
    body: Expr
    binders: tuple[Binder, ...]
    condition: Expr | None


@dataclass(frozen=True, slots=True)
class Quantified(Node):
    """`forall`, `exists`, `choose`, `filter` over binders; the last two take one binder."""

    kind: str
    binders: tuple[Binder, ...]
    body: Expr


@dataclass(frozen=True, slots=True)
class IfElse(Node):
    """`if c then a else b`."""

    condition: Expr
    then: Expr
    orelse: Expr


@dataclass(frozen=True, slots=True)
class LetIn(Node):
    """`let x = e: body`."""

    bound: Bound
    value: Expr
    body: Expr


@dataclass(frozen=True, slots=True)
class Pattern(Node):
    """`some v`, `none`, `Fetch f`, `Ping`, or `_` for the rest."""

    tag: str
    bound: str | None


@dataclass(frozen=True, slots=True)
class Arm(Node):
    """One arm of a match."""

    pattern: Pattern
    body: Expr


@dataclass(frozen=True, slots=True)
class Match(Node):
    """`match e { some v: a, none: b }`."""

    scrutinee: Expr
    arms: tuple[Arm, ...]


@dataclass(frozen=True, slots=True)
class SetLiteral(Node):
    """`{a, b}`; `{}` is the empty set or bag."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class SeqLiteral(Node):
    """`[a, b]`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class TupleLiteral(Node):
    """`(a, b)`."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Pair(Node):
    """`key: value` in a record or map literal."""

    key: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class PairLiteral(Node):
    """`{ end: 1, hw: 0 }`: a record, or a map, depending on its type."""

    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class SetComp(Node):
    """`{ e for x in S if c }`."""

    body: Expr
    binders: tuple[Binder, ...]
    condition: Expr | None


@dataclass(frozen=True, slots=True)
class MapComp(Node):
    """`{ k: e for k in K }`, total over the type `K`."""

    key: Expr
    value: Expr
    binder: Binder


@dataclass(frozen=True, slots=True)
class Accessor(Node):
    """One step of an update path: a field name or an index."""

    field: str | None
    index: Expr | None


@dataclass(frozen=True, slots=True)
class Change(Node):
    """`path: e` in a `with` update."""

    path: tuple[Accessor, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class With(Node):
    """`{ r with f: e, [k].g: e2 }`: a copy with changes."""

    base: Expr
    changes: tuple[Change, ...]


Expr = (
    Name | IntLiteral | BoolLiteral | NoneLiteral | Unary | Binary | Prime | Index | Field | CallExpr
    | Fold | Quantified | IfElse | LetIn | Match | SetLiteral | SeqLiteral | TupleLiteral | PairLiteral
    | SetComp | MapComp | With | Lambda
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class NamedType(Node):
    """A sort or a declared type, by name; `bool` and `int` too."""

    name: Name


@dataclass(frozen=True, slots=True)
class RangeType(Node):
    """`a..b`, both ends included."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class NatType(Node):
    """`nat upto N`: an offset; N is the horizon of the enumerating engines."""

    horizon: Expr


@dataclass(frozen=True, slots=True)
class EnumType(Node):
    """`enum {a, b}`."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OptionType(Node):
    """`T?`."""

    item: TypeExpr


@dataclass(frozen=True, slots=True)
class FieldType(Node):
    """`name: T` in a record or variant."""

    name: str
    type: TypeExpr


@dataclass(frozen=True, slots=True)
class RecordType(Node):
    """`{ a: A, b: B }`."""

    fields: tuple[FieldType, ...]


@dataclass(frozen=True, slots=True)
class VariantType(Node):
    """`Fetch(offset: Offset)` in a union."""

    name: str
    fields: tuple[FieldType, ...]


@dataclass(frozen=True, slots=True)
class UnionType(Node):
    """`Fetch(offset: Offset) | Ping`."""

    variants: tuple[VariantType, ...]


@dataclass(frozen=True, slots=True)
class MapType(Node):
    """`K -> V`, total."""

    key: TypeExpr
    value: TypeExpr


@dataclass(frozen=True, slots=True)
class SetType(Node):
    """`set[T]`."""

    item: TypeExpr


@dataclass(frozen=True, slots=True)
class SeqType(Node):
    """`seq[T] upto N`."""

    item: TypeExpr
    limit: Expr


@dataclass(frozen=True, slots=True)
class BagType(Node):
    """`bag[T] upto N`."""

    item: TypeExpr
    limit: Expr


@dataclass(frozen=True, slots=True)
class PartialMapType(Node):
    """`map[K, V]`."""

    key: TypeExpr
    value: TypeExpr


@dataclass(frozen=True, slots=True)
class TupleType(Node):
    """`(A, B)`."""

    items: tuple[TypeExpr, ...]


TypeExpr = (
    NamedType | RangeType | NatType | EnumType | OptionType | RecordType | UnionType | MapType
    | SetType | SeqType | BagType | PartialMapType | TupleType
)  # fmt: skip
