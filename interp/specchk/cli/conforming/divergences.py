"""Output of divergences to files: a picture, an ITF trace, a page.

Not here: the end of a process (`crews`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from specchk.cli.common import write_json, write_text
from specchk.cli.groups import option
from specchk.cli.output import echo
from specchk.cli.pictures import svg_of, write_picture
from specchk.conform.gate.tiers import Part
from specchk.conform.replay.divergence import as_itf, drawn
from specchk.conform.replay.frozen import CannotFreeze, frozen
from specchk.conform.replay.place import Divergence
from specchk.conform.replay.suites import SuiteResult
from specchk.conform.report.page import page


@dataclass(frozen=True, slots=True)
class Files:
    """The files to write about a divergence."""

    heading: ClassVar[str] = "Output"
    draw: str | None = option(
        "--draw", metavar="FILE", help="Draw the divergence (.svg, .png, .pdf or .dot)."
    )
    itf: str | None = option("--itf", metavar="FILE", help="Write the divergence as an ITF trace.")
    freeze: str | None = option(
        "--freeze", metavar="FILE", help="Write the divergence as a test that does not need specchk."
    )
    html: str | None = option("--html", metavar="FILE", help="Write the whole report as one HTML page.")
    as_json: bool = option("--json", help="Print one JSON object instead of text.")

    @property
    def of_one(self) -> dict[str, object]:
        """The options that apply to a single binding."""
        return {"--draw": self.draw, "--itf": self.itf, "--freeze": self.freeze, "--html": self.html}

    def write(self, binding: Path, part: Part, result: SuiteResult, sections: Sequence[str] = ()) -> None:
        """Write the files; without a divergence, report that on standard error."""
        divergence = result.divergence
        # With a divergence or without: a build server keeps the page of every run.
        if self.html is not None:
            svg = None if divergence is None else svg_of(drawn(part.instance, divergence))
            write_text(Path(self.html), page(part, result, svg, sections))
        if divergence is None:
            if {self.draw, self.itf, self.freeze} != {None}:
                echo("no divergence, so nothing was drawn or written", err=True)
            return
        if self.draw is not None:
            write_picture(drawn(part.instance, divergence), Path(self.draw))
        if self.itf is not None:
            write_json(self.itf, as_itf(part.instance.program, divergence))
        if self.freeze is not None:
            _freeze(binding, part, divergence, Path(self.freeze))


def _freeze(binding: Path, part: Part, divergence: Divergence, target: Path) -> None:
    try:
        text = frozen(part.instance, part.binding, binding, divergence, target)
    except CannotFreeze as error:
        echo(f"{target} was not written: {error}", err=True)
        return
    write_text(target, text)
