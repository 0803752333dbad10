"""Smaller models of the same spec, chosen to be as informative as possible about a large model.

A model's constants that are plain numbers are its dials.  All of them turned halfway down give the
base; from there each is turned up by itself, and then several at once, always the model that comes
closest to the one asked about and is still expected to end within what a search may cost.  What is
expected is the regression of `extrapolate`.  A dial that makes the base no larger is left where it is.

Not here: what a search is; whoever calls says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

from specchk.forecast.extrapolate import TOTALS, Smaller
from specchk.forecast.regression import Point, predicted

Values = tuple[int, ...]
Levels = tuple[int, ...]
MOST_MODELS = 1 << 14  # that are thought about
STEPS = 2  # below halfway that a base is looked for
ROOM = 30  # times its size is what dials should be able to make of it
WIDER = 1.02  # a dial that changes less does not count


@dataclass(slots=True)
class SmallerModels:
    """Searches smaller models.

    `exists`: whether there is a model with such values; `search` gives its levels, or None where it
    is not searched to its end with `most_states`.
    """

    exists: Callable[[Mapping[str, int]], bool]
    search: Callable[[Mapping[str, int]], Levels | None]
    dials: Mapping[str, int]
    most_states: int
    searches: int
    base: dict[str, int] = field(init=False, default_factory=dict)
    found: dict[Values, Levels] = field(init=False, default_factory=dict)
    tried: set[Values] = field(init=False, default_factory=set)

    def run(self) -> list[Smaller]:
        """The smaller models that were searched completely; none if no base was."""
        if not self._base_found() or not self._dials_kept():
            return []
        while self.searches > 0 and (best := self._best()) is not None:
            self._tried(best)
        return [Smaller(self._place(values), levels) for values, levels in self.found.items()]

    def _tried(self, values: Values) -> Levels | None:
        if values in self.tried:
            return self.found.get(values)
        # Before the search, and whatever its end: one that was too large once is not searched again.
        self.tried.add(values)
        self.searches -= 1
        levels = self.search(dict(zip(self.dials, values, strict=True)))
        if levels is not None:
            self.found[values] = levels
        return levels

    @property
    def _low(self) -> Values:
        return tuple(self.base.values())

    def _base_found(self) -> bool:
        """Search the base, and lower ones as long as it leaves no room for increasing the parameters."""
        found: Levels | None = None
        for step in range(STEPS + 1):
            # Half of each: far enough from the model that a trend shows, near enough that it is of the same
            # kind.
            base = {name: self._lowest(name, value // 2 - step) for name, value in self.dials.items()}
            low = tuple(base.values())
            if low in self.tried or low == tuple(self.dials.values()) or self.searches <= 0:
                continue
            levels = self._tried(low)
            if levels is not None:
                self.base, self.found[low], found = base, levels, levels
                # Small enough that its dials can still be turned up; otherwise one lower is looked for.
                if sum(levels) * ROOM <= self.most_states:
                    break
        return found is not None

    def _lowest(self, name: str, wanted: int) -> int:
        """The value of a parameter nearest to the desired one, at most the current one."""
        for value in range(max(0, wanted), self.dials[name]):
            if self.exists({**self.dials, name: value}):
                return value
        return self.dials[name]

    def _dials_kept(self) -> bool:
        """Increase each parameter alone; one without an effect stays increased, and the base is redone."""
        least = sum(self.found[self._low])
        idle = []
        for name, value in self.base.items():
            if self.searches <= 0:
                break
            up = tuple(v + (n == name) for n, v in self.base.items())
            if up == tuple(self.dials.values()):
                continue
            levels = self._tried(up)
            if levels is not None and sum(levels) < WIDER * least and value < self.dials[name]:
                # At its full value it is a constant of all models, and one axis less to be guessed along.
                idle.append(name)
        if idle:
            self.base |= {name: self.dials[name] for name in idle}
            place = [list(self.base).index(name) for name in idle]
            # Models with the dial down are of another family now.
            self.found = {v: x for v, x in self.found.items() if all(v[i] == self._low[i] for i in place)}
            if self._low == tuple(self.dials.values()):
                return False
            return self._low in self.found or self._tried(self._low) is not None
        return True

    @property
    def _moving(self) -> list[int]:
        return [i for i, name in enumerate(self.dials) if self.base[name] < self.dials[name]]

    def _place(self, values: Values) -> tuple[float, ...]:
        low, high = self._low, tuple(self.dials.values())
        return tuple((values[i] - low[i]) / (high[i] - low[i]) for i in self._moving)

    def _best(self) -> Values | None:
        """The closest of the untried models whose search should complete."""
        low, high, moving = self._low, tuple(self.dials.values()), self._moving
        if math.prod(high[i] - low[i] + 1 for i in moving) > MOST_MODELS:
            return None
        points: list[tuple[Point, float]] = [
            (self._place(values), math.log(sum(levels))) for values, levels in self.found.items()
        ]
        best: tuple[float, Values] | None = None
        for values in product(*(range(a, b + 1) for a, b in zip(low, high, strict=True))):
            turned = [i for i in moving if values[i] > low[i]]
            if values in self.tried or values == high:
                continue
            if any(all(known[i] == low[i] for known in self.found) for i in turned):
                if sum(values) - sum(low) > 1:  # nothing is known of this dial yet
                    continue
                # A first step along a dial comes before everything else: without it the slope is only the
                # prior's.
                near = math.inf
            else:
                if predicted(points, self._place(values), TOTALS)[0] > math.log(self.most_states):
                    continue
                near = sum(self._place(values))
            if best is None or near > best[0]:
                best = near, values
        return best[1] if best is not None else None
