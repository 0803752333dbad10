"""`specchk review`: each kind of row, from a spec with that weakness, and none from one without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from specchk.cli.commands.review import command
from specchk.lang.frontend import check
from specchk.review.mutants import harsh_mutants, mutants

SOUND = """\
spec door
sort Guest
type Door = enum { open, shut }
const strict : bool = true
var door   : Door = shut
var inside : set[Guest] = {}
action open_it():
    require door == shut and inside == {}
    door' = open
action enter(g: Guest):
    require (door == open or not strict) and g not in inside
    inside' = inside union {g}
action leave(g: Guest):
    require g in inside
    inside' = inside - {g}
action shut_it():
    require door == open
    door' = shut
step invariant by_the_door: forall g in Guest: g in inside' and g not in inside implies door == open
step invariant opened_for_none: door == shut and door' == open implies inside == {}
reachable full: card(inside) == card(Guest)
reachable locked_in: door == shut and inside != {}
scenario twice on two:
    open_it()
    refused open_it()
    enter(g1)
    refused enter(g1)
    shut_it()
    refused shut_it()
    leave(g1)
    refused leave(g1)
model two:
    Guest = 2
    expect holds
model lax extends two:
    strict = false
    expect violates by_the_door
"""
# What is planted, by the kind of row that names it and a word of its text.
LEAVE = "    require g in inside\n"
PLANTED = {
    "expectation": ("(door == open or not strict) and ", "", "unexpected: step invariant by_the_door"),
    "idle": (LEAVE, "    require g in inside and card(inside) > 9\n", "action `leave`"),
    "vacuous": ("implies door == open", "and door != door implies door == open", "antecedent"),
    "unviolated": ("== {}\nreachable full", "== {} or true\nreachable full", "`opened_for_none`"),
    "constant": ("    door' = open\n", "    skip\n", "no step changes `door`"),
    "unchecked": (
        "model two:\n",
        "model two:\n    properties by_the_door, full, locked_in\n",
        "opened_for_none",
    ),
    "unnoticed": ("    refused shut_it()\n", "", "`shut_it` without the guard `door == open`"),
    "condition": (LEAVE, "    require g in inside and (door == open or door == shut)\n", "`leave`"),
    "stutter": (LEAVE, "", "`leave` can be taken where it changes nothing"),
}


def review(folder: Path, text: str, *options: str) -> dict[str, Any]:
    path = folder / "door.spec"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(command, [str(path), "--json", *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    report = json.loads(result.stdout)
    assert report["exit_code"] == result.exit_code
    return dict(report)


def test_a_spec_that_says_it_all_has_no_weakness(tmp_path):
    """Its properties notice every change, so there is not even a note of one."""
    report = review(tmp_path, SOUND)
    assert report["rows"] == []
    assert report["exit_code"] == 0
    assert report["changes"]["unnoticed"] == 0
    assert report["changes"]["noticed"] >= 9


@pytest.mark.parametrize("kind", PLANTED)
def test_a_weakness_is_named(kind, tmp_path):
    """Planted in the sound spec, with its place and the next thing to do."""
    old, new, word = PLANTED[kind]
    assert SOUND.count(old) == 1
    rows = review(tmp_path, SOUND.replace(old, new))["rows"]
    named = [row for row in rows if row["kind"] == kind]
    assert any(word in row["text"] for row in named), rows
    assert all(row["next"] and row["at"].count(":") >= 2 for row in named)


def test_a_limit_is_named_and_makes_rows_notes(tmp_path):
    """What was not searched may be reached: nothing is called idle for certain."""
    report = review(tmp_path, SOUND, "--max-states", "2")
    assert any("not searched to the end" in text for text in report["limits"])
    assert all(row["note"] for row in report["rows"] if row["kind"] == "idle")
    few = review(tmp_path, SOUND, "--changes", "3")
    assert any("were not tried" in text for text in few["limits"])
    assert sum(few["changes"].values()) == 3


def test_the_text_has_each_row_once_and_ends_with_the_numbers(tmp_path):
    """And SARIF has the same rows."""
    path = tmp_path / "door.spec"
    path.write_text(SOUND.replace("    refused shut_it()\n", ""), encoding="utf-8")
    result = CliRunner().invoke(command, [str(path), "--sarif", str(tmp_path / "out.sarif")])
    assert result.stdout.rstrip().splitlines()[-1].startswith("0 weaknesses, 1 note; properties notice ")
    (run,) = json.loads((tmp_path / "out.sarif").read_text())["runs"]
    (found,) = run["results"]
    assert (found["ruleId"], found["level"]) == ("unnoticed", "note")
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == 17
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} >= {"idle", "unnoticed"}


LOCK = Path(__file__).parents[2] / "docs" / "lock_service"
HEADER = '{"format": "lock-service/1", "clients": 2}'


def recorded(folder: Path, *events: str) -> list[tuple[str, str]]:
    """The rows of the lock service with a recording of these events, without those of its text."""
    lines = [HEADER, *events, f'{{"end": true, "events": {len(events)}}}']
    path = folder / "one.ndjson"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [str(LOCK / "lock_service.spec"), str(path), "--tracing", str(LOCK / "tracing.py")]
    result = CliRunner().invoke(command, [*words, "--changes", "0", "--json"])
    report = json.loads(result.stdout)
    assert report["limits"] == ["26 changes of the spec were not tried (--changes)"]
    return [(row["kind"], row["text"]) for row in report["rows"] if row["kind"] in RECORDED]


RECORDED = ("refused", "unrecorded", "unreached", "unvisited")
ACQUIRED = '{"at": "c1", "seq": 1, "event": "acquired", "token": 1}'
WROTE = '{"at": "c1", "seq": 2, "event": "wrote"}'


def test_what_was_never_recorded_is_named(tmp_path):
    """Actions, except silent ones, and how many states."""
    rows = recorded(tmp_path, ACQUIRED, WROTE)
    unrecorded = [text.split("`")[1] for kind, text in rows if kind == "unrecorded"]
    assert unrecorded == ["enqueue", "next", "release", "restart"]
    ((_, unvisited),) = [row for row in rows if row[0] == "unvisited"]
    assert unvisited == "277 of 280 states of `two` are in no recording"
    assert not [row for row in rows if row[0] in ("refused", "unreached")]


def test_a_recorded_step_that_the_spec_refuses_is_named(tmp_path):
    """A write without a token, with the event's number."""
    rows = recorded(tmp_path, ACQUIRED, '{"at": "c2", "seq": 1, "event": "wrote"}')
    assert [text for kind, text in rows if kind == "refused"] == [
        "one.ndjson, event 2 (wrote): no step explains it"
    ]


def test_a_recording_beyond_the_model_is_named(tmp_path):
    """Its fourth token is above the horizon of the model, and the spec continues there."""
    tokens = [(client, seq, token) for token, (client, seq) in
              enumerate([("c1", 1), ("c2", 1), ("c1", 2), ("c2", 2)], 1)]  # fmt: skip
    events = [f'{{"at": "{client}", "seq": {seq}, "event": "acquired", "token": {token}}}'
              for client, seq, token in tokens]  # fmt: skip
    rows = recorded(tmp_path, *events)
    assert [text for kind, text in rows if kind == "unreached"] == [
        "one.ndjson is after event 4 in a state that its model does not reach"
    ]
    assert not [row for row in rows if row[0] == "refused"]


def test_recordings_need_a_tracing(tmp_path):
    """And a tracing recordings."""
    path = str(LOCK / "lock_service.spec")
    assert CliRunner().invoke(command, [path, "one.ndjson"]).exit_code == 2
    assert CliRunner().invoke(command, [path, "--tracing", str(LOCK / "tracing.py")]).exit_code == 2


def test_a_rejected_spec_has_its_diagnostics(tmp_path):
    """As of any other command."""
    (tmp_path / "door.spec").write_text("spec door\nvar\n", encoding="utf-8")
    assert CliRunner().invoke(command, [str(tmp_path / "door.spec")]).exit_code == 30


def test_a_mutant_differs_in_one_place(tmp_path):
    """A part of a guard, or an assignment; harsh ones have the opposite, or no guard of the action."""
    path = tmp_path / "door.spec"
    path.write_text(SOUND, encoding="utf-8")
    spec = check(str(path)).spec
    kinds = [(each.owner, each.kind, each.span.text) for each in mutants(spec)]
    assert ("open_it", "guard", "inside == {}") in kinds
    assert ("leave", "assignment", "inside' = inside - {g}") in kinds
    assert len(kinds) == len({each.text for each in mutants(spec)}) == 10
    assert any("require not (g in inside)" in each.text for each in harsh_mutants(spec))
    for each in (*mutants(spec), *harsh_mutants(spec)):
        check(str(path), each.text)
