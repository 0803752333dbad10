"""Covering: a zone is dropped only if each of its states was visited, according to Z3."""

from __future__ import annotations

from random import Random

import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from zone_lists import closed

from specchk.meaning.paths import FREE
from specchk.symbolic.zones import covering
from specchk.symbolic.zones.covering import Covered
from specchk.symbolic.zones.zones import Reach, Zone, zone_at

PLACES = 4
BOUNDS = st.lists(
    st.tuples(st.integers(0, PLACES), st.integers(0, PLACES), st.integers(-2, 2)), min_size=1, max_size=7
)
REACHES = st.sampled_from([None, Reach(0, 1), Reach(1, 3)])


def zone_of(constraints, reach):
    """The zone of offsets that satisfy constraints; None if there are none."""
    rows = [[0 if i == j else FREE for j in range(PLACES + 1)] for i in range(PLACES + 1)]
    rows[0] = [0] * (PLACES + 1)
    for i, j, bound in constraints:
        rows[i][j] = min(rows[i][j], bound)
    rows = closed(rows)
    if any(rows[i][i] < 0 for i in range(PLACES + 1)):
        return None
    return zone_at((), [(place, 0) for place in range(1, PLACES + 1)], rows, reach)


def formula(zone: Zone):
    offsets = [z3.IntVal(0), *z3.Ints("x1 x2 x3 x4")]
    at = ((0, 0), *zone.classes)
    said = []
    for p, (i, c) in enumerate(at):
        for q, (j, d) in enumerate(at):
            if zone.bounds[i][j] < FREE >> 1:
                said.append(offsets[p] - offsets[q] <= zone.bounds[i][j] + c - d)
    return z3.And(said)


def lies_within(one, other):
    solver = z3.Solver()
    solver.add(formula(one), z3.Not(formula(other)))
    return solver.check() == z3.unsat


def _law(first, second, reach):
    one, other = zone_of(first, reach), zone_of(second, reach)
    if one is None or other is None:
        return
    covered = Covered(reach)
    assert covered.add(other)
    assert covered.has(one) == lies_within(one, other)
    assert covered.has(other)


@settings(max_examples=120, deadline=None)
@given(first=BOUNDS, more=BOUNDS, is_part=st.booleans(), reach=REACHES)
def test_a_zone_is_covered_exactly_where_it_lies_within_one_that_was_seen(first, more, is_part, reach):
    """Of any two zones, and of one and a part of it."""
    _law([*first, *more] if is_part else more, first, reach)


def test_many_zones_of_one_shape_are_asked_one_by_one():
    """A zone that is within the last of them is covered, also when the limits have grown since."""
    zones = [zone_of([(1, 2, -step)], None) for step in range(1, 6)]
    covered = Covered(None)
    assert [covered.add(zone) for zone in reversed(zones)] == [True] * 5
    assert covered.has(zone_of([(1, 2, -3), (3, 1, 0)], None))
    assert not covered.has(zone_of([(1, 3, -3)], None))


def test_zones_in_groups_are_asked_as_those_of_one():
    """Some hundred zones, small ones first so that few are dropped, cover what one of them covers alone."""
    random = Random(3)
    zones = [zone for zone in (zone_of(_constraints(random), Reach(1, 3)) for _ in range(1500)) if zone]
    half = len(zones) // 2
    together, alone = Covered(Reach(1, 3)), []
    for zone in sorted(zones[:half], key=lambda zone: sum(map(sum, zone.bounds))):
        together.add(zone)
        alone.append(Covered(Reach(1, 3)))
        alone[-1].add(zone)
    (seen,) = together._seen.values()
    assert len(seen.groups) > 8
    asked = [(together.has(zone), any(one.has(zone) for one in alone)) for zone in zones[half:]]
    assert set(asked) == {(True, True), (False, False)}


def test_a_zone_of_many_places_is_read_as_often_as_one_of_few(monkeypatch):
    """Each reading unpacks the whole matrix: one for each entry would take the fourth power of the places."""
    readings = []
    read = Zone.bounds
    monkeypatch.setattr(Zone, "bounds", property(lambda zone: readings.append(zone) or read.fget(zone)))
    counts = []
    for places in (3, 30):
        rows = [[0 if i == j else FREE for j in range(places + 1)] for i in range(places + 1)]
        rows[0] = [0] * (places + 1)
        for place in range(1, places):
            rows[place][place + 1] = -1
        readings.clear()
        assert Covered(None).add(
            zone_at((), [(place, 0) for place in range(1, places + 1)], closed(rows), None)
        )
        counts.append(len(readings))
    assert counts[0] == counts[1]


def _constraints(random):
    places = range(PLACES + 1)
    return [(random.choice(places), random.choice(places), random.randint(-2, 2)) for _ in range(7)]


def _reversed(monkeypatch):
    mask = covering._mask
    monkeypatch.setattr(covering, "_mask", lambda zone, limits: ~mask(zone, limits))


def _order_only(monkeypatch):
    monkeypatch.setattr(covering, "_limits", lambda zone, reach: {0})


@pytest.mark.parametrize("plant", [_reversed, _order_only])
def test_a_wrong_mask_is_noticed(plant, monkeypatch):
    """The law has power: `x1 < x2` is not all that `x1 <= x2` implies."""
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _law([(1, 2, 0)], [(1, 2, -1)], None)
