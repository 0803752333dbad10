"""Forecasts of a search before it is run, from its first levels and from smaller models of the spec.

The sample is the native engine's own search under a small budget; if that covers all of it, the forecast is
the actual size.  Smaller models have smaller numbers for constants (or, without constants, for sorts), and
are searched to their end; only their sizes matter.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.forecast.extrapolate import estimate
from specchk.forecast.intervals import Forecast, free_bytes
from specchk.forecast.smaller import Levels, SmallerModels
from specchk.ir.program import Program
from specchk.lang.check.models import consts_of
from specchk.lang.frontend import CheckedSpec, choose_model
from specchk.lang.syntax import tree
from specchk.lang.text.diagnostics import SpecError
from specchk.native import engine
from specchk.native.machine.frames import Thread
from specchk.native.machine.layout import NoRoom, layout_of
from specchk.native.machine.rooms import first_room, with_room
from specchk.search.budget import Budget
from specchk.search.engine import Search, Unsupported

MOST_DIALS = 8


class ChosenModel(Struct, frozen=True):
    """A model of a spec, as chosen for `run`."""

    checked: CheckedSpec
    model: str | None
    overrides: Mapping[str, str]
    properties: Sequence[str] = ()

    def program(self, dials: Mapping[str, int]) -> Program:
        """The program with some constants set; `SpecError` if it is invalid."""
        table = {**self.overrides, **{name: str(value) for name, value in dials.items()}}
        return instantiate(self.checked, self.model, table, self.properties).program

    def dials(self) -> dict[str, int]:
        """The parameters to vary: constants that are plain positive numbers, or else sorts."""
        bindings = choose_model(self.checked, self.model, self.overrides).bindings
        numbers = {}
        for name, (const, _) in consts_of(self.checked.spec).items():
            default = const.default if const.given is None else None
            value = bindings[name].value if name in bindings else default
            if isinstance(value, tree.IntLiteral) and value.value > 0:
                numbers[name] = value.value
        if not numbers:
            # A sort of one element has no smaller model.
            sizes = {name: binding.value for name, binding in bindings.items()}
            numbers = {n: v.value for n, v in sizes.items() if isinstance(v, tree.IntLiteral) and v.value > 1}
        return dict(list(numbers.items())[:MOST_DIALS])


class ForecastLimits(Struct, frozen=True):
    """The limits of a forecast: states and seconds per search, searches; the last one starts in time."""

    states: int = 1_000_000
    seconds: float = 10.0
    searches: int = 16
    last_begins: float = 90.0

    @property
    def budget(self) -> Budget:
        """The budget of one search."""
        return Budget(self.states, self.seconds)


def forecast(
    question: ChosenModel, options: engine.NativeOptions, effort: ForecastLimits = ForecastLimits()
) -> Forecast:
    """Forecast the size of a search.

    `extrapolate.TooSmall` if a sample is too small for a forecast, `Unsupported` if the engine cannot run the
    model.
    """
    end = time.monotonic() + effort.last_begins
    options = replace(options, optimise_after=0)  # a long search has its rate with optimised code
    program = question.program({})
    sample = _sampled(program, replace(options, budget=effort.budget))
    layout = layout_of(with_room(program, options.room or first_room(program)))
    if sample.is_whole:
        states = sum(sample.levels)
        return Forecast(
            states, states, states, states, len(sample.levels), 0, 8 * layout.words, sample.rate,
            free_bytes(), is_exact=True,
        )  # fmt: skip
    # Violations do not matter here, sizes do: the search of a smaller model must not end at one.
    below = replace(options, budget=effort.budget, keep_going=True, strict=False)

    def search(dials: Mapping[str, int]) -> Levels | None:
        if time.monotonic() > end:
            return None
        try:
            # A smaller model may make no sense (an empty sort, a constant out of its range): then it is left
            # out.
            smaller_sample = _sampled(question.program(dials), below)
        except (SpecError, Unsupported):
            return None
        return smaller_sample.levels if smaller_sample.is_whole else None

    def exists(dials: Mapping[str, int]) -> bool:
        try:
            question.program(dials)
        except SpecError:
            return False
        return True

    dials = question.dials()
    smaller = SmallerModels(exists, search, dials, effort.states, effort.searches).run() if dials else []
    low, likely, high = estimate(sample.levels, smaller).interval
    return Forecast(
        max(low, sample.seen), max(likely, sample.seen), high, sample.seen, len(sample.levels), len(smaller),
        8 * layout.words, sample.rate, free_bytes(),
    )  # fmt: skip


class _Sample(Struct, frozen=True):
    levels: Levels
    is_whole: bool
    seen: int
    rate: float


def _sampled(program: Program, options: engine.NativeOptions) -> _Sample:
    """The complete levels of a search under a budget, and whether these are all."""
    options = replace(options, room=options.room or first_room(program))
    while True:
        try:
            return _sampled_with(program, options)
        except NoRoom:
            options = engine.with_larger_room(options)


def _sampled_with(program: Program, options: engine.NativeOptions) -> _Sample:
    search = Search(program, options)
    native = engine.NativeEngine(search, options)
    began = search.meter.started = time.monotonic()  # compiling is not searching
    try:
        search.find_states(native)  # how many there are does not depend on time
        seconds = time.monotonic() - began
        seen = native.store.total(Thread.NEW)
    finally:
        native.release()
    whole = not search.is_stopped
    # A level that the budget cut short would make the growth look smaller than it is.
    levels = tuple(search.levels if whole else search.levels[: len(native.levels)])
    return _Sample(levels, whole, seen, max(1.0, seen / max(seconds, 1e-6)))
