"""The visited zones: a zone contained in a visited one is not expanded.

A zone bounds the difference of each two offsets.  Its mask is a number with a bit for each two offsets and
each limit: whether the bound is within the limit.  A zone lies within another one if it is within every limit
that the other one is within, which one `&` decides.  The limits are the bounds of the zones of a shape; zones
that forget differences beyond a reach follow from the differences up to there.

A shape may have thousands of zones.  Their masks are grouped by the few bits that distinguish them best,
and groups with a bit that a zone lacks are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest

from msgspec import Struct, field

from specchk.meaning.paths import FREE
from specchk.symbolic.zones.zones import Reach, Shape, Zone

FAR = FREE >> 1  # larger numbers are no bounds
SIGNS = 12  # bits by which masks are grouped: more of them make more groups of fewer masks
SAMPLE = 64  # masks among which those bits are chosen
GROWTH = 4  # they are chosen again when the number of masks has grown by this factor


class Covered:
    """The zones seen so far; unless `within`, a zone is covered only by an equal one.

    All of them have the same `reach`.
    """

    def __init__(self, reach: Reach | None, *, within: bool = True) -> None:
        self._reach = reach or Reach(FAR, FAR)
        self._within = within
        self._seen: dict[Shape, _Seen] = {}

    def add(self, zone: Zone) -> bool:
        """Remember a zone; returns False if it lies within a remembered one."""
        seen = self._seen.setdefault(zone.shape, _Seen())
        if zone in seen.zones:
            # Equal zones are the common case, and a hash finds them.
            return False
        # Inclusion of closed matrices is entry by entry (Mine, 2001).  An entry need be compared only with
        # the bounds that occur in zones seen so far, since no other number is the bound of any of them.
        mask = _mask(zone, seen.limits) if self._within else 0
        if self._within and seen.has(mask):
            return False
        # Zones that this one contains stay: they have numbers, and may have been expanded.
        seen.zones.add(zone)
        limits = _limits(zone, self._reach).union(seen.limits) if self._within else ()
        if len(limits) > len(seen.limits):
            seen.limits = sorted(limits)
            # All masks are made again, since a bit's place depends on the limits.  That is rare: limits are
            # whole numbers within the reach, so a shape soon has all of its own.
            seen.group([_mask(one, seen.limits) for one in seen.zones])
        else:
            seen.add(mask)
        return True

    def has(self, zone: Zone) -> bool:
        """Whether a zone lies within one remembered here."""
        seen = self._seen.get(zone.shape)
        if seen is None:
            return False
        return zone in seen.zones or (self._within and seen.has(_mask(zone, seen.limits)))

    def count(self, shape: Shape) -> int:
        """The number of zones of a shape that were added."""
        seen = self._seen.get(shape)
        return 0 if seen is None else len(seen.zones)

    def zones(self) -> Iterator[Zone]:
        """The zones that were added."""
        for seen in self._seen.values():
            yield from seen.zones


class _Seen(Struct):
    """The zones of one shape."""

    zones: set[Zone] = field(default_factory=set)
    limits: list[int] = field(default_factory=list)
    groups: dict[int, list[int]] = field(default_factory=dict)  # the masks, by their bits in `signs`
    signs: int = 0
    enough: int = SAMPLE  # with so many zones the masks are grouped again

    def has(self, mask: int) -> bool:
        """Whether a zone with this mask is contained in a visited one."""
        lacking = ~mask
        for signs, masks in self.groups.items():
            # The zones of a group are within limits that this zone exceeds, so none of them can contain it.
            if not signs & lacking:
                for known in masks:
                    if not known & lacking:
                        return True
        return False

    def add(self, mask: int) -> None:
        """Remember the mask of a zone that was just added."""
        self.groups.setdefault(mask & self.signs, []).append(mask)
        if len(self.zones) >= self.enough:
            # With each regrouping four times rarer, a mask is moved a constant number of times on average.
            self.enough *= GROWTH
            self.group([mask for masks in self.groups.values() for mask in masks])

    def group(self, masks: list[int]) -> None:
        """Group the masks of all the zones."""
        self.signs = _distinguishing(masks[-SAMPLE:]) if len(masks) >= SAMPLE else 0
        self.groups = {}
        for mask in masks:
            self.groups.setdefault(mask & self.signs, []).append(mask)


def _distinguishing(masks: list[int]) -> int:
    """The bits that best distinguish masks: each is in about half of them, and no two always agree."""
    width = max(masks).bit_length()
    columns = zip(*[format(mask, f"0{width}b") for mask in masks], strict=True)
    places = {column: width - 1 - number for number, column in enumerate(columns)}
    # A bit that half of the masks have halves the groups to be searched.  Equal columns are one key of
    # `places`.
    best = nsmallest(SIGNS, places, key=lambda column: abs(2 * column.count("1") - len(masks)))
    return sum([1 << places[column] for column in best])


def _limits(zone: Zone, reach: Reach) -> set[int]:
    """The bounds of a zone that do not follow from others."""
    symbols, rows = {(0, 0), *zone.classes}, zone.bounds  # each access to a zone's bounds reads all of them
    bounds = {rows[i][j] + c - d for i, c in symbols for j, d in symbols}
    # A bound below the lowest limit follows from the others: `zones._forget` made it from them.
    return {max(bound, -reach.lower) for bound in bounds if bound <= reach.upper}


def _mask(zone: Zone, limits: list[int]) -> int:
    """The mask of a zone: for each limit, a bit for each pair of places; place 0 is the number 0."""
    symbols: dict[tuple[int, int], list[int]] = {}
    classes, matrix = zone.classes, zone.bounds
    places = len(classes) + 1
    for place, symbol in enumerate(((0, 0), *classes)):
        bits = symbols.setdefault(symbol, [0, 0])
        bits[0] |= 1 << place
        bits[1] |= 1 << place * places
    mask = 0
    for limit in reversed(limits):
        mask <<= places * places
        for (i, c), (_, rows) in symbols.items():
            bounds, most = matrix[i], limit - c
            near = 0
            for (j, d), (members, _) in symbols.items():
                if bounds[j] - d <= most:
                    near |= members
            mask |= near * rows  # `near`, once in the row of each place that has this symbol
    return mask
