"""Which expressions always have a value.

`is_total` is a safe answer: False only says that it could not be shown.  Passes may drop, repeat or
move a total expression; anything else has to stay where it is, because whether it is evaluated
decides between a value and a violation.
"""

from __future__ import annotations

from specchk.ir.nodes import Apply, Choose, Collect, Expr, Gather, Narrow, Op
from specchk.ir.types import Int, Map, fits
from specchk.ir.verify import parts

_PARTIAL = frozenset(
    {
        Op.DIV,
        Op.MOD,
        Op.GET,
        Op.SET_MIN,
        Op.SET_MAX,
        Op.SEQ_GET,
        Op.SEQ_SET,
        Op.HEAD,
        Op.LAST,
        Op.TAIL,
        Op.PREFIX,
        Op.SUFFIX,
        Op.BAG_REMOVE,
    }
)


def is_total(expr: Expr) -> bool:
    """Whether evaluating the expression certainly gives a value."""
    match expr:
        case Choose() | Narrow():
            return False
        case Collect() if expr.gather in (Gather.MIN, Gather.MAX):
            return False
        case Apply():
            if expr.op in _PARTIAL or (expr.op in (Op.MAP_GET, Op.MAP_SET) and not _key_fits(expr)):
                return False
    return all(is_total(part) for part in parts(expr))


def _key_fits(expr: Apply) -> bool:
    kind, key = expr.args[0].type, expr.args[1].type
    assert isinstance(kind, Map)
    if isinstance(kind.key, Int) and isinstance(key, Int):
        return kind.key.low <= key.low and key.high <= kind.key.high and not key.horizon
    return fits(key, kind.key)
