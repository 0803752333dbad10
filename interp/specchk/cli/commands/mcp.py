"""`specchk mcp`: the commands as tools of the Model Context Protocol, for agents."""

from __future__ import annotations

from pathlib import Path

import click

from specchk.cli.engines import loaded

NO_MCP = "`specchk mcp` needs the SDK of the protocol: pip install 'specchk[mcp]'"


@click.command("mcp")
@click.argument("folders", nargs=-1, metavar="FOLDER...", type=click.Path(exists=True, file_okay=False))
@click.option("--write", is_flag=True, help="Let the tools write files in the folders.")
@click.option(
    "--execute", is_flag=True, help="Let the tools run the bindings in the folders, which are Python."
)
def command(folders: tuple[str, ...], write: bool, execute: bool) -> None:
    """Serve tools for agents on standard input and output; by default on the current FOLDER.

    No tool uses a file outside the folders, runs a shell, or runs longer than its budget.
    """
    loaded("specchk.mcp.server", NO_MCP).serve(
        [Path(folder).resolve() for folder in folders or (".",)], write=write, execute=execute
    )
