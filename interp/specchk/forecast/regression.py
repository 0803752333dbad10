"""Gaussian regression over a few points of the unit cube: a mean, and its uncertainty.

The value at x is a sum of a constant, a slope along each axis, a bend along each axis (which is zero
at both ends) and a product for each pair of axes.  Their weights have normal priors, so that few
points are enough, and what they do not tell shows in the deviation (Rasmussen and Williams,
Gaussian Processes for Machine Learning, chapter 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

Point = Sequence[float]
# e^20 is 5 * 10^8: of the size of the smallest model nothing is assumed.
ANYTHING = 20.0  # the prior deviation of the constant


class Prior(Struct, frozen=True):
    """Means and deviations of the weights; `noise` is the deviation that no weight explains."""

    slope: float
    slope_sd: float
    bend_sd: float
    product: float
    product_sd: float
    noise: float

    def means(self, axes: int) -> list[float]:
        """The means of the weights."""
        return [0.0] + [self.slope] * axes + [0.0] * axes + [self.product] * (axes * (axes - 1) // 2)

    def deviations(self, axes: int) -> list[float]:
        """The deviations of the weights."""
        pairs = axes * (axes - 1) // 2
        return [ANYTHING] + [self.slope_sd] * axes + [self.bend_sd] * axes + [self.product_sd] * pairs


def _features(at: Point) -> list[float]:
    # Zero for models with one dial turned up: what products add is seen only where two are.
    products = [at[i] * at[j] for i in range(len(at)) for j in range(i)]
    return [1.0, *at, *(x * (1 - x) for x in at), *products]


def predicted(points: Sequence[tuple[Point, float]], at: Point, prior: Prior) -> tuple[float, float]:
    """The mean and deviation at a point, given the values at others."""
    means, deviations = prior.means(len(at)), prior.deviations(len(at))

    def mean(features: Sequence[float]) -> float:
        return sum(a * b for a, b in zip(means, features, strict=True))

    def covariance(a: Sequence[float], b: Sequence[float]) -> float:
        return sum(d * d * x * y for d, x, y in zip(deviations, a, b, strict=True))

    known = [_features(place) for place, _ in points]
    asked = _features(at)
    matrix = [
        [covariance(a, b) + (prior.noise**2 if i == j else 0.0) for j, b in enumerate(known)]
        for i, a in enumerate(known)
    ]
    across = [covariance(asked, a) for a in known]
    rest = [value - mean(a) for (_, value), a in zip(points, known, strict=True)]
    weights, gains = _solved(matrix, rest), _solved(matrix, across)
    value = mean(asked) + sum(a * w for a, w in zip(across, weights, strict=True))
    variance = covariance(asked, asked) - sum(a * g for a, g in zip(across, gains, strict=True))
    # At a point that is known the variance is nearly 0, and rounding may make it negative.
    return value, math.sqrt(max(0.0, variance) + prior.noise**2)


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """The solution of a positive definite linear system, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    # No pivoting: the matrix is positive definite, for the noise is on its diagonal.
    for i, pivot in enumerate(rows):
        for below in rows[i + 1 :]:
            factor = below[i] / pivot[i]
            for column in range(i, len(pivot)):
                below[column] -= factor * pivot[column]
    found = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        known = sum(rows[i][j] * found[j] for j in range(i + 1, len(rows)))
        found[i] = (rows[i][-1] - known) / rows[i][i]
    return found
