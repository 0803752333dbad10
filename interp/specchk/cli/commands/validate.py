"""`specchk validate`: check recordings of an implementation against its spec."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from specchk.cli.common import leave, refusals, rejections
from specchk.cli.crews import ClusterChoice, crew_on, ended_processes
from specchk.cli.executors import PipelineChoice
from specchk.cli.exits import Exit
from specchk.cli.groups import takes
from specchk.cli.options.given import PythonFile, lasting
from specchk.cli.output import echo
from specchk.conform.contract.hangs import contained
from specchk.conform.contract.load import NoBinding, load_tracing
from specchk.conform.recordings.campaign import run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.report.campaign_report import as_json as as_json_of
from specchk.conform.report.campaign_report import text, verdict
from specchk.conform.work.kit import kit_of
from specchk.lang.frontend import check
from specchk.processes import cores

CODES = (("explained", Exit.OK), ("diverges", Exit.DIVERGED), ("vacuous", Exit.INCONCLUSIVE))


@click.command("validate")
@click.argument("tracing", type=PythonFile())
@click.argument("recordings", nargs=-1, required=True)
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes; by default one per core."
)
@click.option("--partial", is_flag=True, help="Accept recordings in which some kinds of events never occur.")
@click.option(
    "--no-power", is_flag=True, help="Do not check that corrupted copies of the recordings are rejected."
)
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="N", help="Seed of the corrupted copies."
)
@takes(cluster=ClusterChoice, pipeline=PipelineChoice)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@contained(partial(echo, err=True))
def command(
    tracing: str, recordings: tuple[str, ...], workers: int | None, partial: bool, no_power: bool, seed: int,
    cluster: ClusterChoice, pipeline: PipelineChoice, as_json: bool,
) -> None:  # fmt: skip
    """Check recordings of an implementation against its spec; TRACING maps their events to its actions.

    RECORDINGS are files, pipes such as <(command), or folders of *.ndjson; with --master, paths or URIs that
    the executors can read.
    Exit codes: 0 every recording is a behaviour of the spec, 13 one is not, 21 the recordings prove
    nothing, 30 the spec was rejected.
    """
    with refusals(NoBinding):
        cls = load_tracing(Path(tracing))
    cluster.not_with(workers, "--workers", "it counts the processes of this machine")
    pipeline.check(cluster, recordings)
    paths = [] if cluster.is_wanted else _files(recordings)
    wanted = CampaignOptions(workers or cores(), not no_power, partial, seed)
    with rejections(as_json=as_json):
        checked = check(str(Path(tracing).parent / cls.spec))
        crews = crew_on(cluster, lambda: kit_of(Path(tracing), cls, checked), cls, as_json=as_json)
        with ended_processes(as_json=as_json), crews as crew:
            if crew is None:
                with lasting(paths) as files:
                    campaign, refused = run_campaign(cls, checked, files, wanted), ""
            else:
                campaign, refused = pipeline.run(cls, checked, wanted, crew, recordings)
    if refused:
        echo(f"Error: {refused}", err=True)
    code = Exit.USAGE if refused else dict(CODES)[verdict(campaign)]
    leave(code, as_json=as_json, json=lambda: as_json_of(campaign, int(code)), text=lambda: text(campaign))


def _files(given: Sequence[str]) -> list[Path]:
    """The named files, and those in the named folders."""
    files: list[Path] = []
    for path in map(Path, given):
        if not path.exists():
            raise click.UsageError(f"there is no file or folder {path}")
        inside = sorted(path.glob("*.ndjson")) if path.is_dir() else [path]
        if not inside:
            raise click.UsageError(f"there is no recording (*.ndjson) in {path}")
        files += inside
    return files
