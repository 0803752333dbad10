"""The first answer of each bundled spec, with nothing in the cache of specchk.

    python bench/engines/first_answer.py [--before CHECKOUT] [--every N] [--only TEXT] [--turns N]

Each spec is run once with its default model by `specchk run --json` in a process of its own, with an empty
cache directory and Python's bytecode written by a run before.  A figure is the processor time of the process
and its children, in seconds, followed by the wall time.  Models with more states than `SMALL`, and those that
end in `LIMIT_S`, are listed as large.  With `--before`, the code of another checkout searches the same specs
in turns, and has to give the same answer.  `--every N` takes each Nth spec, `--turns N` the medians of N
runs.  Prints the table of bench/README.md.
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
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL = 100_000
LIMIT_S = 60
BOUNDS = (0.5, 0.75, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Answer:
    """One process, or the median of several: its seconds, the verdict and the number of states."""

    processor: float
    wall: float
    verdict: str
    states: int


def ask(code: Path, spec: Path) -> Answer | None:
    """Run a spec with the code of one folder and an empty cache; None where it has no model to run."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "PYTHONPATH": str(code / "interp")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # then each run would compile all of specchk
        command = [sys.executable, "-m", "specchk", "run", str(spec), "--json", "--max-seconds", str(LIMIT_S)]
        began = time.monotonic()
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        assert child.stdout is not None
        text = child.stdout.read()
        _, _, usage = os.wait4(child.pid, 0)
        wall = time.monotonic() - began
        child.returncode = 0
    report = json.loads(text)
    if "states_distinct" not in report:  # a spec that others import, without a model of its own
        return None
    return Answer(usage.ru_utime + usage.ru_stime, wall, report["verdict"], report["states_distinct"])


def median(answers: list[Answer]) -> Answer:
    """The answer with the median times of several runs."""
    processor = statistics.median(answer.processor for answer in answers)
    return replace(answers[0], processor=processor, wall=statistics.median(answer.wall for answer in answers))


def measure(codes: list[Path], specs: list[Path], turns: int) -> list[tuple[Path, list[Answer]]]:
    """The answers of all specs, by each code in turn."""
    for code in codes:
        ask(code, specs[0])  # writes the bytecode
    found = []
    for spec in specs:
        runs = [[answer for code in codes if (answer := ask(code, spec)) is not None] for _ in range(turns)]
        answers = [median(list(of_code)) for of_code in zip(*runs, strict=True)]
        if len(answers) < len(codes):
            print(f"# {spec.relative_to(ROOT)} left out", file=sys.stderr, flush=True)
            continue
        if len({(answer.verdict, answer.states) for answer in answers}) > 1 and answers[0].states <= SMALL:
            raise SystemExit(f"{spec}: the answers differ: {answers}")
        found.append((spec, answers))
        print(f"# {spec.relative_to(ROOT)} {answers}", file=sys.stderr, flush=True)
    return found


def table(found: list[tuple[Path, list[Answer]]], names: list[str]) -> str:
    """Markdown: how many small models have answered within each bound, and the slowest."""
    small = [(spec, answers) for spec, answers in found if answers[0].states <= SMALL]
    lines = [
        f"| {len(small)} small models | median s | most s | {' | '.join(f'within {b} s' for b in BOUNDS)} |",
        f"|---|---|---|{'---|' * len(BOUNDS)}",
    ]
    for number, name in enumerate(names):
        times = sorted(answers[number].processor for _, answers in small)
        within = " | ".join(str(sum(time <= bound for time in times)) for bound in BOUNDS)
        lines.append(f"| {name} | {statistics.median(times):.2f} | {times[-1]:.2f} | {within} |")
    lines += ["", "| slowest | states | " + " | ".join(f"{name}, s (wall)" for name in names) + " |"]
    lines += ["|---|---|" + "---|" * len(names)]
    slowest = sorted(small, key=lambda row: -row[1][-1].processor)[:12]
    large = [row for row in found if row not in small]
    for spec, answers in [*slowest, *large]:
        shown = " | ".join(f"{answer.processor:.2f} ({answer.wall:.2f})" for answer in answers)
        lines.append(f"| {spec.relative_to(ROOT)} | {answers[0].states:,} | {shown} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="a checkout of another commit")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="specs whose path has this text")
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    specs = [spec for spec in sorted((ROOT / "spec").rglob("*.spec")) if options.only in str(spec)]
    codes = {"before": options.before} if options.before else {}
    codes["now"] = ROOT
    print(table(measure(list(codes.values()), specs[:: options.every], options.turns), list(codes)))


if __name__ == "__main__":
    main()
