"""Kip320 side by side: specchk, the hand-written C search, SPIN and Rumur on the same states.

    python bench/engines/compare.py [--sizes small,large] [--runs 3] [--programs specchk1,c1,...]

Every program explores the same state space (symmetry off, invariants WeakIsr and StrongIsr, no
deadlock check) and has to report the same number of states, else its row says so.  Programs take
turns, run by run, so that a change in the machine's speed meets all of them; figures are medians of
whole processes: wall seconds, and the largest resident set as the system accounts it.  Peers' models
are in bench/engines/peers; gcc, and Debian's rumur and spin, have to be installed (a missing one is left out
and said so).  Prints the table of bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
SPEC = HERE.parents[1] / "spec" / "kafka" / "kip320.spec"


@dataclass(frozen=True)
class Size:
    """One instance of Kip320, with the number of its distinct states."""

    name: str
    replicas: int
    log: int
    records: int
    epoch: int
    states: int


SIZES = {
    size.name: size
    for size in (
        Size("tiny", 2, 2, 2, 2, 5_973),
        Size("medium", 2, 3, 3, 3, 120_879),
        Size("small", 3, 2, 2, 2, 737_794),
        Size("large", 3, 2, 2, 3, 9_985_570),
    )
}


@dataclass
class Run:
    """What one process took."""

    wall_s: float
    processor_s: float
    peak_bytes: int
    states: int
    search_s: float | None = None


@dataclass
class Row:
    """The runs of one program on one size."""

    program: str
    size: Size
    runs: list[Run] = field(default_factory=list)
    note: str = ""


Build = Callable[[Size, Path], "list[str] | None"]
Parse = Callable[[str], tuple[int, float | None]]


def defines(size: Size) -> list[str]:
    """The size as C preprocessor options."""
    return [f"-DNR={size.replicas}", f"-DLOG={size.log}", f"-DREC={size.records}", f"-DEP={size.epoch}"]


def build_c(threads: int, store: int) -> Build:
    """The hand-written search: store 2 keeps parents (one thread), store 0 whole states in the table."""

    def build(size: Size, work: Path) -> list[str] | None:
        out = work / f"c{threads}{store}{size.name}"
        options = [f"-DTHREADS={threads}", f"-DSTORE={store}", *defines(size)]
        quiet(
            [
                "gcc",
                "-O3",
                "-march=native",
                *options,
                str(HERE / "peers/kip320.c"),
                "-o",
                str(out),
                "-lpthread",
            ]
        )
        slots = max(12, (size.states * 3 // 2).bit_length())
        return [str(out), str(slots)]

    return build


def build_spin(size: Size, work: Path) -> list[str] | None:
    """SPIN, depth first, compiled -O3; no cycle and no deadlock checks."""
    folder = work / f"spin{size.name}"
    folder.mkdir(exist_ok=True)
    quiet(["spin", *defines(size), "-a", str(HERE / "peers/kip320.pml")], cwd=folder)
    options = ["-O3", "-march=native", "-DSAFETY", "-DNOCLAIM", "-DMEMLIM=20000", "-DNOREDUCE"]
    quiet(["gcc", "-w", *options, "pan.c", "-o", "pan"], cwd=folder)
    return [
        str(folder / "pan"),
        "-E",
        f"-m{size.states + 1000}",
        f"-w{max(20, (size.states * 2).bit_length())}",
    ]


def build_rumur(threads: int) -> Build:
    """Rumur, breadth first, compiled -O3, symmetry off."""

    def build(size: Size, work: Path) -> list[str] | None:
        text = (HERE / "peers/kip320.m").read_text()
        for name, value in (
            ("NR", size.replicas),
            ("LOG", size.log),
            ("REC", size.records),
            ("EP", size.epoch),
        ):
            text = re.sub(rf"^(\s*{name}:\s*)\d+;", rf"\g<1>{value};", text, flags=re.MULTILINE)
        model = work / f"rumur{threads}{size.name}.m"
        model.write_text(text)
        source, out = model.with_suffix(".c"), model.with_suffix(".out")
        options = ["--symmetry-reduction", "off", "--deadlock-detection", "off", "--threads", str(threads)]
        quiet(["rumur", *options, "--output", str(source), str(model)])
        quiet(
            [
                "gcc",
                "-w",
                "-std=c11",
                "-O3",
                "-march=native",
                "-mcx16",
                str(source),
                "-o",
                str(out),
                "-lpthread",
                "-latomic",
            ]
        )
        return [str(out)]

    return build


def build_specchk(engine: str, workers: int) -> Build:
    """Specchk as its users run it; the compiled code comes from the cache after the first run."""

    def build(size: Size, work: Path) -> list[str] | None:
        program = shutil.which("specchk") or str(Path(sys.executable).with_name("specchk"))
        constants = {"Replicas": size.replicas, "LogSize": size.log, "MaxRecords": size.records,
                     "MaxLeaderEpoch": size.epoch}  # fmt: skip
        settings = [text for name, value in constants.items() for text in ("--set", f"{name}={value}")]
        more = ["--workers", str(workers)] if engine == "native" else []
        only = ["--property", "weak_isr", "--property", "strong_isr"]
        return [
            program,
            "run",
            str(SPEC),
            *settings,
            *only,
            "--engine",
            engine,
            *more,
            "--no-symmetry",
            "--json",
        ]

    return build


def parse_json(text: str) -> tuple[int, float | None]:
    """States and search seconds of specchk."""
    found = json.loads(text)
    return int(found["states_distinct"]), float(found["seconds"])


def parse_c(text: str) -> tuple[int, float | None]:
    """`... distinct N ... | S s wall`."""
    return _number(r"distinct (\d+)", text), float(re.search(r"([\d.]+) s wall", text)[1])  # type: ignore[index]


def parse_spin(text: str) -> tuple[int, float | None]:
    """`N states, stored`."""
    found = _number(r"(\d+) states, stored", text)
    return found, None


def parse_rumur(text: str) -> tuple[int, float | None]:
    """`N states, M rules fired`."""
    return _number(r"(\d+) states, \d+ rules fired", text), None


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else -1


PROGRAMS: dict[str, tuple[str, Build, Parse]] = {
    "c1": ("hand-written C, parents, 1 thread", build_c(1, 2), parse_c),
    "c2": ("hand-written C, 2 threads", build_c(2, 0), parse_c),
    "specchk1": ("specchk native, 1 thread", build_specchk("native", 1), parse_json),
    "specchk2": ("specchk native, 2 threads", build_specchk("native", 2), parse_json),
    "spin": ("SPIN 6.5, depth first", build_spin, parse_spin),
    "rumur1": ("Rumur, 1 thread", build_rumur(1), parse_rumur),
    "rumur2": ("Rumur, 2 threads", build_rumur(2), parse_rumur),
    "reference": ("specchk reference", build_specchk("reference", 1), parse_json),
}


def quiet(command: list[str], cwd: Path | None = None) -> None:
    """Run a build step; its output is shown only when it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stderr[-500:]}")


def measure(command: list[str], parse: Parse, timeout_s: float) -> Run:
    """One process, timed from outside."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # then each run would compile all of specchk
    with tempfile.TemporaryFile("w+") as out:
        started = time.monotonic()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=environment)
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - started > timeout_s:
                child.kill()
                os.wait4(child.pid, 0)
                raise RuntimeError(f"took more than {timeout_s:.0f} s")
            time.sleep(0.002)
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        states, search = parse(out.read())
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, states, search)


def compare(names: list[str], sizes: list[Size], runs: int, timeout_s: float) -> list[Row]:
    """All rows; programs take turns."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            ready = []
            for name in names:
                row = Row(PROGRAMS[name][0], size)
                rows.append(row)
                try:
                    command = PROGRAMS[name][1](size, Path(folder))
                    assert command is not None
                    ready.append((row, command, PROGRAMS[name][2]))
                    if name.startswith("specchk"):
                        measure(
                            command, PROGRAMS[name][2], timeout_s
                        )  # compile once, as any second run finds it
                except (OSError, RuntimeError) as error:
                    row.note = f"not measured: {error}"
            for _ in range(runs):
                for row, command, parse in ready:
                    if not row.note:
                        _one(row, command, parse, timeout_s)
    return rows


def _one(row: Row, command: list[str], parse: Parse, timeout_s: float) -> None:
    try:
        run = measure(command, parse, timeout_s)
    except RuntimeError as error:
        row.note = f"not measured: {error}"
        return
    if run.states != row.size.states:
        row.note = f"WRONG: {run.states} states"
    row.runs.append(run)
    print(f"# {row.program} {row.size.name} {run.wall_s:.2f} s", file=sys.stderr, flush=True)


def table(rows: list[Row]) -> str:
    """Markdown, one row a program and size.

    Ratios are to the C search of the same threads: `to C` of search time where a program tells it (a process
    of specchk starts Python and loads compiled code first), else of wall time; `CPU to C` of the processor
    time of whole processes, which other work on the machine disturbs less.
    """
    lines = [
        (
            "| Kip320 | program | states | wall s | CPU s | search s | M states/s | MB | bytes/state | to C "
            "| CPU to C |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    base: Times = {}
    processor: Times = {}
    for row in rows:
        if row.program.startswith("hand-written") and row.runs:
            threads = 2 if "2 threads" in row.program else 1
            base[row.size.name, threads] = statistics.median(run.search_s or run.wall_s for run in row.runs)
            processor[row.size.name, threads] = statistics.median(run.processor_s for run in row.runs)
    return "\n".join(lines + [_line(row, base, processor) for row in rows])


Times = dict[tuple[str, int], float]  # of the C search, by size and threads


def _line(row: Row, base: Times, processor: Times) -> str:
    size = row.size
    shape = f"{size.replicas}/{size.log}/{size.records}/{size.epoch}"
    if not row.runs or row.note:
        return f"| {shape} | {row.program} | {row.note or 'not measured'} | | | | | | | | |"
    wall = statistics.median(run.wall_s for run in row.runs)
    search = [run.search_s for run in row.runs if run.search_s is not None]
    searched = statistics.median(search) if search else None
    peak = statistics.median(run.peak_bytes for run in row.runs)
    threads = 2 if "2 threads" in row.program else 1
    ratio = f"{(searched or wall) / base[size.name, threads]:.2f}x" if (size.name, threads) in base else ""
    used = statistics.median(run.processor_s for run in row.runs)
    to_c = processor.get((size.name, threads))
    cpu_ratio = f"{used / to_c:.2f}x" if to_c else ""
    rate = size.states / (searched or wall) / 1e6
    shown = f"{searched:.2f}" if searched is not None else ""
    return (
        f"| {shape} | {row.program} | {size.states:,} | {wall:.2f} | {used:.2f} | {shown} | {rate:.3f} "
        f"| {peak / 2**20:.0f} | {peak / size.states:.0f} | {ratio} | {cpu_ratio} |"
    )


def machine() -> str:
    """What it was measured on."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    tools = (["gcc", "--version"], ["rumur", "--version"], ["spin", "-V"])
    asked = [command for command in tools if shutil.which(command[0])]
    said = [subprocess.run(command, capture_output=True, text=True, check=False).stdout for command in asked]
    versions = "; ".join(text.splitlines()[0] for text in said)
    return (
        f"{os.cpu_count()} cores, {model[1] if model else '?'}; Python {sys.version.split()[0]}; {versions}"
    )


def main() -> None:
    """Measure what was asked for and print the table."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sizes", default="small,large")
    options.add_argument("--programs", default=",".join(name for name in PROGRAMS if name != "reference"))
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    chosen = options.parse_args()
    sizes = [SIZES[name] for name in chosen.sizes.split(",")]
    rows = compare(chosen.programs.split(","), sizes, chosen.runs, chosen.timeout)
    print(f"{machine()}; {chosen.runs} runs, medians, {time.strftime('%Y-%m-%d')}\n")
    print(table(rows))


if __name__ == "__main__":
    main()
