"""Values that outlive a case: which they are, and that a change of one is detected."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specchk.conform.contract.load import load_binding
from specchk.conform.gate.lasting import changed_values, imported, lasting_values, own_values

BINDING = """
import things
from specchk.conform.contract import Binding

class Things(Binding):
    spec = "things.spec"

    def start(self):
        return {}
"""
LASTING = """
import functools, itertools, threading
from dataclasses import dataclass, field

TABLE, NAMES, LIMITS, COUNT = {}, {"b", "a", "c"}, (1, [2]), itertools.count()
__own = {}

@dataclass
class Log:
    entries: list = field(default_factory=list)

class Kept:
    all = []
    def add(self, seen=[]):
        return seen
    @functools.lru_cache
    def slow(self):
        return 1

def counter():
    made = []
    return lambda: made

LOG, MADE, LOOP = Log(), counter(), []
LOOP.append(LOOP)
"""
CHANGES = {
    "TABLE": "TABLE[1] = 2", "__own": "__own[1] = 2", "NAMES": "NAMES.add('d')",
    "LIMITS": "LIMITS[1].append(3)",
    "COUNT": "next(COUNT)", "LOG": "LOG.entries.append(1)", "Kept": "Kept.all.append(1)",
    "MADE": "MADE().append(1)", "LOOP": "LOOP.append(1)",
}  # fmt: skip


def test_values_that_outlive_cases_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Containers, attributes, defaults, closures, caches; equal in every process, for any hash seed."""
    (tmp_path / "things.py").write_text(LASTING, encoding="utf-8")
    (tmp_path / "binding.py").write_text(BINDING, encoding="utf-8")
    names = {str(tmp_path / name): name for name in ("things.py", "binding.py")}
    monkeypatch.setattr(sys, "path", [*sys.path])
    cls = load_binding(tmp_path / "binding.py")
    things = sys.modules.pop("things")
    monkeypatch.setitem(sys.modules, "things", things)
    values = imported(tmp_path / "binding.py", names).values

    def changed() -> list[str]:
        return changed_values(values, lasting_values(cls, names))

    assert changed() == []
    for name, line in CHANGES.items():
        exec(line, vars(things))
        assert f"{name} of things.py" in changed()
        assert len(changed()) == list(CHANGES).index(name) + 1
    assert "Kept of things.py" in changed()
    values = lasting_values(cls, names)
    for line in ("Kept().add().append(1)", "Kept().slow()"):
        exec(line, vars(things))
        assert changed() == ["Kept of things.py"]
        values = lasting_values(cls, names)
    # Of the one nothing can be known, the other is nested too deeply.
    exec("LOCK, DEEP = threading.Lock(), []\nfor _ in range(10**5):\n    DEEP = [DEEP]", vars(things))
    values = lasting_values(cls, names)
    assert changed() == ["DEEP of things.py", "LOCK of things.py"]


class Shared:
    """The data of a binding shared by all cases of a suite."""

    def __init__(self) -> None:
        self.program, self.constants, self.kept = [1], {"N": 1}, []


def test_attributes_of_a_binding_are_values_that_outlive_cases():
    """A table created by the first case and read by the others; program and constants are the spec's."""
    binding = Shared()
    before = own_values(binding, {})
    assert changed_values(before, own_values(binding, {})) == []
    binding.kept.append(1)
    binding.program.append(2)
    assert changed_values(before, own_values(binding, {})) == ["kept of Shared"]
