"""A search on a standalone cluster that loses a process of each kind, beside the native engine's answer.

    python bench/spark/kills.py [--size 20M] [--partitions 8]

Two workers with a core each on this machine; Spark does all levels.  SIGKILL goes, at the first slice of a
large level, to the next of: a Python worker, an executor, PySpark's daemon, the driver with its JVM (which
is resumed), a worker's JVM.  Losses are spread from a third to nearly all of the states.  The answers have
to be equal, times aside.

For each loss: the states that were known, and the seconds until that level is complete; beside them what
they would be at the rate of the level before.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[0] = str(ROOT / "tests")  # instead of this folder, whose `spark` is another one

from spark.cluster import Cluster, Driver, children, command, standalone, wait_for  # noqa: E402

SIZES = {"0.04M": (2, 2, 1), "5M": (3, 3, 2), "20M": (3, 2, 3)}  # records, log, epochs, as in `searches`
KINDS = ("Python worker", "executor", "PySpark's daemon", "driver", "worker's JVM")


def model(size: str) -> tuple[str, ...]:
    """The search's arguments."""
    names = ("MaxRecords", "LogSize", "MaxLeaderEpoch")
    bounds = [f"{name}={bound}" for name, bound in zip(names, SIZES[size], strict=True)]
    values = [word for bound in bounds for word in ("--set", bound)]
    file = str(ROOT / "spec" / "kafka" / "kip320.spec")
    return (file, "--model", "small", "--no-symmetry", "--set", "Replicas=3", *values)


def said(answer: dict[str, Any]) -> dict[str, Any]:
    """All of an answer but the engine's name and the time."""
    return {key: value for key, value in answer.items() if key not in ("engine", "seconds")}


def natively(size: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "specchk", "run", *model(size), "--json"]
    found: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
    return found


def python_below(pid: int) -> Iterator[int]:
    """The processes of PySpark below a process: daemons before their workers."""
    for child in children(pid):
        if "pyspark.worker" in command(child):
            yield child
        yield from python_below(child)


def victim(cluster: Cluster, kind: str) -> int:
    """A process of a kind, other than the driver."""
    if kind == "worker's JVM":
        return cluster.workers[0]
    executor = wait_for(cluster.executors)[0]
    if kind == "executor":
        return executor
    found = wait_for(lambda: list(python_below(executor)))
    return found[0] if kind == "PySpark's daemon" else found[-1]


def slices(ledger: Path, level: int) -> int:
    """The slices of a level that are whole."""
    return sum(not file.name.startswith(".") for file in ledger.glob(f"run-*/{level:05d}/*"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--size", choices=sorted(SIZES), default="20M")
    parser.add_argument("--partitions", type=int, default=8)
    args = parser.parse_args()
    native = natively(args.size)
    sizes = native["levels"]
    known = list(accumulate(sizes))
    shares = [0.35 + 0.15 * number for number in range(len(KINDS))]
    at = [next(level for level, states in enumerate(known) if states >= known[-1] * part) for part in shares]
    words = (*model(args.size), "--partitions", str(args.partitions))
    with tempfile.TemporaryDirectory(prefix="specchk-bench-") as folder:
        ledger, began = Path(folder, "ledger"), time.monotonic()
        with standalone(Path(folder)) as cluster:
            driver = Driver(cluster, ledger, *words)
            for level, kind in zip(at, KINDS, strict=True):
                driver.at_level(level - 1)
                before = time.monotonic()
                driver.at_level(level)
                rate = sizes[level - 1] / (time.monotonic() - before)
                begun = time.monotonic()
                if kind == "driver":
                    driver.kill()
                    driver = Driver(cluster, ledger, *words, "--resume")
                else:
                    os.kill(victim(cluster, kind), signal.SIGKILL)
                wait_for(lambda level=level: slices(ledger, level) >= args.partitions)
                print(
                    f"{kind}: level {level} of {len(sizes)}, {known[level]:,} states; "
                    f"{time.monotonic() - begun:.1f} s to the end of the level, {sizes[level] / rate:.1f} s "
                    "at the rate before",
                    flush=True,
                )
            answer = driver.answer()
        equal = said(answer) == said(native)
        print(f"{answer['states_distinct']:,} states, {time.monotonic() - began:.0f} s: "
              f"{'equal' if equal else 'NOT EQUAL'}")  # fmt: skip
    sys.exit(not equal)


if __name__ == "__main__":
    main()
