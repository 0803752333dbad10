"""`assume`: a condition on the constants of every model, also for imported or refined files."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchk.compile.instantiate import instantiate, survey
from specchk.lang.frontend import check
from specchk.lang.text.diagnostics import SpecError

SPEC = """spec assumed
{line}
sort Node
const N : int
const Quorums : set[set[0..3]] = {{{{0, 1}}, {{1, 2}}}}
assume: N > 1 and N < 9
assume:
    let size = card(Node)
    forall q in Quorums, r in Quorums: q intersect r != {{}}
    size > N - 2
var x : 0..9 = 0
action go(): skip
model m:
    Node = 2, N = 3
    {bindings}
"""
PART = "spec part\nconst Limit : int = 3\nvar at : 0..9 = 0\naction stay(): skip\nassume: Limit > 2\n"


def broken(folder: Path, line: str = "", bindings: str = "expect holds", **values: str) -> list[str]:
    """The violated assumptions of the model, as texts."""
    (folder / "part.spec").write_text(PART, encoding="utf-8")
    file = folder / "assumed.spec"
    file.write_text(SPEC.format(line=line, bindings=bindings), encoding="utf-8")
    checked = check(str(file))
    try:
        instantiate(checked, overrides=values)
    except SpecError as error:
        return [one.span.text for one in error.diagnostics if one.code == "S512" and one.span is not None]
    if not values:
        survey(checked, "m")
    return []


def test_a_model_that_satisfies_them_is_not_changed(tmp_path: Path) -> None:
    """Each line of a block is one assumption, below its `let` lines."""
    assert broken(tmp_path) == []
    assert broken(tmp_path, N="2") == []


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"N": "1"}, "N > 1 and N < 9"),
        ({"Quorums": "{{0}, {1}}"}, "forall q in Quorums, r in Quorums: q intersect r != {}"),
        ({"Node": "1"}, "size > N - 2"),
        ({"N": "4"}, "size > N - 2"),
    ],
)
def test_constants_that_break_one_are_refused(values: dict[str, str], text: str, tmp_path: Path) -> None:
    """With its place, whether the model or `--set` provides them."""
    assert broken(tmp_path, **values) == [text]


@pytest.mark.parametrize(
    ("line", "satisfies", "breaks"),
    [
        ("import part", "part.Limit = 4", "part.Limit = 2"),
        ("extends part", "Limit = 4", "Limit = 2"),
        ("refines part with { Limit = N, at = x }", "expect holds", "N = 2"),
    ],
)
def test_other_files_have_theirs(line: str, satisfies: str, breaks: str, tmp_path: Path) -> None:
    """For a refined file with the constants of the mapping."""
    assert broken(tmp_path, line, satisfies) == []
    if "refines" in line:
        assert broken(tmp_path, line, N="2") == ["Limit > 2"]
    else:
        assert broken(tmp_path, line, breaks) == ["Limit > 2"]
