"""The leader-epoch cache: the range of the log that each epoch wrote.

    entries (1, 20) (2, 80) (3, 120), LEO 150:   epoch 1 wrote 20..79, 2 wrote 80..119, 3 wrote 120..149

Theory: KIP-101, KIP-279, KAFKA-7415; rules A18, A20, A21 of the project's Kafka reference.  Kept in the file
`leader-epoch-checkpoint`, which must be replaced whenever `entries` changed.

Invariants: both columns strictly increase; the record at an entry's start offset has the entry's epoch,
unless the start is the LEO (P21).  Not here: the log, whose LEO is a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replog.core.protocol import Truncation
from replog.core.types import NO_EPOCH, UNDEFINED, EpochEnd

_OFFSET_ONLY = frozenset({Truncation.KIP101})
_KNOWS_BEFORE_FIRST = frozenset({Truncation.KAFKA7415, Truncation.FETCH, Truncation.NONE, Truncation.HW})


@dataclass(slots=True, init=False)
class EpochCache:
    """A mutable list of (epoch, start offset) entries; `copy` is cheap, equality is by entries."""

    entries: list[tuple[int, int]]

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self.entries = list(entries)

    def copy(self) -> EpochCache:
        """Return an independent copy."""
        return EpochCache(self.entries)

    @property
    def latest(self) -> int:
        """Return the last epoch, -1 if there is none."""
        return self.entries[-1][0] if self.entries else NO_EPOCH

    def assign(self, epoch: int, start: int) -> bool:
        """Record that `epoch` begins at `start`, removing entries that contradict this.

        Return whether anything changed.
        """
        entries = self.entries
        # The epoch has begun already; a later batch of it adds nothing. An earlier start, however, replaces
        # the entry.
        if entries and entries[-1][0] == epoch and start >= entries[-1][1]:
            return False
        # An entry that began at or after `start` has no record: its leader was replaced before it wrote, or
        # its records were cut. Without it both columns still strictly increase.
        while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start):
            entries.pop()
        entries.append((epoch, start))
        return True

    def end_offset_for(self, epoch: int, leo: int, rules: Truncation = Truncation.FETCH) -> EpochEnd:
        """Return the largest known epoch <= `epoch` and its end, or `UNDEFINED` (A20), by the given rules.

        With the cache above: 1 -> (1, 80); 3 -> (3, 150); 0 -> (0, 20) today, undefined up to 2.0; 4 ->
        undefined.
        """
        if epoch == NO_EPOCH or not self.entries:
            return UNDEFINED
        # The last epoch ends at the end of the log, which is not in the entries.
        if epoch == self.latest:
            return EpochEnd(NO_EPOCH if rules in _OFFSET_ONLY else epoch, leo)
        lower = NO_EPOCH
        for known, start in self.entries:
            # The next later epoch begins where the requested one, or the last known one before it, ends.
            if known > epoch:
                return self._end_at(epoch, lower, start, rules)
            lower = known
        return UNDEFINED

    def _end_at(self, requested: int, lower: int, start: int, rules: Truncation) -> EpochEnd:
        """Return the answer for `lower`, the last epoch not later, whose end is the start of the next one."""
        if lower == NO_EPOCH:
            # Every record this log ever had of that epoch was before the first entry, so its end is known
            # (KAFKA-7415). Without this answer the follower falls back to its HW (B4).
            return EpochEnd(requested, start) if rules in _KNOWS_BEFORE_FIRST else UNDEFINED
        return EpochEnd(NO_EPOCH if rules in _OFFSET_ONLY else lower, start)

    def truncate_from_end(self, offset: int) -> bool:
        """Remove the entries that start at or after `offset`; return whether there were any."""
        before = len(self.entries)
        # At or after: an entry at the new end has no record, and its epoch would be claimed by the next fetch
        # (B23).
        while self.entries and self.entries[-1][1] >= offset:
            self.entries.pop()
        return len(self.entries) != before

    def truncate_from_start(self, offset: int) -> None:
        """Remove the entries that end at or before `offset`; the epoch at `offset` then starts there."""
        kept = [entry for entry in self.entries if entry[1] > offset]
        # The epoch of the first record that is left must stay known, though its own start is deleted.
        covering = [entry for entry in self.entries if entry[1] <= offset]
        if covering:
            kept.insert(0, (covering[-1][0], offset))
        self.entries = kept
