"""The language server through its protocol: one server for all tests of this module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsp_client import Client, place

from specchk.lang.format.formatter import format_source

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


def edited(text: str, edits: list[dict[str, Any]]) -> str:
    """A text with the edits of an answer."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def offset(place: dict[str, int]) -> int:
        return lines[place["line"]] + place["character"]

    for edit in sorted(edits, key=lambda edit: offset(edit["range"]["start"]), reverse=True):
        start, end = (offset(edit["range"][end]) for end in ("start", "end"))
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_a_name_is_changed_in_all_files_and_back(client: Client, lamp: Path) -> None:
    more = "spec more\nextends lamp\naction down(r: Room):\n    lamps'[r].level = 0\nmodel m:\n    Room = 1\n"
    path = lamp.with_name("more.spec")
    assert client.open(path, more) == []
    there = client.at("textDocument/rename", lamp, SPEC, "type State = { le|vel", newName="lumen")["changes"]
    texts = {lamp: edited(SPEC, there[lamp.as_uri()]), path: edited(more, there[path.as_uri()])}
    assert texts[lamp] == SPEC.replace("level", "lumen")
    assert texts[path] == more.replace("level", "lumen")
    for file, text in texts.items():
        client.change(file, {"text": text})
    assert (client.diagnostics(lamp), client.diagnostics(path)) == ([], [])
    back = client.at("textDocument/rename", lamp, texts[lamp], "lamps[r].lu|men < M", newName="level")[
        "changes"
    ]
    assert edited(texts[lamp], back[lamp.as_uri()]) == SPEC
    assert edited(texts[path], back[path.as_uri()]) == more
    client.close(path)


@pytest.mark.parametrize(("marked", "new", "reason"), [
    ("let ne|xt", "r", "`r` is already bound here"),
    ("let ne|xt", "lamps", "`lamps` is already bound here"),
    ("de|f bright" , "x", None),
    ("lamps[r].level + |1", "x", None),
    ("def br|ight", "forall", "`forall` is not a name"),
    ("def br|ight", "up", "`up` is declared twice"),
    ("Mo|st = 5", "3", "`3` is not a name"),
])  # fmt: skip
def test_a_name_that_would_mean_something_else_is_refused(
    client: Client, lamp: Path, marked: str, new: str, reason: str | None
) -> None:
    number = client.begin(
        "textDocument/rename", textDocument={"uri": lamp.as_uri()}, position=place(SPEC, marked), newName=new
    )
    answer = client.wait(lambda message: message.get("id") == number)
    if reason is None:
        assert answer["result"] is None
    else:
        assert reason in answer["error"]["message"]


def test_a_name_that_another_file_has_already_is_refused(client: Client, lamp: Path) -> None:
    path = lamp.with_name("more.spec")
    text = "spec more\nextends lamp\ndef shining(): bool = true\nmodel m:\n    Room = 1\n"
    assert client.open(path, text) == []
    at = place(SPEC, "def br|ight")
    number = client.begin(
        "textDocument/rename", textDocument={"uri": lamp.as_uri()}, position=at, newName="shining"
    )
    message = client.wait(lambda message: message.get("id") == number)["error"]["message"]
    assert "more.spec with the name `shining`: `shining` is declared twice" in message
    client.close(path)


def test_references_are_those_of_the_same_thing(client: Client, lamp: Path) -> None:
    for marked, count in (("let ne|xt", 2), ("up(|r: Room)", 5), ("const Mo|st", 4), ("def bri|ght", 2)):
        places = client.at(
            "textDocument/references", lamp, SPEC, marked, context={"includeDeclaration": True}
        )
        assert len(places) == count, marked
        assert len(client.at("textDocument/documentHighlight", lamp, SPEC, marked)) == count


def test_declarations_are_listed_also_of_a_text_with_errors(client: Client, lamp: Path) -> None:
    client.replace(lamp, SPEC.replace("def bright(r: Room)", "def bright(r Room"))
    symbols = client.request("textDocument/documentSymbol", textDocument={"uri": lamp.as_uri()})
    assert [f"{item['detail']} {item['name']}" for item in symbols] == [
        "spec lamp", "const Most", "type Level", "sort Room", "type State", "var lamps", "def bright",
        "action up", "invariant on", "model small", "model large",
    ]  # fmt: skip
    up = symbols[7]["range"]
    assert up["end"]["line"] - up["start"]["line"] == 3
    assert client.request("workspace/symbol", query="lmps")[0]["name"] == "lamps"
    folds = client.request("textDocument/foldingRange", textDocument={"uri": lamp.as_uri()})
    assert (up["start"]["line"], up["end"]["line"]) in [
        (item["startLine"], item["endLine"]) for item in folds
    ]


def test_formatting_is_that_of_fmt_in_the_lines_that_change(client: Client, lamp: Path) -> None:
    untidy = SPEC.replace("let next = lamps[r].level + 1", "let next=lamps[r].level+1")
    client.replace(lamp, untidy)
    options = {"tabSize": 4, "insertSpaces": True}
    (edit,) = client.request("textDocument/formatting", textDocument={"uri": lamp.as_uri()}, options=options)
    assert edit["range"]["end"]["line"] == edit["range"]["start"]["line"] + 1
    assert edited(untidy, [edit]) == format_source(SPEC)


def test_each_word_has_its_kind(client: Client, lamp: Path) -> None:
    legend = client.capabilities["semanticTokensProvider"]["legend"]["tokenTypes"]
    data = client.request("textDocument/semanticTokens/full", textDocument={"uri": lamp.as_uri()})["data"]
    lines, line, column, kinds = SPEC.splitlines(), 0, 0, {}
    for down, right, length, kind, _ in zip(*[iter(data)] * 5, strict=True):
        line, column = line + down, right if down else column + right
        kinds.setdefault(lines[line][column : column + length], set()).add(legend[kind])
    assert kinds["up"] == {"event"}
    assert kinds["level"] == {"property"}
    assert kinds["next"] == kinds["r"] == {"parameter"}
    assert kinds["forall"] == kinds["require"] == {"keyword"}
    assert kinds["# Someone turns it up."] == {"comment"}
    assert kinds["5"] == {"number"}
