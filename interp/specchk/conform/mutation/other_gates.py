"""Members of a gate: the gate of another binding of the same implementation, and its accepted behaviour.

    OtherGate("store", "store/binding.py")     each suite of that binding's gate is a test
    OtherGate("files", "on_files.py", (At("two_brokers", suite="faults"),))        other suites than its gate
    AcceptedRuns("behaviour", "behaviour/behaviours.py")     each run must match its lock, and is a test

An implementation has a binding for each part of it that a spec describes, and a flaw in one part is rarely
visible in the suites of another.

Invariants: what no mutant changes, specs and suites, is computed once, in `prepare`; the file and its
neighbours are loaded again for each mutant; runs, and the list of them, are as `specchk behaviour --lock`
has them.  Not here: the suites of the main binding (`members`), how a run is taken and compared
(`behaviour.running`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from specchk.conform.behaviour.running import taken
from specchk.conform.contract.behaviours import Run
from specchk.conform.contract.binding import At
from specchk.conform.contract.load import NoBinding, load_behaviours, load_binding
from specchk.conform.covers.cases import MADE_OF_CASES
from specchk.conform.gate.tiers import BUDGETS, parts_of, run_part
from specchk.conform.mutation.members import Bench, Member, Reporter, failure_of
from specchk.conform.mutation.patches import forget
from specchk.conform.replay.replay import Replayer
from specchk.conform.work.lock_file import NAME, AcceptedBehaviour, BadLock, read
from specchk.lang.frontend import check

BUDGET = BUDGETS["gate"]


class OtherGate(Struct, frozen=True):
    """The gate of the binding in `file`, a path from the main binding's folder."""

    name: str
    file: str
    suites: tuple[At, ...] = ()  # all of the binding's gate, if none is named

    def prepare(self, bench: Bench) -> None:
        """Compute the suites, with the unchanged implementation."""
        if self.name not in bench.gates:
            path = bench.folder / self.file
            cls = load_binding(path)
            checked = check(str(path.parent / cls.spec))
            bench.gates[self.name] = tuple(parts_of(cls, checked, self.suites or cls.gate))
        for part in bench.gates[self.name]:
            Replayer(part.binding)
            if part.at.suite in MADE_OF_CASES:
                part.suite(BUDGET)

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Run the suites as long as more are needed; False if they do not use the modules."""
        path = bench.folder / self.file
        # Its neighbours were loaded with the unchanged implementation.
        forget((), [path.parent])
        try:
            cls = load_binding(path)
        except NoBinding as error:
            reporter.note("loading", str(error))
            return True
        if modules and sys.modules.keys().isdisjoint(modules):
            return False
        parts = (
            (part.name, replace(part, binding=cls(part.instance.program))) for part in bench.gates[self.name]
        )
        reporter.check_each(parts, lambda part: failure_of(run_part(part, BUDGET)))
        return True


class AcceptedRuns(Struct, frozen=True):
    """The runs of the behaviours in `file`, a path from the main binding's folder."""

    name: str
    file: str

    def prepare(self, bench: Bench) -> None:
        """Read the lock, without which no run can be checked."""
        self._accepted(bench)

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Execute runs as long as they are needed; False if they do not use the modules."""
        path, accepted = bench.folder / self.file, self._accepted(bench)
        # Its neighbours were loaded with the unchanged implementation.
        forget((), [path.parent])
        runs: dict[str, Run] = {}

        def listed() -> str:
            runs.update(load_behaviours(path)().runs())
            other = sorted(runs.keys() ^ accepted.runs.keys())
            return f"{len(other)} runs are not those of the lock, {other[0]} first" if other else ""

        try:
            needs_more = reporter.check("the list of runs", listed)
        except NoBinding as error:
            needs_more = reporter.note("loading", str(error))
        if modules and sys.modules.keys().isdisjoint(modules):
            return False
        if needs_more:
            names = ((name, name) for name in runs)
            reporter.check_each(names, lambda name: _changed(name, runs[name], accepted))
        return True

    def _accepted(self, bench: Bench) -> AcceptedBehaviour:
        """What the lock has; `BadLock` if there is none."""
        path = (bench.folder / self.file).with_name(NAME)
        accepted = read(path).behaviour
        if accepted is None:
            raise BadLock(f"there is no {path} with accepted behaviour")
        return accepted


def _changed(name: str, run: Run, accepted: AcceptedBehaviour) -> str:
    """The first difference of a run from the accepted one; empty if there is none."""
    if name not in accepted.runs:  # listed above
        return ""
    made = taken(name, run, accepted.runs[name])
    if (difference := made.difference) is None:
        new = sorted(made.texts - {*accepted.texts})
        return f"says `{new[0][:80]}`" if new else ""
    return f"step {difference.number}, {difference.about[:80]}: {difference.place} {difference.after or ''}"


def files_of(members: Iterable[Member], bench: Bench) -> set[Path]:
    """The files of all other bindings and behaviours among some members, with their neighbours and locks."""
    files: set[Path] = set()
    for member in members:
        if isinstance(member, OtherGate | AcceptedRuns):
            folder = (bench.folder / member.file).parent
            files.update(folder.glob("*.py"), [folder / NAME] if isinstance(member, AcceptedRuns) else [])
    return files
