"""The language server through its protocol: one server for all tests of this module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsp_client import Client

SPEC = """\
spec lamp
# A lamp that may be broken.

# How bright it can be.
const Most : int = 3
type Level = 0..Most
sort Room
type State = { level: Level, is_on: bool }
var lamps : Room -> State = { r: { level: 0, is_on: false } for r in Room }

def bright(r: Room): bool = lamps[r].level > 1

# Someone turns it up.
action up(r: Room):
    require lamps[r].level < Most
    let next = lamps[r].level + 1
    lamps'[r] = { lamps[r] with level: next, is_on: true }

invariant on: forall r in Room: bright(r) implies lamps[r].is_on

model small:
    Room = 2
model large extends small:
    Most = 5
"""


@pytest.fixture
def lamp(client: Client, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "lamp.spec"
    path.write_text(SPEC)
    assert client.open(path) == []
    yield path
    client.close(path)


def shown(client: Client, path: Path, marked: str) -> str:
    return str(client.at("textDocument/hover", path, SPEC, marked)["contents"]["value"])


def test_an_error_is_reported_where_it_is_with_its_hint_and_goes_away(client: Client, lamp: Path) -> None:
    (error,) = client.replace(lamp, SPEC.replace("bright(r) implies", "brihgt(r) implies"))
    assert (error["code"], error["message"]) == (
        "S201", "no definition `brihgt` is known here\nhint: did you mean `bright`?",
    )  # fmt: skip
    line = SPEC.splitlines().index("invariant on: forall r in Room: bright(r) implies lamps[r].is_on")
    assert error["range"] == {
        "start": {"line": line, "character": 32},
        "end": {"line": line, "character": 38},
    }
    assert client.replace(lamp, SPEC) == []


def test_columns_are_utf_16_units(client: Client, lamp: Path) -> None:
    (error,) = client.replace(lamp, f"{SPEC}invariant odd: true # 𝔸 is one character, and two units\n    𝔸\n")
    assert error["range"]["end"]["character"] == 6


def test_an_error_in_a_needed_file_is_one_at_the_line_that_needs_it(client: Client, lamp: Path) -> None:
    path = lamp.with_name("more.spec")
    assert client.open(path, "spec more\nextends lamp\nmodel m:\n    Room = 1\n") == []
    client.replace(lamp, SPEC.replace("lamps[r].level + 1", "lamps[r].lvel + 1"))
    (error,) = client.diagnostics(path)
    assert error["range"]["start"]["line"] == 1
    assert error["message"].startswith("lamp.spec has 1 error; lamp.spec:16: ")
    client.close(path)


def test_hover_shows_declaration_comment_type_and_value(client: Client, lamp: Path) -> None:
    assert shown(client, lamp, "level < Mo|st") == (
        "```specchk\nconst Most : int = 3\n```\n\n`Most = 3` in model `small`\n\nHow bright it can be."
    )
    assert shown(client, lamp, "let ne|xt") == "```specchk\nlocal next : int\n```"
    assert shown(client, lamp, "action u|p") == (
        "```specchk\naction up(r: Room)\n```\n\nSomeone turns it up."
    )
    assert "field is_on : bool" in shown(client, lamp, "level: next, is_|on")


def test_definition_leads_to_the_declaration(client: Client, lamp: Path) -> None:
    for use, line in (
        ("level: ne|xt", "    let next ="), ("bri|ght(r) imp", "def bright"),
        ("lamps[r].le|vel < M", "type State"),
        ("lamps'[|r]", "action up"), ("extends sm|all", "model small"), ("r: Ro|om): bool", "sort Room"),
    ):  # fmt: skip
        there = client.at("textDocument/definition", lamp, SPEC, use)
        assert SPEC.splitlines()[there["range"]["start"]["line"]].startswith(line), use
