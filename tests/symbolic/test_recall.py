"""Kept encodings: states with common trees share the encodings that each of them has alone."""

from __future__ import annotations

from itertools import product

import z3
from test_certificates import KINDS, fixpoint, problems
from zoned import program_of

from specchk.symbolic.certificates.format import CertifiedPart
from specchk.symbolic.certificates.states import CertifiedStates
from specchk.symbolic.induction.encode import recall
from specchk.symbolic.induction.encode.bools import conj
from specchk.symbolic.induction.encode.program import System
from specchk.symbolic.induction.encode.recall import RecallingSystem


def test_recalled_encodings_are_those_of_each_state(tmp_path):
    """States with common trees share the encodings that each of them has alone."""
    program = program_of(KINDS, tmp_path)
    recalling, alone = RecallingSystem(program), System(program)
    groups = CertifiedStates(program, fixpoint(program)).groups
    assert len(groups) > 4
    for group in groups:
        instances = recalling.instances(group.trees)
        assert repr(instances) == repr(alone.instances(group.trees, "t."))
        for prop in program.invariants:
            afters = [outcome.after for instance in instances for outcome in instance.outcomes]
            for after in (None, *afters):
                kept = recalling.kept(prop, group.trees, after)
                assert repr(kept) == repr(conj(alone.holds(prop, group.trees, after)))


BY_CHANCE = """\
spec again
type Offset = nat upto 3
var n : 0..1 = 1
var m : 0..1 = 0
action lower():
    require m == 0
    n' = 0
    m' = 1
action raise():
    n' = 1
deadlock ok
invariant never: not (n == 1 and m == 1)
model one:
    expect violates never
"""


def test_a_value_that_was_there_by_chance_is_assigned_in_other_states(tmp_path):
    """Where `raise` is encoded first, it assigns what is there; in other states it does not."""
    program = program_of(BY_CHANCE, tmp_path)
    lacking = [CertifiedPart((1, 0), ()), CertifiedPart((0, 1), ())]
    assert problems(program, lacking) == ["`raise` from control part 2 leads to a state that is not listed"]


ENTRIES = """\
spec entries
type Offset = nat upto 3
type Who = 0..1
var n : Who -> 0..1 = { w: 1 for w in Who }
var m : Who -> Offset = { w: 0 for w in Who }
var last : 0..1 = 0
action lower(w: Who):
    n'[w] = 0
action raise(w: Who):
    n'[w] = 1
action both(w: Who, v: Who):
    require w != v and m[w] <= m[v]
    when n[w] == 0:
        n'[w] = 1
        n'[v] = 0
    else:
        n'[w] = n[v]
    m'[w] = m[v] + 1
action all_up():
    n' = { w: 1 - n[w] for w in Who }
    last' = n[1]
deadlock ok
model one:
    expect holds
"""


def test_entries_of_maps_are_recalled_alone(tmp_path):
    """An instance is not encoded again if other entries differ, and has the entries of each state."""
    program = program_of(ENTRIES, tmp_path)
    parts = [
        CertifiedPart(((n, k), (None, None), last), ()) for n in (0, 1) for k in (0, 1) for last in (0, 1)
    ]
    recalling, alone = RecallingSystem(program), System(program)
    made = []
    for group in CertifiedStates(program, parts).groups:
        instances = recalling.instances(group.trees)
        assert repr(instances) == repr(alone.instances(group.trees, "t."))
        made += instances
    assert len({id(one.faults) for one in made}) < len(made) // 2


ITEMS = """\
spec items
type Offset = nat upto 3
type Who = 0..2
var n : Who -> 0..1 = { w: 1 for w in Who }
var m : Who -> Offset = { w: 0 for w in Who }
var table : 0..1 -> 0..1 = { k: k for k in 0..1 }
action swap():
    n'[0] = n[1]
deadlock ok
invariant each: forall w in Who: n[w] == 0 or table[m[w]] == 1
invariant in_order:
    forall w in Who, v in Who: w < v and n[w] == 1 implies m[w] <= m[v] and table[m[w]] == n[v]
invariant one: exists w in Who: n[w] == 1 and (table[m[w]] == 1 or m[w] < m[0])
invariant two: exists w in Who, v in Who: w != v and table[m[w]] < n[v] and m[v] < m[w]
invariant dominates: exists w in Who: forall v in Who: m[v] <= m[w] and table[m[v]] == 0
invariant plain: table[m[0]] == 1
model one:
    expect holds
"""


def test_a_quantifier_is_recalled_by_its_items(tmp_path, monkeypatch):
    """Its items are encoded once for all states that agree in what they read; its meaning is the same."""
    made = []
    predicate = recall._predicate
    monkeypatch.setattr(recall, "_predicate", lambda *args: made.append(args) or predicate(*args))
    program = program_of(ITEMS, tmp_path)
    parts = [CertifiedPart((n, (None,) * 3, table), ())
             for n in product((0, 1), repeat=3) for table in product((0, 1), repeat=2)]  # fmt: skip
    recalling, alone = RecallingSystem(program), System(program)
    solver = z3.Solver()
    for group in CertifiedStates(program, parts).groups:
        for prop in program.invariants:
            kept, unclear = conj(alone.holds(prop, group.trees)), alone.unclear(prop, group.trees)
            assert solver.check(xor(recalling.kept(prop, group.trees), kept)) == z3.unsat
            assert solver.check(xor(recalling.unclear(prop, group.trees), unclear)) == z3.unsat
    of_each = [args for args in made if args[0] is recalling._items[id(program.invariants[0])].parts[0][0]]
    assert len(of_each) == 3 * (1 + 4)  # n[w] alone where that is 0, else the table with it


def xor(a, b):
    return z3.Xor(z3.BoolVal(a) if isinstance(a, bool) else a, z3.BoolVal(b) if isinstance(b, bool) else b)
