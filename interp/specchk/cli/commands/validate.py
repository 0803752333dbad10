"""`specchk validate`: check recordings of an implementation against its spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, ClassVar

import click

from specchk.cli.common import leave, refusals, rejections
from specchk.cli.conforming.mistakes import reject_binding
from specchk.cli.crews import NO_PYSPARK, ClusterChoice, OnSpark, crew_on, ended_processes
from specchk.cli.engines import loaded
from specchk.cli.exits import Exit
from specchk.cli.groups import option, takes
from specchk.cli.options.given import PythonFile, lasting
from specchk.cli.options.repeating import watched
from specchk.cli.output import echo
from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.hangs import contained
from specchk.conform.contract.load import NoBinding, load_tracing
from specchk.conform.contract.log_tracing import LogTracing
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.by_crew import CrewExplainer, run_campaign_by
from specchk.conform.recordings.campaign import Campaign, concluded, run_campaign
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.recordings.following import Follower
from specchk.conform.recordings.rows import TABLES
from specchk.conform.report.campaign_report import as_json as as_json_of
from specchk.conform.report.campaign_report import text, verdict
from specchk.conform.work.kit import kit_of
from specchk.guardian import temporary_folder
from specchk.lang.frontend import CheckedSpec, check
from specchk.processes import cores
from specchk.search.engine import Unusable

CODES = (("explained", Exit.OK), ("diverges", Exit.DIVERGED), ("vacuous", Exit.INCONCLUSIVE))


@dataclass(frozen=True, slots=True)
class PipelineChoice:
    """The place of the results, and whether recordings are validated as they arrive."""

    heading: ClassVar[str] = "Spark"
    tables: str | None = option(
        "--tables", metavar="DIR", help="With --master: write results to DIR as Parquet, for `specchk sql`."
    )
    is_followed: bool = option(
        "--follow", help="With --master: validate recordings as they appear in the folder."
    )
    patience: float | None = option(
        "--patience",
        help="With --follow: report an unfinished recording that has not grown for S seconds (default 60).",
    )
    idle: float | None = option("--idle", help="With --follow: stop after S seconds without a new recording.")

    def check(self, cluster: ClusterChoice, recordings: Sequence[str]) -> None:
        """Reject incompatible options."""
        if not cluster.is_wanted and (self.tables is not None or self.is_followed):
            raise click.UsageError(f"{'--follow' if self.is_followed else '--tables'} requires --master")
        if not self.is_followed and (self.patience is not None or self.idle is not None):
            raise click.UsageError(f"{'--idle' if self.patience is None else '--patience'} requires --follow")
        if self.is_followed and len(recordings) > 1:
            raise click.UsageError("--follow is for one folder")

    def run(
        self, cls: type[Tracing], checked: CheckedSpec, wanted: CampaignOptions, crew: OnSpark,
        recordings: Sequence[str],
    ) -> tuple[Campaign, str]:  # fmt: skip
        """The campaign, run by executors; and the reason why its tables are unusable, if they are."""
        room = loaded("specchk.spark.pipeline.tables", NO_PYSPARK)
        files = loaded("specchk.spark.pipeline.files", NO_PYSPARK)
        places = [files.absolute_uri(place) for place in recordings]
        if self.tables is None:
            work = CrewExplainer(cls, checked, wanted, crew, files.read)
            return self._done(work, places, None, files.RecordingListing()), ""
        tables = room.TablesAt(files.absolute_uri(self.tables), dict(TABLES))
        with tables.claimed(f"the recordings of {cls.__name__}", may_continue=self.is_followed):
            work = CrewExplainer(cls, checked, wanted, crew, files.read, tables)
            campaign = self._done(work, places, tables, files.RecordingListing())
            about = {"spec": campaign.spec, "tracing": campaign.tracing, "verdict": verdict(campaign),
                     "complete": True, "reason": None}  # fmt: skip
            try:
                tables.finish(about, "recordings", 0 if self.is_followed else campaign.tally.recordings)
            except Unusable as reason:  # hours of work have a verdict nevertheless
                return campaign, str(reason)
        return campaign, ""

    def _done(self, work: CrewExplainer, places: Sequence[str], tables: Any, listing: Any) -> Campaign:
        if self.is_followed:
            return self._followed(work, places[0], tables)
        found = work.crew.each(listing, places, f"{work.cls.__name__}: list the recordings")
        return run_campaign_by(work, [name for names in found for name in names])

    def _followed(self, work: CrewExplainer, folder: str, tables: Any) -> Campaign:
        """The campaign of a stream, followed until it is idle or interrupted."""
        begun = perf_counter()
        stream = loaded("specchk.spark.pipeline.stream", NO_PYSPARK)
        patience = self.patience or 60.0
        follower = Follower(work, lambda line: echo(f"alarm: {line}", err=True), patience)
        growth = stream.Growth(patience)
        batches = list[int]()
        last: float | None = None  # the time of the last arrival
        if tables is not None:
            follower.expect(tables.growing())

        def arrived() -> None:
            nonlocal last
            if tables is not None:
                tables.keep_growing(follower.growing)
            last = monotonic()

        def take(number: int, places: list[str]) -> None:
            prefix = f"{number:08d}-"
            if tables is not None and not batches:
                # Perhaps one that an earlier run left, and it had other pieces on another number of cores.
                tables.drop(prefix)
            batches.append(number)
            follower.take(prefix, places)
            arrived()

        def tick(is_waiting: bool) -> bool:
            nonlocal last
            if growth.is_due(follower.growing) and follower.look_again():
                arrived()
            # Counted from when all available recordings were read.
            if last is None and is_waiting:
                last = monotonic()
            return self.idle is None or last is None or monotonic() - last <= self.idle

        context: Any = work.crew.team.context  # type: ignore[attr-defined]
        with temporary_folder() as temporary:
            checkpoint = tables.checkpoint if tables is not None else str(Path(temporary, "checkpoint"))
            stream.follow(context, folder, checkpoint, take, tick, follower.end)
        tally = follower.finish()
        return concluded(work.cls, tally, work.wanted, perf_counter() - begun, work.crew.hands)


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
@watched
@contained(partial(echo, err=True))
def command(
    tracing: str, recordings: tuple[str, ...], workers: int | None, partial: bool, no_power: bool, seed: int,
    cluster: ClusterChoice, pipeline: PipelineChoice, as_json: bool,
) -> None:  # fmt: skip
    """Check recordings of an implementation against its spec; TRACING maps their events to its actions.

    RECORDINGS are files, pipes such as <(command), or folders of *.ndjson; with --master, paths or URIs that
    the executors can read.  With `per_writer` a folder is one recording, and files without one are, too.
    Exit codes: 0 every recording is a behaviour of the spec, 13 one is not, 21 the recordings prove
    nothing, 30 the spec or the tracing was rejected.
    """
    with refusals(NoBinding):
        cls = load_tracing(Path(tracing))
    cluster.not_with(workers, "--workers", "it counts the processes of this machine")
    pipeline.check(cluster, recordings)
    if cluster.is_wanted and issubclass(cls, LogTracing) and (cls.per_writer or pipeline.is_followed):
        raise click.UsageError(
            f"{cls.__name__} reads logs: --follow and `per_writer` need recordings with an end"
        )
    paths = [] if cluster.is_wanted else recorded_files(recordings, cls)
    wanted = CampaignOptions(workers or cores(), not no_power, partial, seed)
    try:
        if issubclass(cls, LogTracing) and (mistakes := cls.mistakes()):
            raise BindingError(mistakes)
        with rejections(as_json=as_json):
            checked = check(str(Path(tracing).parent / cls.spec))
            crews = crew_on(cluster, lambda: kit_of(Path(tracing), checked), as_json=as_json)
            with ended_processes(as_json=as_json), crews as crew:
                if crew is None:
                    with lasting(paths) as files:
                        campaign, refused = run_campaign(cls, checked, files, wanted), ""
                else:
                    campaign, refused = pipeline.run(cls, checked, wanted, crew, recordings)
    except BindingError as error:
        reject_binding(error, as_json=as_json)
    if refused:
        echo(f"Error: {refused}", err=True)
    code = Exit.USAGE if refused else dict(CODES)[verdict(campaign)]
    leave(code, as_json=as_json, json=lambda: as_json_of(campaign, int(code)), text=lambda: text(campaign))


def recorded_files(given: Sequence[str], cls: type[Tracing]) -> list[Path]:
    """The named files, and those in the named folders; a folder itself where it is one run.

    Several files of a run, named without a folder, are one, too: the tracing has them.
    """
    is_run = issubclass(cls, LogTracing) and cls.per_writer
    files: list[Path] = []
    for path in map(Path, given):
        if not path.exists():
            raise click.UsageError(f"there is no file or folder {path}")
        inside = sorted(path.glob("*.ndjson")) if path.is_dir() else [path]
        if not inside:
            raise click.UsageError(f"there is no recording (*.ndjson) in {path}; name its files")
        files += [path] if is_run else inside
    if issubclass(cls, LogTracing) and is_run and not any(map(Path.is_dir, files)):
        # Two writers' files, each explained by itself, may contradict each other.
        if len(files) == 1 and not cls.writer:
            raise click.UsageError(f"{files[0]} is one writer's file; with `per_writer` name them all")
        cls.files = tuple(files)
        return [files[0].absolute().parent] if len(files) > 1 else files
    return files
