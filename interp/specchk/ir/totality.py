"""Which expressions always have a value.

`is_total` is a safe answer: False only says that it could not be shown.  Passes may drop, repeat or
move a total expression; anything else has to stay where it is, because whether it is evaluated
decides between a value and a violation.
"""

from __future__ import annotations

from specchk.ir.nodes import Apply, Choose, Collect, Expr, Gather, Narrow, Op
from specchk.ir.types import MAX_LISTED_BITS, Int, Map, Set, cardinality, fits
from specchk.ir.verify import parts

_PARTIAL = frozenset(
    {Op.GET, Op.SET_MIN, Op.SET_MAX, Op.SEQ_GET, Op.SEQ_SET, Op.HEAD, Op.LAST, Op.TAIL, Op.PREFIX, Op.SUFFIX,
     Op.BAG_REMOVE}
)  # fmt: skip


def is_total(expr: Expr) -> bool:
    """Whether evaluating the expression certainly gives a value."""
    return not is_partial(expr) and all(is_total(part) for part in parts(expr))


def is_partial(expr: Expr) -> bool:
    """Whether the expression may have no value though its parts have."""
    match expr:
        case Choose() | Narrow():
            return True
        case Collect():
            return expr.gather in (Gather.MIN, Gather.MAX)
        case Apply(op=Op.DIV | Op.MOD):
            divisor = expr.args[1].type
            return not isinstance(divisor, Int) or divisor.low <= 0 <= divisor.high
        case Apply(op=Op.MAP_GET | Op.MAP_SET):
            return not _key_fits(expr)
        case Apply(op=Op.RANGE | Op.SUBSETS):
            return not can_be_listed(expr)
        case Apply():
            return expr.op in _PARTIAL
    return False


def can_be_listed(expr: Apply) -> bool:
    """Whether a range, or the subsets of a set, are certainly few enough to be listed."""
    if expr.op is Op.RANGE:
        low, high = (arg.type for arg in expr.args)
        assert isinstance(low, Int)
        assert isinstance(high, Int)
        return high.high - low.low < 1 << MAX_LISTED_BITS
    kind = expr.args[0].type
    assert isinstance(kind, Set)
    return cardinality(kind.item) <= MAX_LISTED_BITS


def _key_fits(expr: Apply) -> bool:
    kind, key = expr.args[0].type, expr.args[1].type
    assert isinstance(kind, Map)
    return fits(key, kind.key) and not (isinstance(key, Int) and key.horizon)
