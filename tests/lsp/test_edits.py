"""Any sequence of edits leaves what a new check of the text would report: nothing stale, and no exception."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from test_server import SPEC

from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import Diagnostic, SpecError
from specchk.lsp.analysis import Analysis
from specchk.lsp.renaming import NoRename, renamed
from specchk.lsp.tokens import semantic_tokens
from specchk.lsp.workspace import Workspace, reported

SPECS = Path(__file__).resolve().parents[2] / "spec"
CHARACTERS = "abcxyz_01 \n\n    ()[]{}:,.'=+-<>#𝔸"


def edit(text: str, random: Random) -> str:
    """The text with a character, a word or a line more, fewer or elsewhere."""
    lines = text.splitlines(keepends=True) or [""]
    line, at = random.randrange(len(lines)), random.randrange(len(text) + 1)
    match random.randrange(6):
        case 0:
            return text[:at] + random.choice(CHARACTERS) + text[at:]
        case 1:
            return text[:at] + text[at + random.randrange(1, 4) :]
        case 2:
            return "".join(lines[:line] + lines[line + 1 :])
        case 3:
            return "".join([*lines[: line + 1], *lines[line:]])
        case 4:
            return "".join([*lines[:line], random.choice(lines), *lines[line:]])
        case _:
            return text[:at] + " " + random.choice(text.split() or ["x"]) + " " + text[at:]


def place(item: Diagnostic, start: int) -> tuple[object, ...]:
    span = item.span
    return item.code, item.message, str(item.hint), *((start + span.start, start + span.end) if span else ())


def checked(path: str, text: str) -> list[tuple[object, ...]]:
    try:
        check(path, text)
    except SpecError as error:
        return sorted(place(item, 0) for item in error.diagnostics)
    return []


def analysed(analysis: Analysis) -> list[tuple[object, ...]]:
    found = []
    for item in analysis.diagnostics:
        where = analysis.place(item.span) if item.span is not None else None
        start = where[1] - item.span.start if where is not None and item.span is not None else 0
        found.append(place(item, start))
    return sorted(found)


def try_edits(path: str, text: str, count: int, seed: int) -> None:
    workspace, random, original = Workspace(), Random(seed), text
    for number in range(count):
        text = original if number % 12 == 0 else edit(text, random)
        workspace.open(path, text)
        analysis = workspace.analysis(path)
        assert analysed(analysis) == checked(path, text), text
        reported(analysis)
        index = workspace.index(path)
        assert analysis.text is not None
        semantic_tokens(analysis.text, index)
        for occurrence in index.names.get(path, []):
            assert text[occurrence.start : occurrence.end].isidentifier()


def test_after_any_edit_the_diagnostics_are_those_of_a_new_check() -> None:
    try_edits("lamp.spec", SPEC, 100, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recorded", "kafka/kip320", "examples/multi_paxos"])
def test_after_many_edits_the_diagnostics_are_those_of_a_new_check(name: str) -> None:
    path = SPECS / f"{name}.spec"
    try_edits(str(path), path.read_text(), 150, 2)


def rename_all(path: Path, every: int) -> int:
    """Rename each of the spec's own names, and back; of `every` one."""
    workspace, text = Workspace(), path.read_text()
    workspace.open(str(path), text)
    done = 0
    declared = workspace.index(str(path)).declared.items()
    for symbol in [symbol for symbol, place in declared if place[0] == str(path)][::every]:
        index = workspace.index(str(path))
        use = next((item for item in index.names[str(path)] if item.symbol == symbol), None)
        if use is None:
            continue
        try:
            places = renamed(workspace, str(path), use, "some_new_name")
        except NoRename as reason:  # of what the text does not write
            if "is an element by its number" not in str(reason) and "is the file's name" not in str(reason):
                raise
            continue
        if len(places) > 1:  # the other file is as it was
            continue
        shift, changed = 0, text
        for _, start, end in sorted(places[str(path)]):
            changed = changed[: start + shift] + "some_new_name" + changed[end + shift :]
            shift += len("some_new_name") - (end - start)
        workspace.open(str(path), changed)
        there = workspace.index(str(path)).names[str(path)]
        back = renamed(
            workspace, str(path),
            next(item for item in there if changed[item.start : item.end] == "some_new_name"), symbol.name,
        )  # fmt: skip
        for _, start, end in sorted(back[str(path)], reverse=True):
            changed = changed[:start] + symbol.name + changed[end:]
        assert changed == text
        workspace.open(str(path), text)
        done += 1
    return done


def test_names_changed_and_changed_back_leave_the_text_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "lamp.spec"
    path.write_text(SPEC)
    assert rename_all(path, 1) > 15


@pytest.mark.slow
@pytest.mark.parametrize("name", ["recorded", "kafka/kip320", "examples/multi_paxos"])
def test_names_of_specs_changed_and_changed_back_leave_the_text_as_it_was(name: str) -> None:
    assert rename_all(SPECS / f"{name}.spec", 6) > 3
