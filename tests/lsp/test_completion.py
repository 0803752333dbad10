"""Completion and signatures through the protocol: what fits a place, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lsp_client import Client, place
from test_server import SPEC

EXTRA = """
type Mode = enum { calm, wild }
type Message = Ask(who: Room, bound: 0..9) | Stop
const mode : Mode = calm
var last : Message? = none

helper action clear(r: Room):
    last' = none
"""


@pytest.fixture
def path(client: Client, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "lamp.spec"
    assert client.open(path, SPEC + EXTRA) == []
    yield path
    client.close(path)


def offered(client: Client, path: Path, added: str) -> list[str]:
    """What is offered at `|` in a text that is added, those that fit best first."""
    text = SPEC + EXTRA + added.replace("|", "")
    client.replace(path, text)
    before = (SPEC + EXTRA + added[: added.index("|")]).split("\n")
    where = {"line": len(before) - 1, "character": len(before[-1])}
    document = {"uri": path.as_uri()}
    answer = client.request("textDocument/completion", textDocument=document, position=where)
    return [item["label"] for item in sorted(answer["items"], key=lambda item: item["sortText"])]


@pytest.mark.parametrize(("added", "first", "also", "never"), [
    ("|", ["action"], ["invariant", "model"], ["require", "lamps"]),
    ("action a(r: Room):\n    |", [], ["lamps", "clear", "require", "when"], ["Most", "forall", "up"]),
    ("action a(r: Room):\n    require lamps[r].|", ["is_on", "level"], [], ["lamps", "and"]),
    ("action a(r: Room):\n    require mode == |", ["calm", "mode", "wild"], ["lamps", "match"], ["forall"]),
    ("action a(r: Room):\n    let next = 1\n    lamps'[r].level = n|", ["Most", "next"], ["r", "lamps"], []),
    ("action a(r: Room):\n    when |:\n        skip\n", ["bright"], ["lamps", "forall", "not"], ["up"]),
    ("var x : |", [], ["Room", "State", "set", "nat"], ["lamps", "bright"]),
    ("scenario s on |", ["large", "small"], [], ["lamps"]),
    ("scenario s on small:\n    |", [], ["up", "refused", "assert"], ["lamps"]),
    ("scenario s on small:\n    up(|)\n", ["r1", "r2"], [], ["up"]),
    ("scenario s on small:\n    assert |\n", ["bright", "on"], ["lamps"], ["up"]),
    ("model m extends |", ["large", "small"], [], ["lamps"]),
    ("model m:\n    |", [], ["Room", "Most", "expect", "properties"], ["lamps"]),
    ("model m:\n    Room = 1\n    properties |", ["on"], [], ["lamps"]),
    ("model m:\n    Room = 1\n    expect violates |", ["on"], [], ["lamps"]),
    ("fair |", ["up"], ["forall"], ["lamps"]),
    ("action |", [], [], ["lamps", "up"]),
    ("def f(s: Message): bool = |", ["bright"], ["f", "s", "card", "Ask"], ["up"]),
    ("var z : { level: Level, is_on: bool } = { | }", ["is_on", "level"], [], []),
])  # fmt: skip
def test_what_fits_a_place_is_offered(
    client: Client, path: Path, added: str, first: list[str], also: list[str], never: list[str]
) -> None:
    names = offered(client, path, "\n" + added)
    assert set(names[: len(first)]) == set(first), names[:8]
    assert set(also) <= set(names)
    assert not set(never) & set(names)


def test_a_file_beside_is_offered_and_its_names(client: Client, path: Path) -> None:
    path.with_name("sizes.spec").write_text("spec sizes\nconst big : int = 3\n")
    assert "sizes" in offered(client, path, "\nimport |")
    assert offered(client, path, "\nimport sizes\ninvariant i: 1 < sizes.|") == ["big"]


@pytest.mark.parametrize(("added", "label", "active"), [
    ("invariant i: bright(|)", "bright(r: Room)", 0),
    ("action a(): last' = some(Ask(who: r, |))", "Ask(who: Room, bound: 0..9)", 1),
    ("invariant i: get(keys({}), |)", "get(o)", 1),
    ("action a():\n    clear(|)", "clear(r: Room)", 0),
])  # fmt: skip
def test_a_signature_shows_the_parameter_at_the_cursor(
    client: Client, path: Path, added: str, label: str, active: int
) -> None:
    text = SPEC + EXTRA + "\n" + added.replace("|", "")
    client.replace(path, text)
    place(text, added)
    answer = client.at("textDocument/signatureHelp", path, text, added)
    assert (answer["signatures"][0]["label"], answer["activeParameter"]) == (label, active)


def test_there_is_no_signature_outside_a_call(client: Client, path: Path) -> None:
    assert client.at("textDocument/signatureHelp", path, SPEC + EXTRA, "let ne|xt") is None
