"""`specchk lsp`: the language server."""

from __future__ import annotations

import click

from specchk.cli.engines import loaded

NO_PYGLS = "`specchk lsp` needs pygls: pip install 'specchk[lsp]'"


@click.command("lsp")
def command() -> None:
    """Serve an editor: diagnostics, names and runs, by the Language Server Protocol.

    The editor starts this command and talks to it on standard input and output; docs/editors.md has the
    settings of common editors.
    """
    loaded("specchk.lsp.server", NO_PYGLS).serve()
