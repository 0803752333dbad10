"""Violations shown by hulls: the same answer as the exact search alone, with fewer zones or none."""

from __future__ import annotations

from random import Random

import pytest
from hulled import hull_search
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_specs import linear_spec
from offset_specs import offset_spec
from zoned import program_of
from zoned import search_zones as exact

from specchk.lang.text.diagnostics import SpecError
from specchk.search.budget import Budget
from specchk.search.replay import ReplayFailed
from specchk.search.verdict import Inconclusive
from specchk.symbolic.joins import engine, hulls, member
from specchk.symbolic.joins import search as joins
from specchk.symbolic.joins.engine import JoinOptions, search
from specchk.symbolic.joins.search import HullSearch, JoinState
from specchk.symbolic.legality import check as check_legality
from specchk.symbolic.zones.engine import ZoneOptions

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
BUDGET = Budget(max_states=120)

# Of 28 control parts in levels up to the sixth, five are on the way to the failure.
DETOURS = """\
spec detours
type Offset = nat upto 3
var at : 0..9 = 0
var aside : 0..9 = 0
var sent : Offset = 0
action advance():
    require at < 9
    at' = at + 1
    sent' = sent + 1
action stray():
    require aside < 9
    aside' = aside + 1
invariant near: at < 4
deadlock ok
model one:
    expect violates near in 4 steps
"""
WITNESS = "reachable astray: aside == 3\ndeadlock ok"
# A hull of both ways has states with x == y.
APART = """\
spec apart
type Offset = nat upto 3
var at : 0..9 = 0
var aside : 0..9 = 0
var x : Offset = 0
var y : Offset = 0
action left():
    require at == 0
    at' = 1
    x' = x + 1
action right():
    require at == 0
    at' = 1
    y' = y + 1
action advance():
    require at in 1..5
    at' = at + 1
action stray():
    require aside < 2
    aside' = aside + 1
invariant apart: at == 4 implies x != y
deadlock ok
model one:
    expect holds
"""
STEP = "step invariant near: at' < 5"
# No real state has an odd difference, and a sum of offsets cannot be listed.
REFUSED = """\
spec refused
type Offset = nat upto 9
var x : Offset = 0
var y : Offset = 0
var sum : 0..1000000 = 0
action up():
    x' = x + 2
action odd():
    require x == y + 1
    sum' = x + y
step invariant small: x' < 2
deadlock ok
"""


def said(outcome):
    violations = getattr(outcome.verdict, "violations", ())
    found = [(v.kind, v.name, v.trace and len(v.trace.steps)) for v in violations]
    return type(outcome.verdict), found, sorted(name for name, _ in outcome.witnesses), outcome.warnings


def spec_of(seed: int) -> str:
    random = Random(seed)
    return linear_spec(random, horizon=2) if seed % 2 else offset_spec(random, horizon=2)


def difference(text: str, folder, *, symmetry: bool = True) -> str:
    """The differences between the answers of the exact search alone and of a narrowed one."""
    try:
        program = program_of(text, folder)
        check_legality(program)
    except SpecError:
        return ""
    alone = exact(program, ZoneOptions(BUDGET, symmetry, workers=1))
    try:
        beside = search(program, JoinOptions(BUDGET, symmetry, workers=1, join_after=0))
    except ReplayFailed as error:
        return str(error)
    if Inconclusive in (type(alone.verdict), type(beside.verdict)) or said(alone) == said(beside):
        return ""
    return f"{said(alone)} alone, {said(beside)} beside hulls"


@pytest.fixture
def hulls_first(monkeypatch):
    """Hulls end before the exact search starts, so that it is narrowed wherever possible."""
    monkeypatch.setattr(engine, "SHARE", 1_000)


@pytest.mark.usefixtures("hulls_first")
@pytest.mark.parametrize("workers", [1, 2])
def test_only_zones_on_a_way_to_a_failure_are_taken(workers, tmp_path):
    """Eleven of twenty-one: whatever strays is too late for the bound that hulls show."""
    program = program_of(DETOURS.replace("invariant near: at < 4", STEP), tmp_path)
    alone = exact(program, ZoneOptions(workers=1))
    beside = search(program, JoinOptions(workers=workers, join_after=0))
    assert said(alone) == said(beside)
    assert (alone.statistics.distinct, beside.statistics.distinct) == (21, 11)


@pytest.mark.usefixtures("hulls_first")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_violation_of_the_first_level_that_fails_needs_no_zones(workers, tmp_path):
    """No hull fails before it, and real states show all that does: as long as the exact search has it."""
    program = program_of(DETOURS, tmp_path)
    alone = exact(program, ZoneOptions(workers=1))
    beside = search(program, JoinOptions(workers=workers, join_after=0))
    assert said(alone) == said(beside)
    assert said(beside)[1] == [("invariant", "near", 4)]
    assert (alone.statistics.distinct, beside.statistics.distinct) == (15, 1)


@pytest.mark.usefixtures("hulls_first")
def test_what_fails_in_hulls_without_real_states_is_left_to_the_exact_search(tmp_path):
    """Two invariants fail in one level, of which one is not shown: all zones on the way are searched."""
    text = APART.replace("deadlock ok", "invariant near: at < 4\ndeadlock ok")
    program = program_of(text, tmp_path)
    outcome = search(program, JoinOptions(workers=1, join_after=0))
    assert said(outcome) == said(exact(program, ZoneOptions(workers=1)))
    assert said(outcome)[1] == [("invariant", "near", 4)]
    assert outcome.statistics.distinct > 1


def test_rounds_after_a_failure_have_what_is_near_to_it(tmp_path, monkeypatch):
    """They find the same atoms, with fewer hulls; the proof is a complete round's."""
    program = program_of(APART, tmp_path)
    monkeypatch.setattr(joins, "SHARE_OF_NEAR", 1)
    near = hull_search(program)
    monkeypatch.setattr(joins, "SHARE_OF_NEAR", 10**6)
    whole = hull_search(program)
    assert (near.state, near.atoms) == (whole.state, whole.atoms)
    assert near.state is JoinState.PROVED
    assert near.atoms
    assert (near.rounds, whole.rounds) == (3, 2)
    assert set(near.initial) == set(whole.initial)


def test_a_near_round_fails_where_the_whole_one_did(tmp_path, monkeypatch):
    """If atoms split nothing: in the same level, so nothing on the path to the failure was left out."""
    monkeypatch.setattr(hulls.SplitAtoms, "of", lambda *_: ())
    monkeypatch.setattr(joins, "SHARE_OF_NEAR", 1)
    found = hull_search(program_of(APART, tmp_path))
    assert (found.state, found.rounds, found.level) == (JoinState.FAILED, 2, 4)
    assert found.near


@pytest.mark.usefixtures("hulls_first")
def test_a_narrowed_search_takes_the_ways_to_witnesses_too(tmp_path):
    """So that the answer names all witnesses reached up to the level of the violation."""
    program = program_of(DETOURS.replace("deadlock ok", WITNESS), tmp_path)
    outcome = search(program, JoinOptions(workers=1, join_after=0))
    assert [name for name, _ in outcome.witnesses] == ["astray"]
    assert said(outcome) == said(exact(program, ZoneOptions(workers=1)))
    assert 5 < outcome.statistics.distinct < 15


@pytest.mark.usefixtures("hulls_first")
def test_where_a_step_fails_states_of_the_next_level_are_taken(tmp_path):
    """A step and a state that fail after as many steps are both reported."""
    text = DETOURS.replace("invariant near: at < 4", STEP + "\ninvariant straight: aside < 5")
    program = program_of(text, tmp_path)
    outcome = search(program, JoinOptions(workers=1, join_after=0))
    assert said(outcome) == said(exact(program, ZoneOptions(workers=1)))
    assert sorted(said(outcome)[1]) == [("invariant", "straight", 5), ("step invariant", "near", 5)]


@pytest.mark.usefixtures("hulls_first")
@pytest.mark.parametrize("workers", [1, 2])
def test_hulls_that_are_refused_narrow_nothing(workers, tmp_path):
    """Operations not possible on open numbers, in states of hulls only, occur after a violation is shown."""
    program = program_of(REFUSED, tmp_path)
    outcome = search(program, JoinOptions(workers=workers, join_after=0))
    assert said(outcome)[1] == [("step invariant", "small", 1)]
    assert said(outcome) == said(exact(program, ZoneOptions(workers=1)))


@pytest.mark.usefixtures("hulls_first")
def test_a_search_for_all_violations_is_not_narrowed(tmp_path):
    """With `--keep-going` every zone is wanted."""
    program = program_of(DETOURS, tmp_path)
    outcome = search(program, JoinOptions(keep_going=True, workers=1, join_after=0))
    assert outcome.statistics.distinct == 100


@pytest.mark.system
@pytest.mark.usefixtures("hulls_first")
@pytest.mark.parametrize("share", [pytest.param(0, marks=pytest.mark.slow), 8])
@settings(max_examples=25, suppress_health_check=SHARED)
@given(st.integers(0, 10**6), st.booleans())
def test_narrowing_changes_no_answer(tmp_path, share, seed, symmetry):
    """Verdict, violations, lengths, witnesses and warnings of random specs are those of the exact search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins, "SHARE_OF_NEAR", share)  # 0: rounds are near wherever they can be
        # As many searches are narrowed as with more; but where a set of offsets grows, hulls have no end.
        patch.setattr(engine, "SHARE", 30)
        assert difference(spec_of(seed), tmp_path, symmetry=symmetry) == ""


def too_early(self, bound, witnesses):
    """Depths of which each is one too low: wrong."""
    return {shape: depth - 1 for shape, depth in HONEST(self, bound, witnesses).items()}


def without_witnesses(self, bound, witnesses):
    """Depths that forget the witnesses: wrong."""
    return HONEST(self, bound, ())


def first_step(control):
    """Of the steps out of a control part the first one only: wrong."""
    return list(ALL_STEPS(control))[:1]


HONEST = HullSearch.latest
ALL_STEPS = member.effects_of


@pytest.mark.usefixtures("hulls_first")
@pytest.mark.parametrize("planted", [too_early, without_witnesses, first_step])
def test_planted_errors_of_narrowing_are_detected(planted, tmp_path, monkeypatch):
    """By the comparison of the previous test, on the specs of this file."""
    stepwise = DETOURS.replace("invariant near: at < 4", STEP)
    texts = [stepwise, DETOURS.replace("deadlock ok", WITNESS)]
    assert [difference(text, tmp_path) for text in texts] == ["", ""]
    if planted is first_step:
        monkeypatch.setattr(member, "effects_of", first_step)
    else:
        monkeypatch.setattr(HullSearch, "latest", planted)
    assert any(difference(text, tmp_path) for text in texts)
