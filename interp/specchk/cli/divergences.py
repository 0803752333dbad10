"""The files in which `specchk conform` tells a divergence: a picture, an ITF trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from specchk.cli.common import write_json
from specchk.cli.output import echo
from specchk.cli.pictures import write_picture
from specchk.conform.divergence import as_itf, drawn
from specchk.conform.report import About
from specchk.conform.suites import Result

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Files:
    """Which files were asked for."""

    draw: str | None
    itf: str | None

    def write(self, about: About, result: Result) -> None:
        """Write them; a word on standard error where there is no divergence to write of."""
        found = result.divergence
        if found is None:
            if self.draw is not None or self.itf is not None:
                echo("no divergence, so nothing was drawn or written", err=True)
            return
        if self.draw is not None:
            write_picture(drawn(about.instance, found), Path(self.draw))
        if self.itf is not None:
            write_json(self.itf, as_itf(about.instance.program, found))


def divergence_options(function: F) -> F:
    """`--draw`, `--itf`."""
    decorators = [
        click.option("--draw", metavar="FILE", help="Draw the divergence (.svg, .png, .pdf or .dot)."),
        click.option("--itf", metavar="FILE", help="Write the divergence as an ITF trace."),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function
