"""`specchk lsp` where it cannot serve."""

from __future__ import annotations

import sys

import pytest

from specchk.cli.main import main


def test_without_pygls_the_command_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("specchk.lsp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    monkeypatch.setattr(sys, "argv", ["specchk", "lsp"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "`specchk lsp` needs pygls: pip install 'specchk[lsp]'" in capsys.readouterr().err
