"""Truth values decided as far as possible: a Python bool, or a Z3 term.

Every rule folds decided parts, so that terms are made only of parts that a state leaves open; the encoding of
a concrete state is concrete.  Nothing here calls the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import z3

Truth = Any  # bool | z3.BoolRef; z3 has no types


def conj(parts: Iterable[Truth]) -> Truth:
    """The conjunction of the parts."""
    return _joined(parts, False, z3.Z3_mk_and)


def disj(parts: Iterable[Truth]) -> Truth:
    """The disjunction of the parts."""
    return _joined(parts, True, z3.Z3_mk_or)


def _joined(parts: Iterable[Truth], decisive: bool, make: Callable[..., Any]) -> Truth:
    """The term of the open parts, unless one of the other parts decides."""
    kept: list[Any] = []
    for part in parts:
        if part is decisive:
            return decisive
        if part is not (not decisive):
            kept.append(part)
    return not decisive if not kept else kept[0] if len(kept) == 1 else _term(make, kept)


def _term(make: Callable[..., Any], parts: list[Any]) -> Any:
    # As `z3.And` passes them to C, without casting each part to its own sort: nine tenths of its time.
    terms = (z3.Ast * len(parts))(*[part.as_ast() for part in parts])
    return z3.BoolRef(make(parts[0].ctx_ref(), len(parts), terms), parts[0].ctx)


def both(a: Truth, b: Truth) -> Truth:
    """`a and b`."""
    if a is False or b is False:
        return False
    if a is True:
        return b
    # Z3's own simplifier would find these; folded here, terms stay small enough to be compared by form.
    return a if b is True or a.eq(b) else _term(z3.Z3_mk_and, [a, b])


def negation(a: Truth) -> Truth:
    """`not a`."""
    if isinstance(a, bool):
        return not a
    # A double negation would be one more form that `distinct_from` misses.
    return a.arg(0) if z3.is_not(a) else z3.BoolRef(z3.Z3_mk_not(a.ctx_ref(), a.as_ast()), a.ctx)


def implies(a: Truth, b: Truth) -> Truth:
    """`a implies b`."""
    return disj((negation(a), b))


def iff(a: Truth, b: Truth) -> Truth:
    """The equivalence of two truth values."""
    if isinstance(a, bool):
        return b if a else negation(b)
    if isinstance(b, bool):
        return a if b else negation(a)
    return True if a.eq(b) else a == b


def choice(condition: Truth, then: Truth, orelse: Truth) -> Truth:
    """`then` if the condition holds, else `orelse`."""
    if isinstance(condition, bool):
        return then if condition else orelse
    if then is orelse or (not isinstance(then, bool) and not isinstance(orelse, bool) and then.eq(orelse)):
        return then
    if then is True:
        return disj((condition, orelse))
    if then is False:
        return both(negation(condition), orelse)
    if orelse is True:
        return disj((negation(condition), then))
    if orelse is False:
        return both(condition, then)
    return z3.If(condition, then, orelse)


def conjuncts(a: Truth) -> list[Any]:
    """The parts of a conjunction, however nested; `a implies (b and c)` counts as two."""
    # As small as possible: parts are settled one by one, by their form (`program.distinct_from`), and a step
    # changes few of them.
    if isinstance(a, bool):
        return [] if a else [a]
    parts: list[Any] = []
    todo = [a]
    while todo:
        part = todo.pop()
        if z3.is_and(part):
            todo.extend(reversed(part.children()))
        # With more than one conjunction inside, distributing would multiply them.
        elif z3.is_or(part) and sum(map(z3.is_and, part.children())) == 1:
            inner = next(filter(z3.is_and, part.children()))
            rest = [child for child in part.children() if not z3.is_and(child)]
            # `x or (b and c)` is the two parts `x or b` and `x or c`.
            todo.extend(z3.Or([*rest, one]) for one in reversed(inner.children()))
        else:
            parts.append(part)
    return parts
