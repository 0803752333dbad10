"""The files in which `specchk conform` shows a divergence: a picture, an ITF trace, a test; and its page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from specchk.cli.common import write_json, write_text
from specchk.cli.output import echo
from specchk.cli.pictures import svg_of, write_picture
from specchk.conform.replay.divergence import as_itf, drawn
from specchk.conform.replay.frozen import CannotFreeze, frozen
from specchk.conform.replay.replay import Divergence
from specchk.conform.replay.suites import Result
from specchk.conform.report.page import page
from specchk.conform.report.suite import About

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Files:
    """The requested files."""

    binding: str
    draw: str | None
    itf: str | None
    freeze: str | None
    html: str | None

    def write(self, about: About, result: Result, sections: Sequence[str] = ()) -> None:
        """Write them; a word on standard error where there is no divergence to write of."""
        found = result.divergence
        if self.html is not None:
            svg = None if found is None else svg_of(drawn(about.instance, found))
            write_text(Path(self.html), page(about, result, svg, sections))
        if found is None:
            if {self.draw, self.itf, self.freeze} != {None}:
                echo("no divergence, so nothing was drawn or written", err=True)
            return
        if self.draw is not None:
            write_picture(drawn(about.instance, found), Path(self.draw))
        if self.itf is not None:
            write_json(self.itf, as_itf(about.instance.program, found))
        if self.freeze is not None:
            self._freeze(about, found, Path(self.freeze))

    def _freeze(self, about: About, found: Divergence, target: Path) -> None:
        try:
            text = frozen(about.instance, about.binding, Path(self.binding), found, target)
        except CannotFreeze as error:
            echo(f"{target} was not written: {error}", err=True)
            return
        write_text(target, text)


def divergence_options(function: F) -> F:
    """`--draw`, `--itf`, `--freeze`, `--html`."""
    decorators = [
        click.option("--draw", metavar="FILE", help="Draw the divergence (.svg, .png, .pdf or .dot)."),
        click.option("--itf", metavar="FILE", help="Write the divergence as an ITF trace."),
        click.option("--freeze", metavar="FILE", help="Write the divergence as a test without specchk."),
        click.option("--html", metavar="FILE", help="Write the whole report as one HTML page."),
    ]
    for decorator in reversed(decorators):
        function = decorator(function)
    return function
