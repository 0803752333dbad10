"""Flaws of replog, one at a time, held to the gate alone: python bench/gate/flaws.py ROWS [--folder FOLDER].

`specchk mutate` holds a mutant to all layers, and to two failing tests.  Here a flaw is planted in the same
way, and the suites of `make gate` are run as it runs them, those of the parts in the order of `PARTS`, up
to the first that fails: changed behaviour (exit code 14), a divergence (13), or a suite that is vacuous now
(21).

A suite is run for those flaws only whose place it runs: the unchanged replog is run once with a mark at each
place.  Controls and locks are left out.  They are about the gate itself, and a suite that conforms has the
figures of its lock.

    --sample N --seed S   a sample of the flaws
    --parts A,B           only these parts, in this order
    --only ID             one flaw; repeatable
    --budget N            processor seconds of a suite, after which it is undecided (600)
    --table               only print the outcomes in ROWS

ROWS is a file of JSON lines, one for each outcome, to which they are added; what is in it is not run again.
Prints who detected what, by file and part.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import json
import os
import resource
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from specchk.conform.behaviour.running import taken
from specchk.conform.contract.binding import At
from specchk.conform.contract.load import load_behaviours, load_binding
from specchk.conform.gate.tiers import BUDGETS, Part, parts_of, run_part
from specchk.conform.mutation.members import Bench, Kill, Reporter
from specchk.conform.mutation.mutants import Mutant, load
from specchk.conform.mutation.patches import Patch, forget, install, source_of
from specchk.conform.mutation.reach import touched
from specchk.conform.mutation.recorded import Recorded
from specchk.conform.replay.divergence import differences, wanted
from specchk.conform.work import lock_file
from specchk.conform.work.forks import Say, Task, run_all
from specchk.lang.frontend import check

ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "placement",
    "isr_timing",
    "producer_state",
    "membership",
    "fetcher",
    "groups",
    "metadata",
    "proposals",
    "requests",
    "delivery",
    "store",
    "reassignment",
    "log_start",
    "coordinator",
    "controller_log",
    "quorum",
)
FOLDERS = (ROOT / "conformance", *(ROOT / "conformance" / name for name in (*SMALL, "behaviour")))
FILES = At("two_brokers", {"MaxOffset": "1", "MaxEpoch": "0"}, "faults")
PARTS = (
    "behaviour",
    "placement",
    "isr_timing",
    "producer_state",
    "membership",
    "proposals",
    "fetcher",
    "groups",
    "metadata",
    "requests",
    "recordings",
    "delivery",
    "store",
    "reassignment",
    "files",
    "replication",
    "log_start",
    "coordinator",
    "controller_log",
    "quorum",
)
SEEDS = range(40)


@dataclass(frozen=True)
class Bound:
    """A part of the gate that is a binding, with its suites, the smallest graphs first."""

    name: str
    path: Path
    suites: tuple[At, ...] = ()  # all of the binding's gate, if none is named

    @cached_property
    def parts(self) -> dict[str, Part]:
        """The suites by their names."""
        cls = load_binding(self.path)
        checked = check(str(self.path.parent / cls.spec))
        known = lock_file.read(self.path.parent / lock_file.NAME).choices
        made = parts_of(cls, checked, self.suites or cls.gate, None if self.suites else known)
        return {f"{self.name}: {part.name}": part for part in made}

    def run(self, suite: str) -> tuple[int, str]:
        """Take a suite with the implementation as it is loaded now: its exit code and first finding."""
        part = self.parts[suite]
        part = replace(part, binding=load_binding(self.path)(part.instance.program))
        result = run_part(part, BUDGETS["gate"])
        found = result.divergence
        if found is None:
            return (21, result.vacuous) if result.vacuous else (0, "")
        step = f"{found.step.action}({', '.join(found.step.args)})" if found.step else "at the start"
        program = part.instance.program
        places = differences(program, found, wanted(program, found))
        where = "; ".join(
            f"{one.path}: the spec has {one.before}, the implementation {one.after}" for one in places[:2]
        )
        return 13, f"{found.kind}, step {len(found.trace.steps) + 1}: {step}: {where or found.reason}"


class Recordings:
    """The part that is recordings."""

    name = "recordings"

    def __init__(self) -> None:
        folder = ROOT / "conformance"
        spec = folder.parent / "spec" / "replication.spec"
        self.bench = Bench(folder, "binding.py", spec, check(str(spec)))
        self.parts = {"recordings: 40": None}

    def run(self, suite: str) -> tuple[int, str]:
        """Record and explain, up to the first recording that is not explained."""
        del suite
        from replog.sim.recording.record_run import record

        kills: list[Kill] = []
        member = Recorded("recordings", "tracing.py", record, SEEDS)
        member.hold(self.bench, (), Reporter(1, {}, kills.append))
        return (13, f"{kills[0].test}: {kills[0].reason}") if kills else (0, "")


class Behaviour:
    """The part that is accepted behaviour."""

    name = "behaviour"
    path = ROOT / "conformance" / "behaviour" / "behaviours.py"

    def __init__(self) -> None:
        self.parts = {"behaviour": None}
        accepted = lock_file.read(self.path.with_name(lock_file.NAME)).behaviour
        self.accepted = {} if accepted is None else accepted.runs

    def run(self, suite: str) -> tuple[int, str]:
        """Take the runs, up to the first that is not the accepted one."""
        del suite
        for name, run in load_behaviours(self.path)().runs().items():
            compared = taken(name, run, self.accepted.get(name))
            if compared.difference is not None:
                first = compared.difference
                return (
                    14,
                    f"{name}, step {first.number}: {first.about[:80]}: {first.place} {first.after or ''}",
                )
        return 0, ""


def part_named(name: str) -> Bound | Recordings | Behaviour:
    """A part of `make gate`."""
    if name == "behaviour":
        return Behaviour()
    if name == "recordings":
        return Recordings()
    if name == "files":
        return Bound(name, ROOT / "conformance" / "on_files.py", (FILES,))
    return Bound(name, ROOT / "conformance" / ("" if name == "replication" else name) / "binding.py")


def planted(
    part: Bound | Recordings | Behaviour, suites: Sequence[str], patches: tuple[Patch, ...], budget: int
) -> Task:
    """Run suites with an implementation of its own, up to the first that fails."""

    def task(say: Say) -> None:
        _fresh(patches)
        for suite in suites:
            used = int(sum(os.times()[:2]))
            resource.setrlimit(resource.RLIMIT_CPU, (used + budget, resource.RLIM_INFINITY))
            try:
                code, line = part.run(suite)
            except Exception as error:  # any exit code but 0 is a red part of the gate
                code, line = 70, f"{type(error).__name__}: {error}"
            say((suite, code, line, round(sum(os.times()[:2]), 1)))
            if code:
                return

    return task


def _fresh(patches: tuple[Patch, ...]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    forget(("replog",), FOLDERS)
    install(patches)


def marked(flaws: Sequence[Mutant]) -> tuple[Patch, ...]:
    """Patches that note which flaws' places are run, in `builtins.run_places`."""
    places: dict[str, list[tuple[int, str]]] = {}
    for flaw in flaws:
        for patch in flaw.patches:
            source = source_of(patch.module).read_text(encoding="utf-8")
            begin = source[: source.index(patch.old)].count("\n") + 1
            pairs = zip(patch.old.split("\n"), [*patch.new.split("\n"), *[""] * 99], strict=False)
            first = next((at for at, (old, new) in enumerate(pairs) if old != new), 0)
            places.setdefault(patch.module, []).append((_code_at(source, begin + first), flaw.id))
    patches = []
    for module, lines in places.items():
        source = source_of(module).read_text(encoding="utf-8")
        tree = ast.parse(source)
        for line, name in lines:
            _mark(tree, line, name)
        patches.append(Patch(module, source, ast.unparse(tree), 0))
    return tuple(patches)


def _code_at(source: str, line: int) -> int:
    """A line or, where it is blank or a comment, the next one that is neither."""
    lines = source.split("\n")
    while line < len(lines) and lines[line - 1].strip()[:1] in ("", "#"):
        line += 1
    return line


def _mark(tree: ast.Module, line: int, name: str) -> None:
    """Add a statement before the innermost one that has a line."""
    best: tuple[int, list[ast.stmt], int] | None = None
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        for node in ast.walk(function):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if not isinstance(body, list) or isinstance(node, ast.ClassDef):
                    continue
                for at, statement in enumerate(body):
                    end = getattr(statement, "end_lineno", -1) or -1
                    lineno = getattr(statement, "lineno", 1 << 30)
                    if lineno <= line <= end and (best is None or end - lineno <= best[0]):
                        best = (end - lineno, body, at)
    if best is not None:
        _, body, at = best
        body.insert(at, ast.parse(f"run_places.add({name!r})").body[0])


def reached(part: Bound | Recordings | Behaviour, suite: str, flaws: Sequence[Mutant]) -> Task:
    """Say which of the flaws' places a suite runs without any of them."""

    def task(say: Say) -> None:
        _fresh(marked(flaws))
        vars(builtins)["run_places"] = places = set[str]()
        code, line = part.run(suite)
        say((code, line, sorted(places)))

    return task


class Rows:
    """The outcomes in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        texts = path.read_text().splitlines() if path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(text) for text in texts]

    def add(self, **row: Any) -> None:
        """Keep a row."""
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def places(self, suite: str) -> dict[str, Any] | None:
        """Which flaws' places a suite runs."""
        return next((row for row in self.rows if row["suite"] == suite and "places" in row), None)

    def of(self, flaw: str) -> list[dict[str, Any]]:
        """The outcomes of a flaw."""
        return [row for row in self.rows if row.get("flaw") == flaw]

    def detected(self, flaw: str) -> dict[str, Any] | None:
        """The first suite that failed."""
        return next((row for row in self.of(flaw) if row["code"]), None)


def measure(
    part: Bound | Recordings | Behaviour, flaws: Sequence[Mutant], rows: Rows, arguments: argparse.Namespace
) -> None:
    """Hold the flaws that are left to a part."""
    for suite in part.parts:
        if rows.places(suite) is None:
            (ended,) = run_all([reached(part, suite, flaws)], 1)
            if not ended.said or ended.said[0][0]:
                raise SystemExit(f"{suite}: the unchanged replog fails: {ended.said or ended.why}")
            rows.add(suite=suite, places=ended.said[0][2])
    left = []
    for flaw in flaws:
        done = {row["suite"] for row in rows.of(flaw.id)}
        everywhere = touched(flaw.patches) is None
        suites = [
            suite for suite in part.parts if everywhere or flaw.id in (rows.places(suite) or {})["places"]
        ]
        suites = [suite for suite in suites if suite not in done]
        if suites and rows.detected(flaw.id) is None:
            left.append((flaw, suites))

    def ended(number: int, result: Any) -> None:
        flaw, suites = left[number]
        for suite, code, line, seconds in result.said:
            rows.add(flaw=flaw.id, suite=suite, code=code, line=line, seconds=seconds)
        if result.how != "done":
            suite = suites[len(result.said)]
            rows.add(flaw=flaw.id, suite=suite, code=0, line=f"undecided: {result.how} {result.why}"[:200])

    tasks = [planted(part, suites, flaw.patches, arguments.budget) for flaw, suites in left]
    run_all(tasks, arguments.workers, None, ended)


def table(flaws: Sequence[tuple[str, Mutant]], rows: Rows) -> None:
    """Print who detected what."""
    files = list(dict.fromkeys(file for file, _ in flaws))
    for file in files:
        of_file = [flaw.id for name, flaw in flaws if name == file]
        by = Counter(
            (rows.detected(name) or {"suite": "none"})["suite"].partition(":")[0] for name in of_file
        )
        parts = ", ".join(f"{part} {count}" for part, count in by.most_common())
        print(f"{file}: {len(of_file)} flaws, {len(of_file) - by['none']} detected; {parts}")
    for _, flaw in flaws:
        row = rows.detected(flaw.id)
        print(
            f"  {flaw.id}: " + (f"{row['suite']} ({row['code']}): {row['line']}" if row else "not detected")
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--folder", type=Path, default=ROOT / "bench" / "gate" / "flaws")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--budget", type=int, default=600)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="only print what is in ROWS")
    arguments = parser.parse_args()
    sys.path[:0] = [str(ROOT / "conformance"), str(ROOT / "tests")]
    names = sorted(path.name for path in arguments.folder.glob("*.toml"))
    flaws = [(name, flaw) for name in names for flaw in load(arguments.folder, name)]
    if arguments.sample:
        flaws = sorted(Random(arguments.seed).sample(flaws, arguments.sample), key=flaws.index)
    flaws = [pair for pair in flaws if not arguments.only or pair[1].id in arguments.only]
    rows = Rows(arguments.rows)
    for name in () if arguments.table else arguments.parts.split(","):
        measure(part_named(name), [flaw for _, flaw in flaws], rows, arguments)
    table(flaws, rows)


if __name__ == "__main__":
    main()
