"""The size of a search, estimated from its first levels and from smaller models searched completely.

Three estimates of the logarithm of the number of states:

    bounds   a regression over the smaller models' totals; each is a point, its constants scaled so
             that 0 is the smallest model and 1 the one asked about
    shape    the last known level, carried on to the depth that the same regression gives for the
             depths: along a parabola, and along the levels of the largest smaller model
    growth   without smaller models: the growth from level to level falls on as it fell

Bounds and shape are weighed by how sure they are.  `SPREAD` makes their deviation into an interval
of 90 %; it was set so that it held that often on models of which the number is known, leaving out each
family of models in turn (docs/engines.md has the table).

Not here: searching (`native.scout`), memory and time (`forecast.intervals`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from specchk.forecast.regression import Point, Prior, predicted

# In logarithms: from the base to its full value one dial multiplies the states by e^2, with a deviation of
# as much in the exponent; searches grow exponentially with most constants.
TOTALS = Prior(slope=2.0, slope_sd=2.0, bend_sd=0.7, product=0.2, product_sd=0.6, noise=0.05)
DEPTHS = Prior(slope=0.8, slope_sd=0.8, bend_sd=0.2, product=0.05, product_sd=0.2, noise=0.03)
DEPTH_UNIT = 10.0
LEAST_LEVELS = 6
LEAST_STATES = 200
SPREAD = 1.6
LAST_LEVEL = 2.0  # states in the last level of a search, as far as a parabola can tell


class TooSmall(Exception):
    """The sample is too small; the text describes it."""


class Smaller(Struct, frozen=True):
    """A smaller model searched completely: its place in the unit cube, and its levels."""

    at: tuple[float, ...]
    levels: tuple[int, ...]


class Estimate(Struct, frozen=True):
    """The logarithm of a number of states, and its standard deviation."""

    value: float
    deviation: float

    @property
    def interval(self) -> tuple[int, int, int]:
        """Low, likely and high values: 90 % of such intervals contain the number."""
        reach = SPREAD * self.deviation
        # Above e^709 a float overflows.
        low, likely, high = (math.exp(min(700.0, self.value + part)) for part in (-reach, 0.0, reach))
        return int(low), int(likely), math.ceil(high)


def estimate(levels: Sequence[int], smaller: Sequence[Smaller]) -> Estimate:
    """The number of states of a search with these first levels; `TooSmall` if they are too few."""
    if len(levels) < LEAST_LEVELS or sum(levels) < LEAST_STATES:
        raise TooSmall(
            f"a sample of {sum(levels)} states in {len(levels)} levels is too small to forecast from; "
            f"at least {LEAST_STATES} states in {LEAST_LEVELS} levels"
        )
    found = [_by_growth(levels)]
    if smaller:
        found = [_by_bounds(smaller), _by_shape(levels, smaller)]
    # Inverse variances, the best weights of independent estimates; that these two are not quite independent
    # is in `apart`, how far they disagree.
    weights = [1 / one.deviation**2 for one in found]
    value = sum(w * one.value for w, one in zip(weights, found, strict=True)) / sum(weights)
    apart = max(one.value for one in found) - min(one.value for one in found)
    known = math.log(sum(levels))
    # What is extrapolated far is never sure, however well the estimates agree.
    floor = 0.1 + 0.1 * max(0.0, value - known)
    # Never fewer states than were seen.
    return Estimate(max(value, known), math.hypot(1 / math.sqrt(sum(weights)), apart / 4, floor))


def _by_bounds(smaller: Sequence[Smaller]) -> Estimate:
    points: list[tuple[Point, float]] = [(one.at, math.log(sum(one.levels))) for one in smaller]
    value, deviation = predicted(points, [1.0] * len(smaller[0].at), TOTALS)
    return Estimate(value, 1.7 * deviation)


def _by_shape(levels: Sequence[int], smaller: Sequence[Smaller]) -> Estimate:
    points: list[tuple[Point, float]] = [(one.at, len(one.levels) / DEPTH_UNIT) for one in smaller]
    mean, deviation = predicted(points, [1.0] * len(smaller[0].at), DEPTHS)
    pattern = max((one.levels for one in smaller), key=sum)
    sides = [
        total
        for depth in (mean, mean - deviation, mean + deviation)
        for total in (
            _along_parabola(levels, depth * DEPTH_UNIT),
            _along(levels, depth * DEPTH_UNIT, pattern),
        )
    ]
    value = (sides[0] + sides[1]) / 2
    unknown = value - math.log(sum(levels))
    return Estimate(value, 0.1 + 0.2 * unknown + (max(sides) - min(sides)) / 3)


def _along_parabola(levels: Sequence[int], depth: float) -> float:
    """A parabola from the last level, with its slope, to a last level at the given depth."""
    last, back = math.log(levels[-1]), min(4, len(levels) - 1)
    slope = (last - math.log(levels[-1 - back])) / back
    gap = max(1.0, depth - len(levels))
    # Of all parabolas with this value and slope here the one that ends with the last level at the depth.
    bend = (math.log(LAST_LEVEL) - last - slope * gap) / gap**2
    ahead = [last + slope * step + bend * step * step for step in range(1, math.ceil(gap) + 1)]
    return _log_sum([math.log(sum(levels)), *ahead])


def _along(levels: Sequence[int], depth: float, pattern: Sequence[int]) -> float:
    """A continuation like the levels of another search, scaled to the depth and to the last level."""
    here, end = len(levels) - 1, max(depth - 1, len(levels))
    # Logarithms are scaled, not sizes: the shape of the levels then stays between one state and the largest
    # level.  A pattern that has hardly grown here would scale without bound, so its level counts as no less
    # than e^0.3.
    scale = math.log(levels[-1]) / max(0.3, _at(pattern, here / end))
    ahead = [scale * _at(pattern, min(1.0, step / end)) for step in range(here + 1, math.ceil(end) + 1)]
    return _log_sum([math.log(sum(levels)), *ahead])


def _at(pattern: Sequence[int], part: float) -> float:
    """The logarithm of the size of a level, interpolated between two levels."""
    place = part * (len(pattern) - 1)
    first = min(int(place), max(0, len(pattern) - 2))
    after = math.log(pattern[min(first + 1, len(pattern) - 1)])
    return (1 - place + first) * math.log(pattern[first]) + (place - first) * after


def _by_growth(levels: Sequence[int]) -> Estimate:
    """A continuation whose growth declines as before; unknown if the growth does not decline."""
    growth = [math.log(b / a) for a, b in pairwise(levels)]
    # A straight line through the latest growths (least squares): the first levels say little about the last.
    many = max(5, len(growth) // 2)
    recent = growth[-many:]
    middle, mean = (len(recent) - 1) / 2, sum(recent) / len(recent)
    fall = sum((x - middle) * (y - mean) for x, y in enumerate(recent))
    fall /= sum((x - middle) ** 2 for x in range(len(recent)))
    step = mean + fall * (len(recent) - middle)
    size, ahead = math.log(levels[-1]), []
    # Growth that does not fall would never end: it is made to fall, to nothing within twice the levels that
    # were seen.
    slower = min(fall, -max(0.0, step) / (2.0 * len(levels)))
    while (size := size + step) > 0:
        ahead.append(size)
        step += min(slower, -1e-3)
    value = _log_sum([math.log(sum(levels)), *ahead])
    return Estimate(value, 0.3 + 0.8 * (value - math.log(sum(levels))))


def _log_sum(values: Sequence[float]) -> float:
    """The logarithm of a sum of exponentials."""
    # The largest is taken out, since exp of these would overflow.
    most = max(values)
    return most + math.log(sum(math.exp(value - most) for value in values))
