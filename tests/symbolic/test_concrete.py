"""Real states along a path of zones: the number of paths that are followed."""

from __future__ import annotations

import pytest
from zoned import program_of, zone_engine
from zoned import search_zones as search

from specchk.meaning.initial import initial_states
from specchk.search.budget import Budget
from specchk.search.engine import explore
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Inconclusive, Violated
from specchk.symbolic.induction.bmc import bounded
from specchk.symbolic.zones.concrete import Concretiser, Goal, Taken
from specchk.symbolic.zones.engine import ZoneOptions
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
    """Otherwise each step of a path would double the paths: with 99 steps they filled the memory."""
    assert ways_along(TWINS.replace("CHANGE", "n' = n + 1"), tmp_path, 12) == 12


def test_ways_that_meet_are_one(tmp_path):
    """After n steps by one of two elements there are n + 1 states, not one for each of 2^n paths."""
    most = sum(4 * (n + 1) for n in range(12))
    assert 12 < ways_along(TWINS.replace("CHANGE", "m'[k] = m[k] + 1"), tmp_path, 12) <= most


FAR = """\
spec far
type Offset = nat upto 3
type Span = { first: Offset, last: Offset }
var at : Offset = 0
action jump(s: Span):
    require at == 0 and s.first == 1000000000000 and s.last == s.first + 5
    any n in s.first..s.last:
        require n > s.first + 1
        at' = n
EXTRA
model one:
    expect holds
"""


@pytest.mark.parametrize(
    ("extra", "name", "steps"),
    [
        ("invariant near: at < 1000000000000\ndeadlock ok", "near", 1),
        ("action back():\n    require at > 9 and at - 9 < 0\n    at' = 0", "deadlock", 1),
    ],
)
def test_a_violation_at_far_numbers_is_replayed_with_the_numbers_of_its_path(extra, name, steps, tmp_path):
    """As argument, as choice from a range, and in a deadlock: nothing is listed."""
    program = program_of(FAR.replace("EXTRA", extra), tmp_path)
    verdict = search(program, ZoneOptions(workers=1)).verdict
    assert isinstance(verdict, Violated)
    (violation,) = verdict.violations
    assert (violation.name, violation.trace and len(violation.trace.steps)) == (name, steps)
    assert violation.trace is not None
    assert violation.trace.last == (10**12 + 2,)


def test_a_bounded_search_replays_far_numbers(tmp_path):
    """`--depth` has the findings of the zones, and lists as little."""
    program = program_of(FAR.replace("EXTRA", "invariant near: at < 1000000000000\ndeadlock ok"), tmp_path)
    verdict = bounded(program, 2, Budget()).verdict
    assert isinstance(verdict, Violated)
    assert verdict.violations[0].trace is not None
    assert verdict.violations[0].trace.last >= (10**12,)


def test_real_states_are_sought_as_long_as_there_is_time(tmp_path):
    """A path with thousands of real paths ends with the budget, without an answer."""
    program = program_of(TWINS.replace("CHANGE", "m'[k] = m[k] + 1"), tmp_path)
    shape, _ = Shapes(program).split(initial_states(program)[0])
    left = [20]

    def is_over():
        left[0] -= 1
        return left[0] < 0

    finder = Concretiser(program, Symmetry(program), horizons=False, is_over=is_over)
    path = [Taken(0, (), shape), *[Taken(0, (0,), shape)] * 400]
    assert finder.find(path, Goal("invariant", "never", None)) is None
    assert finder._points <= 400


def test_when_time_is_up_nothing_is_known_of_a_candidate(monkeypatch, tmp_path):
    """The search ends for its budget, and is not repeated with a further reach as after a spurious path."""
    program = program_of(FAR.replace("EXTRA", "invariant near: at < 1000000000000\ndeadlock ok"), tmp_path)
    engine = zone_engine(program, ZoneOptions(Budget(max_seconds=3600), workers=1))

    def late(*_):
        engine.search.meter.started -= 7200

    monkeypatch.setattr(Concretiser, "find", late)
    outcome = explore(engine)
    assert isinstance(outcome.verdict, Inconclusive)
    assert "--max-seconds" in outcome.verdict.reason
    assert (engine.refinements, engine.spurious) == (0, set())
