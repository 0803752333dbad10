"""A member of a gate: accepted behaviour, in which each run must match its lock.

    AcceptedRuns("behaviour", "behaviour/behaviours.py")     each run is a test

Invariant: as `specchk behaviour --lock`, run for run, and so is the list of runs.  Not here: how a run is
taken and compared (`behaviour.running`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from specchk.conform.behaviour.accepted import NAME, BadAccepted, read
from specchk.conform.behaviour.running import taken
from specchk.conform.behaviour.symbols import Symbols
from specchk.conform.contract.behaviours import Run
from specchk.conform.contract.load import NoBinding, load_behaviours
from specchk.conform.mutation.members import Bench, Reporter
from specchk.conform.mutation.patches import forget


class AcceptedRuns(Struct, frozen=True):
    """The runs of the behaviours in `file`, a path from the main binding's folder."""

    name: str
    file: str
    layer: str = "behaviour"

    def files(self, bench: Bench) -> list[Path]:
        """The file, its neighbours and the lock."""
        folder = self._path(bench).parent
        return [*sorted(folder.glob("*.py")), folder / NAME]

    def prepare(self, bench: Bench) -> None:
        """Read the lock, without which no run can be checked."""
        self._accepted(bench)

    def hold(self, bench: Bench, modules: Sequence[str], reporter: Reporter) -> bool:
        """Execute runs as long as they are needed; False if they do not use the modules."""
        path, accepted = self._path(bench), self._accepted(bench)
        # Its neighbours were loaded with the unchanged implementation.
        forget((), [path.parent])
        runs: dict[str, Run] = {}

        def listed() -> str:
            runs.update(load_behaviours(path)().runs())
            other = sorted(runs.keys() ^ accepted.keys())
            return f"{len(other)} runs are not those of the lock, {other[0]} first" if other else ""

        try:
            needs_more = reporter.check("the list of runs", listed)
        except NoBinding as error:
            needs_more = reporter.note("loading", str(error))
        if modules and not any(module in sys.modules for module in modules):
            return False
        for name, run in runs.items() if needs_more else ():
            if not reporter.check(name, lambda name=name, run=run: _changed(name, run, accepted.get(name))):  # type: ignore[misc]
                break
        return True

    def _path(self, bench: Bench) -> Path:
        return bench.folder / self.file

    def _accepted(self, bench: Bench) -> dict[str, Symbols]:
        """The digests in the lock; `BadAccepted` if there is none."""
        path = self._path(bench).with_name(NAME)
        accepted = read(path)
        if accepted is None:
            raise BadAccepted(f"there is no {path}")
        return accepted


def _changed(name: str, run: Run, accepted: Symbols | None) -> str:
    """The first difference of a run from the accepted one; empty if there is none."""
    if accepted is None:  # listed above
        return ""
    difference = taken(name, run, accepted).difference
    if difference is None:
        return ""
    return f"step {difference.number}, {difference.about[:80]}: {difference.place} {difference.after or ''}"
