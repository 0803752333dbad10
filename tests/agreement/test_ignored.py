"""Of states that differ only in ignored variables the first is searched, the same one on both engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from spec_texts import small_spec

from agreement.both import LIMIT, differences, first_levels, program_of, said
from agreement.random_specs import random_spec
from agreement.sparse_specs import random_sparse_spec
from specchk.ir.footprint import read_by
from specchk.ir.ignored import decide_nothing
from specchk.ir.program import Program
from specchk.native import engine
from specchk.native.machine.frames import SharedWord
from specchk.native.store import PIECE, Store
from specchk.search import reference
from specchk.search.budget import Budget
from specchk.search.engine import Options, Search, Unsupported
from specchk.search.verdict import Holds, Inconclusive, Violated

RANDOMS = st.randoms(use_true_random=False)
SHARED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large)
RECORDING = """spec recording
sort Node
var at : Node -> 0..3 = { n: 0 for n in Node }
var last : Node? = none
var path : seq[Node] upto 3 = []
var many : Node -> 0..4 = { n: 0 for n in Node }
action go(n: Node):
    require at[n] < 3
    at'[n] = at[n] + 1
    last' = some(n)
    many'[n] = (many[n] + 1) % 5
    STATEMENT
invariant low: PROPERTY
reachable done: forall n in Node: at[n] == 3
deadlock ok
model two:
    Node = 2
    ignore last, path, many
"""
WIDE = """spec wide
sort Node
const boss : Node
var at : Node -> 0..2 = { n: 0 for n in Node }
var last : Node? = none
action go(n: Node):
    require at[n] < 2 and last != some(n)
    at'[n] = at[n] + 1
    last' = some(n)
action jump(n: Node):
    require at[n] == 0 and last == some(boss)
    at'[n] = 2
deadlock ok
model nine:
    Node = 9, boss = first
    ignore last
"""


def ignoring(random: Random, program: Program) -> Program | None:
    """The program with some variables ignored, None if it can have none."""
    read = {slot for prop in program.constraints for slot in read_by(prop)}
    free = [slot for slot in range(len(program.variables)) if slot not in read]
    if not free or program.temporal:
        return None
    some = random.sample(free, random.randint(1, len(free)))
    return replace(program, ignored=tuple(sorted(some)[: len(program.variables) - 1]))


def random_program(random: Random, folder: Path) -> Program:
    program = program_of(random.choice((random_spec, small_spec))(random), folder)
    assume(program is not None)
    assert program is not None
    chosen = ignoring(random, program)
    assume(chosen is not None)
    assert chosen is not None
    return chosen


@settings(max_examples=25, suppress_health_check=SHARED)
@given(random=RANDOMS, keep_going=st.booleans())
def test_engines_agree_where_variables_are_ignored(random: Random, keep_going: bool, tmp_path: Path) -> None:
    """Verdict, counts, skipped steps, coverage and trace lengths are equal."""
    program = random_program(random, tmp_path)
    assert not differences(program, keep_going=keep_going)


@pytest.mark.slow
@settings(max_examples=200, suppress_health_check=SHARED)
@given(random=RANDOMS, keep_going=st.booleans())
def test_engines_agree_on_many_specs_where_variables_are_ignored(
    random: Random, keep_going: bool, tmp_path: Path
) -> None:
    """Verdict, counts, skipped steps, coverage and trace lengths are equal."""
    program = random_program(random, tmp_path)
    assert not differences(program, keep_going=keep_going)


@settings(max_examples=6, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_engines_agree_where_collections_are_ignored(random: Random, tmp_path: Path) -> None:
    """The same for the first levels of specs of message passing."""
    program = program_of(random_sparse_spec(random), tmp_path)
    assume(program is not None)
    assert program is not None
    chosen = ignoring(random, program)
    assume(chosen is not None)
    assert chosen is not None
    try:
        compared = first_levels(chosen, symmetry=True, keep_going=True, workers=(2,), most=100)
    except Unsupported:
        return
    assert compared is None or not compared.wrong


@settings(max_examples=40, suppress_health_check=SHARED)
@given(random=RANDOMS)
def test_what_is_found_is_a_finding_of_the_whole_search(random: Random, tmp_path: Path) -> None:
    """Each violation and witness is one of all states, and no shorter; if nothing is decided, the same."""
    program = random_program(random, tmp_path)
    options = Options(LIMIT, symmetry=False, keep_going=True)
    whole = reference.search(replace(program, ignored=()), options)
    some = reference.search(program, options)
    assume(not isinstance(whole.verdict, Inconclusive))
    assert some.statistics.distinct <= whole.statistics.distinct
    a, b = said(whole, coverage=False), said(some, coverage=False)
    for kind in ("violations", "witnesses"):
        known = {finding[:-1]: finding[-1] for finding in a[kind]}
        for *name, steps in b[kind]:
            shortest = known[tuple(name)]
            assert (steps is None) == (shortest is None)
            assert steps is None or steps >= shortest
    if decide_nothing(program):
        names = ("verdict", "bound", "violations", "witnesses")
        assert {name: a[name] for name in names} == {name: b[name] for name in names}


def test_a_record_of_the_past_bounds_nothing(tmp_path: Path) -> None:
    """If ignored variables decide nothing, the verdict has no bound, and states are those without them."""
    text = RECORDING.replace("STATEMENT", "skip").replace("PROPERTY", "forall n in Node: at[n] < 4")
    program = program_of(text, tmp_path)
    assert program is not None
    assert decide_nothing(program)
    outcome = said(reference.search(program), coverage=False)
    assert (outcome["verdict"], outcome["distinct"], outcome["skipped"]) == ("Holds", 16, 9)
    assert not differences(program)


@pytest.mark.parametrize(
    ("statement", "invariant"),
    [
        ("require last != some(n)", "true"),  # a guard
        ("path' = append(path, n)", "true"),  # may have no value
        ("path' = if len(path) == 3 then [] else path ++ [n]", "last == none or last != none"),  # a property
        ("path' = if len(path) == 3 then [] else path", "true"),  # a branch that skipped states take
        ("at'[if last == none then n else n] = at[n] + 1", "true"),  # a key
        ("when many[n] == 4: skip", "true"),
        ("any k in {many[n]}: skip", "true"),
        ("let k = last else skip", "true"),
    ],
)  # fmt: skip
def test_a_use_that_decides_something_is_found(statement: str, invariant: str, tmp_path: Path) -> None:
    """Guards, choices, keys, properties, and values that may not exist."""
    text = RECORDING.replace("STATEMENT", statement).replace("PROPERTY", invariant)
    if statement.startswith("at'"):
        text = text.replace("    at'[n] = at[n] + 1\n", "", 1)
    program = program_of(text, tmp_path)
    assert program is not None
    assert not decide_nothing(program)
    assert not isinstance(reference.search(program).verdict, Holds)


def test_an_unreached_witness_is_no_violation_where_states_were_skipped(tmp_path: Path) -> None:
    """The skipped states may reach it: the verdict is inconclusive, and names it."""
    text = """spec counted
var on : bool = false
var steps : 0..4 = 0
action switch():
    require steps < 4
    on' = not on
    steps' = steps + 1
reachable far: steps == 4
deadlock ok
model small:
    ignore steps
"""
    program = program_of(text, tmp_path)
    assert program is not None
    verdict = reference.search(program).verdict
    assert isinstance(verdict, Inconclusive)
    assert "far" in verdict.reason
    whole = reference.search(replace(program, ignored=()))
    assert not isinstance(whole.verdict, Violated)
    assert dict(whole.witnesses)
    assert not differences(program)


def by_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a worker return after each piece of its level, as for a checkpoint."""
    work = Store.work

    def one_piece(store: Store, looking: Callable[[], bool]) -> None:
        end = store.control[SharedWord.WORK_END]
        store.control[SharedWord.WORK_END] = min(store.control[SharedWord.CURSOR] + 1, end)
        work(store, looking)
        store.control[SharedWord.WORK_END] = end

    monkeypatch.setattr(Store, "work", one_piece)


def test_a_resumed_search_keeps_the_first_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a search is cut off, the rest of its level is expanded in the same order."""
    program = program_of(WIDE, tmp_path)
    assert program is not None
    options = engine.NativeOptions(symmetry=False, workers=1)
    whole = engine.search(program, options)
    by_pieces(monkeypatch)
    for most in range(1000, 15_000, 3000):
        place = replace(options, checkpoint=tmp_path / str(most), checkpoint_every_s=0.0)
        half = engine.search(program, replace(place, budget=Budget(max_states=most)))
        assert isinstance(half.verdict, Inconclusive)
        resumed = engine.search(program, replace(place, checkpoint_every_s=60.0, resume=True, workers=2))
        assert said(resumed, coverage=True) == said(whole, coverage=True)


def test_a_compact_search_skips_the_same_states(tmp_path: Path) -> None:
    """Counts are equal; which known states equal the kept ones is not determined, as is reported."""
    program = program_of(WIDE.replace("deadlock ok", "action rest(): last' = last\ndeadlock ok"), tmp_path)
    assert program is not None
    options = engine.NativeOptions(symmetry=False)
    whole, compact = engine.search(program, options), engine.search(program, replace(options, compact=True))
    assert compact.statistics.levels == whole.statistics.levels
    assert compact.statistics.skipped == compact.statistics.generated - compact.statistics.distinct
    assert compact.statistics.skipped > whole.statistics.skipped
    assert any("include those to equal states" in warning for warning in compact.warnings)


def test_wide_levels_are_searched_in_the_order_of_the_reference(tmp_path: Path) -> None:
    """Which of several states is kept does not depend on threads, even for a level with work for many."""
    program = program_of(WIDE, tmp_path)
    assert program is not None
    options = Options(symmetry=False)
    expected = said(reference.search(program, options), coverage=True)
    assert max(expected["levels"]) > 2 * PIECE
    for workers in (1, 2, 4):
        found = engine.search(program, engine.NativeOptions(symmetry=False, workers=workers))
        assert said(found, coverage=True) == expected
    # Threads may happen to take the states in order, so that equal counts show little.
    several = engine.NativeOptions(workers=4)
    search = engine.NativeEngine(Search(program, several), several)
    assert len(search.store.workers) == 1
    search.release()
