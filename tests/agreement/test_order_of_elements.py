"""Symmetry where the order of elements matters: the findings with it are the findings without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from zoned import search_zones

from agreement.both import program_of
from specchk.ir.program import Program
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.coverage import ONE_ORDER
from specchk.search.engine import Options
from specchk.search.symmetry import Symmetry
from specchk.search.verdict import Holds, Outcome, Violated
from specchk.symbolic.zones import engine as zones

SPEC = """spec ordered
sort Node
var v : Node -> 0..1 = {{ n: 0 for n in Node }}
action up(n: Node):
    require {guard}
    v'[n] = 1
{prop}
deadlock ok
model m:
    Node = 2
    expect holds
"""
ALL_ZERO = "forall m in Node: v[m] == 0"
# Where the first element decides there is a value, where the second one does there is none.
PARTIAL = "exists k in Node: 10 // (1 - v[k]) == 10"
DECISIVE = [
    (ALL_ZERO, f"invariant i: {PARTIAL}"),
    (ALL_ZERO, "invariant i: not (forall n in Node: 10 // (1 - v[n]) != 10)"),
    (ALL_ZERO, f"constraint c: {PARTIAL}"),
    (f"{ALL_ZERO} or not ({PARTIAL})", "invariant i: true"),
]
HARMLESS = [
    (ALL_ZERO, "invariant i: forall n in Node: 10 // (2 - v[n]) > 0"),
    (ALL_ZERO, "invariant i: forall n in Node: v[n] == 0 implies 10 // (1 - v[n]) == 10"),
]


def reference_search(program: Program, **way: bool) -> Outcome:
    """The outcome of the reference engine."""
    return reference.search(program, Options(**way))  # type: ignore[arg-type]


def native_search(program: Program, **way: bool) -> Outcome:
    """The outcome of the native engine."""
    return native.search(program, native.NativeOptions(workers=1, **way))  # type: ignore[arg-type]


def zone_search(program: Program, **way: bool) -> Outcome:
    """The outcome of the symbolic engine."""
    return search_zones(program, zones.ZoneOptions(workers=1, **way))  # type: ignore[arg-type]


ENGINES = {"reference": reference_search, "native": native_search, "zones": zone_search}


@pytest.mark.parametrize(("guard", "prop"), DECISIVE)
def test_a_fault_behind_the_item_that_decides_is_found(guard: str, prop: str, tmp_path: Path) -> None:
    """All renamings of a state must be searched if some have a value and others none."""
    program = program_of(SPEC.format(guard=guard, prop=prop), tmp_path)
    assert program is not None
    for outcome in (
        reference.search(program, Options()),
        native.search(program, native.NativeOptions(workers=1)),
        search_zones(program, zones.ZoneOptions(workers=1)),
    ):
        assert isinstance(outcome.verdict, Violated), outcome.statistics.engine
        assert [v.kind for v in outcome.verdict.violations] == ["undefined"]


@pytest.mark.parametrize(("guard", "prop"), HARMLESS)
def test_order_that_changes_no_answer_costs_no_symmetry(guard: str, prop: str, tmp_path: Path) -> None:
    """A `forall` that must be true is a violation in any order."""
    program = program_of(SPEC.format(guard=guard, prop=prop), tmp_path)
    assert program is not None
    assert Symmetry(program).order == 2


LOOKUPS = """spec lookups
sort Node
type Id = 0..2
var id : Node -> Id = {{ n: 0 for n in Node }}
var last : Node? = none
var known : map[Id, Id] = {{ 1: 1 }}
action take(n: Node, i: 1..2):
    require id[n] == 0
    id'[n] = i
    last' = some(n)
action check():
    {statements}
reachable r: ({prop}) == true
deadlock ok
model m:
    Node = 3
"""
GUARDED = [
    ("skip", "forall n in Node: id[n] in known and known[id[n]] == 1"),
    ("skip", "exists n in Node: not (id[n] in known implies known[id[n]] != 1)"),
    ("skip", "exists n in Node: not (id[n] not in known or known[id[n]] != 1)"),
    ("skip", "exists n in Node: (if id[n] in known then known[id[n]] else 0) == 1"),
    ("skip", "exists n in Node: get(known, id[n], 0) == 1"),
    ("skip", "exists n in Node: (let i = id[n]: i in keys(known) and known[i] == id[n])"),
    ("skip", "exists n in Node: (exists k in known: known[k] == id[n])"),
    ("skip", "last != none and (exists n in Node: n == get(last))"),
    ("skip", "exists n in Node: last == none or get(last) == n"),
    ("require 2 in known; require forall n in Node: id[n] == known[2]", "true"),
    ("require last != none; require exists n in Node: n == get(last)", "true"),
    ("any k in known:\n        require exists n in Node: id[n] == known[k]", "true"),
    ("when last == none:\n        skip\n    else:\n        require exists n in Node: n == get(last)", "true"),
]
UNGUARDED = [
    ("skip", "exists n in Node: (id[n] in known or id[n] == 0) and known[id[n]] == 1"),
    ("skip", "exists n in Node: id[n] in known implies (exists m in Node: known[id[m]] == 1)"),
    ("skip", "exists n in Node: id[n] not in known and known[id[n]] == 1"),
    ("skip", "exists n in Node: last == none and n == get(last)"),
    (
        "either:\n        require last != none\n    or:\n        require exists n in Node: n == get(last)",
        "true",
    ),
]


@pytest.mark.parametrize(("statements", "prop"), GUARDED)
def test_a_guarded_lookup_costs_no_symmetry(statements: str, prop: str, tmp_path: Path) -> None:
    """Where a condition around it shows that it has a value, it has one for every order of elements."""
    program = program_of(LOOKUPS.format(statements=statements, prop=prop), tmp_path)
    assert program is not None
    assert Symmetry(program).order == 6
    on, off = (reference.search(program, Options(symmetry=symmetry)) for symmetry in (True, False))
    assert on.verdict == off.verdict
    assert on.statistics.distinct < off.statistics.distinct


@pytest.mark.parametrize(("statements", "prop"), UNGUARDED)
def test_a_lookup_with_a_condition_that_shows_nothing_is_named(
    statements: str, prop: str, tmp_path: Path
) -> None:
    """It may be undefined for one order only: all are searched, and the place is in the report."""
    text = LOOKUPS.format(statements=statements, prop=prop)
    program = program_of(text, tmp_path)
    assert program is not None
    partial = "known[id[" if "known[id[" in statements + prop else "get(last)"
    line = next(n for n, line in enumerate(text.splitlines(), 1) if partial in line)
    shown = reference.search(program, Options()).statistics.symmetry
    assert shown.startswith("off (a quantifier that may be undefined at ")
    assert f":{line}:" in shown
    assert shown.endswith("distinguishes the elements of Node)")


PARTS = """spec parts
sort Node
var v : Node -> 0..1 = {{ n: 0 for n in Node }}
action up(n: Node):
    require forall m in Node: v[m] == 0
    v'[n] = 1
action down():
    v' = {{ n: 0 for n in Node }}
invariant i: exists n in Node: {part}
model m:
    Node = 2
"""
# In the representative the first element has 0 and decides; only in a renamed state another part is reached.
BEHIND = [
    "(v[n] == 1 implies n in Node)",
    "(v[n] == 0 or (forall m in (filter k in Node: v[k] == 1): m == n))",
]


@pytest.mark.parametrize("part", BEHIND)
@pytest.mark.parametrize("engine", ["reference", "native", "zones"])
def test_a_part_that_only_another_order_reaches_is_no_violation(
    part: str, engine: str, tmp_path: Path
) -> None:
    """With --strict nothing is reported that is not a violation without symmetry."""
    program = program_of(PARTS.format(part=part), tmp_path)
    assert program is not None
    found = [ENGINES[engine](program, symmetry=symmetry, strict=True).verdict for symmetry in (True, False)]
    assert found == [Holds(), Holds()]


@pytest.mark.parametrize("part", BEHIND)
def test_a_warning_shows_that_one_order_was_tried(part: str, tmp_path: Path) -> None:
    """Without --strict symmetry is kept, and the warning does not claim more than was searched."""
    program = program_of(PARTS.format(part=part), tmp_path)
    assert program is not None
    for search in (reference_search, native_search):
        on, off = (search(program, symmetry=symmetry).warnings for symmetry in (True, False))
        assert off == ()
        assert len(on) == 1
        assert ONE_ORDER in on[0]


def test_a_part_that_no_order_reaches_is_a_violation_with_symmetry(tmp_path: Path) -> None:
    """Where all elements are evaluated, symmetry stays on, and what is never true is reported."""
    text = PARTS.format(part="true").replace(
        "exists n in Node: true", "forall n in Node: v[n] > 1 implies false"
    )
    program = program_of(text, tmp_path)
    assert program is not None
    for search in (reference_search, native_search):
        outcome = search(program, symmetry=True, strict=True)
        assert isinstance(outcome.verdict, Violated)
        assert [v.kind for v in outcome.verdict.violations] == ["vacuous"]
        assert outcome.statistics.symmetry.startswith("on")
