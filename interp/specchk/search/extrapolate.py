"""The size of a search, extrapolated from its levels: a rough figure for the progress line.

Searches grow by levels, and their growth declines. A straight line through the latest growths says when
it ends; how far that is beyond the last level is how unsure the figure is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

LEAST_LEVELS = 6
LEAST_STATES = 200
ABOUT = 0.5  # in logarithms: the states yet to come are fewer than two thirds of those known
PERHAPS = 2.0  # and at most six times as many
MOST_LEVELS = 1000  # ahead; growth that declines so slowly is far from its end anyway


class ExpectedSize(Struct, frozen=True):
    """The expected number of states of a whole search, and whether that is nearly known."""

    states: int
    is_near: bool


def expected(levels: Sequence[int]) -> ExpectedSize | None:
    """The states of a search with these first levels; None where they tell too little.

    They do if there are fewer than `LEAST_LEVELS` levels or `LEAST_STATES` states, or if the end is so far
    that the figure would be a guess at an order of magnitude.
    """
    total = sum(levels)
    if len(levels) < LEAST_LEVELS or total < LEAST_STATES:
        return None
    growth = [math.log(after / before) for before, after in pairwise(levels)]
    step, decline = _line(growth[-max(5, len(growth) // 2) :])
    size, states = math.log(levels[-1]), float(total)
    # Growth that does not decline would never end: it is made to, within twice the levels that were seen.
    decline = min(decline, -max(0.0, step) / (2 * len(levels)), -1e-3)
    for _ in range(MOST_LEVELS):
        size += step
        if size <= 0 or states > total * math.exp(PERHAPS):
            break
        states += math.exp(size)
        step += decline
    further = math.log(states / total)
    return ExpectedSize(int(states), further < ABOUT) if further < PERHAPS else None


def _line(values: Sequence[float]) -> tuple[float, float]:
    """The next value of the straight line through equally spaced ones (least squares), and its slope."""
    middle, mean = (len(values) - 1) / 2, sum(values) / len(values)
    slope = sum((x - middle) * (y - mean) for x, y in enumerate(values))
    slope /= sum((x - middle) ** 2 for x in range(len(values)))
    return mean + slope * (len(values) - middle), slope
