"""Runs of state numbers: (first, count), and as ranges (first, end)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Run = tuple[int, int]
# The reference stepper takes up to half a millisecond for each: so 1 % of a search, or of its preparation.
LEAST_SAMPLE, SAMPLE, SAMPLED_OF = 16, 100, 1 << 18


def sampled(runs: Sequence[Run]) -> list[int]:
    """Some state numbers from some runs; more for more states."""
    return spread(runs, min(SAMPLE, LEAST_SAMPLE + sum(size for _, size in runs) // SAMPLED_OF))


def spread(runs: Sequence[Run], most: int) -> list[int]:
    """At most this many numbers from some runs, evenly spaced."""
    count = sum(size for _, size in runs)
    wanted = sorted({index * count // most for index in range(most)}) if count else []
    numbers, before = [], 0
    places = iter([*wanted, count])
    place = next(places)
    for first, size in runs:
        while place < before + size:
            numbers.append(first + place - before)
            place = next(places)
        before += size
    return numbers


def without(ranges: Sequence[Run], others: Sequence[Run]) -> list[Run]:
    """The parts of some ranges (first, end) that are in none of the others; both are sorted."""
    left = []
    for start, end in ranges:
        first = start
        for low, high in others:
            if low < end and high > first:
                if first < low:
                    left.append((first, low))
                first = max(first, high)
        if first < end:
            left.append((first, end))
    return left


def ends_of(runs: Iterable[Run]) -> list[Run]:
    """Runs (first, count) as ranges (first, end)."""
    return [(first, first + count) for first, count in runs]


def gaps(runs: Sequence[Run], first: int, end: int) -> list[Run]:
    """The parts of first..end that are in none of the runs."""
    return [(low, high - low) for low, high in without([(first, end)], ends_of(sorted(runs)))]


def pieces(ranges: Iterable[Run], size: int) -> list[Run]:
    """Ranges (first, end) split into pieces of at most this size."""
    return [(low, min(low + size, end)) for first, end in ranges for low in range(first, end, size)]
