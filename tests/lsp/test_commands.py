"""Runs, pictures and the explorer, started from an editor: the server answers meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from lsp_client import Client
from test_server import SPEC

# So many states that no search ends within the patience of a test.
LONG = """\
spec long
type Digit = 0..9
var a : Digit -> Digit = { d: 0 for d in Digit }
action change(d: Digit, e: Digit):
    a'[d] = e
action never():
    require a[0] > 9
    a'[0] = 0
invariant fine: a[0] < 10
model all:
    expect holds
"""
FLAWED = (
    SPEC.replace("level > 1", "level > 2").replace("is_on: true", "is_on: next < 3")
    + """
action down(r: Room):
    require lamps[r].level > Most
    lamps'[r].level = 0
reachable top: exists r in Room: lamps[r].level == 2
scenario once on small:
    up(r1)
scenario wrong on small:
    up(r1)
    assert lamps[r2].level == 1
"""
)


@pytest.fixture
def opened(client: Client, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "lamp.spec"
    path.write_text(FLAWED)
    assert client.open(path) == []
    yield path
    client.close(path)


def lenses(client: Client, path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The commands by the name beside which they are, and their title."""
    lines = path.read_text().splitlines()
    commands = {}
    for lens in client.request("textDocument/codeLens", textDocument={"uri": path.as_uri()}):
        start, end = lens["range"]["start"], lens["range"]["end"]
        name = lines[start["line"]][start["character"] : end["character"]]
        commands[name, lens["command"]["title"]] = lens["command"]
    return commands


def started(client: Client, path: Path, name: str, title: str) -> int:
    command = lenses(client, path)[name, title]
    return client.begin(
        "workspace/executeCommand", command=command["command"], arguments=command["arguments"]
    )


def said(client: Client) -> list[str]:
    return [note["params"]["message"] for note in client.notes if note.get("method") == "window/showMessage"]


def shown(client: Client) -> list[str]:
    return [note["params"]["uri"] for note in client.notes if note.get("method") == "window/showDocument"]


def test_a_run_of_a_model_shows_its_verdict_and_what_never_happens(client: Client, opened: Path) -> None:
    assert ("small", "run") in lenses(client, opened)
    client.answer(started(client, opened, "small", "run"))
    assert said(client)[-1].startswith("violated: on in 3 steps")
    assert b"violated" in urlopen(shown(client)[-1]).read()
    assert any(
        title.startswith("violated: on in 3 steps")
        for name, title in lenses(client, opened)
        if name == "small"
    )
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
    hints = client.request("textDocument/inlayHint", textDocument={"uri": opened.as_uri()}, range=whole)
    steps = {hint["position"]["line"]: hint["label"] for hint in hints}
    lines = FLAWED.splitlines()
    assert steps[lines.index("action down(r: Room):")] == "0 steps"
    assert steps[lines.index("action up(r: Room):")] != "0 steps"
    (mark,) = client.replace(opened, FLAWED)
    assert (mark["message"], mark["tags"]) == ("this action never happens in model small", [1])
    assert client.replace(opened, FLAWED + "# more\n") == []


@pytest.mark.system
def test_a_property_a_witness_and_a_scenario_are_drawn(client: Client, opened: Path) -> None:
    for name, title in (("small", "draw"), ("on", "draw"), ("top", "draw"), ("once", "draw")):
        client.answer(started(client, opened, name, title))
        assert b"<svg" in urlopen(shown(client)[-1]).read(), name


@pytest.mark.system
def test_a_scenario_holds_or_its_step_is_named(client: Client, opened: Path) -> None:
    client.answer(started(client, opened, "once", "run"))
    assert said(client)[-1] == "scenario once holds"
    client.answer(started(client, opened, "wrong", "run"))
    assert said(client)[-1] == "Error: scenario wrong fails: the assertion is false; see `specchk test`"


def test_the_server_answers_while_a_search_runs_and_the_search_can_be_cancelled(
    client: Client, tmp_path: Path
) -> None:
    path = tmp_path / "long.spec"
    path.write_text(LONG)
    assert client.open(path) == []
    number = started(client, path, "all", "run")
    begun = client.wait(lambda m: m.get("method") == "$/progress" and m["params"]["value"]["kind"] == "begin")
    # The search has begun when its line of progress comes.
    client.wait(
        lambda m: m.get("method") == "$/progress" and "states" in m["params"]["value"].get("message", "")
    )
    hover = client.at("textDocument/hover", path, LONG, "var |a :")
    assert "var a" in hover["contents"]["value"]
    (error,) = client.replace(path, LONG.replace("a[0] < 10", "b[0] < 10"))
    assert error["code"] == "S201"
    client.notify("window/workDoneProgress/cancel", token=begun["params"]["token"])
    client.answer(number)
    assert said(client)[-1].startswith("inconclusive (")
    client.close(path)


def test_what_only_values_decide_is_checked_when_a_text_is_saved(client: Client, opened: Path) -> None:
    text = FLAWED.replace("Most = 5", "Most = 5\n    expect holds").replace(
        "const Most : int", "const Most : 0..4"
    )
    opened.write_text(text)
    assert client.replace(opened, text) == []
    client.notify("textDocument/didSave", textDocument={"uri": opened.as_uri()})
    (error,) = client.diagnostics(opened)
    assert (error["code"], text.splitlines()[error["range"]["start"]["line"]]) == ("S503", "    Most = 5")
    assert client.replace(opened, text + "# more\n") == []


def test_what_is_not_saved_is_not_run(client: Client, opened: Path) -> None:
    client.replace(opened, FLAWED + "# more\n")
    client.answer(started(client, opened, "small", "run"))
    assert said(client)[-1] == "save lamp.spec first: what is on the disk is run"


@pytest.mark.system
def test_the_explorer_is_served_and_the_values_of_a_model_are_shown(client: Client, opened: Path) -> None:
    client.answer(started(client, opened, "small", "explore"))
    assert b"<html" in urlopen(shown(client)[-1]).read()
    client.answer(started(client, opened, "large", "choose"))
    hover = client.at("textDocument/hover", opened, FLAWED, "const Mo|st")["contents"]["value"]
    assert "`Most = 5` in model `large`" in hover
    assert ("small", "choose") in lenses(client, opened)


@pytest.mark.parametrize(("wrong", "right", "title"), [
    ("brihgt(r) implies", "bright(r) implies", "write `bright`"),
    ("lamps[r].levl > 2", "lamps[r].level > 2", "write `level`"),
    ("    Most = 3\n", "    Room = 2\n", "add `Room = 2`"),
])  # fmt: skip
def test_a_hint_is_a_fix_where_it_removes_the_error(
    client: Client, opened: Path, wrong: str, right: str, title: str
) -> None:
    text = (
        FLAWED.replace(right, wrong)
        if "Room" not in title
        else FLAWED.replace("    Room = 2\n", "    Most = 3\n")
    )
    errors = client.replace(opened, text)
    where = errors[0]["range"]
    context = {"diagnostics": errors}
    document = {"uri": opened.as_uri()}
    fixes = client.request("textDocument/codeAction", textDocument=document, range=where, context=context)
    assert [fix["title"] for fix in fixes] == [title]


def test_a_hint_that_leaves_an_error_is_no_fix(client: Client, opened: Path) -> None:
    errors = client.replace(
        opened, FLAWED.replace("let next", "let lamps").replace("level: next", "level: lamps")
    )
    context, document = {"diagnostics": errors}, {"uri": opened.as_uri()}
    where = errors[0]["range"]
    assert (
        client.request("textDocument/codeAction", textDocument=document, range=where, context=context) == []
    )
