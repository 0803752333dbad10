"""Workers for commands with many pieces of work: with `--master`, the executors of a cluster.

Spark's libraries are loaded only on request: by `--master`, or by running under
`spark-submit`, whose session then determines the master.

Without it, this machine's processes, whose failures are reported.  `sys.exit` and `os._exit` raise and are
divergences at their step (`contract.failures`).  An end by C code, or by a signal, is detected by its code:
although specchk runs the implementation in several processes, it is not an internal error.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import click
from msgspec import Struct

from specchk.cli.common import ended, leave, parse_settings
from specchk.cli.engines import loaded, spark_failures
from specchk.cli.exits import Exit
from specchk.cli.groups import option
from specchk.conform.work.crews import Job, LostWork
from specchk.conform.work.forks import Lost
from specchk.conform.work.kit import Kit, shipped

Piece = TypeVar("Piece")
Found = TypeVar("Found")
NO_PYSPARK = "--master needs pyspark: pip install 'specchk[spark]'"
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit


@dataclass(frozen=True, slots=True)
class ClusterChoice:
    """The cluster on which the work is done."""

    heading: ClassVar[str] = "Spark"
    master: str | None = option("--master", metavar="M", help="Run on the executors of a Spark cluster.")
    conf: tuple[str, ...] = option(
        "--conf", metavar="NAME=VALUE", help="With --master: set a Spark property; repeatable."
    )

    def __post_init__(self) -> None:
        if self.conf and self.master is None:
            raise click.UsageError("--conf requires --master")
        parse_settings(self.conf)  # a malformed one is an error before any work

    @property
    def is_wanted(self) -> bool:
        """Whether the work is to be done on Spark."""
        return self.master is not None or SUBMITTED in os.environ

    def not_with(self, given: object, option: str, reason: str) -> None:
        """Reject an option that is incompatible with `--master`."""
        if self.master is not None and given:
            raise click.UsageError(f"{option} cannot be combined with --master: {reason}")


class OnSpark(Struct, frozen=True):
    """A `crews.Crew` of executors, which receive a kit with the user's files."""

    team: Any
    kit: Kit

    @property
    def hands(self) -> int:
        """The number of pieces done in parallel."""
        count: int = self.team.hands
        return count

    def each(self, work: Job[Piece, Found], pieces: Sequence[Piece], about: str) -> list[Found]:
        """The result of each piece, in order; `LostWork` if Spark gave up on one and can do others."""
        jobs = loaded("specchk.spark.jobs", NO_PYSPARK)
        try:
            results: list[Found] = self.team.each(shipped(work, self.kit), pieces, about)
        except jobs.SparkEnded:
            raise
        except jobs.Failed as reason:
            raise LostWork(str(reason)) from reason
        return results


@contextmanager
def crew_on(cluster: ClusterChoice, kit: Callable[[], Kit], *, as_json: bool) -> Iterator[OnSpark | None]:
    """The executors as a crew; None without `--master`.

    If Spark gives up or ends, there is no answer: the reason is printed, and the command ends.
    """
    if not cluster.is_wanted:
        yield None
        return
    jobs = loaded("specchk.spark.jobs", NO_PYSPARK)
    # Before a session is started: a file that cannot be read should not cost a cluster.
    packed = kit()
    with (
        spark_failures(jobs.Failed, LostWork, as_json=as_json),
        jobs.team(cluster.master, parse_settings(cluster.conf), packed.files) as team,
    ):
        yield OnSpark(team, packed)


@contextmanager
def ended_processes(*, as_json: bool) -> Iterator[None]:
    """Report a process that an implementation ended, and exit: with 13, or 21 if it was killed.

    SIGKILL is no evidence about the implementation: the system also sends it for lack of memory.
    """
    try:
        yield
    except Lost as lost:
        if lost.code is None:
            raise
        code, result = of_ended(lost.code)
        leave(code, as_json=as_json, json=lambda: result,
              text=lambda: f"{result['verdict']}: {result['reason']}")  # fmt: skip


def of_ended(code: int) -> tuple[Exit, dict[str, Any]]:
    """The exit code and the report for a process that ended with this code."""
    is_killed = code == -signal.SIGKILL
    exit_code = Exit.INCONCLUSIVE if is_killed else Exit.DIVERGED
    reason = f"the implementation ended the process that ran it: {_described(code)}"
    if is_killed:
        reason = "a process that ran the implementation was killed, by a person or because memory ran out"
    return exit_code, ended("inconclusive" if is_killed else "diverges", reason, exit_code)


def _described(code: int) -> str:
    """The name of an exit status, such as `SIGSEGV` for `-11`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # a real-time signal
        return f"signal {-code}"
