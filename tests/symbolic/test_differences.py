"""Differences of whole numbers: what they decide is what Z3 decides, and nothing is decided wrongly."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
import z3

from specchk.symbolic.differences import regions
from specchk.symbolic.differences.regions import FAR, LARGEST, DifferenceRegion, region
from specchk.symbolic.differences.terms import Formulas

NAMES = ("a", "b", "c", "d")
A, B, C, D = map(z3.Int, NAMES)


def literals_of(random: Random) -> list[tuple[str, str, int]]:
    """Bounds of some differences, often both of one, so that names are equal."""
    rows = []
    for _ in range(random.randrange(7)):
        u, v = random.sample(("", *NAMES), 2)
        most = random.randrange(-2, 4)
        rows.append((u, v, most))
        if random.random() < 0.4:
            rows.append((v, u, -most))
    return rows


def number(random: Random, depth: int) -> z3.ArithRef:
    """A name plus a constant, or one of two numbers."""
    if depth and random.random() < 0.3:
        return z3.If(formula(random, depth - 1), number(random, depth - 1), number(random, depth - 1))
    term = random.choice((A, B, C, D, z3.IntVal(1)))
    return term + random.randrange(-2, 3)


def formula(random: Random, depth: int) -> z3.BoolRef:
    """Comparisons, and what is made of them."""
    if depth and random.random() < 0.6:
        one, other = formula(random, depth - 1), formula(random, depth - 1)
        third = formula(random, depth - 1)
        return random.choice((z3.And(one, other), z3.Or(one, other), z3.Not(one), z3.If(one, other, third)))
    left, right = number(random, depth), number(random, depth)
    return random.choice((left <= right, left < right, left >= right, left > right, left == right))


def of_names(literals: list[tuple[str, str, int]]) -> list[z3.BoolRef]:
    """Literals as terms of Z3."""
    return [(z3.Int(u) if u else 0) - (z3.Int(v) if v else 0) <= most for u, v, most in literals]


def is_unsatisfiable(*terms: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.add(*terms)
    return solver.check() == z3.unsat


@pytest.mark.parametrize("seed", range(100))
def test_a_region_excludes_what_z3_does(seed):
    """Of random bounds, formulas and lists, with names that are another number in the lists."""
    random, formulas = Random(seed), Formulas()
    literals = literals_of(random)
    here = region(literals, NAMES)
    assert (here is None) == is_unsatisfiable(*of_names(literals))
    if here is None:
        return
    terms = [formula(random, 2) for _ in range(random.randrange(3))]
    lists = [[one for one in literals_of(random) if one] for _ in range(random.randrange(3))]
    moved = {name: number(random, 2) for name in NAMES if random.random() < 0.5}
    some = [z3.substitute(z3.Or(*of_names(rows)), *[(z3.Int(name), term) for name, term in moved.items()])
            for rows in lists]  # fmt: skip
    made = formulas.all(terms)
    if len(made) < len(terms):
        return
    numbers = {name: formulas.number(term) for name, term in moved.items()}
    found = here.excludes(made, lists, numbers)
    assert found == is_unsatisfiable(*of_names(literals), *terms, *some)
    # With what other formulas in other regions have left, too.
    assert formulas.exclude([here], made) == is_unsatisfiable(*of_names(literals), *terms)


def test_numbers_are_whole():
    """Between 0 and 1 there is none; for fractions there would be."""
    here, formulas = region([("a", "b", 1), ("b", "a", 0)], NAMES), Formulas()
    assert here.excludes(formulas.all([z3.Not(A == B), z3.Not(A == B + 1)]))
    assert not here.excludes(formulas.all([z3.Not(A == B)]))


def test_what_regions_share_is_decided_once():
    """And a region with other bounds of these names is another one."""
    formulas = Formulas()
    made = formulas.all([z3.Not(A <= B)])
    below, above = region([("a", "b", 0)], NAMES), region([("b", "a", 0)], NAMES)
    assert formulas.exclude([below], made)
    assert not formulas.exclude([above], made)
    assert not formulas.exclude([below, above], made)
    # The same rows, at other distances.
    near, far = region([("a", "b", 0), ("b", "a", 0)], NAMES), region([("a", "b", 5), ("b", "a", -5)], NAMES)
    assert [formulas.exclude([one], made) for one in (near, far)] == [True, False]


@pytest.mark.parametrize(
    "term", [2 * A <= B, A + B <= C, A % 2 == 0, z3.Bool("p"), A * B <= 1, A - B <= C - D]
)
def test_what_is_no_difference_has_no_formula(term):
    """Nor its negation; nothing is made up for it."""
    formulas = Formulas()
    assert formulas.of(term) is None
    assert formulas.of(term, False) is None
    assert formulas.all([term, A <= B]) == [("a", "b", 0)]


@pytest.mark.parametrize("term", [2 * A, A + B, A % 2, z3.IntVal(LARGEST) + 1 + A, LARGEST + 1])
def test_what_is_no_name_and_constant_is_no_number(term):
    """So it is left to Z3."""
    assert Formulas().number(term) is None


def test_no_bound_is_mistaken_for_a_large_one():
    """However many bounds of any size are added up, as a file may have them."""
    assert Formulas().of(A <= LARGEST + 1) is None
    names = [f"n{k}" for k in range(40)]
    most = LARGEST - 1
    chain = [(one, other, most) for one, other in pairwise(names)]
    down = [(other, one, -most) for one, other in pairwise(names[:20])]
    here, formulas = region([*chain, *down], names), Formulas()
    first, last = z3.Int("n0"), z3.Int("n39")
    assert here.excludes(formulas.all([z3.Not(z3.Int("n0") <= z3.Int("n1") + most)]))
    for wrong in (last <= first - most, first <= -most, most <= first, z3.Not(first == last)):
        assert not here.excludes(formulas.all([wrong]))
    assert LARGEST * 1000 < FAR


def test_a_question_of_too_many_cases_is_not_decided(monkeypatch):
    """It is neither excluded nor searched forever."""
    made = Formulas().all([z3.Or(A < B, A > B), z3.Or(B < C, B > C), A == C, A < C])
    assert region([], NAMES).excludes(made)
    monkeypatch.setattr(regions, "MAX_PARTS", 1)
    assert not region([], NAMES).excludes(made)


def test_an_unknown_name_is_any_number():
    """A region has no bounds of it."""
    here, formulas = region([("a", "", 3)], ("a",)), Formulas()
    assert isinstance(here, DifferenceRegion)
    assert not here.excludes(formulas.all([B <= 0]))
    assert here.excludes(formulas.all([B >= A + 1, B <= A]))
    assert here.projected(("", "a", "c")) == here.projected(("", "a", "d"))
