"""Trace validation: its speed, false alarms for recordings with omitted fields, and faults at their lines.

    python bench/gate/validation.py [--events N] [--before CHECKOUT] [--runs N]
    python bench/gate/validation.py --omit 0,40,80 [--recordings N]
    python bench/gate/validation.py --faults N [--recordings N]
    python bench/gate/validation.py --bugs N

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
value; either of two equal ones; those from the first to the last of two that are exchanged.  A missing line
has none: the right report is at the first line that needs it, which is explained once the missing one is put
back right before it.

`--bugs N` records N seeds under each of several wrong rules.  A run is a function of its seed, so the line
of a bug is the first that differs from the same seed's under the right rules.  It may be a behaviour all the
same: then a later one is reported.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from msgspec.structs import replace

from replog.core.protocol import CURRENT
from replog.sim.recording.record_run import record
from specchk.conform.contract.load import load_tracing
from specchk.conform.contract.recording import Event, Recording, parse, renumbered
from specchk.conform.recordings.campaign import Campaign, run_campaign
from specchk.conform.recordings.corrupt import KINDS, spoil
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.recordings.result import RecordingResult
from specchk.lang.frontend import check

ROOT = Path(__file__).parents[2]
TRACING = ROOT / "conformance" / "tracing.py"
FIXED = ("at", "seq", "event", "message", "to", "follower", "leader", "broker", "source")
WORKERS = 2
# Rules that are none of Kafka's today, each with a value that recordings of forty seeds show.
RULES = (
    ("expand_needs_leso", False), ("expand_needs_hw", False), ("keeps_remote_leo", True),
    ("hw_under_min_isr", True), ("hw_on_diverge", True), ("hw_on_alter_ok", False),
    ("checks_response", False), ("updates_on_diverge", True), ("fences_fetch", False),
)  # fmt: skip


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


def different(right: Recording, wrong: Recording) -> list[int]:
    """The positions, from 0, at which two recordings have other events; those that one lacks are left out."""
    pairs = zip(right.events, wrong.events, strict=False)
    return [n for n, (one, other) in enumerate(pairs) if {**one, "seq": 0} != {**other, "seq": 0}]


def lines_of(kind: str, right: Recording, wrong: Recording) -> frozenset[int]:
    """The numbers of the events that are a planted error in the wrong recording."""
    differ = different(right, wrong)
    if kind == "duplicate":
        second = differ[0] + 1 if differ else len(wrong.events)
        return frozenset({second - 1, second})
    return frozenset(range(differ[0] + 1, differ[-1] + 2))


def put_back(right: Recording, wrong: Recording, number: int) -> Recording:
    """The wrong recording with its missing event right before the one of this number."""
    lost = right.events[min(different(right, wrong), default=len(wrong.events))]
    events = [*wrong.events[: number - 1], lost, *wrong.events[number - 1 :]]
    return replace(wrong, events=renumbered(events))


def needing(pairs: list[tuple[Recording, Recording]], results: tuple[RecordingResult, ...]) -> set[int]:
    """Of recordings without a line those that are reported at the first line that needs it, by position.

    The line is explained once the missing one is put back right before it, and the lines between the gap
    and it are explained either way.
    """
    blocked = [(n, one.blocked.number) for n, one in enumerate(results) if one.blocked]
    mended = validated([put_back(*pairs[n], at) for n, at in blocked]).results
    return {
        n for (n, at), one in zip(blocked, mended, strict=True)
        if one.blocked is None or one.blocked.number > at + 1
    }  # fmt: skip


def bugs(seeds: int) -> None:
    """The table of recordings by a replog under wrong rules, and where each is first another one."""
    print(
        "| rule | recordings that differ | explained | first different line | up to 5 lines later | later |"
    )
    print("|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    for rule, value in RULES:
        protocol = dataclasses.replace(CURRENT, **{rule: value})
        pairs = [(parse("", record(n)), parse("", record(n, protocol))) for n in range(seeds)]
        pairs = [(right, wrong) for right, wrong in pairs if right.events != wrong.events]
        found: Counter[str] = Counter(differ=len(pairs))
        for (right, wrong), one in zip(pairs, validated([w for _, w in pairs]).results, strict=True):
            if one.blocked is None:
                found["ended" if one.bad else "explained"] += 1
                continue
            shorter = min(len(right.events), len(wrong.events))
            late = one.blocked.number - 1 - min(different(right, wrong), default=shorter)
            found["at" if late == 0 else "near" if late <= 5 else "later"] += 1
        _print_bugs(f"`{rule} = {value}`", found)
        total += found
    _print_bugs("all", total)


def _print_bugs(name: str, found: Counter[str]) -> None:
    cells = [str(found[key]) for key in ("differ", "explained", "at", "near", "later")]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


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
        first_needs = needing(planted, results) if kind == "drop" else set()
        for number, ((right, wrong), one) in enumerate(zip(planted, results, strict=True)):
            if one.blocked is None:
                found["ended" if one.bad else "allowed"] += 1
                continue
            smallest = one.blocked.contradiction
            members = {line.number for line in smallest.lines} if smallest else {one.blocked.number}
            sizes.append(len(members))
            if kind == "drop":
                at = among = number in first_needs
                lines = frozenset({one.blocked.number} if at else ())
            else:
                lines = lines_of(kind, right, wrong)
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
    parser.add_argument("--bugs", type=int, metavar="N", help="seeds to record under each wrong rule")
    options = parser.parse_args()
    if options.omit is None and options.faults is None and options.bugs is None:
        speed(options.events, options.before, options.runs)
    if options.omit is not None:
        alarms([int(one) for one in options.omit.split(",")], options.recordings)
    if options.faults is not None:
        faults(options.faults, options.recordings)
    if options.bugs is not None:
        bugs(options.bugs)


if __name__ == "__main__":
    main()
