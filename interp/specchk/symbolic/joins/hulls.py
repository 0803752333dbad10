"""Hulls: one zone for many zones of a control part, the least that contains them all.

The hull of two zones has the larger bound of each difference: the least upper bound of closed matrices, which
is closed again (Mine 2001).  It has states that neither zone has, so a property that fails in a hull may hold
in truth.  Then hulls are split: `sides` cuts a zone by the truth of comparisons, and zones on different sides
of one are not joined (`failures` finds these comparisons).

The bounds of a hull only grow, and are bounds of zones that forget differences beyond a reach, of which there
are finitely many: so hulls stop growing without any widening except that of `precision`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from specchk.symbolic.joins.atoms import SplitAtoms
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.precision import Question
from specchk.symbolic.zones.zones import Shape, Zone, cut, joined

Side = int  # a bit for each comparison of a shape: whether it is true
HullKey = tuple[Shape, Side]


class Origin(NamedTuple):
    """The step after which a hull grew in a level, and the hull before it; None for an initial state.

    Origins are sorted for every step of a search, so numbers come first: the hash of the shape of that hull,
    its side, and the number of the step among those out of it.
    """

    level: int
    mark: int
    side: Side
    number: int
    before: HullKey | None
    taken: Taken


class HullPart(Struct):
    """The hulls of one shape, by side, and the comparisons that define the sides."""

    atoms: Sequence[Question]
    hulls: dict[Side, Hull] = field(default_factory=dict)


class Hull(Struct, eq=False):
    """The hull of the zones of a shape on one side, and the steps after which it grew."""

    key: HullKey
    zone: Zone
    origins: list[Origin] = field(default_factory=list)


def united(part: HullPart) -> list[Zone]:
    """Zones with all states of a part's hulls; fewer if the two sides of a comparison form one zone.

    Comparisons split the hulls of every shape that has their places, even if a proof does not need that.
    """
    # With the bits that all hulls of a zone have, and those that some have.
    zones = [(hull.zone, side, side) for side, hull in part.hulls.items()]
    # One comparison after the other: zones united by one may be united again by the next.
    for number, atom in enumerate(part.atoms):
        bit = 1 << number
        is_true = [one for one in zones if one[1] & bit]
        left = [one for one in zones if not one[1] & bit]
        for zone, every, some in is_true:
            for at, (other, others_every, others_some) in enumerate(left):
                if not others_some & bit:
                    whole = joined(other, zone)
                    # Then the whole has no other states.
                    if dict(sides(whole, [atom])) == {0: other, 1: zone}:
                        left[at] = whole, every & others_every, some | others_some
                        break
            else:
                left.append((zone, every, some))
        zones = left
    return [zone for zone, *_ in zones]


class HullTable(Struct):
    """The hulls of the shapes owned by a process, by the sides of the comparisons that split them.

    `changed` has the hulls that grew and were not expanded since, in the order in which they grew.  A shape
    is a large key, so it is looked up once for each zone; hulls are equal only to themselves.
    """

    atoms: SplitAtoms
    parts: dict[Shape, HullPart] = field(default_factory=dict)
    hulls: list[Hull] = field(default_factory=list)
    changed: dict[Hull, None] = field(default_factory=dict)
    met: set[Zone] = field(default_factory=set)  # all zones that were joined

    def add(self, zone: Zone, origin: Origin) -> None:
        """Join a zone into the hulls of its shape."""
        # Equal zones are the common case, and a hash finds them; a zone that was joined once stays contained.
        if zone in self.met:
            return
        self.met.add(zone)
        part = self.parts.get(zone.shape)
        if part is None:
            part = self.parts[zone.shape] = HullPart(self.atoms.of(zone.shape))
        for side, piece in sides(zone, part.atoms):
            hull = part.hulls.get(side)
            if hull is None:
                hull = part.hulls[side] = Hull((zone.shape, side), piece)
                self.hulls.append(hull)
            else:
                larger = joined(hull.zone, piece)
                if larger is hull.zone:
                    continue
                hull.zone = larger
            hull.origins.append(origin)
            self.changed[hull] = None

    def find(self, key: HullKey) -> Hull | None:
        """The hull of a shape on a side, if it has one."""
        part = self.parts.get(key[0])
        return None if part is None else part.hulls.get(key[1])


def sides(zone: Zone, atoms: Sequence[Question]) -> Iterator[tuple[Side, Zone]]:
    """The parts of a zone on each side of all comparisons."""
    if not atoms:
        yield 0, zone
        return
    left: list[tuple[int, Side, Zone]] = [(0, 0, zone)]
    while left:
        at, side, part = left.pop()
        places, bounds = ((0, 0), *part.classes), part.bounds
        for number in range(at, len(atoms)):
            i, j, bound = atoms[number]
            (c, d), (e, f) = places[i], places[j]
            bound += f - d
            if bounds[c][e] <= bound:
                side |= 1 << number
            # Otherwise all of it is on the other side, whose bit is 0.
            elif bounds[e][c] >= -bound:
                left.append((number + 1, side, cut(part, e, c, -bound - 1)))
                left.append((number + 1, side | 1 << number, cut(part, c, e, bound)))
                break
        else:
            yield side, part
