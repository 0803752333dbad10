"""The scripts of bench/ start: they are run manually, rarely, and import modules that move."""

from __future__ import annotations

import sys
from runpy import run_path

import pytest

from laws.sources import ROOT

BENCH = ROOT / "bench"
# The module beside a list of flaws is of the list, and no script.
SCRIPTS = sorted(str(path.relative_to(BENCH)) for path in BENCH.rglob("*.py") if path.name != "members.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_explains_itself(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--help` imports everything that the script needs, and measures nothing."""
    # In this process, which has imported most of it already: thirty processes take half a minute.
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    monkeypatch.setattr(sys, "path", [str((BENCH / script).parent), *sys.path])
    with pytest.raises(SystemExit) as ended:
        run_path(str(BENCH / script), run_name="__main__")
    for name in [name for name, module in sys.modules.items() if _is_of_bench(module)]:
        del sys.modules[name]  # which may be that of another folder's module in another test
    shown = capsys.readouterr()
    assert (ended.value.code, shown.err) == (0, "")
    assert "usage:" in shown.out


def _is_of_bench(module: object) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(f"{BENCH}/")
