"""The size of a search, extrapolated from its levels for the progress line."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchk.cli.engines import progress_line
from specchk.search.budget import Progress
from specchk.search.extrapolate import LEAST_LEVELS, LEAST_STATES, PERHAPS, ExpectedSize, expected


def hump(total: float, depth: int) -> list[int]:
    """Levels like a search's: a parabola in logarithms from one state to one state."""
    shape = [4 * x * (depth - 1 - x) / (depth - 1) ** 2 for x in range(depth)]
    low, high = 0.0, 60.0
    while high - low > 1e-6:
        top = (low + high) / 2
        low, high = (top, high) if sum(math.exp(top * y) for y in shape) < total else (low, top)
    return [max(1, round(math.exp(low * y))) for y in shape]


def seen(levels: list[int], part: float) -> list[int]:
    """The first levels, with at least this part of all states."""
    most = part * sum(levels)
    return levels[: next(n for n, total in enumerate(accumulate(levels), 1) if total >= most)]


@pytest.mark.parametrize("total", [3e3, 1e5, 4e6, 1e9])
@pytest.mark.parametrize("depth", [20, 34, 60])
def test_half_of_a_search_tells_its_size(total: float, depth: int) -> None:
    """Within a factor of two, and a tenth of it within a factor of eight, or not at all."""
    levels = hump(total, depth)
    half, tenth = expected(seen(levels, 0.5)), expected(seen(levels, 0.1))
    assert half is not None
    assert 0.5 < half.states / sum(levels) < 2
    assert tenth is None or 1 / 8 < tenth.states / sum(levels) < 8


@given(st.lists(st.integers(1, 10**12), max_size=60))
def test_no_figure_is_below_what_was_seen(levels: list[int]) -> None:
    """Nor far above it: such a figure would be a guess."""
    ahead = expected(levels)
    assert ahead is None or sum(levels) * 0.999 <= ahead.states <= sum(levels) * math.exp(PERHAPS) + 1


def test_too_little_tells_nothing() -> None:
    assert expected([]) is None
    assert expected([LEAST_STATES] * (LEAST_LEVELS - 1)) is None
    assert expected([1] * LEAST_LEVELS) is None
    assert expected([3**n for n in range(12)]) is None


def test_the_progress_line_says_how_sure_it_is() -> None:
    line = Progress(900_000, 1, 20, 1, 2.0, 1 << 20, "", ExpectedSize(1_230_000, is_near=True))
    assert progress_line(line).endswith("2 s; about 1.23 M states in all")
    far = Progress(900, 1, 20, 1, 2.0, 1 << 20, "spilling", ExpectedSize(4_321, is_near=False))
    assert progress_line(far).endswith("2 s; spilling; perhaps 4.32 k states in all")
