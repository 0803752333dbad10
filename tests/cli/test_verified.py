"""A program is verified before its states are searched, on every engine, even where it is done late."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from specchk.cli.commands.run import command
from specchk.ir import verify
from specchk.ir.program import Program
from specchk.ir.verify import IllegalProgram
from specchk.search.engine import Search

SPEC = Path(__file__).parents[2] / "spec" / "two_round_fetch.spec"


def refuse(program: Program, before: object = None) -> None:
    raise IllegalProgram(program.model)


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the engines of which states were requested."""
    names: list[str] = []
    levels = Search._make_levels

    def noted(search: Search, engine: object) -> None:
        names.append(type(engine).__name__)
        levels(search, engine)  # type: ignore[arg-type]

    monkeypatch.setattr(Search, "_make_levels", noted)
    return names


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("engine", ["", "reference", "native", "symbolic"])
def test_an_illegal_program_has_no_answer(
    engine: str, *, is_kept: bool, searched: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Also if its code is kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = [str(SPEC), *(["--engine", engine] if engine else []), "--json"]
    if is_kept:
        assert CliRunner().invoke(command, words).exit_code == 0
        assert searched.pop()
    monkeypatch.setattr(verify, "verify", refuse)
    said = CliRunner().invoke(command, words)
    assert (type(said.exception), said.output) == (IllegalProgram, "")
    assert searched == []
