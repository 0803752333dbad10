"""Sets of messages, before and after: the reference engine, which such models ran on, and listed sets.

    python bench/engines/sparse.py [--seconds 10] [--runs 3] [--before CHECKOUT]

For each model: states a second of the reference engine within the seconds, and of the native engine with code
from the cache, symmetry off, on two threads; both of searching alone, medians of the runs.  With another
checkout, dense models run in both, in turns, and the ratio of their times is printed: it has to stay below
1.02.  Prints the tables of bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    """A model with its constants, and a limit in states where all are too many."""

    name: str
    file: str
    model: str
    constants: tuple[str, ...] = ()
    states: int | None = None


SPARSE = (
    Case("Raft, 3 servers, 2 terms, log of 2, 2 in flight", "examples/raft", "one_term",
         ("MaxTerm=2", "MaxLog=2"), 6_000_000),
    Case("Raft, the same, 4 in flight", "examples/raft", "one_term",
         ("MaxTerm=2", "MaxLog=2", "InFlight=4"), 6_000_000),
    Case("Paxos, 3 acceptors, 4 ballots, 2 values (bits)", "examples/paxos", "two_ballots", ("Ballots=4",)),
    Case("Paxos, 3 acceptors, 6 ballots, 2 values (listed)", "examples/paxos", "two_ballots",
         ("Ballots=6",), 6_000_000),
    Case("sliding-block puzzle", "examples/sliding_block", "huarong_dao"),
)  # fmt: skip
DENSE = (
    Case("kip320 3/2/2/2", "kafka/kip320", "small", ("Replicas=3",)),
    Case("two-phase commit, 7", "examples/two_phase_commit", "five", ("Participant=7",)),
    Case("replication", "replication_large", "three_brokers_two_records"),
)


def statistics_of(case: Case, checkout: Path, *options: str) -> tuple[int, float]:
    """States and seconds of one search in a process of its own."""
    command = [sys.executable, "-m", "specchk", "run", f"spec/{case.file}.spec", "--model", case.model,
               "--json", "--no-symmetry", *options]  # fmt: skip
    for constant in case.constants:
        command += ["--set", constant]
    if case.states is not None:
        command += ["--max-states", str(case.states)]
    path = os.pathsep.join(str(checkout / room) for room in ("interp", "impl"))
    done = subprocess.run(
        command,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    return found["states_distinct"], found["seconds"]


def median_rate(case: Case, runs: int, *options: str) -> tuple[int, float]:
    """States, and states a second."""
    found = [statistics_of(case, HERE, *options) for _ in range(runs)]
    return found[0][0], statistics.median(states / seconds for states, seconds in found)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--before", type=Path)
    given = parser.parse_args()
    print("| model | states | reference, states/s | native, states/s | ratio |\n|---|---|---|---|---|")
    for case in SPARSE:
        _, slow = median_rate(case, 1, "--engine", "reference", "--max-seconds", str(given.seconds))
        statistics_of(case, HERE, "--workers", "2")  # compiles
        states, fast = median_rate(case, given.runs, "--workers", "2")
        print(f"| {case.name} | {states:,} | {slow:,.0f} | {fast:,.0f} | {fast / slow:,.0f}x |", flush=True)
    if given.before is not None:
        print("\n| dense model | states | before s | after s | ratio |\n|---|---|---|---|---|")
        for case in DENSE:
            turns = [(statistics_of(case, given.before.resolve()), statistics_of(case, HERE))
                     for _ in range(given.runs + 1)][1:]  # fmt: skip
            assert all(before[0] == after[0] or case.states for before, after in turns), case.name
            before = min(seconds for (_, seconds), _ in turns)
            after = min(seconds for _, (_, seconds) in turns)
            print(
                f"| {case.name} | {turns[0][1][0]:,} | {before:.2f} | {after:.2f} | {after / before:.3f}x |"
            )


if __name__ == "__main__":
    main()
