"""No command ends in an internal error for a spec whose `init` is undefined, or leaves no initial state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from specchk.cli.commands import conditions, draw, explore, repl, run, simulate, validate

SPEC = """\
spec counted
var x : 0..3
action up():
    require x < 3
    x' = x + 1
init: 6 // (x + 1) > 0
invariant low: x < 3
deadlock ok
model one:
    properties low
"""
UNDEFINED = SPEC.replace("(x + 1)", "x")
EMPTY = SPEC.replace("> 0", "> 9")
RUNS = (
    [], ["--optimal"], ["--all-counterexamples", "2"], ["--html", "{}.html"], ["--draw", "{}.dot"],
    ["--itf", "-"], ["--json"], ["--keep-going"], ["--compact"], ["--prove"], ["--prove", "--suggest"],
    ["--prove", "--k", "2"], ["--depth", "2"], ["--engine", "symbolic"], ["--strict"],
)  # fmt: skip
EMPTY_RUN, UNDEFINED_RUN, ERROR = 21, 10, 1


def outcome(module, *args: str) -> Result:
    return CliRunner().invoke(module.command, list(args))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "counted.spec"
    path.write_text(UNDEFINED, encoding="utf-8")
    return path


@pytest.mark.parametrize("options", RUNS)
@pytest.mark.parametrize(("text", "code"), [(UNDEFINED, UNDEFINED_RUN), (EMPTY, EMPTY_RUN)])
def test_a_run_has_its_verdict_whatever_it_shows(text, code, options, file):
    """Counterexamples that are chosen, written or drawn: none has a trace."""
    file.write_text(text, encoding="utf-8")
    done = outcome(run, str(file), *[option.format(file) for option in options])
    assert (done.exit_code, done.exception.__class__) == (code, SystemExit)


@pytest.mark.parametrize(("module", "args", "code"), [
    (draw, [], UNDEFINED_RUN), (draw, ["--kind", "states"], ERROR),
    (simulate, ["--seed", "1"], UNDEFINED_RUN),
    (simulate, ["--seed", "1", "--engine", "reference"], UNDEFINED_RUN), (conditions, [], EMPTY_RUN),
    (repl, [], ERROR),
])  # fmt: skip
def test_a_command_that_looks_at_states_names_the_place(module, args, code, file):
    """Or the verdict."""
    done = outcome(module, str(file), *args)
    assert (done.exit_code, done.exception.__class__) == (code, SystemExit)
    assert any(
        text in done.output for text in ("init` is\n    undef", "division by zero", "no counterexample")
    )


@pytest.mark.parametrize(("text", "code"), [(UNDEFINED, UNDEFINED_RUN), (EMPTY, EMPTY_RUN)])
def test_nothing_is_drawn_with_the_report_of_a_run(text, code, file):
    """A violation without a trace, or no verdict: not only that there is no counterexample."""
    file.write_text(text, encoding="utf-8")
    report, drawn = outcome(run, str(file)), outcome(draw, str(file))
    assert (drawn.exit_code, drawn.stdout) == (code, "")
    assert "there is no counterexample to draw" in drawn.stderr
    first, *_ = report.stdout.splitlines()
    assert first in drawn.stderr
    assert report.stdout.count("division by zero") == drawn.stderr.count("division by zero")
    missed = outcome(draw, str(file), "--witness", "low")
    assert (missed.exit_code, first in missed.stderr) == (ERROR, True)


def test_nothing_is_drawn_of_a_search_that_ended_early(file):
    """The bound is named: a counterexample may be beyond it."""
    file.write_text(SPEC.replace("x < 3\ndead", "x < 4\ndead"), encoding="utf-8")
    drawn = outcome(draw, str(file), "--max-states", "1", "--engine", "reference")
    assert (drawn.exit_code, "inconclusive: the limit of 1 " in drawn.stderr) == (20, True)


@pytest.mark.parametrize("module", [explore, repl])
@pytest.mark.parametrize(("text", "message"), [
    (UNDEFINED, ":6:7: the initial state is undefined: div"), (EMPTY, "no state satisfies `init`"),
])  # fmt: skip
def test_nothing_is_explored_without_an_initial_state(module, text, message, file):
    """A page of nothing would call its empty path none of the spec."""
    file.write_text(text, encoding="utf-8")
    done = outcome(module, str(file))
    assert done.exit_code == ERROR
    assert message in done.stderr


@pytest.mark.parametrize("way", ["--json", "--itf"])
def test_a_trace_of_before_is_no_behaviour_now(way, file):
    """The spec has changed since the trace was written."""
    file.write_text(SPEC, encoding="utf-8")
    trace = file.with_suffix(".itf.json")
    if way == "--itf":
        assert outcome(run, str(file), "--itf", str(trace)).exit_code == UNDEFINED_RUN
    else:
        trace.write_text(outcome(run, str(file), "--json").stdout, encoding="utf-8")
    assert outcome(draw, str(trace)).exit_code == 0
    file.write_text(UNDEFINED, encoding="utf-8")
    done = outcome(draw, str(trace))
    assert "the spec is undefined in `init`: division by zero" in done.stderr


TRACING = """\
from specchk.conform.contract.tracing import Call, Tracing, event
class Counted(Tracing):
    spec, model, reads = "counted.spec", "one", "counted/1"
    @event("up")
    def up(self, e):
        return Call("up")
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_recording_proves_nothing_without_an_initial_state(workers, file):
    """It is not the implementation's error, and in a process of its own it is none of specchk."""
    tracing = file.with_name("counted_tracing.py")
    tracing.write_text(TRACING, encoding="utf-8")
    lines = [{"format": "counted/1"}, {"at": 1, "seq": 1, "event": "up"}, {"end": True, "events": 1}]
    recordings = [file.with_name(f"{number}.ndjson") for number in range(2)]
    for recording in recordings:
        recording.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    done = outcome(validate, str(tracing), *map(str, recordings), "--partial", "--workers", workers)
    assert done.exit_code == 21
    assert "the spec is undefined in `init`, " in done.stdout
    assert "counted.spec:6:7: division by zero" in done.stdout
