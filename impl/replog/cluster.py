"""The command `replog cluster`: brokers and their controller on this machine, a process each."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from replog.serve import PORT, module_of

MOST_BROKERS = 9
SHOWN = 3
"""Findings in the line of a run."""


@click.command()
@click.argument("directory", type=click.Path(file_okay=False))
@click.option(
    "--brokers",
    type=click.IntRange(1, MOST_BROKERS),
    metavar="N",
    default=3,
    show_default=True,
    help="How many brokers.",
)
@click.option(
    "--min-isr",
    type=click.IntRange(1, MOST_BROKERS),
    metavar="N",
    help="min.insync.replicas; default: 2, or 1 with one broker.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_000),
    metavar="N",
    default=PORT,
    show_default=True,
    help="TCP port of broker 0, the others have the ports after it; 0: ports that are free.",
)
@click.option(
    "--record",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write what each process does to a file in DIR, for `replog merge`.",
)
@click.option(
    "--adversary",
    metavar="SEED|PROFILE:SEED|FILE",
    help="Misbehave as far as Kafka's protocol allows, by a seed or as a file of an earlier run says; 0..99:"
    " with a client, one run for each seed.  Profiles: all, network, leaders, unclean.",
)
@click.argument("client", nargs=-1)
def command(
    directory: str,
    brokers: int,
    min_isr: int | None,
    port: int,
    record: str | None,
    adversary: str | None,
    client: tuple[str, ...],
) -> None:
    """Run a cluster in DIRECTORY for Kafka's clients on this machine, until Ctrl-C or SIGTERM.

    Each broker, and the controller, is a process of its own.  One that dies is started again.

    With --adversary, all are one process, and CLIENT, after `--`, is a program that is run against it and
    judged by what it prints.
    """
    if adversary:
        _refuse_ignored(click.get_current_context())
        _oppose(directory, adversary, client, port)
        return
    if client:
        raise click.UsageError("CLIENT needs --adversary")
    clustering = module_of("cluster", "run.serve.clustering")
    plan = clustering.planned(directory, brokers, min_isr or min(brokers, 2), port)
    if record is not None:
        plan = replace(plan, watch=partial(module_of("cluster", "live.recorder").watch, Path(record)))

    def ready() -> None:
        places = [plan.addresses[broker] for broker in plan.brokers]
        servers = ",".join(f"{host}:{port}" for host, port in places)
        click.echo(f"serving {directory} at {servers}")

    clustering.Processes(plan, lambda text: click.echo(text, err=True)).run(ready)
    click.echo("stopped")


def _refuse_ignored(context: click.Context) -> None:
    """Raise `UsageError` if an option was given that a cluster with an opponent does not have."""
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name in ("brokers", "min_isr", "record")
        and context.get_parameter_source(option.name) is not ParameterSource.DEFAULT
    ]
    if given:
        raise click.UsageError(f"--adversary runs three brokers in one process: leave out {', '.join(given)}")


def _oppose(directory: str, adversary: str, client: tuple[str, ...], port: int) -> None:
    """Run one cluster with an opponent, or one for each seed with a client, which is judged."""
    rehearsal = module_of("cluster", "run.serve.rehearsal")
    try:
        schedules, is_unclean = rehearsal.schedules(adversary)
    except ValueError as error:
        raise click.UsageError(f"--adversary {adversary}: {error}") from error
    if not client:
        if len(schedules) > 1:
            raise click.UsageError("several seeds need a CLIENT")
        asyncio.run(rehearsal.serve(directory, next(iter(schedules.values())), port, is_unclean, click.echo))
        return
    if shutil.which(client[0]) is None:
        raise click.UsageError(f"CLIENT: there is no program `{client[0]}`")
    failures = 0
    program = rehearsal.program(client)
    for name, schedule in schedules.items():
        path = str(Path(directory) / name)
        run = asyncio.run(rehearsal.rehearse(path, schedule, program, is_unclean=is_unclean))
        verdict = "; ".join(map(str, run.findings[:SHOWN])) or "as it should be"
        click.echo(f"{name}: {len(run.done)} interventions, {verdict}")
        if run.findings:
            failures += 1
            _show(rehearsal, path, asyncio.run(rehearsal.shrunk(path, run, program, is_unclean=is_unclean)))
    click.echo(f"the client was right in {len(schedules) - failures} of {len(schedules)} runs")
    if failures:
        raise click.exceptions.Exit(1)


def _show(rehearsal: Any, path: str, run: Any) -> None:
    """Print the shortest run that shows a finding, and how to repeat it."""
    file = Path(f"{path}.ndjson")
    file.write_text(rehearsal.written(run))
    click.echo(rehearsal.lanes(run))
    for finding in run.findings:
        click.echo(str(finding))
    click.echo(f"repeat it with --adversary {file}")
