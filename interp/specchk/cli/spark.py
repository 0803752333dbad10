"""`specchk run --engine spark`: the options of a search on a cluster, and running one.

Spark's libraries are loaded only here, when they are asked for; what is missing (pyspark, Java, a
worker's package) is one sentence and exit code 2, before anything is searched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import click

from specchk.cli.engines import SPARK, Engine, loaded
from specchk.explore.simulate import Walks
from specchk.ir.program import Program
from specchk.search.budget import Progress
from specchk.search.engine import Unavailable
from specchk.search.verdict import Outcome

F = TypeVar("F", bound=Callable[..., Any])
NO_PYSPARK = "the engine `spark` needs pyspark: pip install 'specchk[spark]'"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The options of `spark_options`; None where they were not given."""

    master: str | None
    partitions: int | None
    handover: int | None
    ledger: str | None
    scratch: str | None
    settings: tuple[str, ...]
    resume: bool

    def check(self, engine: str) -> None:
        """Refuse options that do not go together."""
        given = [f.name for f in fields(self) if f.name != "resume" and getattr(self, f.name)]
        if engine != SPARK and given:
            name = {"settings": "conf"}.get(given[0], given[0])
            raise click.UsageError(f"--{name} is for --engine spark")
        if engine == SPARK and self.resume and not self.ledger:
            raise click.UsageError("--resume needs --ledger DIR, the search to continue")

    def applied(self, engine: Engine) -> Engine:
        """The engine with these options, where it is Spark."""
        if engine.name != SPARK:
            return engine
        given = {"handover": self.handover} if self.handover is not None else {}
        return engine.set(
            master=self.master, settings=self._pairs(), partitions=self.partitions or 0, ledger=self.ledger,
            resume=self.resume, scratch=self.scratch, **given,
        )  # fmt: skip

    def _pairs(self) -> tuple[tuple[str, str], ...]:
        """Spark's settings, apart."""
        found = []
        for text in self.settings:
            name, equals, value = text.partition("=")
            if not equals or not name:
                raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--conf")
            found.append((name, value))
        return tuple(found)


def spark_options(function: F) -> F:
    """`--master`, `--partitions`, `--handover`, `--ledger`, `--scratch`, `--conf`."""
    decorators = [
        click.option("--master", metavar="M", help="Spark: master of the cluster; by default local[2]."),
        click.option("--partitions", type=click.IntRange(min=1), metavar="N",
                     help="Spark: partitions of the visited set; by default one per core of the executors."),
        click.option("--handover", type=click.IntRange(min=1), metavar="N",
                     help="Spark: take over from the native engine at a level of N states."),
        click.option("--ledger", metavar="DIR",
                     help="Spark: keep the search in DIR, a path or URI that all machines can access."),
        click.option("--scratch", metavar="DIR", help="Spark: directory for tables and messages of tasks."),
        click.option("--conf", "settings", multiple=True, metavar="NAME=VALUE",
                     help="Spark: set a Spark property; repeatable."),
    ]  # fmt: skip
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def simulate_on_spark(
    program: Program, walks: Walks, master: str, progress: Callable[[Progress], None] | None
) -> Outcome:
    """Random walks on the executors of a cluster: the same walks as on one machine."""
    engine = _library("specchk.spark.walks")
    try:
        outcome: Outcome = engine.simulate(program, walks, master, progress)
    except Unavailable as reason:
        raise click.UsageError(str(reason)) from None
    return outcome


def _library(module: str) -> Any:
    try:
        return loaded(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("specchk"):
            raise
        raise click.UsageError(f"{NO_PYSPARK} (there is no {error.name})") from None
