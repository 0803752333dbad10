"""Real states along a path of zones: how many ways are followed."""

from __future__ import annotations

from zoned import program_of

from specchk.meaning.initial import initial_states
from specchk.search.symmetry import Symmetry
from specchk.symbolic.zones.concrete import Concretiser, Goal, Taken
from specchk.symbolic.zones.zones import Shapes

TWINS = """\
spec twins
sort Node
type Offset = nat upto 3
var n : Offset = 0
var m : Node -> Offset = { k: 0 for k in Node }
action step(k: Node):
    CHANGE
invariant never: n >= 0
model two:
    Node = 2
    expect holds
"""


def ways_along(text, tmp_path, steps):
    """The ends that are computed for a path of some steps at whose end nothing fails."""
    program = program_of(text, tmp_path)
    symmetry = Symmetry(program)
    assert symmetry.order == 2
    shape, _ = Shapes(program).split(initial_states(program)[0])
    finder = Concretiser(program, symmetry, horizons=False)
    path = [Taken(0, (), shape), *[Taken(0, (0,), shape)] * steps]
    assert finder.find(path, Goal("invariant", "never", None)) is None
    return finder._points


def test_a_state_that_is_its_own_image_is_one_way(tmp_path):
    """Else each step of a path would double the ways: of one with 99 steps they filled the memory."""
    assert ways_along(TWINS.replace("CHANGE", "n' = n + 1"), tmp_path, 12) == 12


def test_ways_that_meet_are_one(tmp_path):
    """Of n steps by one of two elements or the other there are n + 1 states, not one for each of 2^n ways."""
    most = sum(4 * (n + 1) for n in range(12))
    assert 12 < ways_along(TWINS.replace("CHANGE", "m'[k] = m[k] + 1"), tmp_path, 12) <= most
