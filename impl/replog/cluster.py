"""The command `replog cluster`: brokers and their controller on this machine, a process each."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from replog.serve import PORT, module_of

MOST_BROKERS = 9


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
def command(directory: str, brokers: int, min_isr: int | None, port: int, record: str | None) -> None:
    """Run a cluster in DIRECTORY for Kafka's clients on this machine, until Ctrl-C or SIGTERM.

    Each broker, and the controller, is a process of its own.  One that dies is started again.
    """
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
