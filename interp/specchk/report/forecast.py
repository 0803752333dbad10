"""A forecast as text and as JSON, and its comparison with the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specchk.forecast.intervals import Forecast
from specchk.ir.program import Program
from specchk.search.verdict import Holds, HoldsWithin, Outcome

SCHEMA = "specchk.forecast/1"


def forecast_lines(forecast: Forecast) -> list[str]:
    """The lines of a forecast: the numbers, their basis, and where to run the search."""
    if forecast.is_exact:
        return [
            f"forecast: {count(forecast.low)} states exactly: the sample was the whole search",
            f"  memory {size(forecast.memory[1])}, time {duration(forecast.seconds[1])}",
            f"  recommended: {advice(forecast)}",
        ]
    models = (
        f"{forecast.models} smaller models searched completely" if forecast.models else "no smaller model"
    )
    (less, more), (sooner, later) = forecast.memory, forecast.seconds
    return [
        f"forecast (90 % interval): {count(forecast.low)} to {count(forecast.high)} states",
        f"  likely {count(forecast.likely)}, from {count(forecast.sampled)} states and {models}",
        f"  memory {size(less)} to {size(more)}; this machine has {size(forecast.free_bytes)} free",
        f"  time {duration(sooner)} to {duration(later)} here, at {count(int(forecast.rate))} states/s",
        f"  recommended: {advice(forecast)}",
    ]


def advice(forecast: Forecast) -> str:
    """Advice on where to run the search."""
    if forecast.fits:
        return "this machine"
    return (
        f"--engine spark with {forecast.partitions} partitions or more, since the upper end is too large here"
    )


def compared(outcome: Outcome, forecast: Forecast) -> str:
    """The forecast compared with the outcome, in one line."""
    line = f"forecast {count(forecast.low)} to {count(forecast.high)} states"
    states, inside = outcome.statistics.distinct, _is_inside(outcome, forecast)
    if inside is None:
        return f"{line}; the search ended early, after {count(states)}"
    return f"{line}; actual {count(states)}: {'inside' if inside else 'outside'}"


def _is_inside(outcome: Outcome, forecast: Forecast) -> bool | None:
    """Whether the number was within the interval; None if the search did not complete."""
    if not isinstance(outcome.verdict, Holds | HoldsWithin):
        return None
    return forecast.holds(outcome.statistics.distinct)


def forecast_json(forecast: Forecast) -> dict[str, Any]:
    """The numbers of a forecast; bytes and seconds are those of one machine."""
    return {
        "states": {"low": forecast.low, "likely": forecast.likely, "high": forecast.high},
        "is_exact": forecast.is_exact,
        "sample": {"states": forecast.sampled, "levels": forecast.levels, "smaller_models": forecast.models},
        "memory_bytes": {"low": forecast.memory[0], "high": forecast.memory[1], "free": forecast.free_bytes},
        "seconds": {"low": round(forecast.seconds[0], 3), "high": round(forecast.seconds[1], 3)},
        "recommended": {"engine": "native" if forecast.fits else "spark", "partitions": forecast.partitions},
    }


def compared_json(outcome: Outcome, forecast: Forecast) -> dict[str, Any]:
    """Like `forecast_json`, with the outcome."""
    return {
        **forecast_json(forecast),
        "actual": outcome.statistics.distinct,
        "inside": _is_inside(outcome, forecast),
    }


def asked_json(program: Program, forecast: Forecast) -> dict[str, Any]:
    """The object that `specchk run --forecast --json` prints."""
    return {
        "schema": SCHEMA,
        "spec": program.path,
        "model": program.model,
        "forecast": forecast_json(forecast),
        "exit_code": 0,
    }


def count(number: int) -> str:
    """A number in short form: `950`, `12.3 k`, `4.5 M`, and so on."""
    if number < 1000:
        return str(number)
    return _scaled(number, 1000, (" k", " M", " G", " T"))


def size(number: float) -> str:
    """A number of bytes, in binary units."""
    return _scaled(number, 1024, (" kB", " MB", " GB", " TB"))


def _scaled(number: float, step: int, units: Sequence[str]) -> str:
    """A number in the first unit in which it has few digits."""
    for power, unit in enumerate(units, 1):
        if number < 999.5 * step**power:
            return f"{number / step**power:.3g}{unit}"
    return f"more than 999{units[-1]}"


def duration(seconds: float) -> str:
    """A duration in seconds, minutes, hours, days or years."""
    for length, name in ((31_557_600, "years"), (86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * length:
            long = seconds / length
            return f"{long:.2g} {name}" if long < 99.5 else f"{long:.0f} {name}" if long < 1e4 else "ages"
    return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"
