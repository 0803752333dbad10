"""Another commit beside this one: the same searches by both, in turns.

    python bench/commits.py COMMIT [--runs 5] [--only native]

COMMIT is checked out into a folder of its own and run by this interpreter, with the specs of COMMIT for both,
so that both search the same states.  A search is one `specchk run --json` in a process of its own, with the
code of an earlier run in the cache; both have to give the same verdict and number of states.  A figure
is the processor time of the process and its children in seconds; ratios are of neighbours, the median of all.
Prints the table of bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KIP320 = (
    "spec/kafka/kip320.spec", "--no-symmetry", "--set", "Replicas=3", "--set", "LogSize=2",
    "--set", "MaxRecords=2", "--set", "MaxLeaderEpoch=2",
)  # fmt: skip
SEARCHES = {
    "native kip320": (*KIP320, "--workers", "2"),
    "native replication": ("spec/replication.spec", "--model", "three_brokers", "--workers", "2"),
    "reference two_round_fetch": ("spec/two_round_fetch.spec", "--engine", "reference"),
    "symbolic three_epochs": ("spec/replication.spec", "--model", "three_epochs", "--engine", "symbolic"),
    "spark kip320": (*KIP320, "--engine", "spark", "--master", "local[2]"),
}


@dataclass(frozen=True)
class Run:
    """One process: verdict and states of its report, processor and wall seconds."""

    answer: tuple[str, int]
    processor: float
    wall: float


def run_once(code: Path, specs: Path, arguments: tuple[str, ...]) -> Run:
    """Search with the code of one folder and the specs of another."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(code / name) for name in ("interp", "impl")),
    }
    spec, *options = arguments
    command = [sys.executable, "-m", "specchk", "run", str(specs / spec), *options, "--json"]
    before = os.times()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=code)
    after = os.times()
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    report = json.loads(done.stdout)
    processor = sum(
        getattr(after, key) - getattr(before, key) for key in ("children_user", "children_system")
    )
    return Run((report["verdict"], report["states_distinct"]), processor, after.elapsed - before.elapsed)


def main() -> None:
    """Measure, and print the table."""
    options = argparse.ArgumentParser()
    options.add_argument("commit")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--only", default="")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        other = Path(name) / "other"
        subprocess.run(
            ["git", "-C", ROOT, "worktree", "add", "-q", "--detach", other, chosen.commit], check=True
        )
        try:
            measure(other, chosen.runs, chosen.only)
        finally:
            subprocess.run(["git", "-C", ROOT, "worktree", "remove", "--force", other], check=True)


def measure(other: Path, runs: int, only: str) -> None:
    """Print a row for each search."""
    print("| search | states | before CPU s | now CPU s | now to before | least to least |")
    print("|---|---|---|---|---|---|")
    for label, arguments in SEARCHES.items():
        if only not in label:
            continue
        for code in (other, ROOT, other, ROOT):
            # The code is in the cache then: optimised where a run took longer than the compiler.
            run_once(code, other, arguments)
        pairs = [(run_once(other, other, arguments), run_once(ROOT, other, arguments)) for _ in range(runs)]
        assert len({run.answer for pair in pairs for run in pair}) == 1, pairs
        before, now = ([run.processor for run in side] for side in zip(*pairs, strict=True))
        ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
        medians = " | ".join(f"{statistics.median(side):.2f}" for side in (before, now))
        states = pairs[0][0].answer[1]
        print(f"| {label} | {states:,} | {medians} | {ratio:.3f}x | {min(now) / min(before):.3f}x |")


if __name__ == "__main__":
    main()
