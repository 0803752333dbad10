"""A folder with the toy spec, an implementation of it in a package, its binding, and mutants."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bank import SPEC

BINDING = """
from till.drawer import Till

from specchk.conform.contract.binding import Accepted, At, Binding, Impossible, Refused, action, project


class TillBinding(Binding):
    spec, model = "bank.spec", "small"
    gate = (At(suite="walks"),)

    def start(self):
        return Till()

    @action("transfer")
    def transfer(self, till, source, target):
        if source == target:
            return Impossible("no such form")
        return Accepted() if till.move(source, target) else Refused("too poor")

    @action("toss", ways=("heads", "tails"))
    def toss(self, till, way):
        return Accepted() if till.toss(way) else Refused("tossed already")

    @action("sleep")
    def sleep(self, till):
        till.sleep()
        return Accepted()

    @project
    def state(self, till):
        return {"balance": dict(till.balance), "coin": till.coin, "days": till.days}
"""
TILL = """
class Till:
    def __init__(self):
        self.balance, self.coin, self.days, self.note = {"a1": 2, "a2": 2}, "unseen", 0, ""

    def move(self, source, target):
        if self.balance[source] == 0:
            return False
        self.balance[source] -= 1
        self.balance[target] += 1
        return True

    def toss(self, way):
        if self.coin != "unseen":
            return False
        self.coin = way
        return True

    def sleep(self):
        self.days += 1
        self.note = "slept"
        return self.days

    def never(self):
        return 1
"""


def build(folder: Path, members: str, mutants: str) -> Path:
    """The folder, with these members of the gate and these tables of mutants."""
    (folder / "till").mkdir()
    (folder / "mutants").mkdir()
    (folder / "till" / "__init__.py").write_text("")
    (folder / "till" / "drawer.py").write_text(TILL)
    (folder / "bank.spec").write_text(SPEC)
    (folder / "till_binding.py").write_text(BINDING)
    (folder / "mutants" / "members.py").write_text(members)
    (folder / "mutants" / "all.toml").write_text(mutants)
    return folder


def mutate(*arguments: str) -> tuple[int, str]:
    """The exit code of `specchk mutate`, and its output."""
    command = [sys.executable, "-m", "specchk", "mutate", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout or done.stderr
