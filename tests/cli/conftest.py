"""The `specchk` program from a user's view: in this process for its output, in its own for the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from specchk.cli.main import main

sys.path.insert(0, str(Path(__file__).parent))  # cli_process, for the tests of this folder

SPEC = """\
spec shop
sort Clerk
const Most : 0..9 = 3
var stock : 0..9 = 0
var by : Clerk? = none
action add(c: Clerk):
    require stock < Most
    stock' = stock + 1
    by' = some(c)
action sell(c: Clerk):
    require stock > 0 and by != some(c)
    stock' = stock - 1
invariant few: stock <= Most
invariant fewer: stock < 3
reachable sold: stock == 0 and by != none
model good:
    Clerk = 2
    properties few, sold
    expect holds
model bad:
    Clerk = 2
    expect violates fewer in 3 steps
scenario walk on good:
    add(c1); sell(c2)
    assert stock == 0
"""
DEADLOCK = """\
spec stuck
var x : 0..3 = 0
action up():
    require x < 2
    x' = x + 1
model m:
    expect holds
"""


@dataclass(frozen=True, slots=True)
class Said:
    """The results of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that contains shop.spec and stuck.spec, as the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.spec").write_text(SPEC, encoding="utf-8")
    (tmp_path / "stuck.spec").write_text(DEADLOCK, encoding="utf-8")
    return tmp_path


@pytest.fixture
def specchk(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command line in this process."""
    limit = sys.getrecursionlimit()

    def run(*args: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["specchk", *args])
        try:
            with pytest.raises(SystemExit) as left:
                main()
        finally:
            sys.setrecursionlimit(limit)
        said = capsys.readouterr()
        return Said(int(left.value.code or 0), said.out, said.err)

    return run
