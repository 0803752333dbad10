"""The command `replog serve`: one broker on this machine for Kafka's clients, until it is stopped."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

PORT = 9092
EVERYWHERE = "0.0.0.0"  # noqa: S104  # chosen by an option that says so
LOOPBACK = "127.0.0.1"


def module_of(command: str, name: str) -> Any:
    """Load a module of replog that serving needs; raises `ClickException` where kio is not installed."""
    if find_spec("kio") is None:
        raise click.ClickException(
            f"`replog {command}` reads Kafka's messages with kio, which is not installed:"
            " pip install 'specchk[serve]'"
        )
    return import_module(f"replog.{name}")


@click.command()
@click.argument("directory", type=click.Path(file_okay=False))
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    default=PORT,
    show_default=True,
    help="TCP port; 0: one that is free.",
)
@click.option(
    "--listen-on-all-addresses",
    is_flag=True,
    help="Accept connections from other machines, too.  Anybody who reaches the port may read and write.",
)
@click.option(
    "--advertise",
    metavar="HOST",
    default="",
    help="With --listen-on-all-addresses: the name by which clients reach this machine.",
)
@click.option(
    "--no-topic-creation", is_flag=True, help="Create topics only on request, not when a client names one."
)
@click.option(
    "--flush-messages",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Sync the log after so many records, before they are acknowledged; 0: leave it to the system.",
)
@click.option(
    "--record",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write what the broker does to files in DIR, for `replog merge`.",
)
def command(
    directory: str,
    port: int,
    listen_on_all_addresses: bool,
    advertise: str,
    no_topic_creation: bool,
    flush_messages: int,
    record: str | None,
) -> None:
    """Serve DIRECTORY to Kafka's clients as a cluster of one broker; it is created if it is missing.

    Ctrl-C and SIGTERM stop the broker cleanly.  A broker that was killed recovers at the next start.
    """
    if listen_on_all_addresses != bool(advertise):
        raise click.UsageError("--listen-on-all-addresses and --advertise HOST need each other")
    serving = module_of("serve", "run.serve.running")
    settings = serving.host.Settings(flush_messages=flush_messages)
    address = EVERYWHERE if listen_on_all_addresses else LOOPBACK
    listening = serving.Listening(address, port, advertise, not no_topic_creation)
    if record is not None:
        listening = replace(listening, watch=partial(module_of("serve", "live.recorder").watch, Path(record)))

    def ready(broker: Any, port: int) -> None:
        for note in broker.files.directory.notes:
            click.echo(note, err=True)
        click.echo(f"serving {directory} at {advertise or address}:{port}")

    serving.run(directory, settings, listening, ready)
    click.echo("stopped")
