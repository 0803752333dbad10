"""`specchk show`: the representation of a model in the engines."""

from __future__ import annotations

import click

from specchk.cli.common import ModelChoice, refusals
from specchk.cli.groups import takes
from specchk.cli.output import echo
from specchk.native.machine.layout import render_layout
from specchk.native.machine.rooms import first_room, with_room
from specchk.search.engine import Unsupported


@click.command("show")
@click.argument("what", type=click.Choice(["layout"]))
@takes(choice=ModelChoice)
def command(what: str, choice: ModelChoice) -> None:
    """Show the `layout` of the spec FILE's states: the bits of each variable in 64-bit words."""
    assert what == "layout"
    instance = choice.instance(as_json=False)
    with refusals(Unsupported, about="the native engine has no layout for this model: "):
        echo(render_layout(with_room(instance.program, first_room(instance.program))))
