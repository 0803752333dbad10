"""The exact search for a violation of at most n steps, where hulls of n levels fail.

Hulls that fail need not show a real violation: the path by which one grew is one of many, and hulls are
coarse.  But every violation of n steps lies in hulls of the first n levels, so it has only zones of control
parts from which recorded steps lead to a failure in time (`search`).  Where hulls have just begun to
fail these are few, even where the exact search would not come to such a level: iterative deepening, with
hulls as the heuristic (Korf, "Depth-First Iterative-Deepening", 1985).

Its members are beside those of the search that it is a part of, and share their control parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from specchk.meaning.paths import NotSymbolic
from specchk.symbolic.joins.member import HullMember, NarrowedMember
from specchk.symbolic.workers import Workers
from specchk.symbolic.zones.engine import Spurious, ZoneEngine
from specchk.symbolic.zones.expand import Counts
from specchk.symbolic.zones.members import ZoneMember
from specchk.symbolic.zones.zones import Shape


class NarrowedWorkers(Workers[ZoneMember]):
    """The workers of another search, whose hull members each have a member for this one."""

    def __init__(self, workers: Workers[ZoneMember], latest: Mapping[Shape, int]) -> None:
        super().__init__(workers.count, workers.make)
        self._workers = workers
        self._latest = latest

    def start(self) -> None:
        """Give each a member, which takes zones of a shape up to its last depth."""
        self._workers.each(HullMember.start_narrowed, self._latest)

    def close(self) -> None:
        """Drop the members."""
        self._workers.each(HullMember.end_narrowed)

    def call(self, method: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The results of a method of each member with its arguments."""
        return self._workers.call(HullMember.narrowed, [(method.__name__, *given) for given in arguments])


@dataclass(slots=True)
class NarrowedEngine(ZoneEngine):
    """The exact engine with the control parts of `whole`; it notes what it finds in the findings of that.

    `is_open`: it has no answer, since zones were too coarse, or steps too many.
    """

    whole: ZoneEngine
    latest: Mapping[Shape, int]
    levels: list[int] = field(init=False, default_factory=list)
    is_open: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        whole = self.whole
        self.program, self.findings, self.reach = whole.program, whole.findings, whole.reach
        self.abstraction, self.expander = whole.abstraction, whole.expander
        self.concretiser = whole.concretiser
        self.counts = Counts(len(self.program.points))
        self.workers = NarrowedWorkers(whole.workers, self.latest)

    def find(self, bound: int, most: int) -> None:
        """Find the violations of at most `bound` steps, with about `most` steps of zones at most."""
        frontier = self.begin()
        while frontier and not self.search.is_stopped:
            self.levels.append(len(frontier))
            if self.search.is_answered or self.is_open:
                break
            if len(self.levels) > bound:
                with self._answered():
                    self._confirm(self._level(only_ask=True).states)
                break
            frontier = self.expand(frontier)
            # After whole levels only: what a member has counted within one depends on how many there are.
            self.is_open |= self.counts.generated > most and not self.search.is_answered
        self.is_open |= any(self.workers.each(NarrowedMember.is_refused))
        self.workers.close()

    @contextmanager
    def _answered(self) -> Iterator[None]:
        try:
            yield
        except (Spurious, NotSymbolic) as reason:
            self.is_open = True
            if isinstance(reason, Spurious):
                self.spurious.add(reason.name)

    def _look(self, arrived: int) -> bool:
        counts = self.whole.counts.generated + self.counts.generated
        return self.search.look(len(self.whole.nodes) + len(self.nodes), counts, arrived)
