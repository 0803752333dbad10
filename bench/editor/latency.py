"""How long an editor waits for diagnostics: keystrokes in a spec, through the protocol of `specchk lsp`.

    python bench/editor/latency.py [--edits 200] [SPEC]

At places all over the file a line is typed, character by character, as an edit each, and removed again.
The time of an edit is from the moment before it is sent to the moment when the diagnostics of its version
have been read.  The CPU time is that of the server's process, start and first check left out.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HERE / "tests" / "lsp"))

from lsp_client import Client  # noqa: E402

TYPED = "    require 1 < 2 and x"  # the last character makes it an unknown name


def cpu_seconds(process: int) -> float:
    """The CPU time of a process so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the median, the 95th percentile and the largest of the times."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("spec", nargs="?", type=Path, default=HERE / "spec" / "replication.spec")
    options.add_argument("--edits", type=int, default=200)
    chosen = options.parse_args()
    path = chosen.spec.resolve()
    lines = path.read_text().splitlines()
    actions = [number for number, line in enumerate(lines) if line.startswith("action ")]
    places = actions[:: max(1, len(actions) * (len(TYPED) + 2) // chosen.edits)]
    client = Client(path.parent)
    began = time.perf_counter()
    client.open(path)
    print(f"{path.name}: {len(lines)} lines; opened in {1000 * (time.perf_counter() - began):.0f} ms")
    before = cpu_seconds(client.process.pid)
    times: list[float] = []

    def edited(start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        ends = [{"line": line, "character": column} for line, column in (start, end)]
        began = time.perf_counter()
        client.change(path, {"range": {"start": ends[0], "end": ends[1]}, "text": text})
        client.diagnostics(path)
        times.append(time.perf_counter() - began)

    while len(times) < chosen.edits:
        for line in places:
            edited((line + 1, 0), (line + 1, 0), "\n")
            for column, char in enumerate(TYPED):
                edited((line + 1, column), (line + 1, column), char)
            edited((line + 1, 0), (line + 2, 0), "")
    spent = cpu_seconds(client.process.pid) - before
    client.stop()
    ms = sorted(1000 * value for value in times[: chosen.edits])
    late = ms[len(ms) * 95 // 100]
    print(f"{len(ms)} edits: median {median(ms):.0f} ms, 95 % {late:.0f} ms, worst {ms[-1]:.0f} ms")
    print(f"CPU time of the server: {1000 * spent / len(times):.0f} ms an edit")


if __name__ == "__main__":
    main()
