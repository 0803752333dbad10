"""`replog sim`: run clusters from seeds until one violates a guarantee, and report how to repeat it.

    replog sim --seed 7 --profile all       one run, its verdict and figures
    replog sim --seeds 0..999               many, one summary; stops at the first failure
    replog sim --seeds 0..999 --record DIR  what happened, event by event, a file a seed

The same seed, profile and protocol are the same run. Exit code 0 if every oracle held, 1 at the first that
did not. A summary says how often each oracle was checked: one that had nothing to check has not held.

Not here: the runs themselves (`replog.sim.run`) and the clock they live by, which is simulated; only the
steps per second of the summary are measured on a real one.
"""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType

import click

from replog.core.protocol import preset_names
from replog.sim.faults.profiles import profile as profile_of
from replog.sim.faults.profiles import profile_names
from replog.sim.oracles.pace import MAX_EVENTS
from replog.sim.oracles.promises import ORACLES, ViolationError, praise
from replog.sim.recording.record_run import record as recorded
from replog.sim.recording.start_run import WEATHERS, record_starts
from replog.sim.recording.topic_run import record_topic
from replog.sim.run import Report, simulate

SHOW_EVERY_S = 0.5
MAX_SEED = (1 << 63) - 1
_RECORDERS: Mapping[str, Callable[..., list[str]]] = MappingProxyType(
    {"topics": record_topic} | {name: partial(record_starts, profile=name) for name in WEATHERS}
)
"""By profile; for any other, `recorded`."""


def parse_seeds(_context: click.Context, _parameter: click.Parameter, text: str | None) -> range | None:
    """Turn `A..B`, both included, into a range; `BadParameter` states the expected form."""
    if text is None:
        return None
    first, dots, last = text.partition("..")
    if not (dots and first.isdecimal() and last.isdecimal()):
        raise click.BadParameter(f"{text!r} is not a range such as 0..999")
    if not int(first) <= int(last) <= MAX_SEED:
        raise click.BadParameter(f"{text!r} is empty or too large")
    return range(int(first), int(last) + 1)


@dataclass(slots=True)
class Summary:
    """The totals over runs."""

    runs: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)

    def add(self, report: Report) -> None:
        """Add one run."""
        self.runs += 1
        self.totals.update(asdict(report.figures) | asdict(report.counters))
        self.faults.update(report.faults)
        self.checks.update(report.checks)

    def lines(self, seconds: float) -> Iterable[str]:
        """Yield the summary as text."""
        totals = self.totals
        yield f"  {totals['steps']} steps, {totals['steps'] / max(seconds, 1e-9):,.0f} per second"
        yield f"  {totals['crashes']} crashes, {totals['truncations']} truncations"
        outside = (
            f"{totals['elr_elections']} of ELR members, {totals['unclean_elections']} outside ISR and ELR"
        )
        yield f"  {totals['elections']} elections, {outside}"
        yield f"  {totals['acknowledged']} records acknowledged with acks=all"
        yield f"  {totals['consumed']} records consumed (including re-reads)"
        yield "  faults:"
        yield from _table(sorted(self.faults.items()))
        yield "  checks:"
        yield from _table((oracle, self.checks[oracle]) for oracle in ORACLES)


def _table(rows: Iterable[tuple[str, int]]) -> Iterable[str]:
    """Yield one line for each name with its count."""
    known = list(rows)
    width = max((len(name) for name, _ in known), default=0)
    for name, count in known:
        yield f"    {name:{width}} {count:>10}"


@click.command()
@click.option("--seed", type=click.IntRange(0, MAX_SEED), metavar="N", help="Run one seed.")
@click.option("--seeds", callback=parse_seeds, metavar="A..B", help="Run all seeds from A to B.")
@click.option(
    "--profile",
    type=click.Choice(profile_names()),
    default="all",
    show_default=True,
    help="Faults to inject.",
)
@click.option(
    "--protocol", type=click.Choice(preset_names()), help="Replication rules; default: those of the profile."
)
@click.option(
    "--max-events",
    type=click.IntRange(1),
    metavar="N",
    default=MAX_EVENTS,
    show_default=True,
    help="A run with more events breaks the promise `step-limit`.",
)
@click.option(
    "--record",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write recordings to DIR, one file for each seed. Profiles delete and retain record moving log "
    "starts, topics one of its six partitions; for any other, a profile made for recordings runs.",
)
@click.pass_context
def command(
    context: click.Context, seed: int | None, seeds: range | None, profile: str, protocol: str | None,
    max_events: int, record: str | None,
) -> None:  # fmt: skip
    """Simulate a cluster with producers, consumers and faults; every decision depends on a seed.

    The exit code is 1 if a promise was broken; the last line is then the command that repeats the run.
    """
    if (seed is None) == (seeds is None):
        raise click.UsageError("give either --seed N or --seeds A..B")
    if record is not None:
        chosen = range(seed, seed + 1) if seed is not None else seeds or range(0)
        record_all(chosen, Path(record), max_events, profile)
        return
    if seed is not None:
        report = simulate(seed, profile, protocol or "", max_events)
        click.echo(report.text())
        context.exit(int(report.is_failure))
    assert seeds is not None
    context.exit(run_all(seeds, profile, protocol or "", max_events))


def record_all(seeds: range, folder: Path, max_events: int, profile: str) -> None:
    """Write the recordings of seeds into a folder, and report the number of their events."""
    folder.mkdir(parents=True, exist_ok=True)
    events = 0
    for seed in seeds:
        try:
            lines = _RECORDERS.get(profile, recorded)(seed, max_events=max_events)
        except ViolationError as error:
            raise click.ClickException(f"seed {seed} cannot be recorded: {error}") from error
        events += len(lines) - 2
        (folder / f"seed-{seed}.ndjson").write_text("\n".join([*lines, ""]), encoding="utf-8")
    click.echo(f"{len(seeds)} recordings with {events} events in {folder}")


def run_all(seeds: range, profile: str, protocol: str, max_events: int) -> int:
    """Run seeds until one fails; print the summary and return the exit code."""
    summary = Summary()
    start = shown = time.perf_counter()
    failure: Report | None = None
    for seed in seeds:
        report = simulate(seed, profile, protocol, max_events)
        summary.add(report)
        now = time.perf_counter()
        if sys.stderr.isatty() and now - shown > SHOW_EVERY_S:
            click.echo(f"\r{summary.runs} of {len(seeds)} seeds", nl=False, err=True)
            shown = now
        if report.is_failure:
            failure = report
            break
    if shown > start:
        click.echo("\r\033[K", nl=False, err=True)
    kept = praise(summary.checks, has_groups=profile_of(profile).groups != "")
    verdict = kept if failure is None else f"seed {failure.seed} broke a promise"
    click.echo(f"{summary.runs} of {len(seeds)} seeds, profile {profile}: {verdict}")
    for line in summary.lines(time.perf_counter() - start):
        click.echo(line)
    if failure is not None:
        click.echo(failure.text())
    return int(failure is not None)
