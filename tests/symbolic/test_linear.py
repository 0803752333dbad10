"""Linear forms, open numbers and their solver, compared with whole numbers."""

from __future__ import annotations

import operator
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zone_lists import closed

from specchk.meaning.linear import Form, added, divided, scaled, substituted, symbol
from specchk.meaning.open_numbers import OpenNumber, Term
from specchk.meaning.paths import START, Defined, ForkPath, NotSymbolic, definitions, ends_of, outcomes
from specchk.meaning.regions import outside
from specchk.symbolic.recording.solver import LinearSolver

SIZE = 3
NUMBERS = st.integers(-6, 6)
VALUES = st.lists(st.integers(0, 9), min_size=SIZE, max_size=SIZE)
COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


def value(form: Form, at: list[int]) -> int:
    """A form of numbers that are known; symbol 1 is the first of them."""
    parts = [
        times * (at[p - 1] if isinstance(p, int) else value((p[0], p[1]), at) // p[2]) for p, times in form[0]
    ]
    return sum(parts) + form[1]


FORMS = st.recursive(
    st.builds(symbol, st.integers(1, SIZE), NUMBERS),
    lambda some: st.one_of(
        st.builds(added, some, some, NUMBERS), st.builds(scaled, some, NUMBERS),
        st.builds(divided, some, st.integers(1, 5)),
    ),
    max_leaves=5,
)  # fmt: skip


@given(a=FORMS, b=FORMS, factor=NUMBERS, divisor=st.integers(1, 7), at=VALUES)
def test_forms_are_the_numbers_that_they_say(a, b, factor, divisor, at):
    """Sums, multiples and quotients, rounded down, of numbers of either sign."""
    assert value(added(a, b, factor), at) == value(a, at) + factor * value(b, at)
    assert value(scaled(a, factor), at) == factor * value(a, at)
    assert value(divided(a, divisor), at) == value(a, at) // divisor


@given(form=FORMS, others=st.lists(FORMS, min_size=SIZE, max_size=SIZE), at=VALUES)
def test_a_form_of_forms_is_a_form(form, others, at):
    """Each symbol replaced, inside of quotients, too."""
    inner = [value(other, at) for other in others]
    assert value(substituted(form, lambda number: others[number - 1]), at) == value(form, inner)


@given(form=FORMS)
def test_equal_forms_are_equal_tuples(form):
    """However they were composed: 2x equals x + x, and x - x is 0."""
    assert added(form, form) == scaled(form, 2)
    assert added(form, form, -1) == ((), 0)
    assert divided(scaled(form, 3), 3) == form


def random_number(random: Random, numbers: list) -> object:
    """A number computed of some, by the operators of the language."""
    one, other = random.choice(numbers), random.choice(numbers)
    return random.choice((
        lambda: one + other, lambda: one - other, lambda: 2 * one, lambda: -one, lambda: one // 2,
        lambda: one % 3, lambda: one + 1, lambda: 3 - one, lambda: one // -2, lambda: one % -3,
    ))()  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**9))
def test_each_assignment_takes_one_way_and_there_the_answers_are_its_own(seed):
    """Comparisons of computed numbers: the runs are those of whole numbers, no more and no fewer."""
    solver = LinearSolver()
    path = ForkPath(solver)

    def run(numbers):
        random = Random(seed)
        found = list(numbers)
        for _ in range(3):
            found.append(random_number(random, found))
        tests = [random.choice(COMPARISONS) for _ in range(3)]
        return [bool(test(random.choice(found), random.choice([*found, 2]))) for test in tests]

    def opened():
        return run([Term(path, path.fresh()) for _ in range(SIZE)])

    said = set()
    for answers in outcomes(path, START, opened):
        said.add(tuple(answers))
        numbers = solver.least(path.rows)
        assert numbers is not None, "an impossible run"
        assert run(numbers[1 : SIZE + 1]) == answers
    assert {tuple(run(list(at))) for at in product(range(5), repeat=SIZE)} <= said


@given(form=FORMS, seed=st.integers(0, 10**9), at=VALUES)
def test_intervals_contain_the_number(form, seed, at):
    """For any number that a closed matrix allows."""
    path, random = ForkPath(), Random(seed)
    path.begin(START, [])
    for _ in range(SIZE):
        path.fresh()
    known = [0, *at]
    for _ in range(4):
        i, j = random.sample(range(SIZE + 1), 2)
        if path.rows[i][j] > known[i] - known[j]:
            path._assume(i, j, known[i] - known[j] + random.randrange(3))
    low, high = ends_of(path.rows, form[0])
    found = value((form[0], 0), at)
    assert low is None or low <= found
    assert high is None or found <= high


def summed(path: ForkPath, limit: int, order=operator.le) -> None:
    """Three open numbers, the first two of which are compared with the third as a sum."""
    numbers = [Term(path, path.fresh()) for _ in range(SIZE)]
    assert order(numbers[0] + numbers[1], numbers[2] + limit)


def test_outside_keeps_the_sums_of_what_is_kept():
    """Where a + b <= c is taken away, a + b > c is left, and no more."""
    solver = LinearSolver()
    path = ForkPath(solver)
    path.begin(START, [])
    summed(path, 0)
    whole = ForkPath(solver)
    whole.begin(START, [])
    for _ in range(SIZE):
        whole.fresh()
    parts = outside([whole.rows], path.rows, SIZE + 1, solver)
    for at in product(range(4), repeat=SIZE):
        inside = [part for part in parts if _has(part, [0, *at])]
        assert len(inside) == (at[0] + at[1] > at[2])


def _has(rows, known: list[int]) -> bool:
    numbers = [*known, *[0] * (len(rows) - len(known))]
    for terms, number, plus in definitions(rows):
        numbers[number] = value((terms, -plus), known[1:])
    return all(numbers[i] - numbers[j] <= bound for i, row in enumerate(rows) for j, bound in enumerate(row))


@settings(deadline=None, max_examples=60)
@given(
    factors=st.lists(
        st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.sampled_from([-1, 0, 1])), max_size=3
    ),
    bounds=st.lists(st.integers(-3, 3), min_size=3, max_size=3),
)
def test_outside_has_what_no_chosen_number_of_a_sum_lets_in(factors, bounds):
    """Exactly: of each two numbers, whether some third one satisfies all of some sums."""
    solver = LinearSolver()
    path = ForkPath(solver)
    base = ForkPath(solver)
    base.begin(START, [])
    for _ in range(2):
        base.fresh()
    taken = [path.rows for met in outcomes(path, START, lambda: chosen(path, factors, bounds)) if met]
    parts = [base.rows]
    for rows in taken:
        parts = outside(parts, rows, 3, solver)
    for a, b in product(range(4), repeat=2):
        some = any(
            all(x * a + y * b + z * n <= bound for (x, y, z), bound in zip(factors, bounds, strict=False))
            for n in range(40)
        )
        assert any(_has(part, [0, a, b]) for part in parts) is not some


def chosen(path: ForkPath, factors: list, bounds: list) -> bool:
    """Whether three open numbers, the last of which is chosen, satisfy all of some sums."""
    a, b, n = (Term(path, path.fresh()) for _ in range(3))
    rows = zip(factors, bounds, strict=False)
    return all(x * a + y * b + z * n <= bound for (x, y, z), bound in rows)


def test_a_multiple_of_what_was_chosen_is_not_eliminated():
    """Whether some n gives 2 * n == a is not decided by its bounds: it is refused, not guessed."""
    solver = LinearSolver()
    path = ForkPath(solver)
    path.begin(START, [])
    a, n = Term(path, path.fresh()), Term(path, path.fresh())
    assert 2 * n <= a
    with pytest.raises(NotSymbolic, match="chosen"):
        outside([[[0, 0], [9, 0]]], path.rows, 2, solver)


def test_without_a_solver_a_sum_is_refused():
    """There would be too many answers: what the matrix leaves open may be impossible."""
    path = ForkPath()
    path.begin(START, [])
    with pytest.raises(NotSymbolic, match="sum"):
        summed(path, 0)


def test_open_numbers_have_no_other_uses():
    """Products, and divisions by one, are refused with a message."""
    path = ForkPath()
    path.begin(START, [])
    a, b = (Term(path, path.fresh()) for _ in range(2))
    for refused in (lambda: a * b, lambda: a // b, lambda: 4 // a, lambda: 4 % a, lambda: range(a)):
        with pytest.raises(NotSymbolic):
            refused()
    assert isinstance(a * 3, OpenNumber)
    assert a - a == 0
    assert a + b - b is not a
    assert repr(a + b - b) == repr(a)


def matrices(seed: int) -> list[Defined]:
    """Closed matrices of three symbols, the last two of which are defined by few forms of the first."""
    random = Random(seed)
    found = []
    for _ in range(60):
        terms = random.choice([((1, 2),), ((((((1, 1),), 1, 2)), 1),), ((1, 1), (2, 1))])
        rows = [[0 if i == j else random.randint(-1, 6) for j in range(4)] for i in range(4)]
        if min(row[index] for index, row in enumerate(closed(rows))) >= 0:
            found.append(Defined(rows, ((terms, 3, random.choice((0, 1))),)))
    return found


def forgetful(self, rows, used):
    """Whatever satisfied the definitions once satisfies any matrix: wrong."""
    return bool(self._witnesses.get(rows.definitions))


def wrong_answers(seed: int) -> int:
    """Matrices of which a solver that has answered others has another answer than a new one."""
    used = LinearSolver()
    return sum(used.is_possible(rows) is not LinearSolver().is_possible(rows) for rows in matrices(seed))


def test_numbers_that_answered_before_change_no_answer(monkeypatch):
    """They are tried on each matrix; if they were not, wrong answers would be detected."""
    assert [wrong_answers(seed) for seed in range(3)] == [0, 0, 0]
    shared = LinearSolver()
    answers = [shared.is_possible(rows) for rows in matrices(0)]
    assert {True, False} == set(answers)
    assert shared.checks < len(answers)
    monkeypatch.setattr(LinearSolver, "_is_witnessed", forgetful)
    assert sum(wrong_answers(seed) for seed in range(3)) > 0
