"""Errors that other checkers of temporal properties had, each with its number in their trackers."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from specchk.explore.simulate import Walks, simulate
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.step import Stepper
from specchk.search.budget import Budget
from specchk.search.verdict import Holds, Kept, Violated
from temporal.checked import ENGINES, Runs, alone, program_of, together, verdict, violated

# A ring of three places, a way out of it to 9, and a switch beside it that goes round on its own.
RING = """
spec ring
var s : 0..9 = 0
var on : bool = false
action go():
    require s < 3
    s' = (s + 1) % 3
action out():
    require s < 3
    s' = 9
action flip():
    on' = not on
deadlock ok
"""
MODEL = "model m:\n    expect holds\n"


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
def run(request: pytest.FixtureRequest) -> Runs:
    """An engine; `tests/spark/test_traps.py` uses others."""
    engine: Runs = request.param
    return engine


def test_tlaplus_971_a_violated_property_fails_on_every_number_of_workers(run: Runs, tmp_path: Path) -> None:
    program = program_of(RING + "liveness l: eventually s == 9\nfair go, flip\n" + MODEL, tmp_path)
    violation = violated(run(program))["l"]
    assert violation.trace is not None
    assert (violation.trace.loop, len(violation.trace.steps)) == (0, 5)


def test_tlaplus_1037_a_finite_prefix_is_judged_by_fairness(run: Runs, tmp_path: Path) -> None:
    """Every prefix of a behaviour avoids the goal for a while; none that is fair does forever."""
    text = RING + "liveness l: s == 0 leadsto s == 9\nfair go, out, flip\n"
    assert verdict(run(program_of(text + MODEL, tmp_path))) == "holds"


def test_tlaplus_201_fairness_is_judged_on_steps(run: Runs, tmp_path: Path) -> None:
    """All states of the ring enable `jump`; whether it is taken inside is a matter of its steps."""
    text = RING + "action jump():\n    require s == 1\n    s' = {}\nliveness l: eventually s == 9\n"
    text += "fair go, flip\nstrong fair jump\n" + MODEL
    assert verdict(run(program_of(text.format(9), tmp_path))) == "holds"
    violation = violated(run(program_of(text.format(2), tmp_path)))["l"]
    jump = next(point for point in violation.fairness if "jump" in point.condition)
    assert jump.kept is Kept.TAKEN


def test_tlaplus_59_symmetry_is_off(run: Runs, tmp_path: Path) -> None:
    """Renamed, the behaviour in which one waits forever is one in which everyone is served."""
    text = """
spec served
sort Client
var turn : Client? = none
action serve(c: Client):
    require turn != some(c)
    turn' = some(c)
liveness l: forall c in Client: always eventually turn == some(c)
fair serve{}
model m:
    Client = 3
"""
    outcome = run(program_of(text.format(""), tmp_path))
    assert outcome.statistics.symmetry == "off (temporal properties)"
    assert violated(outcome)["l"].blame is not None
    # An instance of its own for each is fair to each: weakly it is disabled when it has its turn.
    assert verdict(run(program_of(text.format("(c)"), tmp_path))) == "holds"


def test_tlaplus_839_a_constraint_makes_nothing_fair(run: Runs, tmp_path: Path) -> None:
    """The only fair step leaves the constraint: no counterexample, and a warning that there can be none."""
    text = RING.replace("deadlock ok", "constraint near: s < 9\ndeadlock ok")
    text += "liveness l: eventually s == 7\nfair out\n"
    outcome = run(program_of(text + MODEL, tmp_path))
    assert verdict(outcome) == "holds_within"
    assert outcome.statistics.owed_at_horizon == 6
    assert any("no behaviour within near is fair" in warning for warning in outcome.warnings)
    assert verdict(run(program_of(text + MODEL, tmp_path), strict=True)) == "violated"


@pytest.mark.parametrize("run", [alone, together])
def test_tlaplus_22_a_resumed_search_checks_time(run: Runs, tmp_path: Path) -> None:
    """On the native engine, which has checkpoints."""
    program = program_of(RING + "liveness l: eventually s == 9\nfair go, flip\n" + MODEL, tmp_path)
    place = tmp_path / "kept"
    first = run(program, checkpoint=place, checkpoint_every_s=0.0, budget=Budget(max_states=4))
    assert verdict(first) == "inconclusive"
    assert "l" in violated(run(program, checkpoint=place, resume=True))


@pytest.mark.parametrize("run", [alone, together])
def test_tlaplus_544_no_way_to_search_omits_time_in_silence(run: Runs, tmp_path: Path) -> None:
    program = program_of(RING + "liveness l: eventually s == 9\nfair go, flip\n" + MODEL, tmp_path)
    assert "l" in violated(run(program, compact=True))
    outcome = simulate(program, Walks(1, 3, 10, Budget()))
    assert "not checked by walks: liveness l" in outcome.warnings


def test_tlaplus_1440_an_undefined_predicate_is_a_violation(run: Runs, tmp_path: Path) -> None:
    """In the initial state, and where only a behaviour that owes something meets it."""
    text = RING + "liveness l: 1 // s == 1 leadsto s == 9\nfair go\n"
    violation = violated(run(program_of(text + MODEL, tmp_path)))["l"]
    assert violation.kind == "undefined"
    assert violation.trace is not None
    assert violation.trace.steps == ()
    later = RING + "liveness l: s == 1 leadsto 1 // (s - 2) == 5\nfair go\n"
    trace = violated(run(program_of(later + MODEL, tmp_path)))["l"].trace
    assert trace is not None
    assert len(trace.steps) == 2


@pytest.mark.parametrize("formula", [
    "eventually s == 1 or eventually s == 2", "not eventually s == 9", "always s < 9", "s == 1",
    "eventually (s == 1 leadsto s == 2)", "always (s == 1 implies eventually s == 2)",
    "exists n in 0..3: eventually s == n", "forall n in 0..s: eventually s == n",
    "s == 0 leadsto eventually s == 1",
])  # fmt: skip
def test_tlaplus_354_no_other_formula_is_accepted(formula: str, tmp_path: Path) -> None:
    """A disjunction would need a tableau; everything that is not checked is rejected with its place."""
    with pytest.raises(SpecError) as caught:
        program_of(RING + f"liveness l: {formula}\n" + MODEL, tmp_path)
    assert {found.code for found in caught.value.diagnostics} == {"S601"}
    assert all(found.span is not None and found.hint for found in caught.value.diagnostics)


def test_tlaplus_699_safety_is_reported_first_and_time_is_not_forgotten(run: Runs, tmp_path: Path) -> None:
    text = RING + "liveness l: eventually s == 9\ninvariant small: s < 2\nfair go, flip\n" + MODEL
    outcome = run(program_of(text, tmp_path))
    assert list(violated(outcome)) == ["small"]
    assert "not checked, because the search ended before: liveness l" in outcome.warnings
    assert set(violated(run(program_of(text, tmp_path), keep_going=True))) == {"small", "l"}


def test_tla_rs_59_a_part_of_a_component_is_judged_by_its_own_states(run: Runs, tmp_path: Path) -> None:
    """`out` is disabled at 2, but what never reaches 2 enables it always."""
    text = RING.replace("require s < 3\n    s' = 9", "require s < 2\n    s' = 9")
    text += "action back():\n    require s == 1\n    s' = 0\n"
    text += "liveness l: always eventually (s == 2 or s == 9)\nfair out, go\n"
    assert verdict(run(program_of(text + MODEL, tmp_path))) == "holds"
    assert "l" in violated(run(program_of(text.replace("out, go", "go") + MODEL, tmp_path)))


def test_tla_rs_62_a_behaviour_may_stutter_forever(run: Runs, tmp_path: Path) -> None:
    """Without fairness the initial state is a rest, and `eventually always` is no less checked."""
    text = RING + "liveness l: eventually s == 1\nliveness k: eventually always s == 1\n" + MODEL
    found = violated(run(program_of(text, tmp_path)))
    assert set(found) == {"l", "k"}
    assert all(v.trace is not None and v.trace.loop == 0 and not v.trace.steps for v in found.values())


def test_tla_rs_65_a_step_that_changes_nothing_is_no_step(run: Runs, tmp_path: Path) -> None:
    """It neither takes the fair action nor enables it."""
    text = """
spec still
var s : 0..1 = 0
var on : bool = false
action put(v: 0..1):
    s' = v * 0
action flip():
    on' = not on
liveness l: eventually s == 1
fair put, flip
"""
    violation = violated(run(program_of(text + MODEL, tmp_path)))["l"]
    kept = {point.condition: point.kept for point in violation.fairness}
    assert kept == {"fair put": Kept.DISABLED, "fair flip": Kept.TAKEN}
    assert any(
        "fairness of `put` has no effect" in w for w in run(program_of(text + MODEL, tmp_path)).warnings
    )


def test_tla_rs_66_every_arrow_of_a_loop_is_a_step(run: Runs, tmp_path: Path) -> None:
    program = program_of(RING + "liveness l: eventually s == 9\nfair go, flip\n" + MODEL, tmp_path)
    trace = violated(run(program))["l"].trace
    assert trace is not None
    assert trace.loop is not None
    stepper = Stepper(program)
    for before, after in pairwise(trace.states):
        assert after in [state for _, _, state in stepper.successors(before)]
    assert trace.states[trace.loop] == trace.last


def test_tla_rs_88_nothing_is_mapped_by_its_name_alone(tmp_path: Path) -> None:
    """The variable `on` of the other spec has the name of one of ours."""
    other = "spec other\nvar s : 0..9 = 0\nvar on : bool = false\n"
    (tmp_path / "other.spec").write_text(other, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        program_of(RING + "refines other with { s = s }\n" + MODEL, tmp_path)
    assert [found.code for found in caught.value.diagnostics] == ["S603"]


def test_fizzbee_212_contradictory_ends_do_not_both_hold(run: Runs, tmp_path: Path) -> None:
    text = (
        RING + "liveness l: eventually always on\nliveness k: eventually always not on\nfair flip\n" + MODEL
    )
    assert set(violated(run(program_of(text, tmp_path)))) == {"l", "k"}


def test_apalache_2985_a_counter_that_may_grow_may_also_rest(run: Runs, tmp_path: Path) -> None:
    text = """
spec counter
var n : nat upto 4 = 0
action up():
    n' = n + 1
liveness l: n == 1 leadsto n == 0
"""
    trace = violated(run(program_of(text + MODEL, tmp_path)))["l"].trace
    assert trace is not None
    assert (trace.loop, len(trace.steps)) == (1, 1)
    # With fairness it grows past every horizon, and no behaviour within one is a counterexample.
    assert verdict(run(program_of(text + "fair up\n" + MODEL, tmp_path))) == "holds_within"


def test_hw_cbmc_2007_two_conditions_prove_nothing_false(run: Runs, tmp_path: Path) -> None:
    """Each of the two is met in a separate part of the ring, and one loop meets both."""
    text = RING.replace("require s < 3\n    s' = 9", "require s == 2\n    on' = not on\n    s' = 0")
    text += "liveness l: always eventually s == 9\nfair go\nstrong fair out\nstrong fair flip\n" + MODEL
    outcome = run(program_of(text, tmp_path))
    violation = violated(outcome)["l"]
    assert [point.kept for point in violation.fairness] == [Kept.TAKEN] * 3
    assert isinstance(outcome.verdict, Violated)
    assert not isinstance(outcome.verdict, Holds)
