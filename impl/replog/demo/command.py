"""The command `replog demo`: where the files go, how fast, and the verdict in words."""

import shutil
import sys
import tempfile
from pathlib import Path

import click

from replog.core.protocol import preset, preset_names
from replog.demo.screen import WIDTH, Screen
from replog.demo.story import Story, Verdict

OUTCOMES = ("current", "hw-truncation")


@click.command(short_help="Watch a three-broker cluster lose its leader.")
@click.option("--protocol", type=click.Choice(preset_names()), default="current", show_default=True)
@click.option(
    "--speed",
    type=click.FloatRange(0),
    default=3.0,
    show_default=True,
    help="Simulated seconds a second; 0: at once.",
)
@click.option("--plain", is_flag=True, help="No live table, even on a terminal.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the brokers' files here (empty or missing); see `replog dump`.",
)
@click.pass_context
def command(context: click.Context, protocol: str, speed: float, plain: bool, directory: Path | None) -> None:
    """Run three brokers on real files, kill the leader, and watch LEO, HW, ISR and leader epochs.

    With --protocol hw-truncation the rules are those of Kafka up to 0.10, and acknowledged records are lost.
    Exit code 1 if a record that was acknowledged with acks=all is gone.
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
        screen.say(f"look into it: replog dump {broker}")
    context.exit(code)


def perform(path: str, protocol: str, screen: Screen) -> int:
    """Tell the story and its end; return the exit code."""
    screen.say(f"replog demo, protocol {protocol}")
    screen.say()
    verdict = Story(path, preset(protocol), screen).tell()
    for line in verdict_lines(verdict, protocol):
        screen.say(line)
    return int(bool(verdict.lost or verdict.diverged))


def verdict_lines(verdict: Verdict, protocol: str) -> list[str]:
    """Say what became of the promises, and what to try next."""
    lines = [f"All {verdict.promised} records acknowledged with acks=all are on all three disks."]
    if verdict.lost:
        count = f"{len(verdict.lost)} of {verdict.promised} records acknowledged with acks=all"
        lines = [f"LOST: {count} (offsets {verdict.lost[0]}..{verdict.lost[-1]})."]
    if verdict.unread:
        lines.append(f"A consumer had read {len(verdict.unread)} records that are not there any more.")
    if verdict.diverged:
        first, last = verdict.diverged[0], verdict.diverged[-1]
        lines.append(f"DIVERGED: at offsets {first}..{last} the brokers hold different records, for good.")
    other = OUTCOMES[protocol == OUTCOMES[0]]
    return [*lines, f"next: replog demo --protocol {other}"]
