"""Makes `bank` and the modules of conformance/ importable here; a bank that loses money."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "conformance")]

from bank import SPEC  # noqa: E402 - found by the line above

LOSSY = """
from typing import ClassVar

import bank
from specchk.conform.contract.binding import action


class LossyBinding(bank.BankBinding):
    model: ClassVar[str] = "small"

    @action("transfer")
    def transfer(self, system, source, target):
        answer = super().transfer(system, source, target)
        system.balance["a2"] = min(system.balance["a2"], 3)
        return answer
"""


@pytest.fixture(autouse=True)
def _own_binding(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Remove the folder and the module of a test that loads another file `binding.py`."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    known = sys.modules.get("binding")
    yield
    sys.modules.pop("binding", None)
    if known is not None:
        sys.modules["binding"] = known


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """The file of a binding that diverges: its second account has at most three coins."""
    (tmp_path / "bank.spec").write_text(SPEC)
    path = tmp_path / "lossy.py"
    path.write_text(LOSSY)
    return path
