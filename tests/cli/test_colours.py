"""Verdicts have colours on a terminal, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from specchk.cli import output

RED, GREEN = "\x1b[31m\x1b[1m", "\x1b[32m\x1b[1m"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "is_terminal", lambda _: True)
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
