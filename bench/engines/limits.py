"""How long commands take that a limit has to end: models made not to end, on all engines.

    python bench/engines/limits.py [--limit "--max-seconds 2"] [--every N] [--cold]
                                    [--only TEXT] [--without TEXT]

The models are in `hostile/`, with the commands to run on each in their first lines, and in `GENERATED`.  Each
command that has the limit is run in a process of its own, twice: first with an empty cache, then with what
the first run kept (`--cold`: only the first).  A figure is the time of the process beyond the seconds of the
limit, start and end of Python included.  `test` has the limit for each model and scenario.  Each process has
to end within 1 s of `--max-seconds`, with a verdict or a refusal (`CODES`) and not with a signal.  Prints
each run and a table of commands with the machine's load, and exits with 1 where a run is not fine.

For other limits give a time, too, since not every model needs many states, or much memory, in a time:
`--limit "--max-memory 400M --max-seconds 10"`.  The table has the most memory that a process had.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

BEYOND_S = 1.0
HANGS_S = 60.0  # beyond the limit
CODES = (0, 2, 10, 11, 20, 21, 30)
PART = re.compile(r"^(model|scenario) ", re.MULTILINE)
# The commands that have each option that limits; `tests/laws/test_limits.py` compares this with the program.
LIMITS = {
    "--max-seconds": ("run", "simulate", "draw", "test", "conditions"),
    "--max-states": ("run", "simulate", "draw", "test", "conditions"),
    "--max-memory": ("run", "simulate", "draw", "test", "conditions"),
    "--query-seconds": ("run --prove", "run --depth"),
}
FOLDER = Path(__file__).parent / "hostile"
ENGINES = (
    "run",
    "run --engine reference",
    "run --engine symbolic",
    "run --prove",
    "simulate --walks 1000000",
    "run --engine spark",
)


def code(many: int) -> str:
    """A spec of many actions whose bodies differ, so that each is compiled."""
    lines = ["spec code", "sort P", "var f : P -> 0..99 = { p: 0 for p in P }", "var s : set[P] = {}"]
    for number in range(many):
        other = f"if r == p then (f[r] + {number}) % 99 else if r in s then f[q] else f[r]"
        lines += [
            f"action a{number}(p: P, q: P):",
            f"    require f[p] < {number % 90 + 1} and (exists r in P: f[r] * {number} % 7 <= f[q])",
            f"    f' = {{ r: ({other}) for r in P }}",
            f"    s' = {{ r for r in P if f[r] > {number % 50} or r == q }}",
        ]
    return "\n".join([*lines, "model m:", "    P = 5", "    expect holds", ""])


def invariants(many: int) -> str:
    """A spec of many invariants that take long."""
    lines = ["spec invariants", "var n : 0..1000000 = 0", "action up():", "    n' = n + 1"]
    slow = "forall x in 0..999: exists y in 0..999"
    lines += [f"invariant i{k}: {slow}: x * {k} + y >= n - {k}" for k in range(many)]
    return "\n".join([*lines, "model m:", "    expect holds", ""])


GENERATED = {
    "code": (code(120), ENGINES[:-1]),
    "much_code": (code(600), (*ENGINES, "test")),
    "many_invariants": (invariants(120), ENGINES),
}


def models() -> dict[str, tuple[str, tuple[str, ...]]]:
    """The text of each model, and its commands."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.spec"))}
    heads = {
        name: tuple([line[2:] for line in text.splitlines() if line.startswith("# ")])
        for name, text in texts.items()
    }
    return {name: (text, heads[name]) for name, text in texts.items()} | GENERATED


@dataclass(frozen=True)
class Run:
    """One process; `beyond` are its seconds beyond the limit, `line` is one of its output."""

    name: str
    command: str
    is_cold: bool
    beyond: float
    code: int
    line: str
    mebibytes: int

    @property
    def is_fine(self) -> bool:
        """Whether it ended in time, with a verdict."""
        return self.beyond <= BEYOND_S and self.code in CODES


def measured(name: str, command: str, limit: str, cache: str, *, is_cold: bool) -> Run:
    """Run one command in the folder of the cache."""
    spec = Path(cache) / f"{name}.spec"
    spec.write_text(models()[name][0], encoding="utf-8")
    options = dict(zip(limit.split()[::2], limit.split()[1::2], strict=True))
    seconds = float(options.get("--max-seconds", 0.0))
    kind, *rest = shlex.split(command)
    if kind == "test":
        seconds *= len(PART.findall(models()[name][0]))
    words = [sys.executable, "-m", "specchk", kind, str(spec), *rest, *limit.split()]
    began = time.monotonic()
    # Into a file: Java that is about to start holds pipes for seconds after the command.
    with Path(cache, "out").open("wb") as file:
        process = subprocess.Popen(
            words, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, "XDG_CACHE_HOME": cache}
        )
        killing = threading.Timer(seconds + HANGS_S, process.kill)
        killing.start()
        _, status, usage = os.wait4(process.pid, 0)
        killing.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    beyond = time.monotonic() - began - seconds
    lines = Path(cache, "out").read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
    line = lines[0 if process.returncode in CODES else -1]
    return Run(name, command, is_cold, beyond, process.returncode, line[:90], usage.ru_maxrss >> 10)


def chosen(limit: str, only: str, without: str) -> Iterator[tuple[str, str]]:
    """The models and commands that a limit is measured on."""
    commands = LIMITS[limit.split()[0]]
    for name, (_, runs) in models().items():
        for command in runs:
            text = f"{name}: {command}"
            if command.startswith(commands) and only in text and not (without and without in text):
                yield name, command


def table(runs: Sequence[Run]) -> Iterator[str]:
    """The lines of a table: for each command, its runs and the seconds beyond the limit."""
    groups = defaultdict(list)
    for run in runs:
        groups[" ".join(word for word in run.command.split() if not word.isdigit())[:40]].append(run)
    yield "| command | runs | median | longest | most memory | not fine |"
    yield "|---|---|---|---|---|---|"
    for command, each in (*sorted(groups.items()), ("all", list(runs))):
        times = [run.beyond for run in each]
        most = max(run.mebibytes for run in each)
        bad = sum(not run.is_fine for run in each)
        figures = f"{len(each)} | {median(times):.2f} s | {max(times):.2f} s | {most} MiB | {bad}"
        yield f"| `{command}` | {figures} |"


def main() -> None:
    """Measure, and print what took longest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--limit", default="--max-seconds 2")
    parser.add_argument("--only", default="")
    parser.add_argument("--without", default="")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--cold", action="store_true")
    given = parser.parse_args()
    runs, loads = [], [os.getloadavg()[0]]
    for name, command in [*chosen(given.limit, given.only, given.without)][:: given.every]:
        with tempfile.TemporaryDirectory() as cache:
            for is_cold in (True,) if given.cold else (True, False):
                run = measured(name, command, given.limit, cache, is_cold=is_cold)
                runs.append(run)
                loads.append(os.getloadavg()[0])
                mark = "  " if run.is_fine else "! "
                way = "cold" if is_cold else "warm"
                figures = f"{mark}{run.beyond:6.2f} s {run.mebibytes:5} MiB  {run.code:3}  {way}"
                print(f"{figures}  {name}: {command}  | {run.line}", flush=True)
    many = len({run.name for run in runs})
    load = f"load average {min(loads):.1f} to {max(loads):.1f}"
    print(f"\n{given.limit}: {len(runs)} runs of {many} models, {load}\n")
    print(*table(runs), sep="\n")
    sys.exit(any(not run.is_fine for run in runs))


if __name__ == "__main__":
    main()
