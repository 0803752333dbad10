"""Types of composed expressions: results of operators, folds, and parts along a path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

from msgspec.structs import replace

from specchk.ir import types
from specchk.ir.nodes import Apply, Case, Collect, Const, Cover, Expr, Gather, If, Let, Local, MapOf, PathStep
from specchk.ir.ops import Kinds, Op, total
from specchk.ir.types import Int, Map, Set, Type, cardinality, components, has_horizon, item_of, show


def kinds(args: tuple[Expr, ...]) -> Kinds:
    """The types of arguments."""
    return tuple([arg.type for arg in args])


def result_type(op: Op, args: tuple[Expr, ...], data: int = 0) -> Type:
    """The type of a result, for any operator that is not a literal."""
    result = op.card.result
    assert result is not None, f"the type of a {op.name} is its node's"
    return result(kinds(args), data)


def folded(gather: Gather, binders: tuple[tuple[Local, Expr], ...], item: Type) -> Type:
    """The type of the sum or extreme of numbers of type `item`, one for each choice of the binders."""
    assert isinstance(item, Int)
    if gather is not Gather.SUM:
        return item
    times = prod(most_items(domain) for _, domain in binders)
    # As many as the horizon lets be listed: a limit of enumeration, and marked as one.
    is_limited = any(has_horizon(local.type) for local, _ in binders)
    found = total(item, times)
    return replace(found, horizon=found.horizon or is_limited)


def most_items(domain: Expr) -> int:
    """An upper bound on the number of items in a set."""
    if isinstance(domain, Const):
        assert isinstance(domain.value, tuple)
        return len(domain.value)
    if isinstance(domain, Apply) and domain.op is Op.MAPS:
        return cardinality(Map(*[item_of(arg.type) for arg in domain.args]))
    if isinstance(domain, Apply) and domain.op in (Op.BAG_ITEMS, Op.SEQ_ITEMS):
        source = domain.args[0].type
        assert isinstance(source, types.Bag | types.Seq)
        return source.limit
    return cardinality(item_of(domain.type))


def within(expr: Expr, kind: Type, stored: Callable[[Expr, Type], Expr]) -> Expr | None:
    """An expression with the parts that make its value stored in their places in `kind`; its own type stays.

    None if it has no such parts, as a change of a map or record, which the callers handle.
    """
    match expr:
        case If():
            return replace(expr, then=stored(expr.then, kind), orelse=stored(expr.orelse, kind))
        case Let() | Cover():
            return replace(expr, body=stored(expr.body, kind))
        case Case():
            arms = tuple([(tag, local, stored(body, kind)) for tag, local, body in expr.arms])
            default = stored(expr.default, kind) if expr.default is not None else None
            return replace(expr, arms=arms, default=default)
        case MapOf() if isinstance(kind, Map):
            return replace(expr, body=stored(expr.body, kind.value))
        case Collect() if isinstance(kind, Set):
            return replace(expr, body=stored(expr.body, kind.item))
        case Apply() if expr.op.card.part_types is not None:
            places = expr.op.card.part_types(kind, expr.data, len(expr.args))
            # A sequence or bag has fewer parts than arguments where there is no room for all of them.
            if len(places) == len(expr.args):
                return replace(expr, args=tuple(map(stored, expr.args, places)))
    return None


def part_at(kind: Type, step: PathStep) -> Type:
    """The type of the part of a record, map or sequence selected by one accessor of a path."""
    match kind:
        case types.Record():
            assert step.field is not None
            return kind.fields[step.field][1]
        case Map():
            return kind.value
        case types.Seq():
            return kind.item
        case Set(keyed=True):
            return kind.pair[1]
    raise AssertionError(f"{show(kind)} has no parts")


def sorts_in(kind: Type) -> Iterator[str]:
    """The sorts whose elements occur in a type's values."""
    for part in components(kind):
        if isinstance(part, types.Sort):
            yield part.name
        elif isinstance(part, Map):
            yield from sorts_in(part.key)
