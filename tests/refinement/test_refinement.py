"""Refinements that hold, and false ones, each with its reason; on all engines that check them."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from specchk.explore.simulate import Walks, simulate
from specchk.ir.nodes import Quantifier
from specchk.ir.program import Program
from specchk.ir.walk import inside
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.evaluate import Evaluator
from specchk.meaning.properties import Refining
from specchk.meaning.values import universe
from specchk.native import engine as native
from specchk.native.engine import NativeOptions
from specchk.report.json import run_json
from specchk.report.text import render
from specchk.search.budget import Budget
from specchk.search.verdict import Holds, HoldsWithin, Outcome, Violated, Violation
from specchk.symbolic import legality
from specchk.symbolic.induction.prove import ProofOptions, prove
from temporal.checked import Runs, alone, on_reference, program_of, verdict

# An hour, and who has seen the clock.
CLOCK = """
spec clock
sort Who
type Face = enum { day, night }
const Top : int
var h : 0..Top = 0
var seen : set[Who] = {}
var face : Face = day
def after(x: int): int = (x + 1) % (Top + 1)
action tick():
    h' = after(h)
    face' = if face == day then night else day
action look(w: Who):
    require w not in seen
    seen' = seen union {w}
"""
# The same with minutes, which the other spec does not see.
MINUTES = """
sort Person
const Last : int = 2
var h : 0..Last = {start}
var m : 0..1 = 0
var told : Person -> bool = {{ p: false for p in Person }}
var odd : bool = false
action minute():
    require m < 1
    m' = m + 1
action hour():
    require m == 1
    m' = 0
    h' = {hour}
    odd' = not odd
action tell(p: Person):
    require {guard}
    told'[p] = {told}
refines clock with {{
    Who = Person, Top = Last, h = h, seen = {{ p for p in Person if told[p] }},
    face = if {odd} then clock.night else clock.day
}}
{fair}
model m:
    Person = 2
"""
FINE = {
    "start": "0", "hour": "(h + 1) % (Last + 1)", "guard": "not told[p]", "told": "true", "odd": "odd",
    "fair": "",
}  # fmt: skip


@pytest.fixture(params=[on_reference, pytest.param(alone, marks=pytest.mark.slow)])
def run(request: pytest.FixtureRequest) -> Runs:
    engine: Runs = request.param
    return engine


def minutes(folder: Path, clock: str = CLOCK, **changes: str) -> Program:
    (folder / "clock.spec").write_text(clock, encoding="utf-8")
    return program_of("spec minutes\n" + MINUTES.format(**(FINE | changes)), folder)


def failed(outcome: Outcome) -> Violation:
    assert isinstance(outcome.verdict, Violated), outcome.verdict
    (violation,) = outcome.verdict.violations
    assert (violation.kind, violation.name) == ("refinement", "clock")
    return violation


def test_steps_that_the_other_spec_has_or_does_not_see_refine_it(run: Runs, tmp_path: Path) -> None:
    outcome = run(minutes(tmp_path))
    assert isinstance(outcome.verdict, Holds)
    assert "  refines: clock" in render(outcome)
    assert run_json(outcome, 0)["checked"]["refinements"] == ["clock"]


def test_a_wrong_beginning_is_no_refinement(run: Runs, tmp_path: Path) -> None:
    violation = failed(run(minutes(tmp_path, start="1")))
    assert violation.trace is not None
    assert violation.trace.steps == ()
    assert violation.blame is not None
    assert violation.blame.text == "`h` of `clock` is 1 here, and begins with 0"


def test_a_step_that_is_none_of_the_other_spec_is_no_refinement(run: Runs, tmp_path: Path) -> None:
    """The report has both states of the other spec, and the effect of each of its actions."""
    outcome = run(minutes(tmp_path, hour="(h + 2) % (Last + 1)"))
    step = failed(outcome).abstract
    assert step is not None
    assert step.before is not None
    assert (step.before[0], step.after[0]) == (0, 2)
    tick, look = step.obstacles
    assert tick.action == "tick()"
    assert tick.differs == (("h", "1", "2"),)
    assert look.action == "look(p1)"
    text = render(outcome)
    assert "as a step of `clock`, from\n       h = 0\n" in text
    assert "to\n       h: 0 -> 2\n" in text
    assert "tick() makes `h` 1, not 2" in text
    found = run_json(outcome, 10)["violations"][0]["abstract"]
    assert found["before"] == {"h": 0, "seen": [], "face": "day"}
    assert found["after"]["h"] == 2
    assert found["actions"][0]["differs"] == [{"variable": "h", "action": "1", "image": "2"}]


def test_a_step_without_a_guard_of_the_other_spec_is_no_refinement(run: Runs, tmp_path: Path) -> None:
    """No action removes what was seen, and those that read it are not the nearest."""
    step = failed(run(minutes(tmp_path, guard="true", told="not told[p]"))).abstract
    assert step is not None
    assert [blame.text for one in step.obstacles for blame in one.guards] == []
    whole = {one.action: one.differs for one in step.obstacles}
    assert whole["look(p2)"] == (("seen", "{p1, p2}", "{}"),)


def test_a_variable_that_does_not_move_along_is_no_refinement(run: Runs, tmp_path: Path) -> None:
    """`face` is mapped to a constant, so it does not change with the hour."""
    step = failed(run(minutes(tmp_path, odd="false"))).abstract
    assert step is not None
    assert step.obstacles[0].differs == (("face", "night", "day"),)


def test_a_variable_that_is_not_mapped_is_rejected(tmp_path: Path) -> None:
    clock = CLOCK + "var m : 0..1 = 0\n"
    with pytest.raises(SpecError) as caught:
        minutes(tmp_path, clock)
    (found,) = caught.value.diagnostics
    assert found.code == "S603"
    assert "`m`" in found.message


FAIR = CLOCK + "fair tick\n"


def test_fairness_that_follows_from_ours_is_refined(run: Runs, tmp_path: Path) -> None:
    outcome = run(minutes(tmp_path, FAIR, fair="fair minute, hour"))
    assert isinstance(outcome.verdict, Holds)
    assert outcome.statistics.symmetry == "off (temporal properties)"


def test_fairness_that_was_dropped_is_no_refinement(run: Runs, tmp_path: Path) -> None:
    """Without fairness of `hour` the clock may stop, and the other spec's may not."""
    violation = failed(run(minutes(tmp_path, FAIR, fair="fair minute")))
    assert violation.trace is not None
    assert violation.trace.loop == len(violation.trace.steps) == 1
    assert violation.blame is not None
    assert violation.blame.text == "fair tick"
    assert violation.notes == (
        "`clock` is fair tick: enabled from state 1 on, and no step of the loop takes it",
    )
    assert [point.condition for point in violation.fairness] == ["fair minute"]


def test_no_fairness_at_all_is_no_refinement_of_a_fair_spec(run: Runs, tmp_path: Path) -> None:
    violation = failed(run(minutes(tmp_path, FAIR)))
    assert violation.trace is not None
    assert violation.trace.steps == ()


STRONG = """
spec strong
var on : bool = false
var done : bool = false
action flip():
    require not done
    on' = not on
action finish():
    require on and not done
    done' = true
"""
WEAK_ENOUGH = (
    STRONG.replace("spec strong", "spec ours")
    + """
{fair}
refines strong with {{ on = on, done = done }}
deadlock ok
model m:
    expect holds
"""
)


def of_strong(folder: Path, theirs: str, ours: str) -> Program:
    (folder / "strong.spec").write_text(f"{STRONG}{theirs}\n", encoding="utf-8")
    return program_of(WEAK_ENOUGH.format(fair=ours), folder)


@pytest.mark.parametrize(
    ("theirs", "ours", "holds"),
    [
        ("strong fair finish", "strong fair finish", True),
        ("strong fair finish", "fair flip, finish", False),
        ("fair finish", "fair flip, finish", True),
        ("fair finish", "fair flip", True),
        ("fair finish, flip", "fair finish", False),
        ("fair finish", "", True),
    ],
)
def test_weak_and_strong_fairness_are_told_apart(
    run: Runs, theirs: str, ours: str, holds: bool, tmp_path: Path
) -> None:
    """`finish` is enabled repeatedly, but not from some state on, while `flip` repeats."""
    outcome = run(of_strong(tmp_path, theirs, ours))
    # At rest with `on`, weak fairness owes `finish`; that is where nothing is fair.
    rests = theirs == "fair finish" and ours == ""
    assert isinstance(outcome.verdict, Violated if rests or not holds else Holds)


def test_a_value_that_the_mapping_has_no_room_for_is_undefined(run: Runs, tmp_path: Path) -> None:
    """Also above a horizon of the other spec: no step of ours is left out because of it."""
    clock = CLOCK.replace("0..Top", "nat upto 1").replace("(x + 1) % (Top + 1)", "x + 1")
    outcome = run(minutes(tmp_path, clock))
    assert isinstance(outcome.verdict, Violated)
    assert [(v.kind, v.name) for v in outcome.verdict.violations] == [("undefined", "clock")]


def test_a_fault_of_the_other_spec_is_one_of_the_claim(run: Runs, tmp_path: Path) -> None:
    clock = CLOCK.replace("(x + 1) % (Top + 1)", "(x + 1) % (Top - 2)")
    outcome = run(minutes(tmp_path, clock))
    assert isinstance(outcome.verdict, Violated)
    assert [(v.kind, v.name) for v in outcome.verdict.violations] == [("undefined", "clock")]


@pytest.mark.parametrize(("chosen", "kind"), [("other", "holds"), ("clock", "violated")])
def test_a_model_selects_a_refinement_by_its_name(run: Runs, chosen: str, kind: str, tmp_path: Path) -> None:
    """One that it leaves out is named in the warnings."""
    (tmp_path / "clock.spec").write_text(CLOCK, encoding="utf-8")
    text = MINUTES.format(**(FINE | {"start": "1", "fair": "invariant other: m < 2"}))
    outcome = run(program_of(f"spec minutes\n{text}    properties {chosen}\n", tmp_path))
    assert verdict(outcome) == kind
    is_left_out = "not checked (omitted by the model): clock" in outcome.warnings
    assert is_left_out == (chosen == "other")


def test_compiled_code_finds_false_steps_and_unfair_loops(tmp_path: Path) -> None:
    """The other tests run on it, too, where slow tests do."""
    step = failed(alone(minutes(tmp_path, hour="(h + 2) % (Last + 1)"))).abstract
    assert step is not None
    violation = failed(alone(minutes(tmp_path, FAIR, fair="fair minute")))
    assert violation.notes != ()


def test_a_wrong_beginning_is_found_after_a_checkpoint(tmp_path: Path) -> None:
    """A resumed search has no initial states, and reports them nevertheless."""
    program = minutes(tmp_path, start="1")
    place = NativeOptions(workers=1, keep_going=True, checkpoint=tmp_path / "kept", checkpoint_every_s=0.0)
    cut = native.search(program, replace(place, budget=Budget(max_states=10)))
    assert failed(cut).trace is not None
    assert failed(native.search(program, replace(place, resume=True))).trace == failed(cut).trace


def test_walks_check_steps_and_beginnings_and_warn_of_fairness(tmp_path: Path) -> None:
    wrong = simulate(minutes(tmp_path, hour="(h + 2) % (Last + 1)"), Walks(walks=8, steps=20, seed=1))
    assert failed(wrong).abstract is not None
    begins = simulate(minutes(tmp_path, start="1"), Walks(walks=1, steps=1, seed=1))
    assert failed(begins).trace is not None
    fair = simulate(minutes(tmp_path, FAIR), Walks(walks=1, steps=1, seed=1))
    assert "not checked by walks: fairness of clock" in fair.warnings


def test_the_symbolic_engine_refuses_refinements(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        legality.check(minutes(tmp_path))
    assert {found.code for found in caught.value.diagnostics} == {"S702"}


PUT = """
spec put
sort Key
var last : 0..3 = 0
var at : Key -> 0..2 = { k: 0 for k in Key }
var left : bool = false
action put(p: 0..3, k: Key, q: 0..2):
    require p > q
    any l in bool:
        require l or left
        last' = p
        at'[k] = q
        left' = l
"""
PUTS = """
spec puts
sort Place
var last : 0..3 = 0
var at : Place -> 0..2 = { k: 0 for k in Place }
var left : bool = false
refines put with { Key = Place, last = last, at = at, left = left }
model m:
    Place = 2
"""


def test_names_that_are_assigned_as_they_are_are_not_tried_one_by_one(tmp_path: Path) -> None:
    """Their values are those of the second state; on all pairs of states the steps are the other spec's."""
    (tmp_path / "put.spec").write_text(PUT, encoding="utf-8")
    program = program_of(PUTS, tmp_path)
    (claim,) = program.refinements
    listed = [part.local.name for part in inside(claim.body) if isinstance(part, Quantifier)]
    assert listed == ["k"]
    predicate, steps = Evaluator(3).compile(claim.body), Refining(claim, 3)
    states = list(product(*(universe(variable.type) for variable in program.variables)))
    for before, after in product(states, repeat=2):
        env = [*before, *after, *([0] * claim.locals)]
        assert bool(predicate(list(env))) == steps.allows(env)


COUNT = """
spec count
const Most : int
type N = nat upto Most
var n : N = 0
action up():
    n' = n + 1
"""
TWO = """
spec two
const Most : int = 3
type N = nat upto Most
var a : N = {start}
var b : N = 0
action first():
    require a == b
    a' = a + {by}
action second():
    require a > b
    b' = b + 1
invariant close: a == b or a == b + 1
refines count with {{ Most = Most, n = a }}
model m:
    expect holds
"""


@pytest.mark.parametrize(
    ("start", "by", "proved"), [("0", "1", ("close", "count")), ("0", "2", None), ("1", "1", None)]
)
def test_a_proof_covers_the_steps_for_numbers_of_any_size(
    start: str, by: str, proved: tuple[str, ...] | None, tmp_path: Path
) -> None:
    """One query for each action, and the unchanged initial states."""
    (tmp_path / "count.spec").write_text(COUNT, encoding="utf-8")
    program = program_of(TWO.format(start=start, by=by), tmp_path)
    proof = prove(program, ProofOptions())
    if proved is not None:
        assert isinstance(proof.verdict, Holds), proof.verdict
        assert isinstance(on_reference(program).verdict, HoldsWithin)
    else:
        assert not isinstance(proof.verdict, Holds)
        assert isinstance(on_reference(replace(program, invariants=())).verdict, Violated)
