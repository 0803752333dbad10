"""`specchk run --engine spark`: the options of a search on a cluster.

Spark's libraries are loaded only here, on request; a missing part (pyspark, Java, a
worker's package) is reported in one sentence with exit code 2, before the search.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import click

from specchk.cli.common import parse_settings
from specchk.cli.engines import SPARK, EngineSettings
from specchk.cli.groups import option

NO_PYSPARK = "the engine `spark` needs pyspark: pip install 'specchk[spark]'"


@dataclass(frozen=True, slots=True)
class ClusterSearch:
    """A search on a cluster."""

    heading: ClassVar[str] = "Spark"
    master: str | None = option("--master", metavar="M", help="Master of the cluster; by default local[2].")
    partitions: int | None = option(
        "--partitions", help="Partitions of the visited set; by default one per core of the executors."
    )
    handover: int | None = option(
        "--handover", help="Hand the search over from the native engine to Spark at a level of N states."
    )
    ledger: str | None = option(
        "--ledger", metavar="DIR",
        help="Keep the progress of the search in DIR, a path or URI that all machines can access.",
    )  # fmt: skip
    scratch: str | None = option(
        "--scratch", metavar="DIR", help="Directory for the tasks' tables and messages."
    )
    settings: tuple[str, ...] = option(
        "--conf", metavar="NAME=VALUE", help="Set a Spark property; repeatable."
    )

    def check(self, engine: str, *, resume: bool) -> None:
        """Reject incompatible options."""
        given = [member.name for member in fields(self) if getattr(self, member.name)]
        if engine != SPARK and given:
            name = {"settings": "conf"}.get(given[0], given[0])
            raise click.UsageError(f"--{name} is for --engine spark")
        if engine == SPARK and resume and not self.ledger:
            raise click.UsageError("--resume needs --ledger DIR, the search to continue")

    def applied(self, engine: EngineSettings, *, resume: bool) -> EngineSettings:
        """The engine with these options, if it is Spark."""
        if engine.name != SPARK:
            return engine
        # Left out, and not None: without the option the engine's own default holds.
        given = {"handover": self.handover} if self.handover is not None else {}
        settings = tuple(parse_settings(self.settings).items())
        return engine.set(
            master=self.master, settings=settings, partitions=self.partitions or 0, ledger=self.ledger,
            resume=resume, scratch=self.scratch, **given,
        )  # fmt: skip
