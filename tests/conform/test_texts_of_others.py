"""Texts of an implementation, a recording or a file's name reach no terminal, page or document raw."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from specchk.conform.behaviour import symbols
from specchk.lang.text.visible import visible

HOSTILE = "\x1b[2J\0\ud800\x9b\u202e\r\u2028<b>&\"'"
SHOWN = "\\u001b[2J\\u0000\\ud800\\u009b\\u202e\\u000d\\u2028<b>&\"'"
RAW = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]")
SPEC = """spec count
var x: 0..3 = 0
action up():
    require x < 3
    x' = x + 1
invariant small: x < 4
model m:
    expect holds
"""
BINDING = """
from specchk.conform.contract import Accepted, At, Binding, Refused, action, project

TEXT = {text!r}


class Count(Binding[list[int]]):
    spec, model, gate, implementation = "count.spec", "m", (At("m"),), ("binding.py",)

    def start(self) -> list[int]:
        return [0]

    @project
    def state(self, system: list[int]) -> dict[str, object]:
        return {{"x": {value}}}

    @action("up")
    def up(self, system: list[int]) -> object:
        if system[0] == 1:
            {deed}
        system[0] += 1
        return Accepted()
"""
# Where the text comes in: what is done in the second step, and what is seen.
WAYS = {
    "an exception": ("raise RuntimeError(TEXT)", "system[0]"),
    "a refusal": ("return Refused(TEXT)", "system[0]"),
    "standard output": ("print(TEXT); system[0] += 1", "system[0]"),
    "a value": ("pass", "TEXT if system[0] == 2 else system[0]"),
    "a name": ("raise type('Bad' + TEXT.replace(chr(0), ''), (ValueError,), {})()", "system[0]"),
    "an answer": ("return TEXT", "system[0]"),
    "another variable": ("pass", "system[0], **({TEXT: 1} if system[0] == 2 else {})"),
}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "specchk", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False)


def is_clean(data: bytes) -> bool:
    return RAW.search(data.decode("utf-8")) is None


@pytest.mark.parametrize("way", WAYS)
def test_no_form_of_a_report_has_a_raw_character(way: str, tmp_path: Path) -> None:
    """Terminal, JSON, HTML, JUnit, ITF, SVG, DOT and a frozen test: each is well-formed, and shows it."""
    deed, value = WAYS[way]
    (tmp_path / "count.spec").write_text(SPEC)
    (tmp_path / "binding.py").write_text(BINDING.format(text=HOSTILE, deed=deed, value=value))
    forms = ["--html", "page.html", "--junit", "junit.xml", "--itf", "trace.itf.json"]
    text = run(tmp_path, "conform", "binding.py", *forms, "--draw", "lanes.svg", "--freeze", "frozen.py")
    drawn = run(tmp_path, "conform", "binding.py", "--json", "--draw", "lanes.dot")
    assert (text.returncode, drawn.returncode) in ((13, 13), (30, 30)), text.stderr.decode()
    for output in (text.stdout, text.stderr, drawn.stdout, drawn.stderr):
        assert is_clean(output)
    if way != "standard output":  # which an implementation in this process has, too
        json.loads(drawn.stdout)
    if text.returncode == 13:
        for name in ("page.html", "junit.xml", "trace.itf.json", "lanes.svg", "lanes.dot"):
            assert is_clean((tmp_path / name).read_bytes())
        json.loads((tmp_path / "trace.itf.json").read_text())
        ElementTree.parse(tmp_path / "junit.xml")
        ElementTree.parse(tmp_path / "lanes.svg")


def test_a_file_s_name_is_shown(tmp_path: Path) -> None:
    """One that is not UTF-8, too."""
    name = os.fsdecode(b"a\x1b[2J\xff.spec")
    (tmp_path / name).write_text(SPEC.replace("x' = x + 1", "x' = y"))
    end = run(tmp_path, "check", name)
    assert end.returncode == 30
    assert b"a\\u001b[2J\\udcff.spec" in end.stdout + end.stderr
    assert is_clean(end.stdout + end.stderr)


def test_a_recording_s_texts_are_shown(tmp_path: Path) -> None:
    """Of an event that no behaviour explains, and of a line that is no event."""
    (tmp_path / "count.spec").write_text(SPEC)
    (tmp_path / "tracing.py").write_text(
        "from specchk.conform.contract.tracing import Call, Tracing, event\n\n\n"
        "class Counts(Tracing):\n    spec, model = 'count.spec', 'm'\n\n"
        "    @event('up')\n    def up(self, event):\n        return Call('up', after={'x': event['x']})\n"
    )
    for line in (
        {"event": "up", "x": HOSTILE},
        {"event": HOSTILE},
        {"event": "up", "x": 3, HOSTILE: HOSTILE},
    ):
        (tmp_path / "one.ndjson").write_text(json.dumps(line) + "\n")
        for options in ((), ("--json",)):
            end = run(tmp_path, "validate", "tracing.py", "one.ndjson", *options)
            assert end.returncode in (13, 21, 30), end.stderr.decode()
            assert is_clean(end.stdout + end.stderr)


def test_a_text_is_shown_as_json_escapes() -> None:
    """Each such character, in every form alike, and no other one."""
    assert visible(HOSTILE) == SHOWN
    assert json.loads(f'"{visible(chr(27) + chr(0x202E))}"') == "\x1b\u202e"
    assert visible("tab\tline\n é 漢 😀") == "tab\tline\n é 漢 😀"


def test_the_user_s_own_text_is_exact(tmp_path: Path) -> None:
    """`fmt -` gives an editor its file back."""
    text = "spec a\n# \x1b[1m \u202e \x7f\nvar x : bool = true\n"
    end = subprocess.run(
        [sys.executable, "-m", "specchk", "fmt", "-"], input=text.encode(), capture_output=True
    )
    assert end.stdout.decode() == text


def test_a_lone_surrogate_is_compared() -> None:
    """Accepted behaviour is made of texts of the implementation."""
    digests = [symbols.symbols_of([((text,),)])[0].digest for text in (HOSTILE, SHOWN)]
    assert digests[0] != digests[1]
