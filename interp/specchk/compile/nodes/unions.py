"""Unions of sorts in the core: an element of a sort as a value of a union with that sort as a variant.

| written | is |
|---|---|
| `c`, where a value of the union is expected | the variant of c's sort, with c in a record |
| `clients`, where a set of such values is expected | `{ c for c in clients }`, each as above |
| `n in clients` | `match n { Client c: c in clients, _: false }` |

So engines that have unions and sorts have these.  Renamings are those of each sort: no node mixes the
elements of two, and the elements in a variant are renamed as any others are.
"""

from __future__ import annotations

from specchk.compile.nodes import operators
from specchk.compile.nodes.operators import Bind, Fresh
from specchk.ir.nodes import Apply, Case, Collect, Const, Expr, Gather
from specchk.ir.ops import Op
from specchk.ir.types import BOOL, Record, Set, Type, Union, of_shape
from specchk.lang.text.source import Span


def lifted(found: Expr, kind: Type, fresh: Fresh) -> Expr:
    """An element of a sort as a value of a union, or a set of elements as a set of such values."""
    if isinstance(kind, Set):
        local = fresh("element", of_shape(found.type, Set).item, found.span)
        body = lifted(local, kind.item, fresh)
        return Collect(Set(body.type), found.span, Gather.SET, ((local, found),), None, body)
    union = of_shape(kind, Union)
    index, record = _variant(union, found.type)
    if isinstance(found, Const):
        return Const(union, found.span, (index, (found.value,)))
    return Apply(union, found.span, Op.VARIANT, (Apply(record, found.span, Op.RECORD, (found,)),), index)


def member(span: Span, item: Expr, elements: Expr, fresh: Fresh, let: Bind) -> Expr:
    """`n in S` for a value n of a union and a set S of elements of one sort."""
    index, record = _variant(of_shape(item.type, Union), of_shape(elements.type, Set).item)

    def found(within: Expr) -> Expr:
        local = fresh("element", record, span)
        body = operators.applied(span, Op.IN_SET, operators.applied(span, Op.FIELD, local), within)
        return Case(BOOL, span, item, ((index, local, body),), Const(BOOL, span, value=False))

    # The set has a name, so that it is evaluated for all values alike.
    return let("elements", elements, span, found)


def element_of(payload: Expr) -> Expr:
    """The value bound by a match: the record of a variant, or the element of a variant that is a sort."""
    if isinstance(payload.type, Record) and payload.type.element is not None:
        return operators.applied(payload.span, Op.FIELD, payload)
    return payload


def _variant(union: Union, element: Type) -> tuple[int, Record]:
    return next((i, record) for i, (_, record) in enumerate(union.variants) if record.element == element)
