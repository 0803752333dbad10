"""The changes of a step are reported place by place, as deep as both values are alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.meaning.values import State, universe
from specchk.report.diff import changes

SPEC = """spec letters
sort Box
type Small = 0..2
type Letter = { to: Box, size: 0..2 }
var slot : Box -> Letter? = { b: none for b in Box }
var maybe : Small? = none
action write(b: Box):
    slot'[b] = some({ to: b, size: 1 })
model small:
    Box = 2
"""
PROGRAM = instantiate(check("letters.spec", SPEC)).program
SLOTS, MAYBES = (list(universe(variable.type)) for variable in PROGRAM.variables)
STATES = st.tuples(st.sampled_from(SLOTS), st.sampled_from(MAYBES))


def told(before: State, after: State) -> list[str]:
    return [f"{one.path}: {one.before} -> {one.after}" for one in changes(PROGRAM, before, after)]


def test_a_letter_that_stays_is_looked_into():
    """If there is one before and after, its fields; otherwise the whole."""
    empty, small, large = ((), ()), (((1, 0),), ()), (((2, 0),), ())
    assert told((empty, ()), (small, ())) == ["slot[b1]: none -> some({ size: 1, to: b1 })"]
    assert told((small, ()), (large, ())) == ["slot[b1].size: 1 -> 2"]
    assert told((empty, (1,)), (empty, (2,))) == ["maybe: some(1) -> some(2)"]


@given(before=STATES, after=STATES)
def test_nothing_is_told_of_equal_states_and_something_of_others(before, after):
    """A change for every difference, and no path twice."""
    paths = [one.path for one in changes(PROGRAM, before, after)]
    assert (paths == []) == (before == after)
    assert len(paths) == len(set(paths))
