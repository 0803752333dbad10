"""Many seeds, one set of figures: how much was run, what went wrong on purpose, and what broke.

python -m replog.sim.sweep 10000 all        # exit 1 and the commands that repeat the failures, if there are
any
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter

from replog.sim.run import Report, simulate


@dataclass(slots=True)
class Sweep:
    """The sum of many reports."""

    seeds: int = 0
    steps: int = 0
    simulated_ms: int = 0
    crashes: int = 0
    restarts: int = 0
    elections: int = 0
    isr_changes: int = 0
    committed: int = 0
    acknowledged: int = 0
    consumed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    failures: list[Report] = field(default_factory=list)

    def add(self, report: Report) -> None:
        """Add one run."""
        figures = report.figures
        self.seeds += 1
        self.steps += report.steps
        self.simulated_ms += report.simulated_ms
        self.crashes += report.crashes
        self.restarts += report.restarts
        self.elections += figures.elections
        self.isr_changes += figures.isr_changes
        self.committed += figures.committed
        self.acknowledged += figures.acknowledged
        self.consumed += figures.consumed
        self.faults.update(report.faults)
        if report.is_failure:
            self.failures.append(report)

    def text(self) -> str:
        """Return the verdict, the figures, and every failure with its command."""
        verdict = f"{len(self.failures)} failed" if self.failures else "all oracles hold"
        lines = [
            f"{self.seeds} seeds: {verdict}",
            f"  {self.steps} protocol steps in {self.simulated_ms // 1000} simulated seconds",
            f"  {self.crashes} crashes, {self.restarts} starts, {self.elections} elections",
            f"  {self.isr_changes} partition changes",
            f"  records: {self.committed} committed, {self.acknowledged} acknowledged with acks=all",
            f"  {self.consumed} consumed",
            f"  {sum(self.faults.values())} faults:",
            *(f"    {name:22} {count}" for name, count in sorted(self.faults.items())),
        ]
        return "\n".join([*lines, *(report.text() for report in self.failures)])


def sweep(first_seed: int, count: int, profile_name: str, protocol: str = "") -> Sweep:
    """Run consecutive seeds of a profile; KeyError for an unknown profile or protocol."""
    total = Sweep()
    for seed in range(first_seed, first_seed + count):
        total.add(simulate(seed, profile_name, protocol))
    return total


def main(arguments: list[str]) -> int:
    """Sweep `COUNT PROFILE [FIRST]` and write the figures; 1 if anything failed."""
    count, profile_name, first = int(arguments[0]), arguments[1], int((*arguments, "0")[2])
    begun = perf_counter()
    total = sweep(first, count, profile_name)
    rate = total.steps / (perf_counter() - begun)
    sys.stdout.write(f"{total.text()}\n  {rate:.0f} steps/s of real time\n")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
