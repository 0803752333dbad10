"""Forecasts: what is extrapolated, from which smaller models, and the resulting memory and time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specchk.forecast.extrapolate import TOTALS, Smaller, TooSmall, estimate
from specchk.forecast.intervals import Forecast, free_bytes, table_bytes
from specchk.forecast.regression import predicted
from specchk.forecast.smaller import SmallerModels


def curve(total: float, depth: int) -> tuple[int, ...]:
    """Levels like a search's: a hump in the logarithm, from one state and back to one."""
    humps = [1 - (2 * (d + 0.5) / depth - 1) ** 2 for d in range(depth)]
    low, high = 0.0, 60.0
    for _ in range(60):
        scale = (low + high) / 2
        low, high = (scale, high) if sum(math.exp(scale * h) for h in humps) < total else (low, scale)
    return tuple(max(1, round(math.exp(low * h))) for h in humps)


def known(levels: tuple[int, ...], budget: int) -> tuple[int, ...]:
    """The first levels, as far as the budget permits."""
    found: list[int] = []
    while len(found) < len(levels) and sum(found) + levels[len(found)] <= budget:
        found.append(levels[len(found)])
    return tuple(found)


def planted(
    start: float, slopes: list[float], depths: list[int], share: int
) -> tuple[int, tuple[int, ...], list[Smaller]]:
    """A search whose total and depth grow with dials: its states, its first levels, smaller ones."""
    total, depth = math.exp(start + sum(slopes)), 20 + sum(depths[: len(slopes)])
    smaller = [Smaller((0.0,) * len(slopes), curve(math.exp(start), 20))]
    for i, slope in enumerate(slopes if len(slopes) > 1 else []):
        at = tuple(float(i == j) for j in range(len(slopes)))
        smaller.append(Smaller(at, curve(math.exp(start + slope), 20 + depths[i])))
    levels = curve(total, depth)
    return sum(levels), known(levels, max(600, sum(levels) // share)), smaller


def is_enough(sample: tuple[int, ...]) -> bool:
    """Whether a sample has the documented minimum of levels and states."""
    return len(sample) >= 6 and sum(sample) >= 200


@settings(max_examples=40, deadline=None)
@example(start=6.5, slopes=[3.0], depths=[1, 1, 1], share=22)  # 13 360 states, of which 5 levels are seen
@given(
    start=st.floats(6.0, 9.0), slopes=st.lists(st.floats(0.5, 3.0), min_size=1, max_size=3),
    depths=st.lists(st.integers(1, 9), min_size=3, max_size=3), share=st.integers(3, 30),
)  # fmt: skip
def test_the_interval_has_the_number_of_planted_searches(
    start: float, slopes: list[float], depths: list[int], share: int
) -> None:
    """If totals and depths grow with dials and levels are humps, the forecast holds or is refused."""
    states, sample, smaller = planted(start, slopes, depths, share)
    if not is_enough(sample):
        with pytest.raises(TooSmall, match=f"{sum(sample)} states in {len(sample)} levels is too small"):
            estimate(sample, smaller)
        return
    low, likely, high = estimate(sample, smaller).interval
    assert low <= states <= high
    assert low <= likely <= high


def test_hardly_any_planted_search_is_refused_a_forecast() -> None:
    """A refusal shows nothing: of more than 500 searches on a grid at most one in twenty is refused."""
    grid = product(
        (6.0, 6.5, 7.0, 8.0, 9.0), ([0.5], [3.0], [2.0, 1.0], [0.5, 1.0, 3.0]), (1, 9), range(3, 31, 2)
    )
    samples = [planted(start, slopes, [depth] * 3, share)[1] for start, slopes, depth, share in grid]
    assert len(samples) > 500
    assert sum(not is_enough(sample) for sample in samples) * 20 <= len(samples)


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_no_forecast_is_below_what_was_seen(levels: list[int]) -> None:
    """The lower end is never less than the sample, and there is always an interval around it."""
    try:
        found = estimate(levels, [])
    except TooSmall:
        return
    assert found.value >= math.log(sum(levels))
    assert found.deviation > 0


@pytest.mark.parametrize("levels", [(), (1, 2, 3), (1, 1, 1, 1, 1, 1, 1, 1)])
def test_a_sample_that_tells_nothing_is_refused(levels: tuple[int, ...]) -> None:
    """Few levels or few states are reported as too few."""
    with pytest.raises(TooSmall, match=f"{sum(levels)} states in {len(levels)} levels is too small"):
        estimate(levels, [])


def test_more_of_the_search_makes_the_interval_narrower() -> None:
    """A sample of a third gives more information than one of a thirtieth."""
    levels = curve(1e6, 40)
    smaller = [Smaller((0.0,), curve(2e4, 30))]
    wide, narrow = (estimate(known(levels, 10**6 // share), smaller) for share in (30, 3))
    assert narrow.deviation < wide.deviation


def test_the_regression_adds_slopes_and_knows_when_it_guesses() -> None:
    """Measured slopes are recovered; an unmeasured dial adds the prior's deviation."""
    points = [((0.0, 0.0), 5.0), ((1.0, 0.0), 6.0), ((0.0, 1.0), 8.0)]
    value, deviation = predicted(points, (1.0, 0.0), TOTALS)
    assert value == pytest.approx(6.0, abs=0.05)
    assert deviation < 0.1
    corner = predicted(points, (1.0, 1.0), TOTALS)
    assert corner[0] == pytest.approx(9.0 + TOTALS.product, abs=0.1)
    assert deviation < corner[1] < predicted(points[:2], (1.0, 1.0), TOTALS)[1]


def chosen(dials: Mapping[str, int], most: int = 5000, searches: int = 12) -> tuple[list[Smaller], list[int]]:
    """The chosen models if a dial doubles, one trebles and one has no effect; totals in order."""
    asked: list[tuple[int, ...]] = []
    totals: list[int] = []

    def search(values: Mapping[str, int]) -> tuple[int, ...] | None:
        assert tuple(values.values()) not in asked
        asked.append(tuple(values.values()))
        total = 10 * 2 ** values.get("two", 0) * 3 ** values.get("three", 0)
        totals.append(total)
        return (1, total - 1) if total <= most else None

    found = SmallerModels(lambda values: min(values.values()) >= 0, search, dials, most, searches).run()
    assert len(asked) <= searches
    return found, totals


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 2))
def test_smaller_models_are_within_the_cube_and_below_the_one_asked_for(
    two: int, three: int, idle: int
) -> None:
    """No model twice, none of full size, and every place has one coordinate a dial that counts."""
    dials = {"two": two, "three": three, **({"idle": idle} if idle else {})}
    found, _ = chosen(dials)
    for one in found:
        assert all(0 <= x <= 1 for x in one.at)
        assert not all(x == 1 for x in one.at)
    assert len({one.at for one in found}) == len(found)


def test_a_dial_that_changes_nothing_is_left_alone() -> None:
    """It does not become an axis."""
    found, _ = chosen({"two": 4, "three": 2, "idle": 3})
    assert found
    assert {len(one.at) for one in found} == {2}


def test_models_that_would_be_too_large_are_not_searched() -> None:
    """Once the dials are known, no search is started that is expected to exceed the budget."""
    found, totals = chosen({"two": 8, "three": 6}, most=2000)
    assert len(found) >= 4
    assert sum(total > 2000 for total in totals) <= 1


def made(low: int, high: int, free: int) -> Forecast:
    return Forecast(low, (low + high) // 2, high, low, 9, 2, 16, 1e6, free)


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_more_states_need_no_less_memory_and_time(one: int, other: int) -> None:
    """Both intervals are monotone, and the low end is not above the high one."""
    low, high = min(one, other), max(one, other)
    assert table_bytes(low, 16) <= table_bytes(high, 16)
    found = made(low, high, 1 << 34)
    assert found.memory[0] <= found.memory[1]
    assert found.seconds[0] <= found.seconds[1]


def test_what_does_not_fit_is_for_spark() -> None:
    """The upper end decides, and each partition's table stays below a gigabyte."""
    assert made(10**6, 10**7, 1 << 34).fits
    large = made(10**6, 10**10, 1 << 34)
    assert not large.fits
    assert large.memory[1] / large.partitions <= 1 << 30


def system(folder: Path, **files: str) -> Path:
    """A system with 8 GB that are free, and files of its control group; `/` in names is `__`."""
    for name, text in {"proc__meminfo": "MemTotal: 9 kB\nMemAvailable: 8388608 kB\n", **files}.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
    return folder


GB = 1 << 30


@pytest.mark.parametrize(
    ("limit", "free"), [("max", 8 * GB), (str(4 * GB), 3 * GB), (str(64 * GB), 8 * GB), (str(GB // 2), 0)]
)
def test_a_container_s_limit_counts(tmp_path: Path, limit: str, free: int) -> None:
    """Minus the used part, except for files that the system only caches."""
    group = {
        "memory.max": limit,
        "memory.current": str(2 * GB),
        "memory.stat": f"anon 1\nfile {GB + 7}\nshmem 7",
    }
    files = {f"sys__fs__cgroup__{name}": f"{text}\n" for name, text in group.items()}
    assert free_bytes(system(tmp_path, **files)) == free


def test_the_older_kind_of_limit_counts_too(tmp_path: Path) -> None:
    """Control groups of version 1."""
    group = {"limit_in_bytes": str(4 * GB), "usage_in_bytes": str(GB), "stat": "total_cache 0\n"}
    files = {f"sys__fs__cgroup__memory__memory.{name}": text for name, text in group.items()}
    assert free_bytes(system(tmp_path, **files)) == 3 * GB


def test_without_limits_the_machine_s_own_memory_counts(tmp_path: Path) -> None:
    """And no limit is reported if the system does not provide one."""
    assert free_bytes(system(tmp_path)) == 8 * GB
    assert free_bytes(tmp_path / "nowhere") == 0
