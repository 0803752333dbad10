"""`specchk review`: one table of what a spec does not say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

import click

from specchk.cli.commands.validate import recorded_files
from specchk.cli.common import leave, load, refusals, rejections, width, write_json
from specchk.cli.deciding import decided_conditions
from specchk.cli.engines import EngineSettings, explore
from specchk.cli.exits import Exit
from specchk.cli.options.given import PythonFile
from specchk.cli.output import echo
from specchk.cli.written import OutputFile
from specchk.conform.contract.binding import BindingError
from specchk.conform.contract.hangs import contained
from specchk.conform.contract.load import NoBinding, load_tracing
from specchk.conform.contract.tracing import Tracing
from specchk.explore.conditions import Decided
from specchk.ir.program import Program
from specchk.lang.frontend import CheckedSpec
from specchk.review.output import as_json as as_json_of
from specchk.review.output import as_sarif, render
from specchk.review.recorded import followed, recorded_rows, words_of
from specchk.review.review import Most, Review, reviewed
from specchk.search.budget import Budget
from specchk.search.engine import Options
from specchk.search.engines import NAMES
from specchk.search.verdict import Outcome

MOST_STATES = 50_000
MOST_CHANGES = 100
QUICK_STATES = 2500  # below this, compiling a mutant takes longer than interpreting it


@click.command("review")
@click.argument("file", type=click.Path())
@click.argument("recordings", nargs=-1)
@click.option(
    "--tracing",
    type=PythonFile(),
    metavar="TRACING",
    help="Python file that maps the RECORDINGS' events to actions.",
)
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
@contained(partial(echo, err=True))
def command(
    file: str, recordings: tuple[str, ...], tracing: str | None, max_states: int, changes: int, as_json: bool,
    sarif_file: str | None,
) -> None:  # fmt: skip
    """List what the spec FILE does not say, each with the next thing to do; and what RECORDINGS do not.

    Its models are searched, and small changes of its actions are tried on those that hold.
    Exit codes: 0 nothing but notes, 10 a weakness, 30 the spec was rejected.
    """
    if bool(recordings) != (tracing is not None):
        raise click.UsageError("recordings and --tracing need each other")
    with refusals(NoBinding):
        cls = None if tracing is None else load_tracing(Path(tracing))

    def search(program: Program, options: Options) -> Outcome:
        most = options.budget.max_states
        name = "reference" if most is not None and most <= QUICK_STATES else NAMES[0]
        return explore(program, options, engine=EngineSettings(name), quiet=True)

    def decide(program: Program) -> Decided:
        return decided_conditions(program, Budget(max_states=max_states), quiet=True)

    with rejections(as_json=as_json):
        checked = load(file)
        review = reviewed(file, checked, search, decide, Most(max_states, changes))
        if cls is not None and tracing is not None:
            review = _with_recordings(review, cls, checked, tracing, recordings)
    code = Exit.OK if all(row.is_note for row in review.rows) else Exit.VIOLATED
    if sarif_file is not None:
        write_json(sarif_file, as_sarif(review, version("specchk")))
    leave(
        code,
        as_json=as_json,
        json=lambda: as_json_of(review, int(code)),
        text=lambda: render(review, width()),
    )


def _with_recordings(
    review: Review, cls: type[Tracing], checked: CheckedSpec, tracing: str, recordings: Sequence[str]
) -> Review:
    with refusals(BindingError):
        seen = followed(cls, checked, recorded_files(recordings, cls))
    rows = recorded_rows(seen, cls, checked, words_of(tracing, recordings))
    return review.with_rows(rows, seen.problems)
