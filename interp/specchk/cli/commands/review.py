"""`specchk review`: one table of what a spec does not say."""

from __future__ import annotations

from importlib.metadata import version

import click

from specchk.cli.common import leave, load, rejections, width, write_json
from specchk.cli.deciding import decided_conditions
from specchk.cli.engines import EngineSettings, explore
from specchk.cli.exits import Exit
from specchk.cli.written import OutputFile
from specchk.explore.conditions import Decided
from specchk.ir.program import Program
from specchk.review.output import as_json as as_json_of
from specchk.review.output import render, sarif
from specchk.review.review import Most, reviewed
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.engines import NAMES
from specchk.search.verdict import Outcome

MOST_STATES = 50_000
MOST_CHANGES = 100
QUICK_STATES = 2500  # below this, compiling a mutant takes longer than interpreting it


@click.command("review")
@click.argument("file", type=click.Path())
@click.option(
    "--max-states", type=click.IntRange(min=1), default=MOST_STATES, show_default=True, metavar="N",
    help="Stop each search after N distinct states.",
)  # fmt: skip
@click.option(
    "--changes", type=click.IntRange(min=0), default=MOST_CHANGES, show_default=True, metavar="N",
    help="Try at most N changes of the spec.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--sarif",
    "sarif_file",
    type=OutputFile(),
    metavar="FILE",
    help="Write the rows as SARIF, for code hosts.",
)
def command(file: str, max_states: int, changes: int, as_json: bool, sarif_file: str | None) -> None:
    """List what the spec FILE does not say, each with the next thing to do.

    Its models are searched, and small changes of its actions are tried on those that hold.
    Exit codes: 0 nothing but notes, 10 a weakness, 30 the spec was rejected.
    """

    def search(program: Program, options: Options) -> Outcome:
        most = options.budget.max_states
        name = "reference" if most is not None and most <= QUICK_STATES else NAMES[0]
        return explore(program, options, engine=EngineSettings(name), quiet=True)

    def decide(program: Program) -> Decided:
        return decided_conditions(program, Budget(max_states=max_states), quiet=True)

    with rejections(as_json=as_json):
        checked = load(file)
        review = reviewed(file, checked, search, decide, Most(max_states, changes))
    code = Exit.OK if all(row.is_note for row in review.rows) else Exit.VIOLATED
    if sarif_file is not None:
        write_json(sarif_file, sarif(review, version("specchk")))
    leave(
        code,
        as_json=as_json,
        json=lambda: as_json_of(review, int(code)),
        text=lambda: render(review, width()),
    )
