"""The workflow in docs/ci-gate.md is valid: its nesting, and the commands that it runs."""

from __future__ import annotations

import re
import shlex

from docs.blocks import ROOT, blocks
from specchk.cli.commands.conform import command

TEXT = (ROOT / "docs" / "ci-gate.md").read_text(encoding="utf-8")
LINES = next(block.lines for block in blocks(TEXT) if block.language == "yaml")
KEY = re.compile(r"^(?P<indent> *)(?P<item>- )?(?P<key>[\w-]+):(?P<value> .*)?$")


def keys() -> list[tuple[int, str]]:
    """Each key with its column; without the lines of literal blocks."""
    found, literal = [], None
    for line in LINES:
        indent = len(line) - len(line.lstrip())
        if literal is not None and indent > literal:
            continue
        literal = None
        match = KEY.match(line)
        assert match, f"neither a key nor a literal block: {line!r}"
        found.append((indent + len(match["item"] or ""), match["key"]))
        literal = found[-1][0] if (match["value"] or "").strip() == "|" else None
    return found


def test_the_workflow_is_nested_as_yaml():
    """Keys are indented by two columns and return to an open column; the top has what a workflow needs."""
    open_columns: list[int] = []
    for column, key in keys():
        while open_columns and open_columns[-1] > column:
            open_columns.pop()
        if not open_columns or column > open_columns[-1]:
            deeper = column - (open_columns[-1] if open_columns else 0)
            assert deeper in (0, 2, 4), f"{key} stands {deeper} columns in"
            open_columns.append(column)
        assert open_columns[-1] == column, key
    assert [key for column, key in keys() if column == 0] == ["name", "on", "jobs"]
    assert not any("\t" in line for line in LINES)


def test_the_workflow_runs_commands_with_options_that_there_are():
    """The run of the gate, with its lock and its reports."""
    runs = [line.split("specchk conform ", 1)[1] for line in LINES if "specchk conform " in line]
    known = {name for parameter in command.params for name in parameter.opts}
    used = [[word for word in shlex.split(run) if word.startswith("--")] for run in runs]
    assert used == [["--lock", "--junit", "--html"]]
    assert all(option in known for options in used for option in options)
