"""`specchk export-tla`: a model as a TLA+ module and a configuration for TLC."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import click

from specchk.cli.common import ModelChoice, rejections, replaced
from specchk.cli.groups import takes
from specchk.cli.output import echo
from specchk.cli.written import OutputFolder
from specchk.report.tla.module import VARIANTS, exported
from specchk.report.tla.names import cleaned


@click.command("export-tla")
@takes(choice=ModelChoice)
@click.option(
    "-o", "--output", type=OutputFolder(), metavar="DIR", default=".", show_default=True,
    help="Write the files into the folder DIR; files of these names are replaced.",
)  # fmt: skip
@click.option("--no-symmetry", is_flag=True, help="Write no symmetry, so that TLC counts all states.")
def command(choice: ModelChoice, output: str, *, no_symmetry: bool) -> None:
    """Write a model of the spec FILE as a TLA+ module and a configuration for TLC.

    Exit codes: 0 written, 30 the spec was rejected, or has a part without a form in TLA+.
    """
    program = choice.instance(as_json=False).program
    name = cleaned(f"{program.spec}_{program.model}" if program.model else program.spec)
    with rejections(as_json=False):
        made = exported(program, name, symmetry=not no_symmetry)
    texts = {f"{name}.tla": made.module, f"{name}.cfg": made.configuration}
    if made.has_unions:
        texts["Variants.tla"] = VARIANTS
    for file, text in texts.items():
        path = Path(output) / file
        replaced(path, text)
        echo(f"wrote {path}")
    for note in made.notes:
        echo(f"note: {note}")
    folder = "" if output == "." else f"cd {quote(output)} && "
    echo(f"next: {folder}java -cp tla2tools.jar tlc2.TLC {name}")
