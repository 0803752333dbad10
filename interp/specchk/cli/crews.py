"""`--master` of commands whose work consists of many pieces: a cluster's executors as a crew.

Spark's libraries are loaded only where it is asked for: by `--master`, or by running under
`spark-submit`, whose session then decides about the master.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click

from specchk.cli.engines import loaded
from specchk.conform.work.crews import Crew, Work
from specchk.conform.work.kit import Kit, shipped
from specchk.search.engine import Unavailable

F = TypeVar("F", bound=Callable[..., Any])
Piece = TypeVar("Piece")
Found = TypeVar("Found")
NO_PYSPARK = "--master needs pyspark: pip install 'specchk[spark]'"
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit


@dataclass(frozen=True, slots=True)
class Cluster:
    """The options as given."""

    master: str | None
    settings: Mapping[str, str]

    @property
    def is_wanted(self) -> bool:
        """Whether the work is to be done by Spark."""
        return self.master is not None or SUBMITTED in os.environ

    def not_with(self, given: object, option: str, reason: str) -> None:
        """Refuse an option that does not go with `--master`."""
        if self.master is not None and given:
            raise click.UsageError(f"{option} cannot be combined with --master: {reason}")


def crew_options(function: F) -> F:
    """`--master`, `--conf`; the command gets them as `cluster`."""

    @wraps(function)
    def command(*, master: str | None, conf: tuple[str, ...], **rest: Any) -> Any:
        if conf and master is None:
            raise click.UsageError("--conf requires --master")
        return function(cluster=Cluster(master, settings_of(conf)), **rest)

    decorators = [
        click.option("--master", metavar="M", help="Run on the executors of a Spark cluster."),
        click.option("--conf", multiple=True, metavar="NAME=VALUE",
                     help="With --master: set a Spark property; repeatable."),
    ]  # fmt: skip
    decorated: Any = command
    for decorator in reversed(decorators):
        decorated = decorator(decorated)
    return cast("F", decorated)


def settings_of(conf: Sequence[str]) -> dict[str, str]:
    """Spark's settings, apart."""
    found = {}
    for text in conf:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--conf")
        found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class OnSpark:
    """A `crews.Crew` of executors, which have a kit with the user's files."""

    team: Any
    kit: Kit
    cls: type[Any]

    @property
    def hands(self) -> int:
        """How many pieces are done at once."""
        count: int = self.team.hands
        return count

    def each(self, work: Work[Piece, Found], pieces: Sequence[Piece], about: str) -> list[Found]:
        """The result of each piece, in order."""
        found: list[Found] = self.team.each(shipped(work, self.kit, self.cls), pieces, about)
        return found


@contextmanager
def crew_on(cluster: Cluster, kit: Callable[[], Kit], cls: type[Any]) -> Iterator[Crew | None]:
    """The executors as a crew; None without `--master`."""
    if not cluster.is_wanted:
        yield None
        return
    try:
        jobs = loaded("specchk.spark.jobs")
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("specchk"):
            raise
        raise click.UsageError(f"{NO_PYSPARK} (there is no {error.name})") from None
    packed = kit()
    try:
        with jobs.team(cluster.master, dict(cluster.settings), packed.files) as team:
            yield OnSpark(team, packed, cls)
    except Unavailable as reason:
        raise click.UsageError(str(reason)) from None
    except jobs.Failed as reason:
        raise click.ClickException(f"Spark failed: {reason}") from None
