"""A member of a gate: the gate of another binding of the same implementation.

    OtherGate("store", "store/binding.py")     each suite of that binding's gate is a test
    OtherGate("files", "on_files.py", (At("two_brokers", suite="faults"),))        other suites than its gate

An implementation has a binding for each part of it that a spec describes, and a flaw in one part is rarely
visible in the suites of another.

Invariant: what no mutant changes, specs and suites, is computed once, in `prepare`; the binding and its
neighbours are loaded again for each mutant.  Not here: the suites of the main binding (`members`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.contract.binding import At
from specchk.conform.contract.load import NoBinding, load_binding
from specchk.conform.covers.cases import MADE_OF_CASES
from specchk.conform.gate.tiers import BUDGETS, parts_of, run_part
from specchk.conform.mutation.accepted_runs import AcceptedRuns
from specchk.conform.mutation.members import Bench, Member, Reporter, failure_of
from specchk.conform.mutation.patches import forget
from specchk.conform.replay.replay import Replayer
from specchk.lang.frontend import check

BUDGET = BUDGETS["gate"]


class OtherGate(Struct, frozen=True):
    """The gate of the binding in `file`, a path from the main binding's folder."""

    name: str
    file: str
    suites: tuple[At, ...] = ()  # all of the binding's gate, if none is named
    layer: str = "gate"

    def files(self, bench: Bench) -> list[Path]:
        """The binding's file and its neighbours."""
        return sorted(self._path(bench).parent.glob("*.py"))

    def prepare(self, bench: Bench) -> None:
        """Compute the suites, with the unchanged implementation."""
        if self.name not in bench.gates:
            path = self._path(bench)
            cls = load_binding(path)
            checked = check(str(path.parent / cls.spec))
            bench.gates[self.name] = tuple(parts_of(cls, checked, self.suites or cls.gate))
        for part in bench.gates[self.name]:
            Replayer(part.binding)
            if part.at.suite in MADE_OF_CASES:
                part.suite(BUDGET)

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Run the suites as long as more are needed; False if they do not use the modules."""
        path = self._path(bench)
        # Its neighbours were loaded with the unchanged implementation.
        forget((), [path.parent])
        try:
            cls = load_binding(path)
        except NoBinding as error:
            reporter.note("loading", str(error))
            return True
        if modules and not any(module in sys.modules for module in modules):
            return False
        for part in bench.gates[self.name]:
            fresh = replace(part, binding=cls(part.instance.program))
            if not reporter.check(part.name, lambda fresh=fresh: failure_of(run_part(fresh, BUDGET))):  # type: ignore[misc]
                break
        return True

    def _path(self, bench: Bench) -> Path:
        return bench.folder / self.file


def files_of(members: Iterable[Member], bench: Bench) -> set[Path]:
    """The files of all other bindings and behaviours among some members."""
    others = [member for member in members if isinstance(member, OtherGate | AcceptedRuns)]
    return {path for member in others for path in member.files(bench)}
