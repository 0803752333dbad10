"""`specchk draw`: pictures of counterexamples and witnesses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from specchk.cli.common import budget, budget_options, load_instance, model_options
from specchk.cli.engines import ENGINES, explore
from specchk.cli.exits import Exit
from specchk.core.instantiate import Instance
from specchk.core.search import Options
from specchk.core.verdict import Outcome, Trace, Violated, Violation
from specchk.core.view import Viewer
from specchk.report.draw import lanes
from specchk.report.draw.picture import Picture, picture
from specchk.report.draw.render import NoGraphviz, write
from specchk.report.draw.text import text


@click.command("draw")
@model_options
@click.option("-o", "--output", metavar="FILE", help="A .svg, .png, .pdf or .dot file; text without it.")
@click.option("--witness", metavar="W", help="Draw how this witness is reached, not a counterexample.")
@click.option("--engine", type=click.Choice(ENGINES), default=ENGINES[0], show_default=True)
@budget_options
def command(
    file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str], output: str | None,
    witness: str | None, engine: str,
    max_states: int | None, max_seconds: float | None, max_memory: int | None,
) -> None:  # fmt: skip
    """Draw the counterexample of the spec FILE: a lane for each replica, time downwards."""
    instance = load_instance(file, model, overrides, properties, as_json=False)
    options = Options(budget(max_states, max_seconds, max_memory))
    outcome = explore(instance.program, options, engine=engine, quiet=False)
    trace, violation = _chosen(outcome, witness)
    show_picture(instance, trace, violation, output)
    sys.exit(Exit.OK)


def _chosen(outcome: Outcome, witness: str | None) -> tuple[Trace, Violation | None]:
    if witness is not None:
        reached = dict(outcome.witnesses)
        if witness not in reached:
            known = ", ".join(reached) or "none"
            raise click.ClickException(f"no witness {witness!r} was reached; reached: {known}")
        return reached[witness], None
    violations = outcome.verdict.violations if isinstance(outcome.verdict, Violated) else ()
    for violation in violations:
        if violation.trace is not None:
            return violation.trace, violation
    raise click.ClickException("there is no counterexample to draw; --witness draws how a witness is reached")


def show_picture(instance: Instance, trace: Trace, violation: Violation | None, output: str | None) -> None:
    """Write a trace's picture to a file, or as text to standard output."""
    drawn = picture(Viewer(instance), trace, violation)
    if output is None:
        click.echo(text(drawn))
        return
    write_picture(drawn, Path(output))


def write_picture(drawn: Picture, path: Path) -> None:
    """Write a picture, saying in one sentence what to do when that is not possible."""
    try:
        write(lanes.dot(drawn), path, placed=True)
    except NoGraphviz:
        dot = path.with_suffix(".dot")
        click.echo(f"{dot} was written; install Graphviz (the `dot` program) to get {path.name}", err=True)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="-o") from None
    except OSError as error:
        raise click.FileError(str(path), hint=error.strerror or str(error)) from None
