"""Totality: which expressions always have a value.

`is_total` is a safe answer: False only says that it could not be shown.  Passes may drop, repeat or
move a total expression; any other must stay in its place, because whether it is evaluated
decides between a value and a violation.
"""

from __future__ import annotations

from specchk.ir.nodes import Apply, Choose, Collect, Expr, Gather, Narrow
from specchk.ir.typing import kinds
from specchk.ir.verify import parts


def is_total(expr: Expr) -> bool:
    """Whether the expression certainly has a value."""
    return not is_partial(expr) and all(is_total(part) for part in parts(expr))


def is_partial(expr: Expr) -> bool:
    """Whether the expression may be undefined although its parts have values."""
    match expr:
        case Choose() | Narrow():
            return True
        case Collect():
            return expr.gather in (Gather.MIN, Gather.MAX)
        case Apply():
            return expr.op.card.partial(kinds(expr.args))
    return False
