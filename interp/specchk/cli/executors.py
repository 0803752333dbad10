"""`specchk validate --master`: recordings read by executors, all at once or as they arrive."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, ClassVar

import click

from specchk.cli.common import Seconds
from specchk.cli.crews import NO_PYSPARK, ClusterChoice, OnSpark
from specchk.cli.engines import loaded
from specchk.cli.groups import option
from specchk.cli.output import echo
from specchk.conform.contract.tracing import Tracing
from specchk.conform.recordings.by_crew import CrewExplainer, run_campaign_by
from specchk.conform.recordings.campaign import Campaign, concluded
from specchk.conform.recordings.explainer import CampaignOptions
from specchk.conform.recordings.following import Follower
from specchk.conform.recordings.rows import TABLES
from specchk.conform.report.campaign_report import verdict
from specchk.lang.frontend import CheckedSpec
from specchk.search.engine import Unusable


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
        "--patience", type=Seconds(), metavar="S",
        help="With --follow: report an unfinished recording that has not grown for S seconds (default 60).",
    )  # fmt: skip
    idle: float | None = option(
        "--idle",
        type=Seconds(),
        metavar="S",
        help="With --follow: stop after S seconds without a new recording.",
    )

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
        places = [files.as_all_name_it(place) for place in recordings]
        if self.tables is None:
            work = CrewExplainer(cls, checked, wanted, crew, files.read)
            return self._done(work, places, None, files.RecordingListing()), ""
        tables = room.TablesAt(files.as_all_name_it(self.tables), dict(TABLES))
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
        news, batches = _News(self.idle), list[int]()
        if tables is not None:
            follower.expect(tables.growing())

        def keep() -> None:
            if tables is not None:
                tables.keep_growing(follower.growing)

        def take(number: int, places: list[str]) -> None:
            prefix = f"{number:08d}-"
            if tables is not None and not batches:
                # Perhaps one that an earlier run left, and it had other pieces on another number of cores.
                tables.drop(prefix)
            batches.append(number)
            follower.take(prefix, places)
            keep()
            news.came()

        def tick(is_waiting: bool) -> bool:
            if growth.is_due(follower.growing) and follower.look_again():
                keep()
                news.came()
            return not news.is_over(is_waiting=is_waiting)

        context: Any = work.crew.team.context  # type: ignore[attr-defined]
        with tempfile.TemporaryDirectory() as temporary:
            checkpoint = tables.checkpoint if tables is not None else str(Path(temporary, "checkpoint"))
            stream.follow(context, folder, checkpoint, take, tick, follower.end)
        tally = follower.finish()
        return concluded(work.cls, tally, work.wanted, perf_counter() - begun, work.crew.hands)


class _News:
    """The time of the last arrival, and whether it is too long ago."""

    def __init__(self, idle: float | None) -> None:
        self.idle = idle
        self.last: float | None = None

    def came(self) -> None:
        """Note an arrival."""
        self.last = monotonic()

    def is_over(self, *, is_waiting: bool) -> bool:
        """Whether nothing arrived for too long, counted from when all available recordings were read."""
        if self.last is None and is_waiting:
            self.came()
        return self.idle is not None and self.last is not None and monotonic() - self.last > self.idle
