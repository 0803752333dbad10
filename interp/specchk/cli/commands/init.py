"""`specchk init`: a spec, an implementation, a binding and a CI recipe, which work at once."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from specchk.cli.written import put_new

STARTERS = Path(__file__).parents[1] / "starters"
KINDS = ("lock", "queue", "primary-backup", "replicated-log")
WORKFLOW = "workflow.yml"  # of all kinds


@click.command("init")
@click.argument("kind", type=click.Choice(KINDS), default=KINDS[0], metavar="[KIND]")
@click.argument("folder", type=click.Path(), default=".")
def command(kind: str, folder: str) -> None:
    """Write an example into FOLDER (by default this one): spec, implementation, binding, workflow for GitHub.

    KIND is lock (the default), queue, primary-backup or replicated-log. No file is overwritten.
    """
    files = sorted(file for file in (STARTERS / kind).iterdir() if file.is_file())
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    texts[".github/workflows/specchk.yml"] = (STARTERS / WORKFLOW).read_text(encoding="utf-8")
    spec = next(name for name in texts if name.endswith(".spec"))
    put_new(Path(folder), texts, f"specchk run {quote(str(Path(folder) / spec))}")
