"""`specchk conditions`: the parts of guards, branches and properties that never decide."""

from __future__ import annotations

import sys

import click

from specchk.cli.common import Limits, load, parse_overrides, print_json, rejections, width
from specchk.cli.deciding import decided_conditions
from specchk.cli.exits import Exit
from specchk.cli.groups import takes
from specchk.cli.output import echo
from specchk.compile.instantiate import instantiate
from specchk.report.conditions import conditions_json, render_conditions


@click.command("conditions")
@click.argument("file")
@click.option(
    "--model", "models", multiple=True, metavar="M",
    help="Model to use; by default the file's first.  With several, a condition may decide in any of them.",
)  # fmt: skip
@click.option(
    "--set", "overrides", multiple=True, metavar="C=V",
    help="Override a constant or the size of a sort; repeatable.",
)  # fmt: skip
@takes(limits=Limits)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: str, models: tuple[str, ...], overrides: tuple[str, ...], limits: Limits, *, as_json: bool
) -> None:  # fmt: skip
    """List the conditions of the spec FILE that never decide.

    A part of a guard decides in a state where it alone forbids a step; an alternative, where it alone allows
    one.  A part that never does could be missing from the spec, or from the code behind it, and no behaviour
    of the model would show it.
    """
    table = parse_overrides(overrides)
    with rejections(as_json=as_json):
        spec = load(file)
        programs = [instantiate(spec, model, table).program for model in models or (None,)]
    found = [decided_conditions(program, limits.budget, quiet=as_json) for program in programs]
    code = Exit.OK if all(model.is_complete for model in found) else Exit.BUDGET
    if as_json:
        print_json(conditions_json(found, int(code)))
    else:
        echo(render_conditions(found, width()))
    sys.exit(code)
