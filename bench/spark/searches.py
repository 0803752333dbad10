"""The search on Spark beside the native engine: throughput, small levels, memory.

    python bench/spark/searches.py [--sizes 1M,5M,20M] [--handovers 1,100000] [--partitions 0]
        [--master local[2]]
    python bench/spark/searches.py --sizes 20M --handovers 100000 --partitions 16 --limit 600
    python bench/spark/searches.py --sizes 20M --handovers 1

Each size is searched by the native engine with two threads and then on Spark, in one process and on
the same cores, so the ratio is what to compare; both have to say the same.  Handover 1: Spark does
all levels.  Java's and Spark's start and compiling the program are not in the seconds.

`CPU`: seconds of processor of native engine and Spark (driver, JVM and workers), whose ratio depends
less on what else runs.  `small level`: the median of levels of less than 10 000 states.  `worker MB`:
the largest anonymous memory of a Python worker; the most that one had in memory, libraries and mapped
tables included (`VmHWM`); and its largest address space.  `tables MB`: files of visited states at their
largest, all partitions.  `shuffled MB`: what tasks sent to one another.
`--limit`: megabytes of address space for each Python worker (`ulimit -v`).
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import engine
from specchk.native.compiler import exchange_code
from specchk.native.machine.layout import layout_of
from specchk.search.budget import Budget, Progress
from specchk.search.verdict import Outcome
from specchk.spark import engine as spark_engine
from specchk.spark.session import session

SPEC = Path(__file__).resolve().parents[2] / "spec"
TICKS = os.sysconf("SC_CLK_TCK")
HEAD = (
    "| model | states | handover | native M/s | Spark M/s | ratio | CPU s, native, Spark | us/state | "
    "small level s | worker MB | tables MB | shuffled MB |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Size:
    """A model by its number of states."""

    file: str
    model: str
    constants: tuple[tuple[str, str], ...] = ()

    def program(self) -> Program:
        return instantiate(check(str(SPEC / self.file)), self.model, dict(self.constants)).program


def kip320(records: int, size: int, epochs: int) -> Size:
    """Three replicas, without symmetry: 16 bytes a state."""
    bounds = (("LogSize", size), ("MaxRecords", records), ("MaxLeaderEpoch", epochs))
    three = (("Replicas", "3"), *((name, str(bound)) for name, bound in bounds))
    return Size("kafka/kip320.spec", "small", three)


SIZES = {
    "0.04M": kip320(2, 2, 1),
    "1M": kip320(2, 2, 2),  # 737 794
    "5M": kip320(3, 3, 2),  # 4 093 531
    "10M": kip320(2, 2, 3),  # 9 985 570
    "20M": kip320(3, 2, 3),  # 28 002 814
    "3M": Size("replication_large.spec", "three_brokers_two_records"),
    "23M": Size("replication_large.spec", "three_brokers_crash"),
}


def below(pid: int) -> Iterator[int]:
    """The processes that a process started, and theirs."""
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found = [int(word) for word in file.read_text().split()]
        except OSError:
            continue
        for child in found:
            yield child
            yield from below(child)


def cpu_seconds() -> float:
    """Processor time of this process, all below it, and those of them that ended."""
    total = 0
    for pid in (os.getpid(), *below(os.getpid())):
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(word) for word in words[11:15])
    return total / TICKS


class Watch(threading.Thread):
    """Peaks of any Python worker, and of the files of tables."""

    def __init__(self, scratch: Path) -> None:
        super().__init__(daemon=True)
        self.scratch = scratch
        self.anonymous_mb = self.resident_mb = self.address_mb = self.tables_mb = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        looks = 0
        while not self.over.wait(0.1):
            for pid in below(os.getpid()):
                self._look(pid)
            # Now and then: of a thousand partitions there are thousands of files, and they come and go.
            if looks % 20 == 0:
                with suppress(OSError):
                    self.tables_mb = max(self.tables_mb, sum(map(size_of, self.scratch.rglob("*"))) / 2**20)
            looks += 1

    def _look(self, pid: int) -> None:
        try:
            status, line = Path(f"/proc/{pid}/status").read_text(), Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            return
        sizes = {name: int(kb) / 1024 for name, kb in re.findall(r"(\w+):\s+(\d+) kB", status)}
        if "pyspark.worker" in line and "RssAnon" in sizes and not status.startswith("Name:\tjava"):
            self.anonymous_mb = max(self.anonymous_mb, sizes["RssAnon"])
            self.resident_mb = max(self.resident_mb, sizes["VmHWM"])
            self.address_mb = max(self.address_mb, sizes["VmPeak"])


def size_of(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except OSError:
        return 0


def natively(program: Program) -> tuple[Outcome, float, float]:
    """The native engine's outcome, seconds and processor time; the median of three where that is short."""
    engine.search(program, engine.NativeOptions(Budget(max_states=1), symmetry=False))  # compiled, and kept
    runs = []
    for _ in range(3):
        began = cpu_seconds()
        outcome = engine.search(program, engine.NativeOptions(symmetry=False, workers=2))
        runs.append((outcome.statistics.seconds, cpu_seconds() - began))
        if runs[0][0] > 3:
            break
    seconds, cpu = sorted(runs)[len(runs) // 2]
    return outcome, seconds, cpu


def measure(name: str, handover: int, args: argparse.Namespace, folder: Path) -> str:
    """One row of the table."""
    program = SIZES[name].program()
    native, seconds, native_cpu = natively(program)
    seen: list[Progress] = []
    options = spark_engine.SparkOptions(
        symmetry=False,
        partitions=args.partitions,
        handover=handover,
        scratch=str(folder / "scratch"),
    )
    watch = Watch(folder / "scratch")
    with session(args.master, {}):
        spark_engine.search(
            SIZES["0.04M"].program(), replace(options, partitions=0, handover=1)
        )  # Java gets warm
        exchange_code(program, layout_of(program), [])  # compiled and kept, too
        watch.start()
        began = cpu_seconds()
        spark = spark_engine.search(program, options, seen.append)
        cpu = cpu_seconds() - began
        watch.over.set()
        watch.join()
    answers = [(o.verdict, o.statistics.levels, o.statistics.generated, o.coverage) for o in (native, spark)]
    assert answers[0] == answers[1], f"{name}: the engines do not agree: {answers[1][0]}"
    states, taken = native.statistics.distinct, spark.statistics.seconds
    return (
        f"| {SIZES[name].file} | {states:,} | {handover:,} | {states / seconds / 1e6:.2f} | "
        f"{states / taken / 1e6:.2f} | {seconds / taken:.2f}x | {native_cpu:.1f}, {cpu:.1f} | "
        f"{taken / states * 1e6:.2f} | {small_level(seen)} | "
        f"{watch.anonymous_mb:.0f}, {watch.resident_mb:.0f}, {watch.address_mb:.0f} | "
        f"{watch.tables_mb:.0f} | {shuffled_mb(seen):.0f} |"
    )


def shuffled_mb(seen: list[Progress]) -> float:
    """Megabytes of successors that tasks sent, in all levels."""
    return sum(float(found[1]) for p in seen if (found := re.search(r"([\d.]+) MB shuffled", p.note)))


def small_level(seen: list[Progress]) -> str:
    """Seconds of a level of less than 10 000 states, in the middle."""
    notes = [found for p in seen if (found := re.search(r": (\d+) new.* ([\d.]+) s$", p.note))]
    small = [float(found[2]) for found in notes if int(found[1]) < 10_000]
    return f"{statistics.median(small):.2f}" if small else ""


def limit_workers(megabytes: int, folder: Path) -> None:
    """Let Spark start Python workers that have so much address space and no more."""
    limited = folder / "python"
    limited.write_text(f'#!/bin/sh\nulimit -v {megabytes * 1024}\nexec "{sys.executable}" "$@"\n')
    limited.chmod(0o755)
    os.environ.update(PYSPARK_PYTHON=str(limited), OPENBLAS_NUM_THREADS="1", MALLOC_ARENA_MAX="1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default="1M,5M,20M")
    parser.add_argument("--handovers", default="1,100000")
    parser.add_argument("--partitions", type=int, default=0)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--limit", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specchk-bench-") as folder:
        if args.limit:
            limit_workers(args.limit, Path(folder))
        load = os.getloadavg()[0]
        print(f"load {load:.1f} on {os.cpu_count()} cores at {time.strftime('%H:%M')}", file=sys.stderr)
        print(HEAD)
        for name in args.sizes.split(","):
            for handover in args.handovers.split(","):
                print(measure(name, int(handover), args, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
