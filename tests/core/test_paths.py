"""Difference-bound matrices: the answers of a path are the consequences, according to Z3."""

from __future__ import annotations

from itertools import product

import pytest
import z3
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from specchk.meaning.paths import FREE, START, ForkPath, Matrix, outcomes
from specchk.meaning.regions import outside

SIZE = 4
CONSTRAINTS = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.integers(-3, 3)), min_size=1, max_size=6
)


def solver_of(found):
    solver = z3.Solver()
    symbols = [z3.IntVal(0), *z3.Ints("x1 x2 x3")]
    solver.add([symbols[i] - symbols[j] <= bound for i, j, bound in found])
    return solver, symbols


@settings(max_examples=25, deadline=None)
@given(questions=CONSTRAINTS)
def test_each_run_assumes_what_is_consistent_and_together_they_are_all(questions):
    """A run's answers have a solution; every assignment of numbers is in exactly one run."""
    _law(questions)


def _law(questions):
    path = ForkPath()
    start = [[0 if i == j else FREE for j in range(SIZE)] for i in range(SIZE)]

    def run():
        answers = []
        for i, j, bound in questions:
            if i != j:
                answers.append((i, j, bound, path.at_most(i, j, bound)))
        return answers

    cases = []
    for answers in outcomes(path, start, run):
        said = [(i, j, bound) if yes else (j, i, -bound - 1) for i, j, bound, yes in answers]
        solver, symbols = solver_of(said)
        assert solver.check() == z3.sat
        for i in range(SIZE):
            for j in range(SIZE):
                bound = path.rows[i][j]
                solver.push()
                if bound < FREE:  # it follows, and nothing less does
                    solver.add(symbols[i] - symbols[j] > bound)
                    assert solver.check() == z3.unsat
                    solver.pop()
                    solver.push()
                    solver.add(symbols[i] - symbols[j] == bound)
                    assert solver.check() == z3.sat
                solver.pop()
        cases.append(z3.And([symbols[i] - symbols[j] <= bound for i, j, bound in said]))
    whole = z3.Solver()
    whole.add(z3.Not(z3.Or(cases)))
    assert whole.check() == z3.unsat
    for first in range(len(cases)):
        for second in range(first):
            both = z3.Solver()
            both.add(cases[first], cases[second])
            assert both.check() == z3.unsat


def test_a_matrix_that_is_not_closed_is_noticed(monkeypatch):
    """The law has power: storing an answer without its consequences violates it."""

    def assume(self, i, j, bound):
        self._own()[i][j] = bound

    monkeypatch.setattr(ForkPath, "_assume", assume)
    with pytest.raises(AssertionError):
        _law([(1, 2, 0), (2, 3, 0), (1, 3, 0)])


def test_a_fresh_symbol_is_any_number_from_zero_on():
    path = ForkPath()
    path.begin([[0]], [])
    new = path.fresh()
    assert path.at_most(0, new, 0)
    assert path.forks == 0
    assert path.at_most(new, 0, 5)
    assert path.forks == 1


def points(rows: Matrix, most: int) -> set[tuple[int, ...]]:
    """The whole numbers from 0 to `most` that satisfy a matrix, without its symbol 0."""
    return {
        values
        for values in product(range(most + 1), repeat=len(rows) - 1)
        for known in [(0, *values)]
        if all(known[i] - known[j] <= bound for i, row in enumerate(rows) for j, bound in enumerate(row))
    }


@st.composite
def matrices(draw: st.DrawFn, size: int) -> Matrix:
    """Closed matrices of this many symbols, each at most 4."""
    path = ForkPath()
    path.begin(START, [])
    for _ in range(size):
        path.fresh()
    for symbol in range(1, size + 1):
        assume(path.at_most(symbol, 0, 4))
    for _ in range(draw(st.integers(0, 4))):
        i, j = draw(st.integers(0, size)), draw(st.integers(0, size))
        assume(i == j or path.at_most(i, j, draw(st.integers(-3, 4))))
    return path.rows


@given(rows=matrices(2), taken=matrices(3))
def test_outside_has_what_no_further_symbol_lets_in(rows, taken):
    """The pieces contain, once each, the points of one matrix that no value of the other's symbol permits."""
    inside = {known[:2] for known in points(taken, 4)}
    pieces = [points(piece, 4) for piece in outside([rows], taken, 3)]
    assert sum(map(len, pieces)) == len(set().union(*pieces))
    assert set().union(*pieces) == points(rows, 4) - inside
