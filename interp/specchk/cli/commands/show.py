"""`specchk show`: how the engines see a model."""

from __future__ import annotations

from collections.abc import Sequence

import click

from specchk.cli.common import load_instance, model_options
from specchk.cli.output import echo
from specchk.native.machine.layout import render_layout
from specchk.search.engine import Unsupported


@click.command("show")
@click.argument("what", type=click.Choice(["layout"]))
@model_options
def command(
    what: str, file: str, model: str | None, overrides: Sequence[str], properties: Sequence[str]
) -> None:  # fmt: skip
    """Show the `layout` of the spec FILE's states: the bits of each variable in 64-bit words."""
    assert what == "layout"
    instance = load_instance(file, model, overrides, properties, as_json=False)
    try:
        echo(render_layout(instance.program))
    except Unsupported as reason:
        raise click.ClickException(f"the native engine has no layout for this model: {reason}") from None
