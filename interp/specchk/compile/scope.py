"""The context of lowering an expression: the meanings of names, and the coverage points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.compile.nodes.operators import Bind, Fresh
from specchk.compile.nodes.partial_maps import PartialMaps
from specchk.ir.nodes import Apply, Cover, Expr, Local, Var
from specchk.ir.ops import Op
from specchk.ir.program import Point
from specchk.ir.types import Record, of_shape
from specchk.ir.walk import inside
from specchk.lang.check.spec import Spec
from specchk.lang.syntax import decls, tree
from specchk.lang.text.source import Span


class Scope(Struct, frozen=True):
    """The meanings of names at one place.

    `points` are the coverage points that are counted: `branch` in actions, `implication` (and `forall`) in
    properties, none elsewhere.  `owner` is the owner of the points: that of the
    declaration being lowered (None), or (the empty text) that of all uses of a definition together.
    `calls` are the calls of recursive definitions around this place, outermost first.
    """

    home: Spec
    names: Mapping[str, Expr] = field(default_factory=dict)
    primed: bool = False
    points: str = ""
    owner: str | None = None
    operators: Mapping[str, Closure] = field(default_factory=dict)
    calls: tuple[Frame, ...] = ()

    def bind(self, bound: tree.Bound, expr: Expr) -> Scope:
        """The scope in which a name is bound to `expr`, or names to the parts of a tuple."""
        if isinstance(bound, str):
            return replace(self, names={**self.names, bound: expr})
        scope, parts = self, of_shape(expr.type, Record).fields
        for index, (name, (_, kind)) in enumerate(zip(bound, parts, strict=True)):
            scope = scope.bind(name, Apply(kind, expr.span, Op.FIELD, (expr,), index))
        return scope

    def bind_all(self, names: Iterable[tree.Bound], values: Iterable[Expr]) -> Scope:
        """The scope in which each name is bound to a value."""
        return reduce(lambda scope, pair: scope.bind(*pair), zip(names, values, strict=True), self)


class Frame(Struct, frozen=True):
    """A call of a recursive definition: its measure must be greater than those of the calls inside."""

    decl: decls.Def
    measure: Expr


class Closure(Struct, frozen=True):
    """An operator: its parameter names, its text, and the meanings of its other names.

    `decl` is the definition that it is, if it is a recursive one.
    """

    params: tuple[tree.Bound, ...]
    lets: tuple[decls.Let, ...]
    body: tree.Expr
    scope: Scope
    decl: decls.Def | None = None


class Lowerings(Struct, frozen=True):
    """The lowering of the parts of an expression, for the rules of calls.

    An expression, a bound name, the part below `let` lines, a fresh local, the domain of a binder, binders
    with the scope inside; `count` counts the nodes, and refuses too many of them.
    """

    expression: Callable[[tree.Expr, Scope], Expr]
    let: Bind
    below: Callable[[tuple[decls.Let, ...], Scope, Callable[[Scope], Expr]], Expr]
    local: Fresh
    domain: Callable[[tree.Expr, Scope], Expr]
    binders: Callable[[tuple[tree.Binder, ...], Scope], tuple[tuple[tuple[Local, Expr], ...], Scope]]
    count: Callable[[Span], None]
    partial: PartialMaps


class Points:
    """The points of one program, numbered in the order of their creation; `owner` is the current declaration.

    A helper action has points in each action that calls it, a definition has them once.
    """

    def __init__(self) -> None:
        self.owner = ""
        self.listed: list[Point] = []
        self._known: dict[tuple[str, int, int, str, str], int] = {}

    def at(self, kind: str, label: str, span: Span, owner: str | None = None) -> int:
        """The point at a span; the same one for all copies with one owner."""
        what = f"{kind}{label if kind == 'branch' else ''}"
        key = (span.source.path, span.start, span.end, what, self.owner if owner is None else owner)
        if key not in self._known:
            self._known[key] = len(self.listed)
            self.listed.append(Point(kind, self.owner, label, span))
        return self._known[key]

    def counted(self, body: Expr, kind: str, label: str, span: Span, scope: Scope) -> Expr:
        """An expression whose evaluations are counted."""
        return Cover(body.type, body.span, self.at(kind, label, span, scope.owner), body)

    def per_item(self, body: Expr, domain: Expr, span: Span, scope: Scope) -> Expr:
        """The body of a `forall`, counted in properties: a `forall` over an empty set claims nothing."""
        # A set of constants is never empty because of the system's behaviour.
        if scope.points != "implication" or not any(isinstance(e, Var | Local) for e in inside(domain)):
            return body
        return self.counted(body, "forall", span.text, span, scope)
