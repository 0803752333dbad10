"""Regions: the parts of a matrix outside other matrices.

Whether nothing can be done in a state is the rest of its region after all regions in which something can
be done: subtraction, constraint by constraint, exact over whole numbers.  Numbers that were chosen on
the way are eliminated first: a region is to have what holds for some value of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from specchk.meaning.linear import Form, Part, Terms, added, substituted, symbol, symbols
from specchk.meaning.paths import (
    FREE,
    Defined,
    Matrix,
    NotSymbolic,
    Solver,
    assuming,
    defining,
    definitions,
    difference,
)


def outside(parts: Iterable[Matrix], taken: Matrix, size: int, solver: Solver | None = None) -> list[Matrix]:
    """The remainders of disjoint matrices outside `taken`, a matrix with the same first symbols.

    Its symbols from `size` on are eliminated; `NotSymbolic` where that is not exact.
    """
    if type(taken) is Defined:
        constraints = _of_base(taken, size)
        found = [rest for rows in parts for rest in _breaking(rows, constraints)]
    else:
        found = [rest for rows in parts for rest in _without(rows, taken, size)]
    # A part of a matrix with definitions may be empty, which only the solver shows.
    return [rest for rest in found if solver is None or solver.is_possible(rest)]


def _without(rows: Matrix, taken: Matrix, size: int) -> Iterator[Matrix]:
    # A closed matrix projects to some of its symbols by leaving the others out.
    for i in range(size):
        # Subtraction, constraint by constraint: what breaks the first, what keeps it and breaks the second,
        # and so on.  The parts do not meet, and each is a matrix.
        for j in range(size):
            bound = taken[i][j]
            if rows[i][j] <= bound:
                continue
            if rows[j][i] < -bound:  # x_i - x_j > bound throughout
                yield rows
                return
            yield assuming(rows, j, i, -bound - 1)
            rows = assuming(rows, i, j, bound)


def _breaking(rows: Matrix, constraints: Iterable[Form]) -> Iterator[Matrix]:
    """The parts of a matrix in which at least one form is above 0."""

    def defined(terms: Terms) -> tuple[int, int]:
        nonlocal rows
        rows, number, plus = defining(rows, terms)
        return number, plus

    for form in constraints:
        i, j, bound = difference(form, defined)
        if rows[i][j] <= bound:
            continue
        if rows[j][i] < -bound:
            yield rows
            return
        yield assuming(rows, j, i, -bound - 1)
        rows = assuming(rows, i, j, bound)


def _of_base(taken: Matrix, size: int) -> list[Form]:
    """Forms of the first symbols, all at most 0 exactly if the matrix holds for some values of the others."""
    forms = {number: symbol(number) for number in range(len(taken))}
    for terms, number, plus in definitions(taken):
        # A definition names symbols that there were before it.
        if number >= size:
            forms[number] = substituted((terms, -plus), forms.__getitem__)
    numbers = range(len(taken))
    # What follows by way of the number 0 is left out: of a definition it would only have larger factors.
    found = [
        _less(added(forms[i], forms[j], -1), taken[i][j])
        for i in numbers
        for j in numbers
        if i != j and taken[i][j] < (FREE if 0 in (i, j) else min(FREE, taken[i][0] + taken[0][j]))
    ]
    defined = {number for _, number, _ in definitions(taken)}
    for number in numbers[size:]:
        if number not in defined:
            found = _eliminated(found, number)
    return [form for form in _tightest(found) if form[0] or form[1] > 0]


def _less(form: Form, bound: int) -> Form:
    return form[0], form[1] - bound


def _tightest(forms: Iterable[Form]) -> list[Form]:
    """The tightest of several forms with the same terms, all at most 0."""
    most: dict[tuple[tuple[Part, int], ...], int] = {}
    for terms, plus in forms:
        most[terms] = max(plus, most.get(terms, plus))
    return list(most.items())


def _eliminated(forms: Sequence[Form], number: int) -> list[Form]:
    """The forms without one symbol that follow from forms at most 0 (Fourier-Motzkin elimination).

    Exact over whole numbers where the factor of the symbol is 1 or -1 in all of them.
    """
    above: list[Form] = []
    below: list[Form] = []
    others: list[Form] = []
    for form in _tightest(forms):
        factor = dict(form[0]).get(number, 0)
        inside = [part for part, _ in form[0] if not isinstance(part, int)]
        if abs(factor) > 1 or any(number in symbols(part[0]) for part in inside):
            raise NotSymbolic("whether a step is possible depends on a multiple of a number that is chosen")
        (above if factor < 0 else below if factor else others).append(form)
    return [*others, *[added(low, high) for low in above for high in below]]
