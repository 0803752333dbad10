"""The command `replog demo`: the place of the files, the speed, and the verdict in words."""

import shutil
import sys
import tempfile
from pathlib import Path

import click

from replog.core.protocol import preset, preset_names
from replog.demo.screen import WIDTH, Screen
from replog.demo.stage import Stage
from replog.demo.story import STORIES, STORY_OF
from replog.demo.verdict import verdict_lines

TODAY = "kafka-4.1"


@click.command()
@click.option(
    "--protocol",
    type=click.Choice(preset_names()),
    default=TODAY,
    show_default=True,
    help="Replication rules.",
)
@click.option(
    "--story",
    type=click.Choice(list(STORIES)),
    help="What happens to the cluster; default: the story that shows the protocol's rules.",
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
    help="Keep the brokers' files in this directory, which must be empty or new; see `replog dump`.",
)
@click.pass_context
def command(
    context: click.Context, protocol: str, story: str | None, speed: float, plain: bool,
    directory: Path | None,
) -> None:  # fmt: skip
    """Run three brokers on real files, let the leader fail, and show the effect on the log.

    A table shows, for each broker, the end of its log (LEO), its high watermark (HW) and its leader epochs,
    and the in-sync replicas (ISR). With --protocol hw-truncation the brokers follow the rules of Kafka up to
    0.10, and acknowledged records are lost. Each protocol has a story that shows its rules; --story plays
    another one under them. The exit code is 1 if the leader lacks a record that was acknowledged
    with acks=all or read by a consumer, if brokers hold different records at the same offset, or if there is
    no leader.
    """
    is_live = sys.stdout.isatty() and not plain
    columns = shutil.get_terminal_size().columns - 1 if is_live else WIDTH
    screen = Screen(sys.stdout, speed, is_live, min(WIDTH, columns))
    if directory is None:
        with tempfile.TemporaryDirectory(prefix="replog-demo-") as path:
            context.exit(perform(path, protocol, story or STORY_OF[protocol], screen))
    if directory.exists() and any(directory.iterdir()):
        raise click.UsageError(f"{directory} is not empty")
    directory.mkdir(parents=True, exist_ok=True)
    code = perform(str(directory), protocol, story or STORY_OF[protocol], screen)
    for broker in sorted(directory.iterdir()):
        screen.say(f"inspect: replog dump {broker}")
    context.exit(code)


def perform(path: str, protocol: str, name: str, screen: Screen) -> int:
    """Play a story, print its verdict and the next command; return the exit code."""
    story = STORIES[name]
    screen.say(f"replog demo, protocol {protocol}, story {name}")
    screen.say(story.about)
    screen.say()
    stage = Stage(path, preset(protocol), screen, skips_metadata=story.skips_metadata)
    stage.calm_days()
    story.run(stage)
    verdict = stage.reckoning()
    for line in verdict_lines(verdict):
        screen.say(line)
    screen.say(f"next: replog demo {_next(protocol, name)}")
    return int(not verdict.is_well)


def _next(protocol: str, story: str) -> str:
    """Return the options that play the same story under today's rules, or under the rules it demonstrates."""
    if protocol == TODAY:
        return "--protocol " + next(p for p in preset_names() if p != TODAY and STORY_OF[p] == story)
    return f"--protocol {TODAY}" if story == STORY_OF[TODAY] else f"--story {story}"
