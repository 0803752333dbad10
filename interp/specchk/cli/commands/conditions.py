"""`specchk conditions`: the parts of guards, branches and properties that never decide."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from specchk.cli.commands.conform import load_binding
from specchk.cli.common import Limits, leave, load, parse_overrides, rejections, width
from specchk.cli.deciding import decided_conditions, impossible_in
from specchk.cli.exits import Exit
from specchk.cli.groups import takes
from specchk.cli.options.given import refused
from specchk.cli.output import echo
from specchk.compile.instantiate import instantiate
from specchk.explore.variants import BoundedModel, proposals
from specchk.lang.frontend import CheckedSpec
from specchk.lang.text.given import check_regular
from specchk.report.conditions import conditions_json, render_conditions, undecided
from specchk.search.budget import Meter
from specchk.search.watch import LimitReached

MOST_STATES = 50_000  # of a proposed model: beyond, suites of it take long


@click.command("conditions")
@click.argument("file", type=click.Path())
@click.option(
    "--model", "models", multiple=True, metavar="M",
    help="Model to use; by default the file's first.  With several, deciding in one of them is enough.",
)  # fmt: skip
@click.option(
    "--set", "overrides", multiple=True, metavar="C=V",
    help="Override a constant or the size of a sort; repeatable.",
)  # fmt: skip
@click.option(
    "--propose", is_flag=True,
    help="Also search models with other bounds, and list those in which these conditions decide; each search "
    f"ends at --max-states, by default {MOST_STATES}.",
)  # fmt: skip
@click.option(
    "--prove", is_flag=True,
    help="Also show, by symbolic searches, which of these conditions decide for no offsets at all.",
)  # fmt: skip
@takes(limits=Limits)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    file: str, models: tuple[str, ...], overrides: tuple[str, ...], limits: Limits, *, propose: bool,
    prove: bool, as_json: bool,
) -> None:  # fmt: skip
    """List the conditions of the spec FILE that never decide.

    A part of a guard decides in a state where it alone forbids a step; an alternative decides where it alone
    allows one.  If a part never decides, no behaviour of the model would change without it, and nothing
    would show that the spec or the code lacks it.  FILE may also be a binding (.py); the models are then
    those of its gate.
    """
    impossible = proposed = None
    with limits.watched() as budget:
        with rejections(as_json=as_json):
            spec, places = _places(file, models, parse_overrides(overrides))
            programs = [instantiate(spec, place.model, place.bounds).program for place in places]
        decided = [decided_conditions(program, budget, quiet=as_json) for program in programs]
        open_ = [model for model in decided if not model.is_complete]
        is_stopped = any(model.is_budget for model in open_)
        code = Exit.BUDGET if is_stopped else Exit.INCONCLUSIVE if open_ else Exit.OK
        try:
            Meter(budget).raise_exceeded()
            impossible = impossible_in(decided) if prove else None
            if propose:
                few = replace(budget, max_states=limits.max_states or MOST_STATES)
                proposed = proposals(
                    spec, places, {condition.key for condition in undecided(decided)},
                    lambda program, only: decided_conditions(program, few, only=only, quiet=as_json),
                )  # fmt: skip
        except LimitReached as limit:
            code = Exit.BUDGET
            if prove or propose:
                echo(f"note: {limit} before the end of --prove or --propose", err=True)
    leave(
        code, as_json=as_json, json=lambda: conditions_json(decided, proposed, int(code), impossible),
        text=lambda: render_conditions(decided, proposed, width(), impossible),
    )  # fmt: skip


def _places(
    file: str, models: tuple[str, ...], table: dict[str, str]
) -> tuple[CheckedSpec, list[BoundedModel]]:  # fmt: skip
    """The spec of a file, and the chosen models, or those of a binding's gate."""
    if Path(file).suffix != ".py":
        return load(file), [BoundedModel(model, table) for model in models or (None,)]
    if models:
        raise click.UsageError("a binding has the models of its gate; omit --model")
    with refused(file):
        check_regular(Path(file))
    cls = load_binding(Path(file))
    places = [BoundedModel(at.model or cls.model, {**at.bounds, **table}) for at in cls.gate]
    return load(str(Path(file).parent / cls.spec)), list(
        {place.options(): place for place in places}.values()
    )
