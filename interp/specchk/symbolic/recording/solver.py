"""The solver: Z3 decides comparisons that the matrix of a zone leaves open, for symbols defined as sums.

A closed matrix decides what follows from differences, and its intervals much of what follows from sums.
The rest is a question to Z3: do some whole numbers satisfy the matrix and the definitions?  Only symbols
that occur in a definition are part of it, since a closed matrix projects exactly to them.

Most answers are yes, and numbers that satisfied one question often satisfy the next, so a few of them are
tried before Z3.  For any numbers, either a comparison or its negation is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import z3

from specchk.meaning.linear import Form, Terms, symbols
from specchk.meaning.paths import FREE, Defined, Matrix, assuming

MAX_CACHED = 100_000
MAX_WITNESSES = 8  # numbers that are tried before Z3, of the same definitions
Definitions = tuple[tuple[Terms, int, int], ...]


class LinearSolver:
    """Answers queries about matrices with definitions.

    `checks` were made by Z3, `pruned` are the branches that it found to be impossible.
    """

    def __init__(self) -> None:
        self.checks = 0
        self.pruned = 0
        self._known: dict[Any, bool] = {}
        self._symbols: list[Any] = [z3.IntVal(0)]
        self._witnesses: dict[Definitions, list[dict[int, int]]] = {}
        # Making a Z3 expression takes longer than checking it.
        self._bound = lru_cache(MAX_CACHED)(self._bound_of)
        self._definition = lru_cache(MAX_CACHED)(self._definition_of)
        self._solver: Any = None

    def is_possible(self, rows: Matrix) -> bool:
        """Whether some whole numbers satisfy a matrix and its definitions."""
        if type(rows) is not Defined:
            return True  # closed and not negative on its diagonal: it has solutions
        used = _used(rows)
        key = (rows.definitions, tuple([tuple([rows[i][j] for j in used]) for i in used]))
        answer = self._known.get(key)
        if answer is None:
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            answer = self._known[key] = self._is_witnessed(rows, used) or self._check(rows, used)
        return answer

    def _is_witnessed(self, rows: Defined, used: Sequence[int]) -> bool:
        """Whether numbers that Z3 found earlier for the same definitions also satisfy a matrix."""
        return any(
            all(x[i] - x[j] <= rows[i][j] for i in used for j in used)
            for x in self._witnesses.get(rows.definitions, ())
        )

    def decided(self, rows: Matrix, i: int, j: int, bound: int) -> bool | None:
        """Whether `x_i - x_j <= bound` follows (True), or its negation (False), from the possible values."""
        if not self.is_possible(assuming(rows, i, j, bound)):
            self.pruned += 1
            return False
        if not self.is_possible(assuming(rows, j, i, -bound - 1)):
            self.pruned += 1
            return True
        return None

    def least(self, rows: Matrix) -> list[int] | None:
        """Numbers for the symbols of a matrix with the least sum; None if there are none."""
        if type(rows) is not Defined:
            # Each x is its own lower bound: row 0 satisfies all other rows since
            # rows[0][j] <= rows[0][i] + rows[i][j].
            return [-bound for bound in rows[0]]
        optimum = z3.Optimize()
        numbers = self._numbers(len(rows))
        optimum.add(self._constraints(rows, range(len(rows))))
        optimum.minimize(z3.Sum([x for x, bound in zip(numbers, rows[0], strict=True) if bound < FREE]))
        self.checks += 1
        if optimum.check() != z3.sat:
            return None
        model = optimum.model()
        return [model.eval(x, model_completion=True).as_long() for x in numbers]

    def _check(self, rows: Defined, used: Sequence[int]) -> bool:
        if self._solver is None:
            # Created at the first query: most specs need none, and members are forked before it.
            self._solver = z3.SolverFor("QF_LIA")
        self.checks += 1
        self._solver.push()
        try:
            self._solver.add(self._constraints(rows, used))
            found = self._solver.check()
            if found == z3.sat:
                self._keep(rows.definitions, used)
            # Unknown counts as possible: real offsets refute a superfluous state, but a missing one is lost.
            return bool(found != z3.unsat)
        finally:
            self._solver.pop()

    def _keep(self, definitions: Definitions, used: Sequence[int]) -> None:
        """Keep the numbers found by Z3; they satisfy the definitions, whatever the matrix."""
        model, x = self._solver.model(), self._symbols
        if len(self._witnesses) >= MAX_CACHED // MAX_WITNESSES:
            self._witnesses.clear()
        kept = self._witnesses.setdefault(definitions, [])
        kept.insert(0, {number: model.eval(x[number], model_completion=True).as_long() for number in used})
        del kept[MAX_WITNESSES:]

    def _constraints(self, rows: Defined, used: Sequence[int]) -> list[Any]:
        self._numbers(len(rows))
        found = [self._bound(i, j, rows[i][j]) for i in used for j in used if i != j and rows[i][j] < FREE]
        return found + [self._definition(one) for one in rows.definitions]

    def _bound_of(self, i: int, j: int, bound: int) -> Any:
        """`x_i - x_j <= bound` as a Z3 term."""
        return self._symbols[i] - self._symbols[j] <= bound

    def _definition_of(self, definition: tuple[Terms, int, int]) -> Any:
        """A definition as a Z3 term."""
        terms, number, plus = definition
        return self._sum((terms, -plus)) == self._symbols[number]

    def _numbers(self, size: int) -> list[Any]:
        self._symbols += [z3.Int(f"x{number}") for number in range(len(self._symbols), size)]
        return self._symbols[:size]

    def _sum(self, form: Form) -> Any:
        """A form as a Z3 term; division by a positive number rounds down there, too."""
        terms, plus = form
        parts = [
            times * (self._symbols[p] if isinstance(p, int) else self._sum((p[0], p[1])) / z3.IntVal(p[2]))
            for p, times in terms
        ]
        return z3.Sum([*parts, z3.IntVal(plus)])


def _used(rows: Defined) -> list[int]:
    found = {0}
    for terms, number, _ in rows.definitions:
        found |= {number, *symbols(terms)}
    return sorted(found)
