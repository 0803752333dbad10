"""The output forms of a run: text, JSON, ITF, a picture, an HTML page.

The modules of ITF, pictures and pages are loaded where one is written: most runs write none.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NoReturn

import click
from msgspec.structs import replace

from specchk.cli.common import (
    Limits,
    print_json,
    refusals,
    rejections,
    width,
    write_json,
    write_text,
)
from specchk.cli.engines import loaded
from specchk.cli.exits import of_verdict
from specchk.cli.groups import option
from specchk.cli.output import echo, echo_report
from specchk.cli.written import OutputFile
from specchk.compile.instantiate import Instance
from specchk.explore.shown import FurtherExpression, NameTaken, shown_of, with_shown
from specchk.report.draw.picture import FORMATS
from specchk.report.json import run_json
from specchk.report.text import render
from specchk.search.budget import Budget
from specchk.search.verdict import Outcome, Trace, Violation, violations_of
from specchk.search.watch import LimitReached

PRESENTED_S = 0.3  # for a search that has no time left


@dataclass(frozen=True, slots=True)
class Outputs:
    """The requested forms of output."""

    heading: ClassVar[str] = "Output"

    as_json: bool = option("--json", help="Print one JSON object instead of text.")
    itf: str | None = option(
        "--itf",
        type=OutputFile(or_stdout=True),
        metavar="FILE",
        help="Write the counterexample as an ITF trace; - is stdout.",
    )
    draw: str | None = option(
        "--draw",
        type=OutputFile(FORMATS),
        metavar="FILE",
        help="Draw the counterexample (.svg, .png, .pdf or .dot).",
    )
    html: str | None = option(
        "--html", type=OutputFile(), metavar="FILE", help="Write the whole report as one HTML page."
    )
    show: tuple[str, ...] = option(
        "--show",
        heading="Choice of counterexamples",
        metavar="EXPR",
        help="Show the value of EXPR, or of NAME = EXPR, in each state of a counterexample; repeatable.",
    )

    def check(self) -> None:
        """Check that at most one form goes to standard output; a usage error before any work otherwise."""
        if self.as_json and self.itf == "-":
            raise click.UsageError("--json and --itf - both write to standard output; give --itf a file")

    def shown(self, instance: Instance) -> tuple[FurtherExpression, ...]:
        """The expressions to show; exits if one is rejected."""
        return expressions(instance, self.show, as_json=self.as_json)


@dataclass(frozen=True, slots=True)
class ClarityChoice:
    """The choice of counterexamples among the shortest."""

    heading: ClassVar[str] = "Choice of counterexamples"
    optimal: bool = option(
        "--optimal", help="Of the shortest counterexamples, show the one that is easiest to read."
    )
    several: int | None = option(
        "--all-counterexamples", help="Show up to N shortest counterexamples of each property, easiest first."
    )

    def applied(self, instance: Instance, outcome: Outcome) -> Outcome:
        """The outcome, with the best counterexamples if they were requested."""
        if not self.optimal and self.several is None:
            return outcome
        clearest: Outcome = loaded("specchk.cli.clarity").clearer(instance, outcome, self.several or 1)
        return clearest


def expressions(
    instance: Instance, texts: tuple[str, ...], *, as_json: bool
) -> tuple[FurtherExpression, ...]:
    """The expressions of `--show`; exits if one is rejected."""
    with rejections(as_json=as_json), refusals(NameTaken, about="--show: "):
        return shown_of(instance, texts)


def counterexample(outcome: Outcome) -> tuple[Trace, Violation] | None:
    """The first violation with a trace."""
    violations = violations_of(outcome.verdict)
    return next(((each.trace, each) for each in violations if each.trace is not None), None)


def presented(
    instance: Instance, outcome: Outcome, limits: Limits, budget: Budget,
    shown: tuple[FurtherExpression, ...], clarity: ClarityChoice | None = None,
) -> tuple[Instance, Outcome]:  # fmt: skip
    """The outcome with the counterexamples and the values of expressions that were requested.

    In the time that the search has left, or `PRESENTED_S`; if that is not enough, as they were found.
    """
    try:
        with limits.watched_after(budget, PRESENTED_S):
            if clarity is not None:
                outcome = clarity.applied(instance, outcome)
            if shown:
                instance, outcome = with_shown(instance, outcome, shown)
    except LimitReached:
        warning = "counterexamples are shown as they were found: the limit (--max-seconds) was reached"
        outcome = replace(outcome, warnings=(*outcome.warnings, warning))
    return instance, outcome


def finish(instance: Instance, outcome: Outcome, outputs: Outputs, again: str) -> NoReturn:
    """Report an outcome in the requested forms, and exit with its code."""
    code = of_verdict(outcome.verdict)
    if outputs.as_json:  # before the files: one that cannot be written does not cost the verdict
        print_json(run_json(outcome, int(code)))
    elif outputs.itf != "-":
        echo_report(render(outcome, width(), again))
    drawn = counterexample(outcome)
    if outputs.draw is not None and drawn is not None:
        pictures = loaded("specchk.cli.pictures")
        pictures.write_picture(pictures.drawing(instance, *drawn), Path(outputs.draw))
    elif outputs.draw is not None:
        echo("no counterexample, so nothing was drawn", err=True)
    if outputs.html is not None:
        pictures = loaded("specchk.cli.pictures")
        svg = None if drawn is None else pictures.svg_of(pictures.drawing(instance, *drawn))
        write_text(Path(outputs.html), loaded("specchk.report.page.html").page(outcome, svg))
    if outputs.itf is not None and drawn is not None:
        write_json(outputs.itf, loaded("specchk.report.itf").trace_itf(outcome.program, *drawn))
    elif outputs.itf is not None:
        echo("no counterexample, so no ITF trace was written", err=True)
    sys.exit(code)
