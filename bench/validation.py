"""Trace validation: its speed, false alarms for recordings with omitted fields, and faults at their lines.

    python bench/validation.py [--events N] [--before CHECKOUT] [--runs N]
    python bench/validation.py --omit 0,40,80 [--recordings N]
    python bench/validation.py --faults N [--recordings N]

Recordings are replog's (`replog sim --record`), seeds from 0.  The first form records at least N events, and
times `specchk validate --no-power` on them, as whole processes that take turns with an earlier checkout's;
processor time is that of all processes.  `--runs` gives medians.

`--omit` drops that share of the fields of all events, each by chance, and validates the rest.  A field that
identifies an event (FIXED) is kept.  The implementation is right, so each recording that is not explained is
a false alarm; those that a bound ended are counted on their own.

`--faults` plants N errors of each kind, each in a recording of its own: another value of a field, a missing
line, two successive lines of one writer exchanged, a line written twice.  A copy that the spec explains all
the same is a behaviour, and counted as allowed.  Of the others it counts how often the reported line is that
of the error, and how often the smallest contradiction has it.  Lines of an error: the one with the wrong
value; either of two equal ones; those from the first to the last of two that are exchanged; after a missing
line the next of its writer, of its message, or about its brokers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from replog.sim.recording.record_run import record
from specchk.conform.contract.load import load_tracing
from specchk.conform.contract.recording import Event, Recording, parse
from specchk.conform.recordings.campaign import Campaign, run_campaign
from specchk.conform.recordings.corrupt import KINDS, spoil
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.lang.frontend import check

ROOT = Path(__file__).parents[1]
TRACING = ROOT / "conformance" / "tracing.py"
FIXED = ("at", "seq", "event", "message", "to", "follower", "leader", "broker", "source")
WORKERS = 2


def written(folder: Path, events: int) -> int:
    """Write whole recordings until they have so many events; their number of events."""
    count = seed = 0
    while count < events:
        lines = record(seed)
        (folder / f"seed-{seed:04}.ndjson").write_text("\n".join(lines) + "\n", encoding="utf-8")
        count, seed = count + len(lines) - 2, seed + 1
    return count


def timed(checkout: Path, folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of `specchk validate` in a checkout."""
    env = {**os.environ, "PYTHONPATH": f"{checkout}/interp:{checkout}/impl"}
    tracing = str(checkout / "conformance" / "tracing.py")
    line = [sys.executable, "-m", "specchk", "validate", tracing, str(folder),
            "--no-power", "--workers", str(WORKERS), "--json"]  # fmt: skip
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(line, cwd=checkout, env=env, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    report = json.loads(done.stdout)
    if report["verdict"] != "explained":
        sys.exit(f"{checkout}: {report['verdict']}: {report['vacuous']}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(events: int, before: Path | None, runs: int) -> None:
    """The table of times."""
    with tempfile.TemporaryDirectory() as name:
        count = written(Path(name), events)
        files = len(list(Path(name).iterdir()))
        checkouts = [*([before] if before else []), ROOT]
        times: dict[Path, list[tuple[float, float]]] = {one: [] for one in checkouts}
        for _ in range(runs):
            for one in checkouts:
                times[one].append(timed(one, Path(name)))
    print(f"{count} events in {files} recordings, {WORKERS} processes, load {os.getloadavg()[0]:.1f}")
    print("| | wall s | CPU s | CPU us an event | to before |")
    print("|---|---|---|---|---|")
    base = 0.0
    for one in checkouts:
        wall, cpu = (statistics.median(column) for column in zip(*times[one], strict=True))
        base = base or cpu
        name = "now" if one == ROOT else "before"
        print(f"| {name} | {wall:.1f} | {cpu:.1f} | {cpu / count * 1e6:.0f} | {cpu / base:.2f}x |")


def omitted(event: Event, share: float, random: Random) -> dict[str, Any]:
    """An event without some of its fields."""
    kept = {k: v for k, v in event.items() if k in FIXED or k == "after" or random.random() >= share}
    if event.get("after"):
        kept["after"] = {k: v for k, v in event["after"].items() if random.random() >= share}
        # An empty one is that of a broker that is down.
        if not kept["after"]:
            del kept["after"]
    return kept


def validated(recordings: list[Recording]) -> Campaign:
    """A campaign of these recordings, without spoiled copies."""
    with tempfile.TemporaryDirectory() as name:
        paths = [Path(name) / f"{n:04}.ndjson" for n in range(len(recordings))]
        for path, one in zip(paths, recordings, strict=True):
            lines = [one.header, *one.events, {"end": True, "events": len(one.events)}]
            path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        cls = load_tracing(TRACING)
        checked = check(str(TRACING.parent / cls.spec))
        options = CampaignOptions(WORKERS, power=False, partial=True, contradictions=len(paths))
        return run_campaign(cls, checked, paths, options)


def alarms(shares: list[int], count: int) -> None:
    """The table of false alarms."""
    whole = [parse(f"seed {seed}", record(seed)) for seed in range(count)]
    print("| omitted | recordings | events | false alarms | ended by a bound | states on average | at most |")
    print("|---|---|---|---|---|---|---|")
    for share in shares:
        random = Random(share)
        left = [
            replace(one, events=tuple(omitted(e, share / 100, random) for e in one.events)) for one in whole
        ]
        campaign = validated(left)
        blocked = [one for one in campaign.results if one.blocked]
        consumed = sum(one.consumed for one in campaign.results)
        mean = sum(one.total for one in campaign.results) / max(consumed, 1)
        bad = sum(bool(one.bad) for one in campaign.results)
        print(f"| {share} % | {count} | {consumed} | {len(blocked)} | {bad} | {mean:.2f} | "
              f"{max(one.most for one in campaign.results)} |", flush=True)  # fmt: skip
        for one in blocked[:3]:
            assert one.blocked is not None
            print(f"    {one.name} event {one.blocked.number}: {one.blocked.reason or one.blocked.misses}")


def lines_of(kind: str, right: Recording, wrong: Recording) -> frozenset[int]:
    """The numbers of the events of the wrong recording that are those of its error."""
    events = [{**e, "seq": 0} for e in right.events]
    spoiled = [{**e, "seq": 0} for e in wrong.events]
    if kind in ("flip", "swap"):
        pairs = enumerate(zip(events, spoiled, strict=True), 1)
        differ = [number for number, (one, other) in pairs if one != other]
        return frozenset(range(differ[0], differ[-1] + 1))
    at = next(
        (n for n, (a, b) in enumerate(zip(events, spoiled, strict=False)) if a != b),
        min(len(events), len(spoiled)),
    )
    if kind == "duplicate":
        return frozenset({at, at + 1})
    return frozenset(_after_gap(events[at], spoiled, at))


def _after_gap(lost: Event, events: list[dict[str, Any]], at: int) -> Iterator[int]:
    """The next event of a missing one's writer, of its message, and about its brokers."""

    def brokers(event: Event) -> set[Any]:
        return {event[k] for k in ("at", "to", "follower", "leader", "broker", "source") if k in event}

    rest = list(enumerate(events[at:], at + 1))
    for is_next in (
        lambda e: e["at"] == lost["at"],
        lambda e: "message" in lost and e.get("message") == lost["message"],
        lambda e: bool(brokers(e) & brokers(lost)),
    ):
        yield from [number for number, event in rest if is_next(event)][:1]


def faults(count: int, recordings: int) -> None:
    """The table of planted errors."""
    whole = [parse(f"seed {seed}", record(seed)) for seed in range(recordings)]
    print(
        "| error | planted | allowed | at its line | in the smallest contradiction | either | lines of it |"
    )
    print("|---|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    for kind in KINDS:
        planted = []
        for n in range(count):
            right = whole[n % recordings]
            copy = spoil(right, kind, Random(f"{kind} {n}"))
            if copy is not None:
                planted.append((right, copy.recording))
        results = validated([wrong for _, wrong in planted]).results
        found: Counter[str] = Counter(planted=len(planted))
        sizes = []
        for (right, wrong), one in zip(planted, results, strict=True):
            if one.blocked is None:
                found["ended" if one.bad else "allowed"] += 1
                continue
            lines = lines_of(kind, right, wrong)
            smallest = one.blocked.contradiction
            members = {line.number for line in smallest.lines} if smallest else {one.blocked.number}
            sizes.append(len(members))
            at, among = one.blocked.number in lines, bool(members & lines)
            found["at"], found["among"], found["either"] = (
                found["at"] + at, found["among"] + among, found["either"] + (at or among),
            )  # fmt: skip
            if not (at or among):
                print(f"    {one.name} {kind} {sorted(lines)}: event {one.blocked.number}, {sorted(members)}")
        _print_faults(kind, found, sizes)
        total += found
    _print_faults("all", total, [])


def _print_faults(kind: str, found: Counter[str], sizes: list[int]) -> None:
    real = max(found["planted"] - found["allowed"] - found["ended"], 1)
    cells = [f"{found[key]} ({found[key] / real:.1%})" for key in ("at", "among", "either")]
    size = (
        f"{statistics.mean(sizes):.1f}, median {statistics.median(sizes):.0f}, at most {max(sizes)}"
        if sizes
        else ""
    )
    print(f"| {kind} | {found['planted']} | {found['allowed']} | {' | '.join(cells)} | {size} |", flush=True)


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description="measurements of trace validation")
    parser.add_argument("--events", type=int, default=100_000, help="of the recordings that are timed")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="another checkout, timed in turn")
    parser.add_argument("--runs", type=int, default=1, help="of which the median is printed")
    parser.add_argument("--omit", metavar="PERCENT,...", help="shares of the fields to leave out")
    parser.add_argument("--faults", type=int, metavar="N", help="errors of each kind to plant")
    parser.add_argument("--recordings", type=int, default=100, help="of --omit and --faults")
    options = parser.parse_args()
    if options.omit is None and options.faults is None:
        speed(options.events, options.before, options.runs)
    if options.omit is not None:
        alarms([int(one) for one in options.omit.split(",")], options.recordings)
    if options.faults is not None:
        faults(options.faults, options.recordings)


if __name__ == "__main__":
    main()
