"""The `specchk` program: a table of commands, each imported only when used.

Not here: what becomes of exceptions (`ends`).
"""

from __future__ import annotations

import atexit
import gc
import sys
from functools import partial
from importlib import import_module
from shlex import quote
from types import MappingProxyType

import click

from specchk import kept
from specchk.cli import output, starting
from specchk.cli.ends import exit_code

# command -> (module in this room, its line in --help)
COMMANDS = MappingProxyType(
    {
        "init": ("commands.init", "Write an example into a folder: spec, implementation, binding."),
        "run": ("commands.run", "Check one model of a spec."),
        "test": ("commands.test", "Check all models and scenarios against their expectations."),
        "check": ("commands.check", "Report errors without exploring states."),
        "draw": ("commands.draw", "Draw a counterexample, with a lane for each replica."),
        "explore": ("commands.explore", "Step through the states in a browser."),
        "simulate": ("commands.simulate", "Check random walks, repeatable from a seed."),
        "review": ("commands.review", "List what a spec does not say."),
        "conditions": ("commands.conditions", "List the conditions of a spec that never decide."),
        "conform": ("commands.conform", "Check an implementation against its spec."),
        "bind": ("commands.bind", "Write the skeleton of a binding to a spec."),
        "validate": ("commands.validate", "Check recordings of an implementation against its spec."),
        "behaviour": ("accepted.behaviour", "Compare an implementation's behaviour with what was accepted."),
        "mutate": ("commands.mutate", "Run the gate against mutants."),
        "recheck": ("commands.recheck", "Check the certificate of a verdict."),
        "sql": ("sql", "Query the state space that a run exported."),
        "export-tla": ("commands.export_tla", "Write a model in TLA+, for TLC."),
        "show": ("commands.show", "Show the bit layout of a model's states."),
        "repl": ("commands.repl", "Evaluate expressions and take steps by hand."),
        "fmt": ("commands.fmt", "Format spec files."),
        "lsp": ("commands.lsp", "Serve an editor (Language Server Protocol)."),
        "mcp": ("commands.mcp", "Serve tools for agents, by the Model Context Protocol."),
        "skills": ("commands.skills", "Write skills and rules for coding agents."),
        "explain": ("commands.explain", "Explain a diagnostic code."),
    }
)
# What other programs call it -> what to write here.
ELSEWHERE = MappingProxyType({
    "help": "--help", "version": "--version", "verify": "run", "prove": "run FILE --prove", "lint": "check",
    "typecheck": "check", "parse": "check", "format": "fmt", "trace": "draw", "model-check": "run",
    "mc": "run", "tlc": "run", "exec": "run", "start": "run", "replay": "validate", "gate": "conform",
})  # fmt: skip
# Definitions are put into each other, so trees are deeper than one declaration may be (`build.MAX_DEPTH`),
# and the passes take several frames for each level.
RECURSION_LIMIT = 20_000
# Objects between two searches of the garbage collector for cycles.  Trees, programs and states are many and
# have few: with Python's 700 they are traversed some two hundred times in a run of a second, with 200,000
# twice in two seconds, which takes a twentieth of them.  Garbage with cycles is mostly exceptions and
# closures, and little.
CYCLES_AFTER = 500_000


class Commands(click.Group):
    """A group that imports a command's module when the command is named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The command names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported on demand."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"specchk.cli.{COMMANDS[cmd_name][0]}").command
        starting.command()
        if refusal := kept.refusal():
            output.echo(f"warning: {refusal}", err=True)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands' lines, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with the nearest command's name in the error."""
        name = args[0] if args else ""
        if name and name not in COMMANDS:
            from difflib import get_close_matches

            close = [ELSEWHERE.get(name, ""), *get_close_matches(name, COMMANDS, n=1), ""]
            meant = f"run {quote(name)}" if name.endswith(".spec") else close[0] or close[1]
            ctx.fail(f"No such command '{name}'." + (f" Did you mean 'specchk {meant}'?" if meant else ""))
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="specchk")
def cli() -> None:
    """Check specs in a small TLA+-style language, and implementations against them."""


def main(began: float | None = None) -> None:
    """The program's entry point; `began`: when the process did, of `time.monotonic`."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    gc.set_threshold(CYCLES_AFTER)
    # An exiting interpreter searches all objects for cycles again: half a second after a large search.
    atexit.register(gc.freeze)
    with output.survived():
        sys.exit(exit_code(partial(cli, standalone_mode=False, obj=began)))
