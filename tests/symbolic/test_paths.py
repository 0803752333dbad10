"""Difference-bound matrices: what a path answers is what follows, by Z3's word."""

from __future__ import annotations

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from specchk.symbolic.paths import FREE, Path, outcomes

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
    path = Path()
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
    """The law has power: noting an answer without what follows from it breaks it."""

    def assume(self, i, j, bound):
        self._own()[i][j] = bound

    monkeypatch.setattr(Path, "_assume", assume)
    with pytest.raises(AssertionError):
        _law([(1, 2, 0), (2, 3, 0), (1, 3, 0)])


def test_a_fresh_symbol_is_any_number_from_zero_on():
    path = Path()
    path.begin([[0]], [])
    new = path.fresh()
    assert path.at_most(0, new, 0)
    assert path.forks == 0
    assert path.at_most(new, 0, 5)
    assert path.forks == 1
