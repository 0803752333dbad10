"""`specchk explain`: the page of a diagnostic code."""

from __future__ import annotations

import sys

import click

from specchk.cli.exits import Exit
from specchk.cli.output import echo
from specchk.lang.codes.catalogue import CODES
from specchk.lang.text.diagnostics import nearest


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a diagnostic CODE, with an example; without CODE, list them all."""
    if code is None:
        echo("\n".join(f"{name}  {page.title}" for name, page in sorted(CODES.items())))
        return
    page = CODES.get(code.strip().upper())
    if page is None:
        hint = nearest(code.upper(), CODES) or "`specchk explain` lists all codes"
        echo(f"there is no diagnostic code {code}; {hint}", err=True)
        sys.exit(Exit.USAGE)
    echo(page.render())
