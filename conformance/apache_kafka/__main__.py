"""Apache Kafka, checked against the spec: `python -m conformance.apache_kafka --help`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click
from conformance.apache_kafka.agents import agent_jar
from conformance.apache_kafka.folders import NoFolder
from conformance.apache_kafka.judging import judge
from conformance.apache_kafka.logs import Unread
from conformance.apache_kafka.matrix import ATTEMPTS, Cell, append_cell, missing, read_cells, rewrite
from conformance.apache_kafka.recordings import validate, write_recordings
from conformance.apache_kafka.releases import NEWEST, RELEASES, Unavailable, jar, jars
from conformance.apache_kafka.schemas import METADATA, Schemas
from conformance.apache_kafka.stories import STORIES, Outcome, run_story
from conformance.apache_kafka.texts import View
from conformance.apache_kafka.traces import Step


@click.group()
def main() -> None:
    """Run real brokers, and compare them, their logs and their folders with the spec."""


@main.command()
@click.argument("versions", nargs=-1, type=click.Choice(list(RELEASES)))
def fetch(versions: tuple[str, ...]) -> None:
    """Fetch the jars of releases, or of all, into the cache."""
    for version in versions or RELEASES:
        click.echo(f"{version}: {jars(RELEASES[version])}")


@main.command()
@click.argument("name", type=click.Choice(list(STORIES)))
@click.option("--release", "version", type=click.Choice(list(RELEASES)), default=NEWEST.version)
@click.option("--repair", is_flag=True, help="With the repair of B21, by an agent.")
@click.option("--runs", default=1, help="How many runs, each on a new cluster.")
@click.option("--keep/--no-keep", help="Add the verdicts to those of the matrix.")
def story(name: str, version: str, repair: bool, runs: int, keep: bool) -> None:
    """Take a cluster of a release through a story, step by step."""
    for _ in range(runs):
        cell = run_cell(name, version, repair, is_shown=runs == 1)
        if keep:
            append_cell(cell)


@main.command()
@click.option("--story", "names", multiple=True, type=click.Choice(list(STORIES)))
@click.option("--release", "versions", multiple=True, type=click.Choice(list(RELEASES)))
@click.option("--table", is_flag=True, help="Run nothing; write the table into docs/apache-kafka.md.")
def matrix(names: Sequence[str], versions: Sequence[str], table: bool) -> None:
    """Run all stories on all releases that have no verdict yet, and write the table."""
    for _ in range(0 if table else ATTEMPTS):
        for name, version in missing(read_cells(), names or list(STORIES), versions or list(RELEASES)):
            append_cell(run_cell(name, version, repair=False, is_shown=False))
    rewrite(read_cells())


@main.command()
@click.argument("directories", nargs=-1, required=True, type=click.Path(file_okay=False, path_type=Path))
def folders(directories: tuple[Path, ...]) -> None:
    """Check the log directories of brokers together, and change nothing (docs/check-your-cluster.md)."""
    try:
        schemas = Schemas(jar(NEWEST, "kafka-metadata"), METADATA)
    except Unavailable as unavailable:
        click.echo(f"the metadata log is not read: {unavailable}")
        schemas = None
    try:
        judgement = judge(directories, schemas)
    except NoFolder as error:
        raise click.UsageError(str(error)) from None
    for fault in judgement.faults:
        click.echo(fault)
    click.echo(judgement)
    if judgement.faults:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--into", required=True, type=click.Path(path_type=Path), help="For the recordings.")
@click.option(
    "--partition", "partitions", multiple=True, help="Such as orders-0; by default all that were created."
)
@click.option("--within", default=0.02, show_default=True, help="The error of the nodes' clocks, in seconds.")
def logs(files: tuple[Path, ...], into: Path, partitions: tuple[str, ...], within: float) -> None:
    """Explain the logs of all nodes, partition by partition (docs/check-your-cluster.md)."""
    try:
        written = write_recordings(files, into, within, partitions)
    except Unread as error:
        raise click.UsageError(str(error)) from None
    for folder, reading in written.items():
        click.echo(f"{folder.name}: {reading}")
    code, report = validate(list(written))
    click.echo(report, nl=False)
    raise click.exceptions.Exit(code)


@main.command()
@click.option("--release", "version", type=click.Choice(list(RELEASES)), default=NEWEST.version)
def loss(version: str) -> None:
    """Lose an acknowledged record by clean elections, step by step; then prevent it by the repair of B21."""
    lost = run_cell("B21", version, repair=False, is_shown=True).verdict
    kept = run_cell("B21", version, repair=True, is_shown=False).verdict
    if (lost.outcome, kept.outcome) != (Outcome.REPRODUCED, Outcome.PREVENTED):
        raise click.ClickException("expected: reproduced, and with the repair prevented")
    click.echo(
        "a record acknowledged with acks=all and min.insync.replicas=2, and read by a consumer, is lost;"
    )
    click.echo("with the repair it is not acknowledged (docs/findings/remote-leo-kept.md)")


def run_cell(name: str, version: str, repair: bool, is_shown: bool) -> Cell:
    """Run a story, and print its verdict."""
    begun = time.monotonic()
    agent = agent_jar("Repair") if repair else None
    verdict = run_story(STORIES[name], RELEASES[version], agent, show_step if is_shown else None)
    cell = Cell(name, version, repair, verdict, round(time.monotonic() - begun, 1))
    click.echo(f"{version}{', repaired' if repair else ''} {name}: {verdict} ({cell.seconds:.0f} s)")
    for line in verdict.log if is_shown else ():
        click.echo(f"  {line}")
    return cell


def show_step(number: int, step: Step, views: list[View], notes: list[str]) -> None:
    """Print a step, what was answered, and the cluster beside the spec."""
    click.echo(f"{number:>3}  {step.text}")
    for note in notes:
        click.echo(f"       {note}")
    for view in views:
        click.echo(f"       spec {view.spec:<44} kafka {view.kafka}")


if __name__ == "__main__":
    main()
