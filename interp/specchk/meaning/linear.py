"""Linear forms: sums of symbols with integer coefficients, and their quotients by integers.

    (((1, 2), (3, -1)), 5)           2*x_1 - x_3 + 5
    ((((((1, 1),), 0, 2), 1),), 0)   x_1 // 2: a part is a symbol, or a quotient: terms, plus, divisor

A form is normal, so that equal ones are equal tuples: its parts are ordered, no factor is 0, a quotient has
factors and an addend below its divisor.  Division rounds down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import gcd
from typing import Any

Quotient = tuple[Any, int, int]  # terms, plus, divisor; at least 2
Part = int | Quotient  # a symbol, or a quotient of a form
Terms = tuple[tuple[Part, int], ...]  # parts with their factors
Form = tuple[Terms, int]
NOTHING: Form = ((), 0)


def symbol(number: int, plus: int = 0) -> Form:
    """The form `x + plus`; symbol 0 is the number 0."""
    return (((number, 1),), plus) if number else ((), plus)


def added(a: Form, b: Form, factor: int = 1) -> Form:
    """`a + factor * b`."""
    factors = dict(a[0])
    for part, times in b[0]:
        factors[part] = factors.get(part, 0) + factor * times
    return normal(factors.items(), a[1] + factor * b[1])


def scaled(form: Form, factor: int) -> Form:
    """A form multiplied by a number."""
    return added(NOTHING, form, factor)


def normal(terms: Iterable[tuple[Part, int]], plus: int) -> Form:
    """The form of terms in which a symbol may be repeated."""
    return tuple(sorted([one for one in terms if one[1]], key=lambda one: _order(one[0]))), plus


def divided(form: Form, divisor: int) -> Form:
    """The form of a quotient by a positive number, rounded down."""
    # A multiple of the divisor needs no rounding and is factored out: (2x + y + 5) // 2 is
    # x + 2 + (y + 1) // 2.
    whole = [(part, times // divisor) for part, times in form[0]]
    rest = tuple([(part, times % divisor) for part, times in form[0] if times % divisor])
    outer = normal(whole, form[1] // divisor)
    if not rest:
        return outer
    return added(outer, ((((rest, form[1] % divisor, divisor), 1),), 0))


def substituted(form: Form, of: Callable[[int], Form]) -> Form:
    """A form in which each symbol is replaced by a form."""
    total: Form = ((), form[1])
    for part, times in form[0]:
        if isinstance(part, int):
            total = added(total, of(part), times)
        else:
            terms, plus, divisor = part
            total = added(total, divided(substituted((terms, plus), of), divisor), times)
    return total


def symbols(terms: Terms) -> frozenset[int]:
    """The symbols that occur in terms."""
    inner = [frozenset([p]) if isinstance(p, int) else symbols(p[0]) for p, _ in terms]
    return frozenset().union(*inner)


def primitive(form: Form) -> tuple[Terms, int, int]:
    """Terms divided by their common factor, the first one positive; the multiplier; and `plus`."""
    common = gcd(*[times for _, times in form[0]])
    factor = common if form[0][0][1] > 0 else -common
    return tuple([(part, times // factor) for part, times in form[0]]), factor, form[1]


def _order(part: Part) -> tuple[Any, ...]:
    if isinstance(part, int):
        return (0, part)
    terms, plus, divisor = part
    return (1, divisor, plus, *[(_order(inner), times) for inner, times in terms])
