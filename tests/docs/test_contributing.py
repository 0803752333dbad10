"""The commands of CONTRIBUTING.md name existing targets, options and files."""

from __future__ import annotations

import re
import shlex

import pytest

from docs.blocks import ROOT, blocks
from specchk.cli.accepted.behaviour import command as behaviour
from specchk.cli.commands.conform import command as conform

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([\w$(){}./-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
SPECCHK = {"behaviour": behaviour, "conform": conform}
VARIABLES = {"SLOW", "ARGS", "RANDOM"}
OPTIONS = {"-q", "-x", "--slow", "--rewrite"}
CELL = re.compile(r"`((?:make|bash|\.venv/bin/)[^`]*)`")


def shown() -> list[str]:
    """Each command of the document, in tables, text and blocks."""
    lines = [line for block in blocks(TEXT) if block.language == "sh" for line in block.lines]
    return [*dict.fromkeys([*CELL.findall(TEXT), *lines])]


@pytest.mark.parametrize("line", shown())
def test_a_command_can_be_given(line: str):
    """A target of make exists, so do pytest's folders, the script and the options of specchk."""
    program, *words = shlex.split(line)
    if program == "make":
        variables = {word.split("=")[0] for word in words if "=" in word}
        targets = {word.replace(".venv", "$(VENV)") for word in words if "=" not in word}
        assert targets <= TARGETS
        assert variables <= VARIABLES
        words = [word.split("=")[1] for word in words if word.startswith("ARGS=")]
    options = {word for word in words if word.startswith("-")}
    if program.endswith("specchk"):
        command = SPECCHK[words[0]]
        assert options <= {name for parameter in command.params for name in parameter.opts}
    elif program.endswith("python") and words[0].startswith("bench/"):
        assert options <= set(re.findall(r'"(--[a-z]+)"', (ROOT / words[0]).read_text(encoding="utf-8")))
    elif program.endswith("python"):
        assert options - {"-m"} <= OPTIONS
    for word in words:
        assert "/" not in word or (ROOT / word).exists() or word.startswith(".venv"), word


def test_every_folder_of_tests_is_in_the_table():
    """Every folder of tests has a row; a new folder gets one."""
    folders = {p.name for p in (ROOT / "tests").iterdir() if p.is_dir() and any(p.rglob("test_*.py"))}
    section = TEXT.split("## Where a test belongs", 1)[1].split("\n## ", 1)[0]
    assert set(re.findall(r"`tests/(\w+)`", section)) == folders


def test_there_are_commands():
    """The commands are found: a change of their form would otherwise check nothing."""
    assert len(shown()) > 12
