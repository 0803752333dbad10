"""Lowering recursive definitions: each call is expanded, as often as the measure can decrease.

The measure of the outermost call is bounded by its type, and each call inside another has a smaller one,
down to 0 (`Op.DECREASED`), so the copies end. A call below the last one is undefined, of any type:

    f(s) decreases len(s)    let m0 = len(s): ... f(tail(s)) ...      of a sequence of at most one item
                             let m1 = decreased(len(tail(s)), m0): ... f(tail(tail(s))) ...
                             let m2 = decreased(len(tail(tail(s))), m1), which is below 0

Among definitions that call each other, a call inside one of the same definition restarts those between. So
along each chain of calls the list of measures decreases lexicographically, and there is no infinite chain.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from specchk.compile.names import Names
from specchk.compile.nodes import operators
from specchk.compile.scope import Frame, Lowerings, Scope
from specchk.ir.nodes import Apply, Const, Expr
from specchk.ir.ops import Op
from specchk.ir.ranges import narrowest
from specchk.ir.types import Int, Option, Seq, Type, components, is_empty, of_shape
from specchk.lang.syntax import decls, tree
from specchk.lang.text.diagnostics import refusal
from specchk.lang.text.source import Span

MAX_BITS = 4096  # of a number in a step; a model's own bounds are far below
MAX_CALLS = 1000  # inside a call: each is a copy of a body


class RecursionLowering:
    """The recursive calls of one program."""

    def __init__(self, names: Names, lowerings: Lowerings) -> None:
        self.names = names
        self.make = lowerings
        self._copies = 0  # inside the outermost call that is being lowered

    def lower(self, decl: decls.Def, scope: Scope, span: Span, below: Callable[[Scope], Expr]) -> Expr:
        """The value of a definition with a measure, its parameters bound; `below` gives the body's value."""
        before, around = _call_around(decl, scope)
        size = self._size(decl, scope)
        if around is not None:
            size = operators.applied(span, Op.DECREASED, size, around.measure)

        def within(measure: Expr) -> Expr:
            if is_empty(measure.type):
                return self._no_value(decl, scope, span)
            self._count(scope, span)
            inner = replace(scope, calls=(*before, Frame(decl, measure)))
            # The parameter itself, with a known bound: values computed from it then have one, too.
            if isinstance(decl.measure, tree.Name) and isinstance(scope.names[decl.measure.text].type, Int):
                inner = inner.bind(decl.measure.text, measure)
            found = below(inner)
            bounded("recursion", found.type, span)
            return found

        return self.make.let("_measure", size, span, within)

    def _size(self, decl: decls.Def, scope: Scope) -> Expr:
        """The measure as a number; for a collection, its number of items."""
        assert decl.measure is not None
        size = self.make.expression(decl.measure, scope)
        if not isinstance(size.type, Int):
            size = operators.of_word(size.span, "len" if isinstance(size.type, Seq) else "card", size)
        if of_shape(size.type, Int).horizon:
            message = f"the measure of `{decl.name}` may be above its horizon, so its calls have no bound"
            hint = "measure the length of a sequence, or a number that has a range `0..N`"
            raise refusal("S510", decl.measure.span, message, hint)
        return size

    def _count(self, scope: Scope, span: Span) -> None:
        self._copies = self._copies + 1 if scope.calls else 0
        if self._copies > MAX_CALLS:
            decl = scope.calls[0].decl
            message = f"a call of `{decl.name}` may contain more than {MAX_CALLS} further ones"
            hint = "choose smaller constants; write a call that occurs twice once: `let rest = f(tail(s))`"
            raise refusal("S510", span, message, hint)

    def _no_value(self, decl: decls.Def, scope: Scope, span: Span) -> Expr:
        """An expression of the result's type that is never evaluated."""
        assert decl.returns is not None, "a recursive definition declares its result"
        kind = narrowest(self.names.ground.declared(decl.returns, scope.home))
        return Apply(kind, span, Op.GET, (Const(Option(kind), span, ()),))


def _call_around(decl: decls.Def, scope: Scope) -> tuple[tuple[Frame, ...], Frame | None]:
    """The enclosing call of the same definition, and the calls around that call."""
    for index, frame in enumerate(scope.calls):
        if frame.decl is decl:
            return scope.calls[:index], frame
    return scope.calls, None


def bounded(what: str, kind: Type, span: Span) -> None:
    """Reject a value that grows too much with each step: squaring doubles the length of a number."""
    ends = [end for part in components(kind) if isinstance(part, Int) for end in (part.low, part.high)]
    if any(abs(end or 0).bit_length() > MAX_BITS for end in ends):
        hint = "bound each step, as in `min(acc * acc, N)`"
        raise refusal("S510", span, f"the numbers of this {what} may have more than {MAX_BITS} bits", hint)
