"""Decision trees: a zone reaches the results that its own runs of the code would give."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from offset_specs import offset_spec
from zoned import program_of, state_of, zone_engine

from laws.sources import ROOT
from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.meaning.moves import Moves
from specchk.meaning.open_numbers import Term
from specchk.meaning.paths import ForkPath
from specchk.meaning.undefined import Undefined
from specchk.search.budget import Budget
from specchk.search.engine import explore
from specchk.symbolic.recording import reads, trees
from specchk.symbolic.recording.solver import LinearSolver
from specchk.symbolic.zones.engine import FIRST_REACH, ZoneOptions
from specchk.symbolic.zones.expand import Expander
from specchk.symbolic.zones.precision import Abstraction
from specchk.symbolic.zones.zones import Shapes

SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def zones_of(program, most):
    """Some zones of a program, and its answer."""
    options = ZoneOptions(Budget(max_states=most), workers=1, keep_going=True, symmetry=False)
    engine = zone_engine(program, options)
    explore(engine)
    return list(engine.workers.alone.covered.zones())[: 2 * most]


def by_trees(program, found):
    """The successors of each zone, and the possible values of its properties."""
    expander = Expander(program, Abstraction(FIRST_REACH, LinearSolver(), {}), None, horizons=False)
    out = []
    for number, zone in enumerate(found):
        arrived = []

        def arrive(index, zone, taken, arrived=arrived):
            arrived.append((taken.action, taken.args, zone))
            return True

        part = expander.expand([(number, zone)], arrive, frozenset())
        said = {(one.kind, one.name) for _, one in [*part.states, *part.steps] if one.kind != "deadlock"}
        out.append((set(arrived), said, part.counts.generated))
    return out


def by_runs(program, found):
    """The same by running everything on every zone."""
    path = ForkPath()
    moves, shapes = Moves(program, path), Shapes(program)
    out = []
    for zone in found:
        state = state_of(shapes, zone, path)
        arrived, said, count = set(), set(_of_state(moves, state, zone.bounds)), 0
        for move in list(moves.moves(state, zone.bounds, moves.instances)):
            args = tuple(None if isinstance(arg, Term) else arg for arg in move.args)
            if isinstance(move.after, Undefined):
                said.add(("undefined", program.actions[move.action].name))
                continue
            count += 1
            arrived.add((move.action, args, shapes.zone(shapes.split(move.after), move.rows, FIRST_REACH)))
            env = moves.properties.environment(state, move.after)
            for prop, test in moves.properties.steps:
                answers = list(moves.ways((prop, test), env, move.rows))
                said |= {_failure(prop, answer) for answer in answers if answer is not True}
        out.append((arrived, said, count))
    return out


def _of_state(moves, state, rows):
    env = moves.properties.environment(state)
    for prop, test in moves.properties.invariants:
        answers = moves.ways((prop, test), env, rows)
        yield from [_failure(prop, answer) for answer in answers if answer is not True]
    for prop, test in moves.properties.witnesses:
        for answer in moves.ways((prop, test), env, rows):
            if answer is True:
                yield "reached", prop.name
            elif isinstance(answer, Undefined):
                yield "undefined", prop.name


def _failure(prop, answer):
    return ("undefined" if isinstance(answer, Undefined) else prop.kind), prop.name


def differ(program, most):
    found = zones_of(program, most)
    pairs = zip(by_trees(program, found), by_runs(program, found), strict=True)
    return [zone for zone, (one, other) in zip(found, pairs, strict=True) if not _same(one, other)]


def _same(one, other):
    """A failure of a step invariant hides another kind of one in the trees' answer, and nothing else."""
    return one[0] == other[0] and one[2] == other[2] and one[1] <= other[1] and _names(one) == _names(other)


def _names(answer):
    return {name for _, name in answer[1]}


@settings(max_examples=20, suppress_health_check=SHARED, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_a_zone_comes_to_the_leaves_that_its_own_runs_give(seed, tmp_path):
    """Random specs: the same successors, with as many paths to them, whichever zone came first."""
    assert not differ(program_of(offset_spec(Random(seed)), tmp_path), 40)


def test_the_zones_of_the_replication_model_come_to_their_own_leaves():
    """The zones of a real spec, 40 of them over few shapes."""
    file = ROOT / "spec" / "replication.spec"
    program = instantiate(check(str(file)), "three_epochs", {}).program
    assert not differ(program, 40)


def _off_by_one(monkeypatch):
    class Off(trees.Ask):
        def __init__(self, up, side, i, j, bound):
            super().__init__(up, side, i, j, bound + 1)

    monkeypatch.setattr(trees, "Ask", Off)


def _one_way(monkeypatch):
    monkeypatch.setattr(trees.Recorder, "choose", lambda self, count: 0)


def _learns_too_much(monkeypatch):
    assume = ForkPath._assume
    monkeypatch.setattr(trees.Recorder, "_assume", lambda self, i, j, bound: assume(self, i, j, bound - 1))


def _reads_too_little(monkeypatch):
    instance = reads.PartNumbers.instance
    # The last number is that of a place of a map, or of a variable.
    monkeypatch.setattr(reads.PartNumbers, "instance", lambda *given: lambda n: instance(*given)(n)[:-1])


@pytest.mark.system
@pytest.mark.parametrize("plant", [_off_by_one, _one_way, _learns_too_much, _reads_too_little])
def test_a_planted_bug_in_a_tree_is_found(plant, monkeypatch, tmp_path):
    """Each makes a zone of some random spec reach other leaves."""
    programs = [program_of(offset_spec(Random(seed)), tmp_path) for seed in range(12)]
    found = [zones_of(program, 40) for program in programs]
    plant(monkeypatch)
    assert any(_is_wrong(*one) for one in zip(programs, found, strict=True))


def _is_wrong(program, found):
    try:
        pairs = zip(by_trees(program, found), by_runs(program, found), strict=True)
        return not all(_same(one, other) for one, other in pairs)
    except Exception:
        return True
