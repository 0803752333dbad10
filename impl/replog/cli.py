"""The `replog` command: its commands are in modules that are imported when one is called.

    0 done, all as it should be    1 something is wrong: damage found, an oracle broken, a directory unusable
    2 usage                        130 interrupted        141 the reader of a pipe went away

The only place that exits or turns an exception into a message.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TextIO

import click

from replog import starting
from replog.store.files.errors import StoreError

COMMANDS = MappingProxyType(
    {
        "cluster": ("replog.cluster", "Run several brokers for Kafka's clients."),
        "demo": ("replog.demo.command", "Watch a three-broker cluster lose its leader."),
        "dump": ("replog.dump", "Show the contents of a log directory."),
        "groups": ("replog.status:groups", "Show what consumer groups have committed, and their lag."),
        "merge": ("replog.merge", "Put what a cluster has recorded in one order."),
        "play": ("replog.play", "Play a story of a cluster, command by command."),
        "repair": ("replog.repair", "Cut the damaged part off a log, and keep a copy."),
        "serve": ("replog.serve", "Serve a directory to Kafka's clients."),
        "sim": ("replog.simulate", "Run simulated clusters with faults, repeatable from a seed."),
        "status": ("replog.status:status", "Show the brokers of a running cluster, and what is wrong."),
        "topics": ("replog.status:topics", "Show the partitions of a running cluster."),
    }
)
FAILED = 1
INTERRUPTED = 130
CLOSED_PIPE = 141


class LazyGroup(click.Group):
    """A group whose commands are in modules imported on demand: `command`, or the name after a colon."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Import the module of a command."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute or "command")
        starting.command()
        return command

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        """List names and descriptions from the table, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="specchk", prog_name="replog")
def cli() -> None:
    """Run a replicated log that follows Kafka's protocol, inspect its files, and test it under faults."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; prints messages instead of raising."""
    try:
        code = _invoke(arguments)
        # Here and not at exit: a reader that has gone away shows at a flush, and decides the exit code.
        sys.stdout.flush()
    except click.ClickException as error:
        _report(error.show)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _report(lambda: click.echo("interrupted", err=True))
        return INTERRUPTED
    except BrokenPipeError:
        _silence(sys.stdout)
        return CLOSED_PIPE
    except (StoreError, OSError) as error:
        _report(click.ClickException(str(error)).show)
        return FAILED
    return code


def _invoke(arguments: Sequence[str]) -> int:
    try:
        with cli.make_context("replog", list(arguments)) as context:
            cli.invoke(context)
    except click.exceptions.Exit as ending:
        return ending.exit_code
    return 0


def _report(show: Callable[[], None]) -> None:
    """Write a message to standard error; without a reader, only the exit code remains."""
    try:
        show()
    except OSError:
        _silence(sys.stderr)


def _silence(stream: TextIO) -> None:
    """Discard the buffered output, so that the interpreter's last flush fails silently."""
    # Closing the stream would raise; with the descriptor replaced the last flush succeeds and goes nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def main() -> None:
    """Run the process's command line and exit."""
    sys.exit(run(sys.argv[1:]))
