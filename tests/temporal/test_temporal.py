"""Temporal properties: budgets, vacuity, fairness of instances, horizons, and their output in files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from specchk.cli.main import cli
from specchk.lang.text.diagnostics import SpecError
from specchk.meaning.behaviours.fairness import FairSteps
from specchk.report.itf import trace_itf
from specchk.report.read import Unreadable, trace_file
from specchk.search.liveness import lassos
from specchk.search.looping import replayed
from specchk.search.replay import ReplayFailed
from temporal.checked import ENGINES, Runs, limited, on_reference, program_of, verdict, violated

LAMP = """
spec lamp
var n : nat upto 3 = 0
var on : bool = false
action count():
    n' = n + 1
action flip():
    on' = not on
liveness lit: n == 1 leadsto n == 0
fair flip
model m:
    expect holds
"""
QUEUE = """
spec queue
sort Client
var waits : Client -> bool = {{ c: false for c in Client }}
action ask(c: Client):
    require not waits[c]
    waits'[c] = true
action serve(c: Client, how: bool):
    require waits[c]
    waits'[c] = false
liveness served: forall c in Client: waits[c] leadsto not waits[c]
fair serve{}
model m:
    Client = 2
"""


MANY = """
spec many
type M = 0..71
var todo : set[M] = {{}}
action add(m: M):
    require m in {{0, 71}} and m not in todo
    todo' = todo union {{m}}
action handle(m: M):
    require m in todo
    todo' = todo - {{m}}
fair handle({})
liveness done: 71 in todo leadsto 71 not in todo
deadlock ok
model m:
    expect holds
"""


@pytest.mark.parametrize("run", ENGINES)
def test_a_budget_that_ends_the_check_leaves_no_verdict(run: Runs, tmp_path: Path) -> None:
    """The states are all found and safe; their obligations are unknown."""
    program = program_of(QUEUE.format("(c, _)"), tmp_path)
    assert verdict(run(program)) == "holds"
    assert verdict(run(program, budget=limited(4))) == "inconclusive"


@pytest.mark.parametrize(("kept", "expected"), [
    ("", "violated"), ("(c, _)", "holds"), ("(c, how)", "holds"), ("(_, how)", "violated"),
    ("(_, _)", "violated"),
])  # fmt: skip
def test_fairness_of_instances_is_of_the_named_parameters(kept: str, expected: str, tmp_path: Path) -> None:
    """Fair as a whole, an action may always serve the same client."""
    assert verdict(on_reference(program_of(QUEUE.format(kept), tmp_path))) == expected


@pytest.mark.parametrize("wrong", ["(how, c)", "(c)", "(c, how, _)", "(c, 1)"])
def test_fairness_names_the_parameters_of_the_action(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        program_of(QUEUE.format(wrong), tmp_path)
    assert caught.value.diagnostics[0].code in ("S602", "S101", "S102", "S103")


def test_fairness_of_other_models_actions_is_none(tmp_path: Path) -> None:
    """An action that a model omits is never enabled, so its fairness constrains nothing."""
    text = QUEUE.format("") + "    actions ask\ndeadlock ok\n"
    assert program_of(text, tmp_path).fairness == ()
    assert "served" in violated(on_reference(program_of(text, tmp_path)))


@pytest.mark.parametrize(("line", "text"), [
    ("liveness p: n == 1 and n == 2 leadsto on", "its left side is never true"),
    ("liveness p: n == 1 leadsto n < 2", "holds without fairness"),
    ("liveness p: forall k in 1..0: n == k leadsto on", "`p` requires nothing: it has no clause"),
    ("strong fair count", "no behaviour within n upto 3 is fair"),
])  # fmt: skip
def test_what_cannot_fail_is_warned_of(line: str, text: str, tmp_path: Path) -> None:
    """And is a violation under --strict."""
    spec = LAMP.replace("n == 1 leadsto n == 0", "on leadsto not on").replace(
        "fair flip", f"fair flip\n{line}"
    )
    outcome = on_reference(program_of(spec, tmp_path))
    assert verdict(outcome) == "holds_within"
    assert any(text in warning for warning in outcome.warnings)
    assert any(text in name for name in violated(on_reference(program_of(spec, tmp_path), strict=True)))


def test_behaviours_that_end_at_the_horizon_are_counted(tmp_path: Path) -> None:
    spec = LAMP.replace("n == 1", "n == 3").replace("fair flip", "fair flip, count")
    outcome = on_reference(program_of(spec, tmp_path))
    assert verdict(outcome) == "holds_within"
    assert outcome.statistics.owed_at_horizon == 2


def test_a_number_beyond_the_horizon_enables(tmp_path: Path) -> None:
    """No listed number is above n = 3, but 4 is: the state is not a rest."""
    spec = LAMP.replace("    n' = n + 1", "    any k in Number:\n        require k > n\n        n' = k")
    spec = spec.replace("var n : nat upto 3", "type Number = nat upto 3\nvar n : Number").replace(
        "flip\n", "count\n"
    )
    spec = spec.replace("fair count", "fair flip, count").replace(
        "action count():\n    on'", "action flip():\n    on'"
    )
    spec = spec.replace("n == 1 leadsto", "n == 3 leadsto")
    outcome = on_reference(program_of(spec, tmp_path))
    assert verdict(outcome) == "holds_within"
    assert outcome.statistics.owed_at_horizon > 0


BEYOND = """
spec beyond
type Number = nat upto 2
var n : 0..1 = 0
action jump(s: set[Number]):
    require exists x in s: x > 2
    n' = 1
liveness l: eventually n == 1
fair jump
deadlock ok
model m:
    expect holds
"""


@pytest.mark.parametrize("run", ENGINES)
def test_where_open_numbers_do_not_decide_a_step_may_be_enabled(run: Runs, tmp_path: Path) -> None:
    """Sets of numbers cannot be open: no listed one has 3 in it, and those of the system do."""
    outcome = run(program_of(BEYOND, tmp_path))
    assert verdict(outcome) == "holds_within"
    assert outcome.statistics.owed_at_horizon == 1


@pytest.mark.parametrize(("domain", "body"), [
    ("Number", "eventually n + k < 4"),
    ("Maybe", "eventually (match k { some x: x < 4, none: true })"),
    ("Pair", "eventually k.x < 4"),
    ("{ max(Number) > 3 }", "eventually (k implies n > 1)"),
    ("{ Number - (0..3) }", "eventually (forall y in k: n > 1)"),
    ("{ if max(Number) > 3 then some(4) else none }", "eventually (match k { some x: n > 1, none: true })"),
])  # fmt: skip
def test_what_was_shown_of_listed_numbers_is_bounded(domain: str, body: str, tmp_path: Path) -> None:
    """Each property fails with 4, above the horizon: no constant that depends on it may be computed away."""
    text = f"""
spec listed
type Number = nat upto 2
type Maybe = Number?
type Pair = {{ x: Number, y: bool }}
var n : 0..1 = 0
action flip(): n' = 1 - n
liveness l: forall k in {domain}: {body}
model m:
    expect holds
"""
    assert verdict(on_reference(program_of(text, tmp_path))) == "holds_within"


def test_too_many_conditions_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        program_of(MANY.format("m").replace("71", "1024"), tmp_path)
    assert [found.code for found in caught.value.diagnostics] == ["S604"]


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize(("kept", "expected"), [("m", "holds"), ("_", "violated")])
def test_conditions_may_be_more_than_the_bits_of_a_word(
    run: Runs, kept: str, expected: str, tmp_path: Path
) -> None:
    """The condition of 71 decides; without it 0 is handled for ever."""
    assert verdict(run(program_of(MANY.format(kept), tmp_path))) == expected


def test_beyond_the_limit_a_loop_is_fair_and_not_called_the_shortest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop composed of shortest paths is replayed and checked like any other."""
    monkeypatch.setattr(lassos, "MAX_PAIRS", 1)
    spec = LAMP.replace("n == 1 leadsto n == 0", "eventually n == 2").replace("nat upto 3", "0..1").replace(
        "n' = n + 1", "n' = 1 - n").replace("fair flip", "fair flip\nstrong fair count")  # fmt: skip
    outcome = on_reference(program_of(spec.replace("nat upto", ""), tmp_path))
    trace = violated(outcome)["lit"].trace
    assert trace is not None
    assert trace.loop is not None
    assert len(trace.steps) > trace.loop
    assert any("shorter loop" in warning for warning in outcome.warnings)


def test_a_loop_that_is_none_is_not_believed(tmp_path: Path) -> None:
    """Replay refuses steps that do not lead back, and impossible ones."""
    program = program_of(LAMP, tmp_path)
    fair = FairSteps(program)
    with pytest.raises(ReplayFailed):
        replayed(fair, [(0, 0)], [((0, 1), 1)])
    with pytest.raises(ReplayFailed):
        replayed(fair, [(0, 0)], [((2, 0), 0), ((0, 0), 0)])


def loop_of(tmp_path: Path, *, rests: bool) -> tuple[Path, dict[str, object]]:
    spec = LAMP if rests else LAMP.replace("n == 1 leadsto n == 0", "eventually n == 4")
    spec = spec.replace("fair flip", "fair count") if rests else spec
    file = tmp_path / "timed.spec"
    file.write_text(spec.replace("nat upto 3", "0..1").replace("n' = n + 1", "n' = 1") if rests else spec)
    target = tmp_path / "found.itf.json"
    done = CliRunner().invoke(cli, ["run", str(file), "--itf", str(target)])
    assert done.exit_code == 12, done.output
    found: dict[str, object] = json.loads(target.read_text())
    return target, found


@pytest.mark.parametrize("rests", [True, False])
def test_a_loop_survives_its_file(rests: bool, tmp_path: Path) -> None:
    """ITF leaves the last state of a loop out, and reading brings it back."""
    target, found = loop_of(tmp_path, rests=rests)
    assert isinstance(found["states"], list)
    assert found["loop"] == (len(found["states"]) - 1 if rests else 0)
    read = trace_file(found)
    assert len(read.states) == len(found["states"]) + (not rests)
    done = CliRunner().invoke(cli, ["draw", str(target)])
    assert done.exit_code == 0
    assert ("rests in state" if rests else "repeat forever") in done.output
    chain = CliRunner().invoke(cli, ["draw", str(target), "--kind", "trace"])
    assert "forever" in chain.output
    with pytest.raises(Unreadable):
        trace_file({**found, "loop": 99})


def test_a_trace_without_a_loop_has_none_in_itf(tmp_path: Path) -> None:
    spec = LAMP.replace("liveness lit: n == 1 leadsto n == 0", "invariant lit: n < 2")
    program = program_of(spec, tmp_path)
    violation = violated(on_reference(program))["lit"]
    assert violation.trace is not None
    assert "loop" not in trace_itf(program, violation.trace, violation)


@pytest.mark.parametrize("words", [["--engine", "symbolic"], ["--prove"], ["--depth", "3"]])
def test_other_engines_reject_time(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "timed.spec"
    file.write_text(LAMP)
    done = CliRunner().invoke(cli, ["run", str(file), *words])
    assert done.exit_code == 30
    assert "S702" in done.output
    rejected = json.loads(CliRunner().invoke(cli, ["run", str(file), *words, "--json"]).stdout)
    assert rejected["schema"] == "specchk.rejected/1"
    assert [found["code"] for found in rejected["diagnostics"]] == ["S702"]


@pytest.mark.parametrize("words", [["--engine", "symbolic"], ["--prove"], ["--depth", "3"]])
def test_a_use_of_offsets_is_rejected_in_json_too(words: list[str], tmp_path: Path) -> None:
    """As readers of the output expect for a rejected spec."""
    file = tmp_path / "listed.spec"
    file.write_text("""spec listed
type Offset = nat upto 2
var a : Offset = 0
action up(): a' = max(Offset)
invariant low: a < 3
model m:
    expect holds
""")
    done = CliRunner().invoke(cli, ["run", str(file), *words, "--json"])
    assert done.exit_code == 30
    assert {found["code"] for found in json.loads(done.stdout)["diagnostics"]} == {"S701"}
