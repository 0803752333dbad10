"""Hulls: they contain the joined zones, all reached states, and prove nothing false."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from hulled import has, hull_search, missing, reached
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linear_specs import linear_spec
from offset_specs import offset_spec
from test_covering import BOUNDS, lies_within, zone_of
from zone_lists import zone_with
from zoned import program_of
from zoned import search_zones as exact

from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.paths import FREE
from specchk.report.text import statistics
from specchk.search.budget import Budget
from specchk.search.verdict import Holds, HoldsWithin, Inconclusive, Violated
from specchk.symbolic.certificates.checker import CertificateChecker
from specchk.symbolic.certificates.format import CertifiedPart
from specchk.symbolic.certificates.states import CertifiedStates
from specchk.symbolic.differences.obligations import DifferenceDecider
from specchk.symbolic.joins import engine, hulls, member
from specchk.symbolic.joins.engine import JoinOptions, search
from specchk.symbolic.joins.hulls import Hull, HullPart, HullTable, sides, united
from specchk.symbolic.joins.search import JoinState
from specchk.symbolic.legality import check as check_legality
from specchk.symbolic.zones.engine import ZoneOptions
from specchk.symbolic.zones.zones import Reach, Zone, joined

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
NEAR = Reach(1, 3)


@given(BOUNDS, BOUNDS)
def test_a_hull_is_the_least_zone_that_contains_both(first, second):
    """According to Z3 it contains both, and each of its bounds is one of theirs."""
    one, other = zone_of(first, NEAR), zone_of(second, NEAR)
    if one is None or other is None:
        return
    hull = joined(one, other)
    assert lies_within(one, hull)
    assert lies_within(other, hull)
    assert wide(hull) == [max(pair) for pair in zip(wide(one), wide(other), strict=True)]
    assert (hull is one) == lies_within(other, one)
    assert joined(hull, other) is hull
    assert joined(hull, one) is hull


def wide(zone: Zone) -> list[int]:
    """The bounds of all pairs of places."""
    at = ((0, 0), *zone.classes)
    return [
        min(FREE, zone.bounds[i][j] + c - d) if zone.bounds[i][j] < FREE else FREE
        for i, c in at
        for j, d in at
    ]


@given(BOUNDS, st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(-2, 2)), max_size=3))
def test_the_sides_of_comparisons_are_a_zone_cut_up(constraints, atoms):
    """Together they are the zone, each is on its stated side, and none occurs twice."""
    zone = zone_of(constraints, None)
    if zone is None:
        return
    atoms = [atom for atom in atoms if atom[0] != atom[1]]
    parts = list(sides(zone, atoms))
    assert len({side for side, _ in parts}) == len(parts)
    hull = parts[0][1]
    for side, part in parts:
        assert lies_within(part, zone)
        hull = joined(hull, part)
        for number, (i, j, bound) in enumerate(atoms):
            at = ((0, 0), *part.classes)
            (c, d), (e, f) = at[i], at[j]
            if side >> number & 1:
                assert part.bounds[c][e] + d - f <= bound
            else:
                assert part.bounds[e][c] + f - d < -bound
    assert hull == zone


def pieces_of(zone: Zone, atoms: list[tuple[int, int, int]]) -> HullPart:
    return HullPart(atoms, {side: Hull((zone.shape, side), part) for side, part in sides(zone, atoms)})


@given(
    BOUNDS,
    st.lists(
        st.tuples(*[st.integers(0, 3)] * 2, st.integers(-3, 3)).filter(lambda a: a[0] != a[1]), max_size=4
    ),
    st.sets(st.integers(0, 15)),
)
def test_united_hulls_have_the_states_that_they_had(constraints, atoms, lacking):
    """Each offset that was in some piece is in some zone, no other is, and there are no more of them."""
    zone = zone_of(constraints, NEAR)
    if zone is None:
        return
    part = pieces_of(zone, atoms)
    part.hulls = {side: hull for side, hull in part.hulls.items() if side not in lacking}
    before, after = [hull.zone for hull in part.hulls.values()], united(part)
    assert len(after) <= len(before)
    for offsets in product(range(5), repeat=zone.size):
        assert any(has(one, offsets) for one in before) == any(has(one, offsets) for one in after)


def test_a_zone_that_comparisons_cut_up_is_united():
    """Two of one difference, three pieces; without the one between, the others have no zone together."""
    zone = zone_of([(1, 0, 3), (2, 0, 3)], Reach(4, 4))
    part = pieces_of(zone, [(1, 2, 0), (1, 2, -1)])
    assert len(part.hulls) == 3
    assert united(part) == [zone]
    (between,) = [side for side in part.hulls if side == 1]
    del part.hulls[between]
    assert len(united(part)) == 2


def spec_of(seed: int) -> str:
    random = Random(seed)
    return linear_spec(random, horizon=2) if seed % 2 else offset_spec(random, horizon=2)


def contradiction(text: str, folder) -> str:
    """The missing states or false claims of hulls, by the reference within growing horizons."""
    try:
        program = program_of(text, folder)
        check_legality(program)
    except SpecError:
        return ""
    found = hull_search(program)
    is_partial = found.state is JoinState.FAILED and (found.waiting or found.near is not None)
    if not found.is_done or not found.hulls or is_partial:
        return ""
    for horizon in (1, 2):
        outcome, states = reached(program, horizon)
        lacking = missing(program, list(found.initial), states)
        if lacking:
            return f"no hull has {lacking[0]}"
        if found.state is JoinState.PROVED and isinstance(outcome.verdict, Violated):
            kinds = {violation.kind for violation in outcome.verdict.violations}
            if kinds != {"unreachable"}:
                return f"proved, but within {horizon} there is {outcome.verdict.violations[0]}"
    return ""


@settings(max_examples=25, suppress_health_check=SHARED)
@given(st.integers(0, 10**6))
def test_hulls_contain_all_states_and_prove_nothing_false(tmp_path, seed):
    """Of random specs, with sums and without: the states that the reference reaches, and its verdicts."""
    assert contradiction(spec_of(seed), tmp_path) == ""


def least_bound(zone: Zone, other: Zone) -> Zone:
    """A join that keeps the first zone's bounds if the classes stay: wrong."""
    hull = joined(zone, other)
    if hull is zone or len(hull.bounds) != len(zone.bounds):
        return hull
    rows = tuple([tuple(map(min, own, row)) for own, row in zip(zone.bounds, hull.bounds, strict=True)])
    return zone_with(hull.shape, hull.classes, rows) if hull.classes == zone.classes else hull


def least_upper_bound(zone: Zone, other: Zone) -> Zone:
    """A join that keeps the first zone's bounds above 0: wrong."""
    hull = joined(zone, other)
    if hull is zone or len(hull.bounds) != len(zone.bounds) or hull.classes != zone.classes:
        return hull
    first = tuple(map(min, zone.bounds[0], hull.bounds[0]))
    return zone_with(hull.shape, hull.classes, (first, *hull.bounds[1:]))


class Careless(HullTable):
    """A table whose hulls are not expanded again after they grew: wrong."""

    def add(self, zone, origin):
        known = set(self.hulls)
        super().add(zone, origin)
        self.changed = {hull: None for hull in self.changed if hull not in known}


@pytest.mark.system
@pytest.mark.parametrize(
    ("planted", "seeds"),
    [
        ("all bounds of a hull are too low", range(60)),
        # Some specs have no such bound, and which zone of a hull is the first depends on the order of steps.
        ("a bound of a hull above 0 is too low", range(100, 160)),
        ("a hull that grew is not expanded", range(60)),
    ],
)
def test_planted_errors_of_hulls_are_detected(planted, seeds, tmp_path, monkeypatch):
    """By some of the specs of the previous test."""
    if "bound" in planted:
        monkeypatch.setattr(hulls, "joined", least_upper_bound if "above 0" in planted else least_bound)
    else:
        monkeypatch.setattr(member, "HullTable", Careless)
    assert any(contradiction(spec_of(seed), tmp_path) for seed in seeds)


def said(outcome):
    violations = getattr(outcome.verdict, "violations", ())
    return (
        type(outcome.verdict),
        [(v.kind, v.name, v.trace and len(v.trace.steps)) for v in violations],
        sorted(name for name, _ in outcome.witnesses),
        outcome.warnings,
    )


@pytest.mark.system
@settings(max_examples=40, suppress_health_check=SHARED)
@given(st.integers(0, 10**6), st.booleans())
def test_hulls_change_no_answer(tmp_path, seed, symmetry):
    """Verdict, violations, lengths, witnesses and warnings are those of the exact search alone."""
    try:
        program = program_of(spec_of(seed), tmp_path)
        check_legality(program)
    except SpecError:
        return
    budget = Budget(max_states=120)
    alone = exact(program, ZoneOptions(budget, symmetry, workers=1))
    beside = search(program, JoinOptions(budget, symmetry, workers=1, join_after=0))
    if Inconclusive in (type(alone.verdict), type(beside.verdict)):
        return
    assert said(alone) == said(beside)


WINDOWS = """\
spec windows
sort Node
type Offset = nat upto 3
var sent : Offset = 0
var done : Node -> Offset = { n: 0 for n in Node }
var late : Offset? = none
action send():
    require forall n in Node: sent - done[n] < 3
    sent' = sent + 1
action finish(n: Node):
    require done[n] < sent
    done'[n] = done[n] + 1
action note(n: Node):
    late' = some(done[n])
action forget():
    late' = none
invariant near: forall n in Node: done[n] <= sent and sent - done[n] <= 3
invariant noted: match late { some x: x <= sent, none: true }
reachable ahead: exists n in Node: done[n] < sent
deadlock ok
model one:
    Node = 3
"""


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers_finds_the_same_hulls(workers, tmp_path):
    """In each round all of them, after as many steps."""
    program = program_of(WINDOWS, tmp_path)
    one, other = hull_search(program), hull_search(program, workers=workers)
    assert (one.state, one.rounds, one.generated, one.atoms) == (
        other.state, other.rounds, other.generated, other.atoms,
    )  # fmt: skip
    assert set(one.initial) == set(other.initial)


VIOLATED = WINDOWS.replace("require done[n] < sent", "require done[n] <= sent")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_search_for_hulls_ends_where_real_states_fail(workers, tmp_path):
    """In its first round, long before it has all hulls; the violation is that of the exact search."""
    program = program_of(VIOLATED, tmp_path)
    found = hull_search(program, workers=workers)
    assert (found.state, found.rounds) == (JoinState.FAILED, 1)
    assert found.atoms == []
    assert found.waiting > 0
    options = JoinOptions(workers=workers, join_after=0)
    assert said(search(program, options)) == said(exact(program, ZoneOptions(workers=1)))


def test_counts_are_the_same_for_any_number_of_workers(tmp_path, monkeypatch):
    """Hulls and zones alternate between levels, not where a process has done its slice."""
    program = program_of(WINDOWS, tmp_path)
    monkeypatch.setattr(member, "SLICE", 2)
    monkeypatch.setattr(engine, "SHARE", 1)
    found = [search(program, JoinOptions(workers=count, join_after=3)).statistics for count in (1, 2, 3)]
    counts = [(one.distinct, one.generated, one.symbolic and one.symbolic.hulls) for one in found]
    assert counts == counts[:1] * 3


def test_a_budget_ends_a_search_for_hulls(tmp_path):
    """As it ends the exact one: the verdict names it."""
    options = JoinOptions(Budget(max_states=3), workers=1, join_after=0)
    verdict = search(program_of(WINDOWS, tmp_path), options).verdict
    assert isinstance(verdict, Inconclusive)
    assert verdict.budget


def test_the_output_states_which_search_has_the_proof(tmp_path):
    """Hulls and their control parts, where they prove; and none where the exact search does."""
    program = program_of(WINDOWS.replace("Node = 3", "Node = 2"), tmp_path)
    beside = search(program, JoinOptions(workers=1, join_after=0))
    alone = search(program, JoinOptions(workers=1, join_after=None))
    assert isinstance(beside.verdict, Holds | HoldsWithin)
    assert beside.statistics.symbolic is not None
    assert alone.statistics.symbolic is not None
    assert beside.statistics.symbolic.hulls >= beside.statistics.symbolic.parts > 0
    assert alone.statistics.symbolic.hulls == 0
    assert said(alone) == said(beside)


ORDERED = """\
spec ordered
type Offset = nat upto 4
var first : Offset = 0
var second : Offset = 0
var both : Offset = 0
action advance():
    first' = first + 1
action follow():
    require second < first
    second' = first
action settle():
    either:
        require second <= first
        both' = first
    or:
        require first <= second
        both' = second
action swap():
    first' = second
    second' = first
invariant one_of_them: both <= first or both <= second
invariant least: both <= max(first, second)
reachable apart: second > first
deadlock ok
model one:
    expect holds
"""


def test_hulls_are_split_where_a_property_needs_it(tmp_path):
    """A disjunction is not a hull: the proof needs the order of its parts, which its failure names."""
    program = program_of(ORDERED, tmp_path)
    found = hull_search(program)
    assert found.state is JoinState.PROVED
    assert found.rounds > 1
    assert found.atoms
    assert found.hulls > found.parts


def test_a_certificate_of_hulls_is_proved(tmp_path):
    """By the independent check, with fewer parts than the exact search has zones."""
    program = program_of(WINDOWS, tmp_path)
    of_hulls: list[CertifiedPart] = []
    of_zones: list[CertifiedPart] = []
    search(program, JoinOptions(symmetry=False, workers=1, on_fixpoint=of_hulls.extend))
    exact(program, ZoneOptions(symmetry=False, workers=1, on_fixpoint=of_zones.extend))
    assert len(of_hulls) < len(of_zones)
    states = CertifiedStates(program, of_hulls)
    for decider in (None, DifferenceDecider(states)):
        assert CertificateChecker(program, decider=decider).parts(states).problems == []


def test_witnesses_are_reached_by_real_states_after_a_proof(tmp_path):
    """Although zones of a control part were left at first: none is reported that hulls alone reach."""
    two = WINDOWS.replace("Node = 3", "Node = 2")
    text = two.replace("deadlock ok", "reachable far: sent - min(done[n] for n in Node) == 3\ndeadlock ok")
    program = program_of(text, tmp_path)
    outcome = search(program, JoinOptions(workers=1, join_after=0))
    assert isinstance(outcome.verdict, Holds)
    assert {name for name, _ in outcome.witnesses} == {"ahead", "far"}
    never = program_of(text.replace("== 3", "== 4"), tmp_path)
    verdict = search(never, JoinOptions(workers=1, join_after=0)).verdict
    assert isinstance(verdict, Violated)
    assert [(v.kind, v.name) for v in verdict.violations] == [("unreachable", "far")]


def test_the_text_of_a_proof_by_hulls_states_their_number(tmp_path):
    """And how many comparisons split them."""
    text = statistics(search(program_of(ORDERED, tmp_path), JoinOptions(workers=1, join_after=0)))
    assert any(line.startswith("proved by ") and "comparison" in line for line in text)
