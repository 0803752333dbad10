"""Places in the state: expressions whose values exist already, and are as cheap to read as a name.

Not here: the text of a place (`evaluate`).
"""

from __future__ import annotations

from specchk.ir import nodes
from specchk.ir.ops import Op
from specchk.ir.types import Bool, Enum, Int, Map, Sort, Type, fits, of_shape
from specchk.ir.verify import parts

MOST_READS = 2  # of a place that is read where its name is


def is_position(wanted: Type, found: Type) -> bool:
    """Whether each key of type `found` equals its position in the tuple of a map over `wanted`."""
    if isinstance(wanted, Int):
        return wanted.low == 0 and fits(found, wanted)
    return isinstance(wanted, Bool | Enum | Sort)


def is_put_in_place(expr: nodes.Let) -> bool:
    """Whether a bound name's value is a place, read so rarely that it can replace the name.

    Such a value is always defined, and does not change while an expression is evaluated: a slot in it is
    bound once where the name is available (`ir.verify`).
    """
    value = expr.value
    if not _is_place(value):
        return False
    return isinstance(value, nodes.Var | nodes.Local) or _reads(expr.body, expr.local.slot) <= MOST_READS


def _is_place(expr: nodes.Expr) -> bool:
    # No truths, since reading one is a decision (`meaning.tracing`).
    match expr:
        case nodes.Var() | nodes.Local():
            return not isinstance(expr.type, Bool)
        case nodes.Apply(op=Op.FIELD):
            return _is_place(expr.args[0]) and not isinstance(expr.type, Bool)
        case nodes.Apply(op=Op.MAP_GET, args=(of, key)):
            is_known = is_position(of_shape(of.type, Map).key, key.type)
            return is_known and _is_place(of) and _is_place(key) and not isinstance(expr.type, Bool)
    return False


def _reads(expr: nodes.Expr, slot: int) -> int:
    """Count the reads of a local; a read in a loop counts as too many."""
    if isinstance(expr, nodes.Local):
        return int(expr.slot == slot)
    reads = sum([_reads(part, slot) for part in parts(expr)])
    is_loop = isinstance(expr, nodes.Quantifier | nodes.Choose | nodes.Collect | nodes.MapOf)
    return reads * (MOST_READS + 1) if is_loop else reads
