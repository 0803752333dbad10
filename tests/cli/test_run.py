"""`specchk run` and `simulate`: verdicts, exit codes, JSON, ITF and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BASE = ("run", "shop.spec")
KEYS = {
    "schema", "spec", "model", "constants", "sorts", "engine", "symmetry", "verdict", "bounds", "reason",
    "certificate", "property", "steps", "trace", "loop", "violations", "checked", "witnesses",
    "states_distinct", "states_generated", "depth", "levels", "horizon_cuts", "ignored", "skipped",
    "owed_at_horizon", "symbolic", "seconds", "seed", "walks", "coverage", "warnings", "exit_code",
}  # fmt: skip


WIDE = """\
spec wide
var s : set[set[0..79]] = {}  # items of 80 bits, which are not compiled
action put(n: 0..3):
    s' = s union {{ n }}
deadlock ok
model m:
    expect holds
"""


@pytest.mark.parametrize(
    ("args", "code", "start"),
    [
        (["run", "shop.spec"], 0, "holds: shop, model good"),
        (["run", "shop.spec", "--model", "bad"], 10, "violated: invariant `fewer` in 3 steps"),
        (["run", "shop.spec", "--model", "bad", "--set", "Most=2"], 0, "holds: shop, model bad"),
        (["run", "shop.spec", "--model", "bad", "--property", "few"], 0, "holds: shop, model bad"),
        (["run", "stuck.spec"], 11, "violated: deadlock in 2 steps"),
        (["run", "shop.spec", "--max-states", "2"], 20, "inconclusive: the limit of 2 states"),
        (["run", "shop.spec", "--max-seconds", "0.000000001"], 20, "inconclusive: the limit of 1e-09 s"),
        (["run", "shop.spec", "--max-memory", "1K"], 20, "inconclusive: the limit of 1024 bytes"),
        (["simulate", "shop.spec", "--seed", "1", "--walks", "2"], 20, "inconclusive: 2 random walks"),
        (["simulate", "stuck.spec", "--seed", "1"], 11, "violated: deadlock in 2 steps"),
        (["simulate", "shop.spec", "--model", "bad", "--seed", "1"], 10, "violated: invariant `fewer`"),
    ],
)
def test_the_verdict_comes_first_and_decides_the_exit_code(
    specchk: Any, args: list[str], code: int, start: str
) -> None:
    """0 holds, 10 violated, 11 deadlock, 20 a budget ended it."""
    said = specchk(*args)
    assert (said.code, said.err) == (code, "")
    assert said.out.startswith(start)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "Usage"),
        (["rnu"], "Did you mean 'specchk run'?"),
        (["run"], "Missing argument 'FILE'"),
        (["run", "shop.spec", "--modle", "good"], "--model"),
        (["run", "shop.spec", "--set", "Most"], "not of the form CONSTANT=VALUE"),
        (["run", "shop.spec", "--set", "=3"], "not of the form CONSTANT=VALUE"),
        (["run", "shop.spec", "--set", "Most="], "not of the form CONSTANT=VALUE"),
        (["run", "shop.spec", "--max-states", "0"], "--max-states"),
        (["run", "shop.spec", "--max-seconds", "0"], "--max-seconds"),
        (["run", "shop.spec", "--max-seconds", "nan"], "is not a number of seconds"),
        (["run", "shop.spec", "--prove", "--query-seconds", "nan"], "is not a number of seconds"),
        (["run", "shop.spec", "--max-memory", "lots"], "is not a size"),
        (["run", "shop.spec", "--max-memory", "inf"], "is not a size"),
        (["run", "shop.spec", "--max-memory", "1e999G"], "is not a size"),
        (["run", "shop.spec", "--max-memory", "0"], "greater than 0"),
        (["run", "shop.spec", "--engine", "warp"], "--engine"),
        (["run", "shop.spec", "--json", "--itf", "-"], "both write to standard output"),
        (["simulate", "shop.spec", "--walks", "0"], "--walks"),
        (["simulate", "shop.spec", "--engine", "reference", "--guided"], "--guided is for the native engine"),
        (["simulate", "wide.spec", "--guided"], "--guided is for models that the native engine can run"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    specchk: Any, here: Path, args: list[str], message: str
) -> None:
    """Exit code 2, and the error is named."""
    (here / "wide.spec").write_text(WIDE, encoding="utf-8")
    said = specchk(*args)
    assert said.code == 2
    assert message in said.out + said.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "nothing.spec"], "nothing.spec"),
        (["run", "."], "."),
        (["run", "binary.spec"], "binary.spec"),
        (["run", "shop.spec", "--model", "goood"], "did you mean `good`?"),
        (["run", "shop.spec", "--set", "Mots=3"], "did you mean `Most`?"),
        (["run", "shop.spec", "--set", "Most=99"], "out of range"),
        (["run", "shop.spec", "--set", "Most=("], "error S1"),
        (["run", "shop.spec", "--set", "Clerk=none"], "error S5"),
        (["run", "shop.spec", "--property", "fewr"], "did you mean `fewer`?"),
        (["simulate", "nothing.spec"], "nothing.spec"),
        (["test", "binary.spec"], "binary.spec"),
        (["check", "nothing.spec"], "nothing.spec"),
        (["repl", "nothing.spec"], "nothing.spec"),
    ],
)
def test_a_rejected_spec_is_a_located_message(
    specchk: Any, here: Path, args: list[str], message: str
) -> None:
    """Exit code 30, a diagnostic with a code on standard error, nothing on standard output."""
    (here / "binary.spec").write_bytes(bytes(range(256)) * 40)
    said = specchk(*args)
    assert (said.code, said.out) == (30, "")
    assert message in said.err
    assert "specchk explain S" in said.err
    assert "Traceback" not in said.err


def test_an_unreadable_file_is_a_located_message(
    specchk: Any, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that the system refuses to read."""
    real = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "shop.spec":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    said = specchk("run", "shop.spec")
    assert said.code == 30
    assert "ermission denied" in said.err


def test_json_rejects_in_json(specchk: Any) -> None:
    """With --json the diagnostics are one object on standard output."""
    said = specchk("run", "shop.spec", "--json", "--set", "Most=99")
    found = json.loads(said.out)
    assert said.code == found["exit_code"] == 30
    assert (found["verdict"], found["diagnostics"][0]["code"]) == ("rejected", "S503")


def test_walks_that_are_not_compiled_are_interpreted_with_a_note(specchk: Any, here: Path) -> None:
    """The reason is on standard error and in the warnings; the walks are the reference engine's."""
    (here / "wide.spec").write_text(WIDE, encoding="utf-8")
    line = ("simulate", "wide.spec", "--seed", "3", "--walks", "5", "--json")
    said, asked = specchk(*line), specchk(*line, "--engine", "reference")
    found, wanted = json.loads(said.out), json.loads(asked.out)
    assert "note: the native engine cannot run this model" in said.err
    assert asked.err == ""
    assert found["engine"] == wanted["engine"] == "reference (simulation)"
    assert "the reference engine walked instead" in found["warnings"][0]
    assert found["walks"] == wanted["walks"]
    assert found["walks"]["ended"] == 5
    assert found["states_generated"] == sum(found["walks"]["taken"].values())


def test_json_has_every_key_whatever_the_verdict(specchk: Any) -> None:
    """One object with exactly the documented keys, exit code included."""
    for args in ((), ("--model", "bad"), ("--max-states", "1")):
        said = specchk(*BASE, "--json", *args)
        found = json.loads(said.out)
        assert set(found) == KEYS
        assert found["schema"] == "specchk.run/1"
        assert found["exit_code"] == said.code
        assert said.err == ""


def test_json_counts_and_constants_are_those_of_the_run(specchk: Any) -> None:
    """States, levels, constants and sorts of the good model, symmetry off."""
    found = json.loads(specchk(*BASE, "--json", "--no-symmetry").out)
    assert found["states_distinct"] == sum(found["levels"]) == 9
    assert found["depth"] == len(found["levels"])
    assert found["constants"] == {"Most": 3}
    assert found["sorts"] == {"Clerk": ["c1", "c2"]}
    assert found["checked"]["left_out"] == ["fewer"]
    assert set(found["witnesses"]) == {"sold"}


def test_json_traces_replay(specchk: Any) -> None:
    """Following the actions by scenario lines from the first state gives the states in the JSON report."""
    found = json.loads(specchk(*BASE, "--json", "--model", "bad", "--no-symmetry").out)
    trace = found["trace"]
    assert found["steps"] == len(trace) - 1 == 3
    assert trace[0] == {
        "index": 0,
        "action": None,
        "args": [],
        "state": {"stock": 0, "by": None},
        "changed": [],
    }
    lines = []
    for step in trace[1:]:
        state = step["state"]
        by = f"some({state['by']['some']})" if state["by"] else "none"
        lines.append(f"    {step['action']}({', '.join(step['args'])})")
        lines.append(f"    assert stock == {state['stock']} and by == {by}")
        assert set(step) == {"index", "action", "args", "state", "changed"}
    text = (
        Path("shop.spec").read_text(encoding="utf-8") + "scenario again on bad:\n" + "\n".join(lines) + "\n"
    )
    Path("again.spec").write_text(text, encoding="utf-8")
    said = specchk("test", "again.spec", "--model", "bad")
    assert (said.code, said.err) == (0, "")
    assert "scenario again" in said.out


def test_itf_is_the_trace_as_the_format_says(specchk: Any) -> None:
    """ADR 015: vars and params named, every state has exactly the vars, integers are #bigint."""
    said = specchk(*BASE, "--model", "bad", "--itf", "trace.json")
    assert said.code == 10
    found = json.loads(Path("trace.json").read_text(encoding="utf-8"))
    assert set(found) == {"#meta", "params", "vars", "states"}
    assert found["#meta"]["format"] == "ITF"
    assert found["vars"] == ["stock", "by"]
    assert found["params"] == ["Most"]
    assert [state["#meta"]["index"] for state in found["states"]] == [0, 1, 2, 3]
    for state in found["states"]:
        assert set(state) == {"#meta", "stock", "by"}
        assert set(state["stock"]) == {"#bigint"}
        assert set(state["by"]) == {"tag", "value"}
    assert specchk(*BASE, "--model", "bad", "--itf", "-").out == Path("trace.json").read_text(
        encoding="utf-8"
    )


def test_no_counterexample_is_no_itf(specchk: Any) -> None:
    """A run that holds reports this on standard error and writes no file."""
    said = specchk(*BASE, "--itf", "trace.json")
    assert said.code == 0
    assert "no counterexample" in said.err
    assert not Path("trace.json").exists()


def test_a_file_that_cannot_be_written_is_said_after_the_report(specchk: Any) -> None:
    """The verdict is not lost with the file: not all reasons can be tried before, such as a full disk."""
    said = specchk(*BASE, "--model", "bad", "--itf", "/dev/full")
    assert said.code == 2
    assert said.out.startswith("violated")
    assert "cannot write /dev/full" in said.err


def test_the_next_command_repeats_what_was_asked(specchk: Any) -> None:
    """The last line can be pasted: it contains model, constants and properties."""
    said = specchk(*BASE, "--model", "bad", "--set", "Most=4", "--property", "fewer")
    last = said.out.rstrip().splitlines()[-1]
    assert last.startswith("next: specchk run shop.spec --model bad --set Most=4 --property fewer")


def test_a_run_says_the_same_twice_but_for_the_seconds(specchk: Any) -> None:
    """JSON of two runs differs only in `seconds`; an exhaustive search has no randomness."""
    runs = [json.loads(specchk(*BASE, "--model", "bad", "--json").out) for _ in range(2)]
    for run in runs:
        assert run.pop("seconds") >= 0
    assert runs[0] == runs[1]
    assert runs[0]["seed"] is None


def test_help_lists_rare_options_under_headings(specchk: Any) -> None:
    """The most used options come first; options for one kind of search are under its name."""
    said = specchk("run", "--help").out
    sections = {part.split(":\n")[0]: part for part in said.split("\n\n") if ":\n  -" in part}
    headings = [
        "Options",
        "Output",
        "Choice of counterexamples",
        "Budget",
        "Unbounded offsets",
        "Long searches",
        "Spark",
        "State space as data",
    ]
    assert list(sections) == headings
    options = {name: part.count("\n  -") for name, part in sections.items()}
    assert options.pop("Options") <= 11
    assert max(options.values()) <= 6
