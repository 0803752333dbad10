"""Random walks: steps a second of compiled and interpreted walks, and of Quint's simulator.

    python bench/engines/simulate.py [--quint PATH] [--seconds S] [--runs N]
    python bench/engines/simulate.py --errors [--runs N]

Each cell is a simulation of one model under a limit of time, with code that is compiled before.  A rate is
the steps of a second of walking; in parentheses of a second of the process's processor time, which other work
on the machine changes less.  Quint runs `peers/two_phase_commit.qnt`, by its interpreter in TypeScript.

With `--errors` each cell is the number of the walk that finds a planted error of `spec/replication.spec`, the
median of some seeds.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from specchk.compile.instantiate import instantiate
from specchk.explore.simulate import Walks
from specchk.explore.simulate import simulate as walked
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native.machine.layout import layout_of
from specchk.native.machine.rooms import first_room, with_room
from specchk.native.tiers import load_kernel
from specchk.native.walking.simulation import StepChoice, WalkSource, simulate
from specchk.search.budget import Budget
from specchk.search.verdict import Outcome

ROOT = Path(__file__).parents[2]
MODELS = (
    ("spec/replication.spec", None),
    ("spec/replication.spec", "three_brokers"),
    ("spec/kafka/kip320.spec", None),
    ("spec/examples/raft.spec", None),
    ("spec/examples/paxos.spec", None),
    ("spec/examples/two_phase_commit.spec", None),
)
MANY = 10**9  # walks; the limit of time ends them
DEPTH = 100
MOST_WALKS = 100_000
ERRORS = (
    "b1_truncate_to_hw", "b5_joins_before_epoch_start", "b6_missed_epoch", "b8_foreign_acknowledgement",
    "b16_unclean_election", "b19_no_compare_and_set", "b24_fenced_member", "b30_joins_below_hw",
)  # fmt: skip


def rate(outcome: Outcome, cpu_s: float) -> tuple[float, float]:
    """Steps a second of walking, and a second of processor time."""
    numbers = outcome.statistics
    return numbers.generated / (numbers.seconds - numbers.prepared_s), numbers.generated / cpu_s


def measured(program: Program, workers: int, seconds: float, choice: StepChoice) -> tuple[float, float]:
    """The rates of one compiled simulation."""
    began = time.process_time()
    outcome = simulate(program, Walks(1, MANY, DEPTH, Budget(max_seconds=seconds)), workers, choice=choice)
    return rate(outcome, time.process_time() - began)


def interpreted(program: Program, seconds: float) -> float:
    """Steps a second of interpreted walks on one process."""
    outcome = walked(program, Walks(1, 10**5, DEPTH, Budget(max_seconds=seconds)))
    return rate(outcome, 1)[0]


def of_model(path: str, model: str | None, options: argparse.Namespace) -> str:
    """The row of a model."""
    program = instantiate(check(str(ROOT / path)), model).program
    roomy = with_room(program, first_room(program))
    load_kernel(WalkSource(roomy, layout_of(roomy)), is_long=True)
    kinds = ((1, StepChoice.UNIFORM), (2, StepChoice.UNIFORM), (2, StepChoice.GUIDED))
    runs = [
        [measured(program, n, options.seconds, choice) for n, choice in kinds] for _ in range(options.runs)
    ]
    cells = []
    for column in zip(*runs, strict=True):
        wall, cpu = (statistics.median(one[i] for one in column) for i in (0, 1))
        cells.append(f"{wall / 1e6:.2f} ({cpu / 1e6:.2f})")
    slow = statistics.median(interpreted(program, options.seconds) for _ in range(options.runs))
    return f"| {program.spec} {program.model} | {slow:,.0f} | {' | '.join(cells)} |"


def of_quint(quint: str) -> str:
    """The row of Quint's simulator."""
    samples, steps = 1000, DEPTH
    model = ROOT / "bench" / "engines" / "peers" / "two_phase_commit.qnt"
    line = [quint, "run", "--backend", "typescript", "--max-samples", str(samples), "--max-steps", str(steps),
            "--seed", "1", "--invariant", "consistent", str(model)]  # fmt: skip
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    walking = re.search(r"\((\d+)ms at", done.stdout)
    length = re.search(r"average=([0-9.]+)", done.stdout)
    if walking is None or length is None:
        sys.exit(f"this is no report of Quint: {done.stdout}")
    taken = samples * (float(length[1]) - 1)
    wall, cpu = taken / (int(walking[1]) / 1000), taken / (used.ru_utime + used.ru_stime)
    return f"| two_phase_commit three, Quint (TypeScript), 1 thread | {wall:,.0f} ({cpu:,.0f}) | | | |"


def of_error(model: str, options: argparse.Namespace) -> str:
    """The row of a planted error."""
    program = instantiate(check(str(ROOT / "spec" / "replication.spec")), model).program
    cells = []
    for choice in StepChoice:
        failed = []
        for seed in range(options.runs):
            counts = simulate(program, Walks(seed, MOST_WALKS, DEPTH), 2, choice=choice).statistics.walks
            failed.append((counts and counts.failed) or MOST_WALKS)
        median = int(statistics.median(failed))
        cells.append(f"{median:,}" if median < MOST_WALKS else f"more than {MOST_WALKS:,}")
    return f"| {model} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="steps a second of random walks")
    parser.add_argument("--quint", metavar="PATH", help="the command `quint`")
    parser.add_argument("--seconds", type=float, default=5.0, metavar="S", help="of each simulation")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="of which the median is printed")
    parser.add_argument("--errors", action="store_true", help="walks up to planted errors")
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f}")
    if options.errors:
        print("| model | uniform | guided |\n|---|---|---|")
        for model in ERRORS:
            print(of_error(model, options), flush=True)
        return
    print("| model | reference, steps/s | 1 thread, M steps/s (CPU) | 2 threads | 2 threads, guided |")
    print("|---|---|---|---|---|")
    for path, model in MODELS:
        print(of_model(path, model, options), flush=True)
    if options.quint is not None:
        print(of_quint(options.quint))
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
