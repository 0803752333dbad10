"""Commands, options, exit codes and JSON fields are documented; nothing documented is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

import click
import pytest

from laws.sources import ROOT
from replog.cli import COMMANDS as REPLOG
from specchk.cli.exits import Exit
from specchk.cli.main import COMMANDS as SPECCHK
from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.report.json import run_json
from specchk.search.reference import search

DOCS = ROOT / "docs"
PROGRAMS = [("specchk", name, f"specchk.cli.{SPECCHK[name][0]}") for name in SPECCHK]
PROGRAMS += [("replog", name, REPLOG[name][0]) for name in REPLOG]


def section(text: str, heading: str) -> str:
    """The text under a heading of the second level."""
    assert f"\n## {heading}\n" in text, f"there is no section `{heading}`"
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and "--help" not in parameter.opts:
            yield max(parameter.opts, key=len)


def fields(table: str) -> set[str]:
    """The names in the first column of a table."""
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([a-z_]+)`", cell)}


@pytest.mark.parametrize(("program", "name", "module"), PROGRAMS, ids=lambda part: str(part))
def test_every_command_and_option_is_documented(program, name, module):
    """docs/commands.md has a section for each command, with all of its options and no others."""
    found = section((DOCS / "commands.md").read_text(encoding="utf-8"), f"`{program} {name}`")
    documented = set(re.findall(r"`(--[a-z0-9-]+)", found.split("```console")[0] + _tables(found)))
    place, _, attribute = module.partition(":")
    command: click.Command = getattr(import_module(place), attribute or "command")
    assert documented == set(options(command))


def _tables(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith(("| `", "Options:")))


def test_every_exit_code_is_documented():
    """The table of docs/exit-codes.md is the enumeration, number by number."""
    text = (DOCS / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", text, re.MULTILINE)
    assert {(int(code), name) for code, name in rows} == {(int(code), code.name.lower()) for code in Exit}


def test_every_field_of_a_run_is_documented():
    """docs/json.md has each member of the object that `run --json` prints, and no other."""
    checked = check(str(ROOT / "spec" / "two_round_fetch.spec"))
    found = run_json(search(instantiate(checked).program), 0)
    text = section((DOCS / "json.md").read_text(encoding="utf-8"),
                   "`specchk run --json` and `specchk simulate --json`")  # fmt: skip
    first = text.split("\nA violation:")[0]
    assert fields(first) == set(found)
