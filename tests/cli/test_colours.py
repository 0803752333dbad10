"""Verdicts have colours on a terminal, and nowhere else."""

from __future__ import annotations

import re
from typing import Any

import pytest

from specchk.cli import common, engines, output

RED, GREEN = "\x1b[31m\x1b[1m", "\x1b[32m\x1b[1m"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda _: True)
    # Imported before, these have it by name, and would keep the one of the module that imports them first.
    monkeypatch.setattr(common, "is_terminal", lambda _: True)
    monkeypatch.setattr(engines, "is_terminal", lambda _: False)  # no line of progress
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@pytest.mark.usefixtures("terminal")
def test_verdicts_have_colours_on_a_terminal(specchk: Any) -> None:
    assert specchk("run", "shop.spec").out.startswith(f"{GREEN}holds\x1b[0m: shop, model good\n")
    assert specchk("run", "shop.spec", "--model", "bad").out.startswith(f"{RED}violated\x1b[0m: ")
    tested = specchk("test", "shop.spec", "stuck.spec").out
    assert f"{GREEN}ok\x1b[0m     shop.spec good" in tested
    assert f"{RED}FAILED\x1b[0m stuck.spec m" in tested


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_may_have_no_colours(
    specchk: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert "\x1b" not in specchk("test", "shop.spec", "stuck.spec").out


def test_a_pipe_has_no_colours(specchk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b" not in specchk("test", "shop.spec", "stuck.spec").out


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("columns", [40, 80, 120])
def test_lines_fit_a_terminal(specchk: Any, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Of verdicts, tests, hints and usage errors; excerpts and commands stay as they are."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    lines: list[str] = []
    for line in ("run shop.spec --model bad", "test shop.spec stuck.spec", "run shop.spec --set Clerk=0",
                 "check shpo.spec", "run shop.spec --model godo",
                 "run shop.spec --max-sta 3", "chek", "run"):  # fmt: skip
        said = specchk(*line.split())
        lines += f"{said.out}{said.err}".splitlines()
    lines = [each for each in lines if not re.match(" *[0-9]* [|]|next", each)]
    assert max(map(len, lines)) <= columns, max(lines, key=len)
