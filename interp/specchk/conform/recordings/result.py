"""The result of one recording, and a tally of many, whose size is independent of their number.

A tally has the numbers of all recordings, and the first `MOST_KEPT` of what a report shows one by one.

Invariant: results may be tallied in any order and in any groups; the tally is the same, its seconds aside.
That is what lets tasks on other machines send tallies, and the driver keep one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from specchk.conform.recordings.explanation import Explanation

MOST_KEPT = 100
T = TypeVar("T")
_ADDED = ("recordings", "accepted", "events", "consumed", "total", "silent", "acted", "seconds")
_FIRSTS = ("blocked", "bad", "idle", "missed")


class Copy(Struct, frozen=True):
    """A corrupted copy, and whether it was rejected."""

    kind: str
    what: str
    rejected: bool


class RecordingResult(Struct, frozen=True):
    """The result of one recording."""

    name: str
    events: int = 0
    consumed: int = 0
    most: int = 0
    total: int = 0
    silent: int = 0
    acted: int = 0
    is_idle: bool = False
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    values: dict[str, frozenset[str]] = field(default_factory=dict)
    copies: tuple[Copy, ...] = ()
    bad: str = ""
    blocked: Explanation | None = None
    unmapped: Mapping[str, int] = {}
    settings: Mapping[str, str] = {}

    @property
    def accepted(self) -> bool:
        """Whether a behaviour of the spec explains the whole recording."""
        return not self.bad and self.blocked is None


class Missed(Struct, frozen=True):
    """A corrupted copy that was nevertheless explained."""

    recording: str
    kind: str
    what: str


class Firsts(Struct, Generic[T], frozen=True):
    """The number of some items, and the first ones, by the numbers of their recordings."""

    count: int = 0
    kept: tuple[tuple[int, T], ...] = ()

    @classmethod
    def of(cls, number: int, items: Iterable[T]) -> Firsts[T]:
        """The items of one recording."""
        every = [(number, item) for item in items]
        return cls(len(every), tuple(every[:MOST_KEPT]))

    @property
    def items(self) -> list[T]:
        """The first ones, without numbers."""
        return [item for _, item in self.kept]

    @property
    def left(self) -> int:
        """The number of items that are not kept."""
        return self.count - len(self.kept)


class Tally(Struct, frozen=True):
    """The counts over many recordings.

    `copies` counts by kind and whether the copy was rejected.  Of the values of a field two are kept: whether
    it ever had a second one is what matters.
    """

    recordings: int = 0
    accepted: int = 0
    events: int = 0
    consumed: int = 0
    most: int = 0
    total: int = 0
    silent: int = 0
    acted: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    values: Mapping[str, frozenset[str]] = field(default_factory=dict)
    copies: Counter[tuple[str, bool]] = field(default_factory=Counter)
    blocked: Firsts[RecordingResult] = Firsts()
    bad: Firsts[str] = Firsts()
    idle: Firsts[str] = Firsts()
    missed: Firsts[Missed] = Firsts()
    unmapped: Counter[str] = field(default_factory=Counter)
    settings: Mapping[str, str] = {}

    @classmethod
    def of(cls, number: int, result: RecordingResult) -> Tally:
        """The tally of one recording; `number` is its position among all."""
        shown = [] if result.blocked is None else [replace(result, kinds=Counter(), values={}, copies=())]
        missed = [Missed(result.name, copy.kind, copy.what) for copy in result.copies if not copy.rejected]
        return cls(
            1, int(result.accepted), result.events, result.consumed, result.most, result.total, result.silent,
            result.acted, result.seconds, result.kinds, _two_of_each((result.values,)),
            Counter((copy.kind, copy.rejected) for copy in result.copies),
            Firsts.of(number, shown), Firsts.of(number, [result.bad] if result.bad else []),
            Firsts.of(number, [result.name] if result.accepted and result.is_idle else []),
            Firsts.of(number, missed), Counter(result.unmapped), result.settings,
        )  # fmt: skip

    def __add__(self, other: Tally) -> Tally:
        """The sum of both."""
        return together((self, other))

    def power(self, kind: str | None = None) -> float | None:
        """The share of corrupted copies that were rejected; None if there were none."""
        rejected, every = (
            sum(count for (of, was), count in self.copies.items() if kind in (None, of) and was in kinds)
            for kinds in ((True,), (True, False))
        )
        return rejected / every if every else None


def together(tallies: Sequence[Tally]) -> Tally:
    """The sum of all tallies, computed at once, since intermediate tallies would copy the table of fields."""
    kinds: Counter[str] = Counter()
    copies: Counter[tuple[str, bool]] = Counter()
    unmapped: Counter[str] = Counter()
    for tally in tallies:
        kinds.update(tally.kinds)
        copies.update(tally.copies)
        unmapped.update(tally.unmapped)
    most = max((tally.most for tally in tallies), default=0)
    sums: dict[str, Any] = {name: sum(getattr(tally, name) for tally in tallies) for name in _ADDED}
    firsts: dict[str, Any] = {
        name: firsts_of([getattr(tally, name) for tally in tallies]) for name in _FIRSTS
    }
    values = _two_of_each(tally.values for tally in tallies)
    settings: dict[str, str] = {}
    for name, reason in (item for tally in tallies for item in tally.settings.items()):
        settings[name] = min(reason, settings.get(name, reason))  # none, if some recording has the field
    return Tally(
        most=most, kinds=kinds, copies=copies, values=values, unmapped=unmapped, settings=settings,
        **sums, **firsts,
    )  # fmt: skip


def firsts_of(every: Sequence[Firsts[T]]) -> Firsts[T]:
    """The sum of all."""
    kept = sorted((item for one in every for item in one.kept), key=itemgetter(0))
    return Firsts(sum(one.count for one in every), tuple(kept[:MOST_KEPT]))


def _two_of_each(tables: Iterable[Mapping[str, frozenset[str]]]) -> dict[str, frozenset[str]]:
    together: dict[str, set[str]] = {}
    for table in tables:
        for name, known in table.items():
            together.setdefault(name, set()).update(known)
    return {name: frozenset(sorted(known, key=repr)[:2]) for name, known in together.items()}


def tally_of(results: Iterable[RecordingResult]) -> Tally:
    """The tally of recordings in order."""
    return together([Tally.of(number, result) for number, result in enumerate(results)])
