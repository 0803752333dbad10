"""The command `replog demo`: where the files go, how fast, and the verdict in words."""

import shutil
import sys
import tempfile
from pathlib import Path

import click

from replog.core.protocol import preset, preset_names
from replog.demo.screen import WIDTH, Screen
from replog.demo.story import Story
from replog.demo.verdict import verdict_lines

OUTCOMES = ("kafka-4.1", "hw-truncation")


@click.command(short_help="Watch a three-broker cluster lose its leader.")
@click.option(
    "--protocol",
    type=click.Choice(preset_names()),
    default="kafka-4.1",
    show_default=True,
    help="Replication rules.",
)
@click.option(
    "--speed",
    type=click.FloatRange(0),
    metavar="X",
    default=3.0,
    show_default=True,
    help="Simulated seconds per second; 0: as fast as possible.",
)
@click.option("--plain", is_flag=True, help="Print lines instead of a live table, even on a terminal.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the brokers' files in this directory, empty or new; see `replog dump`.",
)
@click.pass_context
def command(context: click.Context, protocol: str, speed: float, plain: bool, directory: Path | None) -> None:
    """Run three brokers on real files, kill the leader, and show what happens to the log.

    A table shows, for each broker, the end of its log (LEO), its high watermark (HW) and its leader epochs,
    and the in-sync replicas (ISR). With --protocol hw-truncation the brokers follow the rules of Kafka up to
    0.10, and acknowledged records are lost. The exit code is 1 if the leader lacks a record that was
    acknowledged with acks=all or read by a consumer, if brokers hold different records at one offset, or if
    there is no leader.
    """
    is_live = sys.stdout.isatty() and not plain
    columns = shutil.get_terminal_size().columns - 1 if is_live else WIDTH
    screen = Screen(sys.stdout, speed, is_live, min(WIDTH, columns))
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="replog-demo-") as path:
            context.exit(perform(path, protocol, screen))
    if directory.exists() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} is not empty")
    directory.mkdir(parents=True, exist_ok=True)
    code = perform(str(directory), protocol, screen)
    for broker in sorted(directory.iterdir()):
        screen.say(f"inspect: replog dump {broker}")
    context.exit(code)


def perform(path: str, protocol: str, screen: Screen) -> int:
    """Play the story, print its verdict and the next command; return the exit code."""
    screen.say(f"replog demo, protocol {protocol}")
    screen.say()
    verdict = Story(path, preset(protocol), screen).tell()
    for line in verdict_lines(verdict):
        screen.say(line)
    screen.say(f"next: replog demo --protocol {OUTCOMES[protocol == OUTCOMES[0]]}")
    return int(not verdict.is_well)
