"""Numbers (and members of enums and sorts), decided as far as possible.

A number is one of
- an int: decided;
- `Cases`: one of a few values, each under a guard; the guards exclude each other and one holds.
  Finite control parts are encoded this way, as propositions, which is what SAT solvers are good at;
- a Z3 integer term: an offset, which has no upper end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import z3
from msgspec import Struct

from specchk.symbolic.induction.encode.bools import Truth, both, choice, conj, disj, implies, negation

Number = Any  # int | Cases | z3.ArithRef
MAX_CASES = 48  # beyond that a term is smaller than its cases


class Cases(Struct, frozen=True):
    """At least two values, ascending, each with its guard."""

    ways: tuple[tuple[int, Truth], ...]


def ways(a: Number) -> tuple[tuple[int, Truth], ...] | None:
    """The values and their guards; None for a term."""
    if isinstance(a, int):
        return ((int(a), True),)
    return a.ways if isinstance(a, Cases) else None


def cases(rows: list[tuple[int, Truth]]) -> Number:
    """The number that has each value if its guard holds (guards exclude each other)."""
    table: dict[int, list[Truth]] = {}
    for value, guard in rows:
        if guard is not False:
            table.setdefault(value, []).append(guard)
    if len(table) == 1:
        return next(iter(table))
    return Cases(tuple((value, disj(table[value])) for value in sorted(table)))


def term(a: Number) -> Any:
    """The number as a Z3 term."""
    if isinstance(a, int):
        return z3.IntVal(a)
    if not isinstance(a, Cases):
        return a
    result = z3.IntVal(a.ways[-1][0])
    for value, guard in reversed(a.ways[:-1]):
        result = z3.If(guard, z3.IntVal(value), result)
    return result


def same_number(a: Number, b: Number) -> bool:
    """Whether both are syntactically equal (not: whether they can differ)."""
    if a is b:
        return True
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    if isinstance(a, Cases) or isinstance(b, Cases):
        return False
    return bool(a.eq(b))


def merge_by(condition: Truth, a: Number, b: Number) -> Number:
    """`a` if the condition holds, else `b`."""
    if isinstance(condition, bool):
        return a if condition else b
    if same_number(a, b):
        return a
    some, others = ways(a), ways(b)
    if some is not None and others is not None:
        first, second = dict(some), dict(others)
        # A choice for each value instead of a term: values that both numbers have stay without the condition.
        rows = [
            (v, choice(condition, first.get(v, False), second.get(v, False)))
            for v in sorted({*first, *second})
        ]
        if len(rows) <= MAX_CASES:
            return cases(rows)
    return z3.If(condition, term(a), term(b))


def compare(test: Callable[[Any, Any], Any], a: Number, b: Number) -> Truth:
    """A comparison of two numbers."""
    some, others = ways(a), ways(b)
    if some is not None and others is not None:
        # Both sides are cases: a proposition over their guards, without arithmetic.
        if len(some) * len(others) <= MAX_CASES * MAX_CASES:
            rows = [(guard, [other for x, other in others if test(value, x)]) for value, guard in some]
            return disj(g if len(fitting) == len(others) else both(g, disj(fitting)) for g, fitting in rows)
    elif some is not None and len(some) > 1:
        # Compared with an offset, each value gives a bound of its own under its guard: difference
        # constraints, not one over a nested if-then-else.
        return conj(implies(guard, test(z3.IntVal(value), b)) for value, guard in some)
    elif others is not None and len(others) > 1:
        return conj(implies(guard, test(a, z3.IntVal(value))) for value, guard in others)
    return test(term(a), term(b))


def equal_numbers(a: Number, b: Number) -> Truth:
    """`a == b`."""
    return True if same_number(a, b) else compare(operator.eq, a, b)


def less(a: Number, b: Number) -> Truth:
    """`a < b`."""
    return False if same_number(a, b) else compare(operator.lt, a, b)


def at_most(a: Number, b: Number) -> Truth:
    """`a <= b`."""
    return True if same_number(a, b) else compare(operator.le, a, b)


def combine(
    rule: Callable[[Any, Any], Any], a: Number, b: Number, general: Callable[[Any, Any], Any] | None = None
) -> Number:
    """An operation by its rule on ints, and by `general` on terms if that differs."""
    some, others = ways(a), ways(b)
    if some is not None and others is not None and len(some) * len(others) <= MAX_CASES:
        return cases([(rule(x, y), both(g, h)) for x, g in some for y, h in others])
    return (general or rule)(term(a), term(b))


def quotient(a: Number, b: Number) -> Number:
    """Floor division; the divisor is not 0 wherever the result is used."""
    # Z3 divides like SMT-LIB, with a remainder that is never negative; specs round down, like Python.  For a
    # negative divisor both signs are changed first.
    return _divided(operator.floordiv, lambda x, y: z3.If(y > 0, x / y, (-x) / (-y)), a, b)


def remainder(a: Number, b: Number) -> Number:
    """The remainder of floor division: it has the divisor's sign."""
    return _divided(operator.mod, lambda x, y: z3.If(y > 0, x % y, -((-x) % (-y))), a, b)


def _divided(
    exact: Callable[[int, int], int], general: Callable[[Any, Any], Any], a: Number, b: Number
) -> Number:
    # Division by 0 is a fault that the caller has noted; the value does not matter.
    if isinstance(b, int) and b == 0:
        return 0
    return combine(lambda x, y: exact(x, y) if y else 0, a, b, general)


def counted(guards: list[Truth]) -> Number:
    """The number of guards that hold."""
    sure = sum(1 for guard in guards if guard is True)
    open_ = [guard for guard in guards if not isinstance(guard, bool)]
    if len(open_) > MAX_CASES:
        return sure + z3.Sum([z3.If(guard, 1, 0) for guard in open_])
    # A counter of propositions, quadratic in the guards: a sum of terms would bring arithmetic into control
    # parts.
    table: list[Truth] = [True]  # table[n]: exactly n of the guards so far hold
    for guard in open_:
        unless = negation(guard)
        pairs = zip([*table, False], [False, *table], strict=True)  # for each n: n before, and n - 1
        table = [disj((both(unless, same), both(guard, less_one))) for same, less_one in pairs]
    return cases([(sure + n, guard) for n, guard in enumerate(table)])
