"""`specchk run --forecast`: how large a search will be, before it is run."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import click

from specchk.cli.common import ModelChoice, load, print_json
from specchk.cli.engines import SPARK, loaded
from specchk.cli.exits import Exit
from specchk.cli.groups import option
from specchk.cli.output import echo
from specchk.compile.instantiate import Instance
from specchk.forecast.extrapolate import TooSmall
from specchk.forecast.intervals import Forecast
from specchk.report.forecast import asked_json, forecast_lines
from specchk.search.engine import Options, Unsupported


@dataclass(frozen=True, slots=True)
class Asking:
    """A forecast of a search, alone or ahead of it."""

    heading: ClassVar[str] = "Forecast"
    only: bool = option(
        "--forecast", is_flag=True, help="Forecast the number of states, the memory and the time, and stop."
    )
    first: bool = option(
        "--forecast-first",
        is_flag=True,
        help="Print a forecast before the search, and compare it with the result.",
    )

    def check(self, engine: str) -> None:
        """Refuse what has no forecast."""
        if (self.only or self.first) and engine not in ("native", SPARK):
            raise click.UsageError("--forecast is for the native engine and Spark")

    def ahead(
        self, choice: ModelChoice, instance: Instance, options: Options, *, as_json: bool
    ) -> Forecast | None:
        """The forecast, if one was requested; exits if nothing else was."""
        if not (self.only or self.first):
            return None
        forecast = _made(choice, options)
        if self.only and as_json and isinstance(forecast, Forecast):
            print_json(asked_json(instance.program, forecast))
        elif isinstance(forecast, Forecast):
            echo("\n".join(forecast_lines(forecast)), err=not self.only)
        else:
            echo(f"no forecast: {forecast}", err=True)
        if self.only:
            sys.exit(Exit.OK if isinstance(forecast, Forecast) else Exit.INCONCLUSIVE)
        return forecast if isinstance(forecast, Forecast) else None


def _made(choice: ModelChoice, options: Options) -> Forecast | str:
    """The forecast, or why there is none."""
    scout, native = loaded("specchk.native.scout"), loaded("specchk.native.engine")
    question = scout.ChosenModel(load(choice.file), choice.model, choice.table, choice.properties)
    settings = native.NativeOptions(
        symmetry=options.symmetry, keep_going=options.keep_going, strict=options.strict
    )
    try:
        forecast: Forecast = scout.forecast(question, settings)
    except TooSmall as reason:
        return str(reason)
    except Unsupported as reason:
        return f"the native engine cannot run this model ({reason})"
    return forecast
