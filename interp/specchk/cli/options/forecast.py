"""`specchk run --forecast`: an estimate of the size of a search, before it is run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import click

from specchk.cli.common import ModelChoice, ended, load, print_json
from specchk.cli.engines import SPARK, loaded
from specchk.cli.exits import Exit
from specchk.cli.groups import option
from specchk.cli.output import echo
from specchk.compile.instantiate import Instance
from specchk.forecast.intervals import Forecast
from specchk.report.forecast import asked_json, forecast_lines
from specchk.search.engine import Options, Unsupported


@dataclass(frozen=True, slots=True)
class Asking:
    """A forecast of a search, with or without the search itself."""

    heading: ClassVar[str] = "Forecast"
    only: bool = option(
        "--forecast", help="Forecast the number of states, the memory and the time, and exit."
    )
    first: bool = option(
        "--forecast-first", help="Print a forecast before the search, and compare it with the result."
    )

    def check(self, engine: str) -> None:
        """Reject options for which there is no forecast."""
        if (self.only or self.first) and engine not in ("native", SPARK):
            raise click.UsageError("--forecast is for the native engine and Spark")

    def ahead(
        self, choice: ModelChoice, instance: Instance, options: Options, *, as_json: bool
    ) -> Forecast | None:
        """The forecast, if one was requested; exits if no search was requested."""
        if not (self.only or self.first):
            return None
        forecast, reason = _made(choice, options)
        if forecast is None:
            why = f"no forecast: {reason}"
            echo(why, err=True)
            if self.only and as_json:
                print_json(ended("inconclusive", why, Exit.INCONCLUSIVE))
        elif self.only and as_json:
            print_json(asked_json(instance.program, forecast))
        else:
            # Ahead of a search on standard error: standard output has the report, which may be JSON.
            echo("\n".join(forecast_lines(forecast)), err=not self.only)
        if self.only:
            sys.exit(Exit.INCONCLUSIVE if forecast is None else Exit.OK)
        return forecast


def _made(choice: ModelChoice, options: Options) -> tuple[Forecast | None, str]:
    """The forecast; None with the reason if there is none."""
    too_small = loaded("specchk.forecast.extrapolate").TooSmall
    scout, native = loaded("specchk.native.scout"), loaded("specchk.native.engine")
    question = scout.ChosenModel(load(choice.file), choice.model, choice.table, choice.properties)
    settings = native.NativeOptions(
        symmetry=options.symmetry, keep_going=options.keep_going, strict=options.strict
    )
    try:
        forecast: Forecast = scout.forecast(question, settings)
    except too_small as reason:
        return None, str(reason)
    except Unsupported as reason:
        return None, f"the native engine cannot run this model ({reason})"
    return forecast, ""
