"""Differences of whole numbers: their decisions are Z3's, and none is wrong."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
import z3

from specchk.symbolic.differences import cases, regions
from specchk.symbolic.differences.cases import CaseTree, Formula, case_tree
from specchk.symbolic.differences.regions import FAR, LARGEST, DifferenceRegion, NotDecided, region
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
    """Comparisons, and their compositions."""
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


def all_of(formulas: Formulas, terms: list[z3.BoolRef]) -> list[Formula | None]:
    return [formulas.of(term) for term in terms]


def is_left_within(here: DifferenceRegion, cases: CaseTree, others: list[list[tuple[str, str, int]]]) -> bool:
    """Whether what formulas leave of a region is in one of some others, of the names after a step."""
    return all(part.is_within(others, moved) for part, moved in cases.within(here))


@pytest.mark.parametrize("seed", range(100))
def test_a_region_excludes_what_z3_does(seed):
    """Of random bounds and formulas, and other regions, in which names are other numbers."""
    random, formulas = Random(seed), Formulas()
    literals = literals_of(random)
    here = region(literals, NAMES)
    assert (here is None) == is_unsatisfiable(*of_names(literals))
    if here is None:
        return
    terms = [formula(random, 2) for _ in range(random.randrange(3))]
    others = [literals_of(random) for _ in range(random.randrange(4))]
    moved = {name: number(random, 2) for name in NAMES if random.random() < 0.5}
    pairs = [(z3.Int(name), term) for name, term in moved.items()]
    outside = [z3.substitute(z3.Not(z3.And(*of_names(rows))), *pairs) for rows in others]
    made = all_of(formulas, terms)
    numbers = {name: formulas.number(term) for name, term in moved.items()}
    # A second region of the same cases, whose nodes the first one has made.
    for again in (here, here, region([], NAMES)):
        facts = of_names(literals) if again is here else []
        expected = is_unsatisfiable(*facts, *terms, *outside)
        assert is_left_within(again, case_tree(made, numbers), others) == expected
        # With what other formulas in other regions have left, too.
        assert formulas.exclude([again], made) == is_unsatisfiable(*facts, *terms)


def test_numbers_are_whole():
    """Between 0 and 1 there is none; for fractions there would be."""
    here, formulas = region([("a", "b", 1), ("b", "a", 0)], NAMES), Formulas()
    assert formulas.exclude([here], all_of(formulas, [z3.Not(A == B), z3.Not(A == B + 1)]))
    assert not formulas.exclude([here], all_of(formulas, [z3.Not(A == B)]))


def test_a_bound_that_is_tighter_by_one_reaches_all_rows():
    """As `a <= b` does for `c`, which is at most `a`."""
    here, formulas = region([("a", "b", 1), ("c", "a", 0)], NAMES), Formulas()
    assert formulas.exclude([here], all_of(formulas, [A <= B, C > B]))
    assert not formulas.exclude([here], all_of(formulas, [A <= B, C >= B]))


def test_what_regions_share_is_decided_once():
    """And a region with other bounds of these names is another one."""
    formulas = Formulas()
    made = all_of(formulas, [z3.Not(A <= B)])
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
    """Nor has its negation; none is invented."""
    formulas = Formulas()
    assert formulas.of(term) is None
    assert formulas.of(term, False) is None
    assert [formulas.of(term), formulas.of(A <= B)] == [None, ("a", "b", 0)]


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
    assert formulas.exclude([here], all_of(formulas, [z3.Not(z3.Int("n0") <= z3.Int("n1") + most)]))
    for wrong in (last <= first - most, first <= -most, most <= first, z3.Not(first == last)):
        assert not formulas.exclude([here], all_of(formulas, [wrong]))
    assert LARGEST * 1000 < FAR


def test_a_question_of_too_many_cases_is_not_decided(monkeypatch):
    """It neither gives an answer nor searches forever."""
    terms = [z3.Or(A < B, A > B), z3.Or(B < C, B > C), A == C, A < C]
    everything = region([], NAMES)
    assert Formulas().exclude([everything], all_of(Formulas(), terms))
    parts = [[("a", "b", 0)], [("b", "a", 0)]]
    assert everything.is_within(parts, {})
    monkeypatch.setattr(cases, "MAX_PARTS", 1)
    monkeypatch.setattr(regions, "MAX_PARTS", 0)
    with pytest.raises(NotDecided):
        list(case_tree(all_of(Formulas(), terms[:2]), {}).within(everything))
    assert not everything.is_within(parts, {})


def test_an_unknown_name_is_any_number():
    """A region has no bounds for it."""
    here, formulas = region([("a", "", 3)], ("a",)), Formulas()
    assert isinstance(here, DifferenceRegion)
    assert not formulas.exclude([here], all_of(formulas, [B <= 0]))
    assert formulas.exclude([here], all_of(formulas, [B >= A + 1, B <= A]))
    assert here.projected(("", "a", "c")) == here.projected(("", "a", "d"))
    assert not here.including(["b"]).is_within([[("a", "", 3)]], {"a": ("b", 0)})
    assert here.is_within([[("a", "", 4)]], {"a": ("a", 1)})
