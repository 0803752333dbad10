"""`specchk run --engine spark`: the options of a search on a cluster, and running one.

Spark's libraries are loaded only here, when they are asked for; what is missing (pyspark, Java, a
worker's package) is one sentence and exit code 2, before anything is searched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import click

from specchk.cli.engines import SPARK, loaded
from specchk.cli.output import echo, is_terminal
from specchk.explore.simulate import Walks
from specchk.ir.program import Program
from specchk.report.progress import TerminalProgress
from specchk.search.budget import Progress
from specchk.search.reference import Options, search
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

    def pairs(self) -> tuple[tuple[str, str], ...]:
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


def explore_on_spark(program: Program, options: Options, cluster: Cluster, *, quiet: bool) -> Outcome:
    """Search a program on Spark, with progress on standard error when that is a terminal."""
    engine, session = _library("specchk.spark.search"), _library("specchk.spark.session")
    wanted = engine.Options(
        options.budget, options.symmetry, options.keep_going, options.strict, cluster.master,
        cluster.pairs(), cluster.partitions or 0, cluster.handover or engine.HANDOVER, cluster.ledger,
        cluster.resume, cluster.scratch,
    )  # fmt: skip
    progress = TerminalProgress(sys.stderr) if is_terminal(sys.stderr) and not quiet else None
    try:
        outcome: Outcome = engine.run(program, wanted, progress)
    except session.Unavailable as reason:
        raise click.UsageError(str(reason)) from None
    except loaded("specchk.native.identity").Unusable as reason:
        raise click.UsageError(f"--ledger: {reason}") from None
    except loaded("specchk.native.machine.layout").Unsupported as reason:
        note = f"the Spark engine cannot run this model ({reason}); the reference engine was used instead"
        echo(f"note: {note}", err=True)
        outcome = search(program, options, progress)
        return replace(outcome, warnings=(note, *outcome.warnings))
    finally:
        if progress is not None:
            progress.clear()
    return outcome


def simulate_on_spark(
    program: Program, walks: Walks, master: str, progress: Callable[[Progress], None] | None
) -> Outcome:
    """Random walks on the executors of a cluster: the same walks as on one machine."""
    engine, session = _library("specchk.spark.walks"), _library("specchk.spark.session")
    try:
        outcome: Outcome = engine.simulate(program, walks, master, progress)
    except session.Unavailable as reason:
        raise click.UsageError(str(reason)) from None
    return outcome


def _library(module: str) -> Any:
    try:
        return loaded(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("specchk"):
            raise
        raise click.UsageError(f"{NO_PYSPARK} (there is no {error.name})") from None
