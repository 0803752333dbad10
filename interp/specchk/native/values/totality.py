"""Effects of an expression besides its value: being undefined, counting coverage, and cost.

A *plain* expression always has a value and counts nothing, so that evaluating it earlier, later or needlessly
makes no difference.  Plain parts of conjunctions are computed without branches, and plain guards move out of
loops over parameters that they do not mention.
"""

from __future__ import annotations

from specchk.ir.nodes import Apply, Collect, Cover, Expr, Local, MapOf, Quantifier
from specchk.ir.totality import is_partial
from specchk.ir.types import cardinality
from specchk.ir.verify import bound, parts


class ExpressionFacts:
    """Facts about expressions, each computed once."""

    def __init__(self) -> None:
        # By identity, since hashing an expression traverses all of it; each is kept beside its fact, so that
        # no later one can have its `id`.
        self._plain: dict[int, tuple[Expr, bool]] = {}
        self._cost: dict[int, tuple[Expr, int]] = {}
        self._free: dict[int, tuple[Expr, frozenset[int]]] = {}

    def plain(self, expr: Expr) -> bool:
        """Whether evaluating the expression cannot fail and counts no coverage."""
        known = self._plain.get(id(expr))
        if known is None:
            is_plain = not (isinstance(expr, Cover) or is_partial(expr)) and all(
                self.plain(part) for part in parts(expr)
            )
            known = self._plain[id(expr)] = (expr, is_plain)
        return known[1]

    def cost(self, expr: Expr) -> int:
        """The approximate number of instructions for evaluating the expression."""
        known = self._cost.get(id(expr))
        if known is None:
            total = 1 + sum(self.cost(part) for part in parts(expr))
            known = self._cost[id(expr)] = (expr, total * _repeated(expr))
        return known[1]

    def free(self, expr: Expr) -> frozenset[int]:
        """The slots of the locals that it uses but does not bind."""
        known = self._free.get(id(expr))
        if known is None:
            names = frozenset({expr.slot}) if isinstance(expr, Local) else frozenset()
            for part in parts(expr):
                names |= self.free(part)
            known = self._free[id(expr)] = (expr, names - {local.slot for local in bound(expr)})
        return known[1]


def _repeated(expr: Expr) -> int:
    match expr:
        case Quantifier() | MapOf():
            return min(8, max(1, cardinality(expr.local.type)))
        case Collect():
            return 8
        case Apply() if expr.op.card.loops:
            return 8
    return 1
