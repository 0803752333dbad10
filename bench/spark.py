"""The search on Spark beside the native engine: throughput, small levels, memory.

    python bench/spark.py [--sizes 1M,10M,23M] [--partitions 4] [--master local[2]] [--limit 0]

Each size is searched by the native engine with two threads and then on Spark, in one process and on
the same cores, so the ratio is what to compare; both have to say the same.  Java's and Spark's start
are not in the seconds.  `small level` is the median of levels of less than 10 000 states.  Memory is
the largest resident set of a Python worker, without the pages of files that are mapped into it.
`--limit` (megabytes) bounds the address space of a Python worker, as `ulimit -v` does.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from specchk.core.budget import Progress
from specchk.core.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import engine
from specchk.spark import search
from specchk.spark.session import session

SPEC = Path(__file__).resolve().parent.parent / "spec"


@dataclass(frozen=True)
class Size:
    """A model by its number of states."""

    file: str
    model: str
    constants: tuple[tuple[str, str], ...] = ()

    def program(self) -> Program:
        return instantiate(check(str(SPEC / self.file)), self.model, dict(self.constants)).program


SIZES = {
    "0.04M": Size("kafka/kip320.spec", "small", (("Replicas", "3"), ("MaxLeaderEpoch", "1"))),
    "1M": Size("kafka/kip320.spec", "small", (("Replicas", "3"),)),
    "10M": Size("kafka/kip320.spec", "small", (("Replicas", "3"), ("MaxLeaderEpoch", "3"))),
    "23M": Size("replication_large.spec", "three_brokers_crash"),
}


class Watch(threading.Thread):
    """The largest anonymous resident set of any Python worker below this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            for pid in self._workers():
                self.peak_mb = max(self.peak_mb, self._anonymous_mb(pid))

    def _workers(self) -> list[int]:
        found, queue = [], [os.getpid()]
        while queue:
            for file in Path(f"/proc/{queue.pop()}/task").glob("*/children"):
                try:
                    queue += (below := [int(word) for word in file.read_text().split()])
                    found += [p for p in below if "pyspark" in Path(f"/proc/{p}/cmdline").read_text()]
                except OSError:
                    continue
        return found

    def _anonymous_mb(self, pid: int) -> float:
        try:
            text = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return 0.0
        if "\nName:\tjava" in "\n" + text:
            return 0.0
        found = re.search(r"RssAnon:\s+(\d+) kB", text)
        return int(found.group(1)) / 1024 if found else 0.0


def measure(name: str, handover: int, args: argparse.Namespace, settings: dict[str, str]) -> str:
    """One row of the table."""
    program = SIZES[name].program()
    native = engine.run(program, engine.Options(symmetry=False, workers=2))
    seen: list[Progress] = []
    options = search.Options(symmetry=False, partitions=args.partitions, handover=handover)
    watch = Watch()
    with session(args.master, settings):
        if not args.cold:
            warm = search.Options(symmetry=False, partitions=args.partitions, handover=1)
            search.run(SIZES["0.04M"].program(), warm)
        watch.start()
        spark = search.run(program, options, seen.append)
        watch.over.set()
    counts = [(o.verdict, o.statistics.levels, o.statistics.generated, o.coverage) for o in (native, spark)]
    assert counts[0] == counts[1], f"{name}: the engines do not agree"
    levels = [
        (int(m[1]), float(m[2])) for p in seen if (m := re.search(r": (\d+) new.* ([\d.]+) s$", p.note))
    ]
    small = [seconds for states, seconds in levels if states < 10_000]
    states, a, b = native.statistics.distinct, native.statistics.seconds, spark.statistics.seconds
    per_level = f"{statistics.median(small):.2f}" if small else ""
    return (
        f"| {states:,} | {handover:,} | {states / a / 1e6:.2f} | {states / b / 1e6:.2f} | {a / b:.2f}x | "
        f"{b / states * 1e6:.2f} | {per_level} | {watch.peak_mb:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="1M,10M,23M")
    parser.add_argument("--handovers", default="1,100000")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--cold", action="store_true")
    args = parser.parse_args()
    settings = {"spark.executor.pyspark.memory": f"{args.limit}m"} if args.limit else {}
    load = os.getloadavg()[0]
    print(f"load {load:.1f} on {os.cpu_count()} cores at {time.strftime('%H:%M')}", file=sys.stderr)
    print("| states | handover | native M/s | Spark M/s | ratio | us/state | small level s | worker MB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in args.sizes.split(","):
        for handover in args.handovers.split(","):
            print(measure(name, int(handover), args, settings), flush=True)


if __name__ == "__main__":
    main()
