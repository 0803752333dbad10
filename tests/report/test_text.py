"""Text reports, read in tests/golden: verdict first, only what changed, the next command last."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from specchk.compile.instantiate import instantiate
from specchk.explore.scenario import run_scenario
from specchk.explore.simulate import Walks, simulate
from specchk.lang.frontend import CheckedSpec, check
from specchk.report.diff import changes
from specchk.report.text import render, scenario_lines
from specchk.search.engine import Options
from specchk.search.reference import search
from specchk.search.verdict import Outcome

SPEC = """\
spec broker
sort Replica
const MaxOffset : int
const leader : Replica
type Entry = { epoch: 0..3, offset: nat upto MaxOffset }
type Message = Fetch(from: Replica, offset: nat upto MaxOffset) | Ping
var log : Replica -> seq[Entry] upto 3 = { r: [] for r in Replica }
var high : Replica -> nat upto MaxOffset = { r: 0 for r in Replica }
var wire : bag[Message] upto 2 = {}
var isr : set[Replica] = Replica
var next : Entry = { epoch: 0, offset: 0 }
action append_record():
    require len(log[leader]) < 3
    log'[leader] = append(log[leader], next)
    next'.offset = next.offset + 1
action fetch(f: Replica):
    require f != leader and card(wire) < 1
    wire' = add(wire, Fetch(from: f, offset: len(log[f])))
action serve():
    any m in wire:
        when m is Fetch:
            match_served'[leader] = true
        wire' = remove(wire, m)
action shrink(f: Replica):
    require f in isr and f != leader
    isr' = isr - {f}
    high'[f] = 1
var match_served : Replica -> bool = { r: false for r in Replica }
invariant high_within_log: forall r in Replica: high[r] <= len(log[r])
    and (r in isr or high[r] == 0 or len(log[r]) > 0)
step invariant isr_grows: isr subset isr'
reachable served: match_served[leader]
reachable never_seen: next.epoch == 3
model two:
    Replica = 2, leader = first, MaxOffset = 2
model calm extends two:
    actions append_record, fetch, serve
    properties high_within_log, served
model far extends two:
    properties never_seen
scenario walk on two:
    append_record()
    fetch(r2)
    refused fetch(r2)
    serve()
    assert wire == {} and high[r1] == 1
"""


@pytest.fixture(scope="module")
def checked() -> CheckedSpec:
    return check("broker.spec", SPEC)


def outcome(checked: CheckedSpec, model: str, options: Options = Options()) -> Outcome:
    return search(instantiate(checked, model).program, options)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("model", ["two", "calm", "far"])
def test_reports_read_as_they_did(
    checked: CheckedSpec, golden: Callable[[str, str], None], model: str, width: int
) -> None:
    """A violation, a horizon and an unreachable witness, at two widths."""
    text = render(outcome(checked, model), width, "specchk run broker.spec")
    golden(f"report_{model}_{width}.txt", text)


def test_every_violation_is_reported_when_asked_for(
    checked: CheckedSpec, golden: Callable[[str, str], None]
) -> None:
    """--keep-going: each property with its own trace."""
    golden("report_keep_going.txt", render(outcome(checked, "two", Options(keep_going=True)), 100))


def test_a_simulation_names_its_seed(checked: CheckedSpec, golden: Callable[[str, str], None]) -> None:
    """The report can be reproduced."""
    walked = simulate(instantiate(checked, "two").program, Walks(11, 20, 10))
    golden("report_simulation.txt", render(walked, 80))


def test_a_failed_scenario_shows_how_far_it_went(
    checked: CheckedSpec, golden: Callable[[str, str], None]
) -> None:
    """The line, the reason, the trace, the blame."""
    instance = instantiate(checked, "two", properties=["high_within_log"])
    result = run_scenario(instance, checked.spec.scenarios["walk"])
    golden("report_scenario.txt", "\n".join(scenario_lines(instance.program, result, 80)))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_of_words_is_wider_than_the_terminal(checked: CheckedSpec, width: int) -> None:
    """Wrapped lines keep to the width; only a single word may be longer."""
    text = render(outcome(checked, "two"), width)
    indented = [line for line in text.splitlines() if line.startswith("  ") and not line.startswith("  0")]
    assert all(len(line) <= width or len(line.split()) <= 2 for line in indented), text


def test_what_changed_names_each_place_and_nothing_else(checked: CheckedSpec) -> None:
    """Applying the changes of every step explains every difference between its states."""
    program = instantiate(checked, "two").program
    violations = getattr(outcome(checked, "two", Options(keep_going=True)).verdict, "violations", ())
    for violation in violations:
        states = violation.trace.states if violation.trace is not None else ()
        for before, after in pairwise(states):
            named = {change.variable for change in changes(program, before, after)}
            differ = {v.name for v, x, y in zip(program.variables, before, after, strict=True) if x != y}
            assert named == differ
        assert changes(program, states[0], states[0]) == [] if states else True


FOLDING = """spec fold
var stock : 0..3 = 0
var watched : 0..3 = 1
var forgotten : 0..3 = 2
var spare : bool = false
action add():
    require stock < 3
    stock' = stock + 1
deadlock ok
invariant few: stock < 2 and watched < 3
model small:
    expect holds
"""


def folded(spec: str) -> list[str]:
    """The lines of the first state of a counterexample."""
    outcome = search(instantiate(check("fold.spec", spec)).program)
    text = render(outcome)
    return [line.strip() for line in text.split("0  initial state\n")[1].split("\n  1  ")[0].splitlines()]


def test_what_never_changes_and_does_not_fail_is_folded():
    """In one paragraph with its values; what the property reads stays in its place."""
    assert folded(FOLDING) == [
        "stock = 0", "watched = 1", "unchanged, and irrelevant to the failure: forgotten = 2, spare = false",
    ]  # fmt: skip


def test_a_single_variable_is_not_worth_folding():
    """It would take as many lines."""
    assert folded(FOLDING.replace("watched < 3", "watched < 3 and not spare")) == [
        "stock = 0", "watched = 1", "forgotten = 2", "spare = false",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("", "the spec has no action"),
        ("action up():\n    require x < 0\n    x' = 1\n", "no action is enabled here"),
    ],
)
def test_a_deadlock_says_why_nothing_happens(action: str, why: str) -> None:
    """A spec without actions is distinguished from one whose actions are not enabled."""
    outcome = search(instantiate(check("stuck.spec", f"spec stuck\nvar x : 0..3 = 0\n{action}")).program)
    assert f"  {why}; if this deadlock is intended" in render(outcome)
