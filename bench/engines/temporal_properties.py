"""Temporal properties beside the safety search: the same states with and without one property, in turns.

    python bench/engines/temporal_properties.py [--sizes small,large] [--runs 3] [--workers 2]

Kip320 with all of its actions weakly fair.  Of each size the search alone and the search with a property take
turns in one process, and have to find the same number of states; both properties hold, so that all of the
region is decomposed.  Seconds are those of the reports, without compiling; the largest resident set is of a
process for itself.  Prints the table of bench/README.md.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchk.compile.instantiate import instantiate
from specchk.lang.frontend import check
from specchk.native.engine import NativeEngine, NativeOptions, search
from specchk.native.machine.frames import Owing
from specchk.search.budget import resident_bytes
from specchk.search.verdict import name_of

SPEC = Path(__file__).resolve().parents[2] / "spec" / "kafka" / "kip320.spec"
ACTIONS = (
    "controller_shrink_isr, controller_elect_leader, become_leader, leader_write, fenced_leader_expand_isr, "
    "fenced_leader_shrink_isr, fenced_leader_inc_high_watermark, fenced_become_follower_and_truncate, "
    "fenced_follower_fetch"
)
# The controller acts until epochs or members are used up.
ENDS = "next_leader_epoch > MaxLeaderEpoch or quorum_state.isr == {}"
PROPERTIES = {
    "none": "",
    "leadsto": f"next_leader_epoch <= MaxLeaderEpoch leadsto {ENDS}",
    "eventually always": f"eventually always ({ENDS})",
}
SIZES = {"tiny": (2, 2, 2, 2), "small": (3, 2, 2, 2), "large": (3, 2, 2, 3), "largest": (3, 2, 2, 4)}


@dataclass(frozen=True)
class Run:
    """What one search took; states and edges of the region."""

    states: int
    seconds: float
    region: int
    edges: int
    verdict: str
    memory: int


def program_text(size: str, form: str) -> str:
    """Kip320 with one temporal property."""
    replicas, log, records, epoch = SIZES[size]
    timed = f"liveness timed: {PROPERTIES[form]}\nfair {ACTIONS}\n" if PROPERTIES[form] else ""
    return f"""spec timed_kip320
extends kip320
{timed}model timed:
    Replicas = {replicas}, LogSize = {log}, MaxRecords = {records}, MaxLeaderEpoch = {epoch}
    expect holds
"""


def run_once(size: str, form: str, workers: int) -> Run:
    """One search."""
    with tempfile.TemporaryDirectory() as name:
        for file in SPEC.parent.glob("*.spec"):
            (Path(name) / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        spec = Path(name) / "timed_kip320.spec"
        spec.write_text(program_text(size, form), encoding="utf-8")
        program = instantiate(check(str(spec)), "timed").program
    sizes: list[int] = []

    def on_end(engine: NativeEngine, _: Any) -> None:
        sizes.append(resident_bytes())
        if engine.steps is not None:
            lanes = engine.steps.lanes
            sizes.extend([sum(lanes.queued()), lanes.region[Owing.NEXT_EDGE]])

    outcome = search(program, NativeOptions(workers=workers, symmetry=False, on_end=on_end))
    memory, region, edges = (*sizes, 0, 0)[:3]
    took = outcome.statistics.seconds - outcome.statistics.prepared_s
    return Run(outcome.statistics.distinct, took, region, edges, name_of(outcome.verdict), memory)


def memory_of(size: str, form: str, workers: int) -> int:
    """The resident bytes at the end of one search in a process of its own."""
    command = [sys.executable, __file__, "--memory", size, form, str(workers)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Measure, and print the table."""
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", default="small,large")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--memory", nargs=3)
    chosen = options.parse_args()
    if chosen.memory:
        size, form, workers = chosen.memory
        print(run_once(size, form, int(workers)).memory)
        return
    print("| Kip320 | property | states | region | edges | s | to search | MB | bytes/state more |")
    print("|---|---|---|---|---|---|---|---|---|")
    for size in chosen.sizes.split(","):
        runs = {form: [] for form in PROPERTIES}  # type: dict[str, list[Run]]
        for form in PROPERTIES:
            run_once(size, form, chosen.workers)  # the code is in the cache then
        for _ in range(chosen.runs):
            for form, found in runs.items():
                found.append(run_once(size, form, chosen.workers))
        memory = {form: memory_of(size, form, chosen.workers) for form in PROPERTIES}
        alone = statistics.median(run.seconds for run in runs["none"])
        for form, found in runs.items():
            last, took = found[-1], statistics.median(run.seconds for run in found)
            assert {run.verdict for run in found} == {"holds"}, found
            assert last.states == runs["none"][-1].states
            more = (memory[form] - memory["none"]) / last.states
            print(
                f"| {'/'.join(map(str, SIZES[size]))} | {form} | {last.states:,} | {last.region:,} | "
                f"{last.edges:,} | {took:.2f} | {took / alone:.2f}x | {memory[form] / 1e6:.0f} | {more:.1f} |"
            )


if __name__ == "__main__":
    main()
