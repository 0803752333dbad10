"""`specchk validate`: explain recordings of an implementation by its spec."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from specchk.cli.common import print_json, refusals, rejections
from specchk.cli.crews import ClusterChoice, crew_on
from specchk.cli.exits import Exit
from specchk.cli.groups import takes
from specchk.cli.output import echo
from specchk.conform.contract.load import NoBinding, load_tracing
from specchk.conform.recordings.campaign import CampaignOptions, run_campaign
from specchk.conform.report.campaign_report import as_json as as_json_of
from specchk.conform.report.campaign_report import text, verdict
from specchk.conform.work.forks import cores
from specchk.conform.work.kit import kit_of
from specchk.lang.frontend import check


@click.command("validate")
@click.argument("tracing", type=click.Path(exists=True, dir_okay=False))
@click.argument("recordings", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes; by default one per core."
)
@click.option("--partial", is_flag=True, help="Accept recordings in which some kinds of events never occur.")
@click.option(
    "--no-power", is_flag=True, help="Do not check that spoiled copies of the recordings are rejected."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the spoiled copies.")
@takes(cluster=ClusterChoice)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    tracing: str, recordings: tuple[str, ...], workers: int | None, partial: bool, no_power: bool, seed: int,
    cluster: ClusterChoice, as_json: bool,
) -> None:  # fmt: skip
    """Check recordings of an implementation against its spec, with the tracing in the file TRACING.

    RECORDINGS are files, or folders of *.ndjson.  Exit codes: 0 every recording is a behaviour of the
    spec, 13 one is not, 21 the recordings prove nothing, 30 the spec was rejected.
    """
    with refusals(NoBinding):
        cls = load_tracing(Path(tracing))
    cluster.not_with(workers, "--workers", "it counts the processes of this machine")
    paths = _files(recordings)
    wanted = CampaignOptions(workers or cores(), not no_power, partial, seed)
    with rejections(as_json=as_json):
        checked = check(str(Path(tracing).parent / cls.spec))
        with crew_on(cluster, lambda: kit_of(Path(tracing), cls, checked), cls) as crew:
            campaign = run_campaign(cls, checked, paths, wanted, crew)
    found = verdict(campaign)
    code = Exit.OK if found == "explained" else Exit.DIVERGED if found == "diverges" else Exit.INCONCLUSIVE
    if as_json:
        print_json(as_json_of(campaign, int(code)))
    else:
        echo(text(campaign))
    sys.exit(code)


def _files(given: tuple[str, ...]) -> list[Path]:
    """The files named, and those in the folders named."""
    found: list[Path] = []
    for one in map(Path, given):
        inside = sorted(one.glob("*.ndjson")) if one.is_dir() else [one]
        if not inside:
            raise click.UsageError(f"there is no recording (*.ndjson) in {one}")
        found += inside
    return found
