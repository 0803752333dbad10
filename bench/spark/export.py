"""What an export costs: the native search of a model alone, and with an export, each in its own process.

python bench/spark/export.py [SIZE ...]      sizes as in bench/spark/searches.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CHILD = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
sys.setrecursionlimit(20_000)
from searches import SIZES
from specchk.export.export import export
from specchk.native.engine import NativeOptions, search
place = Path(sys.argv[3]) if len(sys.argv) > 3 else None
on_end = (lambda found, outcome: export(found, outcome, place)) if place is not None else None
program = SIZES[sys.argv[2]].program()
began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
counts = search(program, NativeOptions(symmetry=False, on_end=on_end)).statistics
wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
print(json.dumps([counts.distinct, counts.generated, wall, cpu, after.ru_maxrss >> 10]))
"""


def measured(size: str, *place: str) -> list[float]:
    """States, transitions, seconds, processor seconds and MB of a process."""
    line = [sys.executable, "-c", CHILD, str(Path(__file__).parent), size, *place]
    found: list[float] = json.loads(subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main(sizes: list[str]) -> None:
    print("| | states | transitions | | wall s | processor s | MB | files MB |")
    print("|---|---|---|---|---|---|---|---|")
    for size in sizes:
        measured(size)  # so that code comes from the cache
        for name in ("search", "with export"):
            with tempfile.TemporaryDirectory() as folder:
                place = [str(Path(folder, "E"))] if name == "with export" else []
                if place:
                    measured(size, str(Path(folder, "first")))
                states, steps, wall, cpu, memory = measured(size, *place)
                files = (
                    sum(path.stat().st_size for path in Path(folder, "E").rglob("*") if path.is_file()) >> 20
                )
            print(
                f"| {size} | {states:,} | {steps:,} | {name} | {wall:.2f} | {cpu:.2f} | {memory} | {files} |"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", default=["1M", "5M"])
    main(parser.parse_args().sizes)
