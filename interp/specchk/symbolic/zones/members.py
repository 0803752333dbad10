"""One of the processes of a search: the zones of some shapes, the visited ones, and their steps.

A level has two parts.  First every member expands its zones, slice by slice; a successor goes to the member
that owns its shape, perhaps the same one.  Then every member sorts the zones that arrived, drops those that
lie within earlier ones, and has its part of the next level.

Every decision about a zone is made among those of its shape, in the order of the zones from which they come.
So findings do not depend on the number of members.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter

from msgspec import Struct

from specchk.symbolic.zones.comparisons import Record, recorded
from specchk.symbolic.zones.concrete import Taken
from specchk.symbolic.zones.covering import Covered
from specchk.symbolic.zones.expand import Expander, Expansion
from specchk.symbolic.zones.zones import Shape, Zone

SLICE = 1500  # zones between two checks of the budget
# The zone before, -1 for an initial one, and a number that distinguishes its successors.
Order = tuple[int, int]
Arrival = tuple[Order, Zone, Taken]


class Taking(Struct, frozen=True):
    """A member's zones of the next level, in order of the steps to them, and the number dropped."""

    found: list[tuple[Order, Taken]]
    dropped: int


class ZoneMember:
    """The member with a number, among a number of members."""

    def __init__(self, number: int, count: int, expander: Expander, *, covering: bool) -> None:
        self.number = number
        self.count = count
        self.expander = expander
        self.covered = Covered(expander.abstraction.reach, within=covering)
        self._level: list[Zone] = []  # its part of the frontier,
        self._indexes: Sequence[int] = ()  # and the search's numbers for these zones
        self._arrived: list[list[Arrival]] = [[] for _ in range(count)]
        self._met: set[Zone] = set()  # all that arrived in this level
        self._count = 0
        self.most: int | None = None  # zones of a shape; others are postponed
        self.left: list[Arrival] = []
        self.depth = 0  # of the zones that arrive next
        self.latest: Mapping[Shape, int] | None = None  # the depths up to which zones are taken

    def start(self, arrivals: list[Arrival]) -> Taking:
        """Adopt the initial zones that this member owns."""
        self._arrived[self.number] = [one for one in arrivals if self._owner(one[1].shape) == self.number]
        return self.take(b"")

    def number_level(self, indexes: Sequence[int]) -> None:
        """Receive the search's numbers for the zones that `take` returned."""
        self._indexes = indexes
        self._met.clear()

    def expand(self, first: int, decided: frozenset[str], only_check: bool) -> tuple[Expansion, bool]:
        """Check and expand a slice of the frontier; returns whether there is more."""
        last = first + SLICE
        zones = list(zip(self._indexes[first:last], self._level[first:last], strict=True))
        part = self.expander.expand(zones, None if only_check else self._arrive, decided)
        return part, last < len(self._level)

    def sent(self) -> list[bytes]:
        """The zones for each member."""
        # Its own part is not pickled.
        out = [b"" if to == self.number else pickle.dumps(some) for to, some in enumerate(self._arrived)]
        self._arrived = [some if to == self.number else [] for to, some in enumerate(self._arrived)]
        return out

    def take(self, *parcels: bytes) -> Taking:
        """Take the zones that arrived, and return the new ones."""
        arrived, dropped = self._arrived[self.number], 0
        self._arrived[self.number] = []
        for parcel in parcels:
            arrived += pickle.loads(parcel) if parcel else ()  # noqa: S301 - written by another member
        # Parcels are by member; sorted by the zone before, zones have the order that one process would see.
        # Which of two zones that cover each other stays, and so every count, depends only on that order.
        arrived.sort(key=itemgetter(0))
        new = []
        self._level = []
        for arrival in arrived:
            order, zone, taken = arrival
            if not self._is_in_time(zone.shape, self.depth):
                continue
            if self.most is not None and self.covered.count(zone.shape) >= self.most:
                self.left.append(arrival)
            elif self.covered.add(zone):
                new.append((order, taken))
                self._level.append(zone)
            else:
                dropped += 1
        self.depth += 1
        return Taking(new, dropped)

    def zones(self) -> list[Zone]:
        """All zones that this member has adopted."""
        return list(self.covered.zones())

    def recorded(self) -> list[Record]:
        """The distinct comparisons and steps recorded in the trees of its control parts."""
        controls, abstraction = self.expander.controls, self.expander.abstraction
        records = [
            recorded(control, shape, abstraction.of(shape)) for shape, control in controls.known.items()
        ]
        return list(dict.fromkeys(chain.from_iterable(records)))

    def _arrive(self, index: int, zone: Zone, taken: Taken) -> bool:
        """Send a successor to its owner, unless it would be dropped there."""
        owner = self._owner(zone.shape)
        # Both are only savings: the owner would drop the zone in `take`.  Another member's `covered` is not
        # consulted.
        if zone in self._met or (owner == self.number and self.covered.has(zone)):
            return False
        self._met.add(zone)
        self._count += 1
        self._arrived[owner].append(((index, self._count), zone, taken))
        return True

    def _is_in_time(self, shape: Shape, depth: int) -> bool:
        return self.latest is None or depth <= self.latest.get(shape, -1)

    def _owner(self, shape: Shape) -> int:
        # The same in all processes: hashes of ints and tuples are not salted, and members are forks of one
        # process.
        return hash(shape) % self.count if self.count > 1 else 0
