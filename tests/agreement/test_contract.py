"""The contract of all engines: the promises of `search.engine`, for every engine in the table and a toy.

The toy is an engine by one more line in the table; that it keeps the contract shows what an engine needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from agreement import toy_engine
from agreement.both import of_seed, program_of
from agreement.open_specs import open_spec
from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.meaning.step import Stepper
from specchk.meaning.undefined import Faulty
from specchk.search import engine
from specchk.search.budget import Budget, Progress
from specchk.search.engine import Options, Unsupported
from specchk.search.engines import ENGINES, Entry
from specchk.search.findings import NOTHING_TO_CHECK
from specchk.search.reference import search as by_meaning
from specchk.search.verdict import INTERRUPTED, Inconclusive, Outcome, Trace, Violated

SPECS = Path(__file__).parents[2] / "spec"
TOY = Entry("toy", toy_engine.__name__, "Options", "the tests' own")
# Without symmetry and with horizons all search the same graph; Spark takes over at once.
OWN = {
    "native": {"workers": 2},
    "symbolic": {"workers": 1, "horizons": True},
    "spark": {"handover": 1, "partitions": 2},
}
ZONES = (
    "symbolic"  # whose states are zones: it has the others' depths, lengths and verdicts, not their counts
)
MODELS = (
    ("two_round_fetch.spec", "small"),
    ("examples/two_phase_commit.spec", None),
    ("kafka/truncate_to_hw.spec", "loss"),
    ("kafka/ledger.spec", "b16"),
    ("delivery.spec", "b13"),
)
COUNTDOWN = """spec countdown
var n : 0..3 = 3
action tick():
    require n > 0
    n' = n - 1
invariant low: n <= 3
"""
SQUARE = """spec square
type Offset = nat upto 40
var a : Offset = 0
var b : Offset = 0
action left():
    a' = a + 1
action right():
    b' = b + 1
deadlock ok
invariant small: a <= 1000
"""
RISING = """spec rising
var n : {kind} = 0
action up():
    require n < 6
    n' = n + 1
reachable high: n == 9
deadlock ok
"""
SENDING = """spec sending
sort Node
var sent : set[Node] = {}
var acked : set[Node] = {}
action send(n: Node):
    require n not in sent
    sent' = sent union {n}
def all_low() = forall n in acked: n not in sent
invariant kept:
    forall n in acked: n in sent
    forall m in Node, n in sent: (let got = {n} intersect acked: forall x in got: x == m) and n in sent
step invariant after: forall n in acked': n in sent and n in sent'
step invariant grows: forall n in sent: n in sent'
invariant by_definition: all_low() and not (exists n in acked: n in sent)
deadlock ok
model two:
    Node = 2
"""
OVERFULL = """spec overfull
sort Node
var a : set[Node] = {}
var b : set[Node] = {}
var full : Node -> 0..1 = { n: 0 for n in Node }
action one(n: Node):
    require card(a) < 2 and n not in a
    a' = a union {n}
action two(n: Node):
    require n in a and card(a) == 2 and b == {}
    b' = b union {n}
    a' = a - {n}
action three(n: Node):
    require b != {} and n in a
    full'[n] = full[n] + 2
deadlock ok
model four:
    Node = 4
"""
Explored = Callable[..., Outcome]


def parameter(entry: Entry) -> object:
    """Spark is of the part `system`, which has a session anyway; starting one takes 10 s of CPU time."""
    return pytest.param(entry, id=entry.name, marks=[pytest.mark.system] if entry.name == "spark" else [])


@pytest.fixture(params=map(parameter, [*ENGINES, TOY]))
def entry(request: pytest.FixtureRequest) -> Entry:
    found: Entry = request.param
    return found


@pytest.fixture(scope="module")
def spark() -> Iterator[None]:
    """A session shared by the searches of this module: starting one takes seconds."""
    from specchk.spark.session import session

    with session("local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "512m"}):
        yield


@pytest.fixture
def explored(entry: Entry, request: pytest.FixtureRequest) -> Explored:
    """A search of the engine under test."""
    if entry.name == "spark":
        request.getfixturevalue("spark")

    def search(program: Program, on_progress: Any = None, **common: Any) -> Outcome:
        module = toy_engine if entry is TOY else entry.load()
        options = {**common, "symmetry": False, **OWN.get(entry.name, {})}
        outcome: Outcome = module.search(program, getattr(module, entry.options)(**options), on_progress)
        return outcome

    return search


def model(file: str, name: str | None) -> Program:
    return instantiate(check(str(SPECS / file)), name).program


def of_text(text: str, folder: Path) -> Program:
    found = program_of(text, folder)
    assert found is not None
    return found


def said(outcome: Outcome, *, counts: bool) -> dict[str, Any]:
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    found: dict[str, Any] = {
        "verdict": type(outcome.verdict).__name__,
        "bound": getattr(outcome.verdict, "bound", None),
        "violations": sorted((v.kind, v.name, v.trace and len(v.trace.steps)) for v in violations),
        "witnesses": sorted((name, len(trace.steps)) for name, trace in outcome.witnesses),
    }
    if counts:
        found |= {
            "statistics": replace(outcome.statistics, seconds=0.0), "coverage": outcome.coverage,
            "warnings": [text for text in outcome.warnings if "did the whole search" not in text],
        }  # fmt: skip
    return found


def agrees(entry: Entry, outcome: Outcome, program: Program, **common: Any) -> None:
    """Check that the outcome is the reference engine's, and its traces are behaviours."""
    expected = by_meaning(program, Options(symmetry=False, **common))
    counts = entry.name != ZONES
    assert said(outcome, counts=counts) == said(expected, counts=counts)
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    for trace in [*(v.trace for v in violations), *(trace for _, trace in outcome.witnesses)]:
        if trace is not None:
            assert is_behaviour(program, trace)


def is_behaviour(program: Program, trace: Trace) -> bool:
    stepper = Stepper(program)
    pairs = zip(trace.states, trace.states[1:], strict=False)
    return all(after in [state for _, _, state in stepper.successors(before)] for before, after in pairs)


@pytest.mark.parametrize("keep_going", [False, True])
@pytest.mark.parametrize(("file", "name"), MODELS)
def test_an_engine_says_of_a_model_what_the_reference_says(
    file: str, name: str | None, entry: Entry, explored: Explored, *, keep_going: bool
) -> None:
    """Verdict, counts, coverage, warnings, lengths of traces."""
    program = model(file, name)
    try:
        outcome = explored(program, keep_going=keep_going)
    except Unsupported:
        assert entry.name in ("native", "spark")
        return
    if entry.name == ZONES and isinstance(outcome.verdict, Inconclusive):
        assert not outcome.verdict.budget  # what zones cannot answer, they say
        return
    agrees(entry, outcome, program, keep_going=keep_going)


@pytest.mark.parametrize("seed", range(6))
def test_an_engine_says_of_random_specs_what_the_reference_says(
    seed: int, tmp_path: Path, entry: Entry, explored: Explored
) -> None:
    """Half of them have choices within horizons and may deadlock."""
    program = of_seed(seed, tmp_path) if seed % 2 else program_of(open_spec(Random(seed)), tmp_path)
    assert program is not None
    expected = by_meaning(program, Options(Budget(max_states=3000), symmetry=False))
    if isinstance(expected.verdict, Inconclusive):
        return
    try:
        outcome = explored(program)
    except Unsupported:
        return
    if not (entry.name == ZONES and isinstance(outcome.verdict, Inconclusive)):
        agrees(entry, outcome, program)


def test_a_budget_leaves_no_verdict(tmp_path: Path, explored: Explored) -> None:
    """The verdict is not "holds", and the levels are those of the counted states."""
    outcome = explored(of_text(SQUARE, tmp_path), budget=Budget(max_states=200))
    assert outcome.verdict == Inconclusive("the limit of 200 states (--max-states) was reached", budget=True)
    assert sum(outcome.statistics.levels) == outcome.statistics.distinct >= 200
    assert outcome.statistics.depth == len(outcome.statistics.levels) > 1


def test_an_interruption_leaves_what_was_counted(
    tmp_path: Path, explored: Explored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every engine reports its counts if it is interrupted during its third level."""
    monkeypatch.setattr(engine, "REPORT_EVERY_S", 0.0)

    def interrupt(progress: Progress) -> None:
        if progress.depth >= 3:
            raise KeyboardInterrupt

    outcome = explored(of_text(SQUARE, tmp_path), interrupt)
    assert outcome.verdict == Inconclusive(INTERRUPTED, budget=False)
    assert outcome.statistics.depth >= 3
    assert outcome.statistics.distinct >= 6


def test_no_initial_state_is_no_verdict(tmp_path: Path, explored: Explored) -> None:
    """Every property would hold vacuously."""
    text = COUNTDOWN.replace("var n : 0..3 = 3", "var n : 0..3\ninit: n > 3")
    assert explored(of_text(text, tmp_path)).verdict == NOTHING_TO_CHECK


def test_a_deadlock_is_found_by_all(tmp_path: Path, entry: Entry, explored: Explored) -> None:
    """The only end of the countdown is reached with the least number of steps."""
    program = of_text(COUNTDOWN, tmp_path)
    outcome = explored(program)
    agrees(entry, outcome, program)
    assert isinstance(outcome.verdict, Violated)
    (violation,) = outcome.verdict.violations
    assert (violation.kind, violation.trace and len(violation.trace.steps)) == ("deadlock", 3)


def test_constraints_that_leave_no_initial_state_give_no_verdict(
    entry: Entry, explored: Explored, tmp_path: Path
) -> None:
    """The initial states are checked, but no step is: `holds` would be about nothing."""
    found = of_text(COUNTDOWN + "constraint gone: n < 3\n", tmp_path)
    verdict = explored(found).verdict
    reason = "every initial state is outside `gone`, so no step was searched"
    assert verdict == Inconclusive(reason, budget=False)
    broken = replace(found, constraints=(*found.constraints, *found.invariants), invariants=found.constraints)
    assert isinstance(explored(broken).verdict, Violated)  # it is `gone`, as an invariant


@pytest.mark.parametrize(
    ("kind", "more", "bounds"),
    [("nat upto 2", "", ("n upto 2",)), ("0..6", "constraint near: n < 2\n", ("near",)), ("0..6", "", ())],
)
def test_a_witness_that_is_not_reached_names_the_bounds_of_the_search(
    entry: Entry, explored: Explored, kind: str, more: str, bounds: tuple[str, ...], tmp_path: Path
) -> None:
    """There may be a witness beyond a horizon or a constraint."""
    verdict = explored(of_text(RISING.format(kind=kind) + more, tmp_path)).verdict
    assert isinstance(verdict, Violated)
    assert [(v.kind, v.name, v.bounds) for v in verdict.violations] == [("unreachable", "high", bounds)]


def test_a_forall_over_a_set_that_is_always_empty_is_reported(
    entry: Entry, explored: Explored, tmp_path: Path
) -> None:
    """It claims nothing; one that checks an element in a single state does, and so does an `exists`."""
    found = of_text(SENDING, tmp_path)
    warnings = [text.partition(": ")[2] for text in explored(found).warnings]
    assert warnings == [
        "in `kept` no element of `acked` is ever checked", "in `kept` no element of `got` is ever checked",
        "in `after` no element of `acked'` is ever checked",
        "in `by_definition` no element of `acked` is ever checked",
    ]  # fmt: skip
    verdict = explored(found, strict=True).verdict
    assert isinstance(verdict, Violated)
    assert len(verdict.violations) == 4


HOURS = """spec hours
var hour : 0..2 = 0
action tick():
    hour' = (hour + 1) % 3
"""
CLOCK = """spec clock
refines hours with { hour = GIVEN }
var time : 0..8 = 0
action wait():
    time' = (time + 1) % 9
"""


@pytest.mark.parametrize("hour", ["0", "time // 9", "time // 3"])
def test_a_refinement_under_which_nothing_changes_is_reported(
    entry: Entry, explored: Explored, tmp_path: Path, hour: str
) -> None:
    """Any spec is refined by one that never changes; a single step that changes something is enough."""
    if not entry.is_temporal:
        pytest.skip("refuses refinements")
    (tmp_path / "hours.spec").write_text(HOURS)
    found = of_text(CLOCK.replace("GIVEN", hour), tmp_path)
    warnings = [text.partition(": ")[2] for text in explored(found).warnings]
    expected = ["no step is a step of `hours`, whose variables never change"] if hour != "time // 3" else []
    assert warnings == expected
    assert isinstance(explored(found, strict=True).verdict, Violated) == bool(expected)


@pytest.mark.parametrize("symmetry", [False, True])
def test_a_step_without_a_value_names_its_arguments(
    entry: Entry, explored: Explored, tmp_path: Path, symmetry: bool
) -> None:
    """The action alone would leave open which instance it is; under symmetry, in the state that is shown."""
    found = of_text(OVERFULL, tmp_path)
    outcome = by_meaning(found, Options()) if symmetry else explored(found)
    assert isinstance(outcome.verdict, Violated)
    (violation,) = outcome.verdict.violations
    assert violation.trace is not None
    assert violation.blame is not None
    with pytest.raises(Faulty) as raised:
        Stepper(found).successors(violation.trace.last)
    assert violation.blame.bindings == (("n", f"n{raised.value.args_[0] + 1}"),)
