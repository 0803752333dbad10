"""Every command in a document is run, and its output agrees with the document."""

from __future__ import annotations

import difflib
import os
import shutil
from pathlib import Path

import pytest

from docs.blocks import DOCUMENTS, ROOT, Workplace, agrees, blocks, normal, play, rewritten, with_output
from specchk.lang.syntax.parse import parse
from specchk.lang.text.diagnostics import Report, render
from specchk.lang.text.source import Source

# What a document may show without its being run here: .ci/run does, in a clone of its own.
ONLY_IN_CI = {
    "git clone https://github.com/specchk/specchk", "cd specchk", "make run", "make test", "make test SLOW=1",
    "pip install .", "bash .ci/run",
}  # fmt: skip
LANGUAGES = {"spec", "console", "sh", "text", "json", "yaml", "python", "toml"}


# The tools that a document's commands need; on a build server a missing one is an error.
NEEDS = {"any-language": ("node", "cc")}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_the_commands_of_a_document_do_what_it_shows(path: Path, tmp_path: Path, request):
    """Run from top to bottom in one directory, each command prints the text shown below it."""
    missing = [tool for tool in NEEDS.get(path.stem, ()) if shutil.which(tool) is None]
    if missing and not os.environ.get("CI"):
        pytest.skip(f"{', '.join(missing)} not installed")
    text = path.read_text(encoding="utf-8")
    # The README shows how to install; the other documents begin behind that.
    played = list(play(text, Workplace(tmp_path, is_active=path.name != "README.md")))
    broken = [command.text for command, found in played if any("internal error" in line for line in found)]
    assert not broken, "a document does not show a bug"
    if request.config.getoption("--rewrite"):
        outputs = [rewritten(command.shown, found) for command, found in played]
        path.write_text(with_output(text, outputs), encoding="utf-8")
        return
    for command, found in played:
        shown, printed = ([normal(line) for line in lines] for lines in (command.shown, found))
        difference = "\n".join(difflib.unified_diff(shown, printed, "document", "output", lineterm=""))
        assert agrees(command.shown, found), f"$ {command.text}\n{difference}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_shows_only_blocks_that_are_held_to_something(path: Path):
    """No block of an unknown kind, and no shell command that is never run."""
    for block in blocks(path.read_text(encoding="utf-8")):
        assert not any(line.startswith("$ git ") for line in block.lines), "it changes a clone"
        assert block.language in LANGUAGES, f"{path.name}:{block.start}: a block of `{block.language}`"
        if block.language == "sh" and path.name != "CONTRIBUTING.md":  # held by test_contributing
            assert set(block.lines) <= ONLY_IN_CI, f"{path.name}:{block.start}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_the_line_above_a_file_names_it(path: Path):
    """A rendered page does not show the words behind a fence."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for block in blocks("\n".join(lines)):
        if block.language == "spec" and block.words:
            above = [line for line in lines[: block.start - 1] if line][-1]
            assert f"`{block.words[0]}`" in above, f"{path.name}:{block.start}"
            assert ("ppend" in above) is ("append" in block.words), f"{path.name}:{block.start}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_the_parts_of_specs_in_a_document_parse(path: Path):
    """A fragment is a list of declarations that the grammar accepts."""
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "spec" and not block.words:
            report = Report()
            parse(Source(f"{path.name}:{block.start}", "\n".join(block.lines) + "\n"), report)
            assert not report.found, "\n".join(render(found) for found in report.found)


def test_ci_runs_what_the_documents_cannot():
    """The commands that are not run here are lines of .ci/run, except for clone and change of directory."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("make run", "make test", "pip install"):
        assert command in script
