"""Recordings validated by Spark on this machine, beside one process.

    python bench/spark/recordings.py FOLDER [--turns 1] [--master local[2]]

FOLDER has recordings of replog (`replog sim --seeds 0..9999 --record FOLDER`).  One process and Spark take
turns, each as a command of its own with JSON; both reports have to be equal, times and workers aside.

`s`: of the report, without the start of Python and of Spark's session; `events/s` is the rate in these.
`wall s`, `CPU s`: of the whole command, the latter by process: driver, JVM, workers.  `Python MB`, `JVM MB`:
peaks of resident memory of the driver's two processes; `worker MB`: of the largest Python worker, without
pages of files.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from searches import below

ROOT = Path(__file__).resolve().parents[2]
TRACING = ROOT / "conformance" / "tracing.py"
TICKS = os.sysconf("SC_CLK_TCK")
KINDS = ("Python", "JVM", "worker")
HEAD = (
    "| | events/s | s | wall s | CPU s | Python MB | JVM MB | worker MB |\n|---|---|---|---|---|---|---|---|"
)
APART = ("seconds", "events_per_second", "workers")


def look(pid: int, found: dict[str, int], cpu: dict[int, tuple[str, float]]) -> None:
    """Note the resident memory of a command's processes, by kind, and the processor time of each."""
    for one in (pid, *below(pid)):
        place = Path(f"/proc/{one}")
        try:
            status, line = (place / "status").read_text(), (place / "cmdline").read_text()
            times = (place / "stat").read_text().rpartition(")")[2].split()[11:13]
        except OSError:
            continue
        sizes = dict(row.split(":\t", 1) for row in status.splitlines() if ":\t" in row)
        if "VmHWM" not in sizes:
            continue
        is_worker = "pyspark.daemon" in line or "pyspark.worker" in line
        kind = "JVM" if sizes["Name"] == "java" else "worker" if is_worker else "Python" if one == pid else ""
        kilobytes = int(sizes["RssAnon" if is_worker else "VmHWM"].split()[0])
        found[kind] = max(found.get(kind, 0), kilobytes)
        cpu[one] = kind, sum(map(int, times)) / TICKS


def validated(folder: Path, *args: str) -> tuple[dict[str, Any], str]:
    """A command's report, and what it cost as a row of a table."""
    line = [sys.executable, "-m", "specchk", "validate", str(TRACING), str(folder), "--no-power", "--json"]
    line += args
    found: dict[str, int] = {}
    cpu: dict[int, tuple[str, float]] = {}
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(line, stdout=out, env={**os.environ, "PYSPARK_PYTHON": sys.executable})
        while process.poll() is None:
            look(process.pid, found, cpu)
            time.sleep(0.05)
        out.seek(0)
        report: dict[str, Any] = json.loads(out.read())
    wall = time.monotonic() - began
    spent = ", ".join(
        f"{sum(s for kind, s in cpu.values() if kind == one):.1f}" for one in KINDS if one in found
    )
    sizes = " | ".join(f"{found[kind] / 1024:.0f}" if kind in found else "" for kind in KINDS)
    rate = report["events"] / report["seconds"]
    return report, f"{rate:,.0f} | {report['seconds']:.1f} | {wall:.1f} | {spent} | {sizes} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--master", default="local[2]")
    args = parser.parse_args()
    ratios = []
    print(HEAD)
    for _ in range(args.turns):
        one, row = validated(args.folder, "--workers", "1")
        print(f"| one process | {row}", flush=True)
        with tempfile.TemporaryDirectory(prefix="specchk-bench-") as folder:
            words = ("--tables", str(Path(folder, "tables")), "--conf", "spark.driver.memory=470m")
            many, row = validated(args.folder, "--master", args.master, *words)
        print(f"| {args.master} | {row}", flush=True)
        said = [{key: value for key, value in report.items() if key not in APART} for report in (one, many)]
        assert said[0] == said[1], "the reports differ"
        ratios.append(one["seconds"] / many["seconds"])
    ratio = statistics.median(ratios)
    print(f"{one['recordings']:,} recordings, {one['events']:,} events: {ratio:.2f}x of one process")


if __name__ == "__main__":
    main()
