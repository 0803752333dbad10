"""The log from the protocol's view: batches, LEO, HW, log start, epoch cache, producers; no files.

The runner keeps the files; every change here has an effect (`replog.core.effects`) that makes the same
change on disk.  Each batch stays in memory, except for its body, which is opaque and chosen by the runner.
On files it is a handle, so a view takes memory for the number of batches and not for their bytes: a received
batch has its bytes until `Append` is performed, and a sent one has them from its segment, read when
its `Send` is performed.  Nothing is truncated or deleted between a read of this view and the effect with its
batches, so everything that a reply names still exists when it is sent.

Invariants (P1): log_start <= hw <= leo, batches contiguous, epochs never decrease along the log, and the
epoch cache agrees with the batches.  A truncation that falls inside a batch drops the batch whole, and LEO
follows: in Kafka truncation points are batch ends because followers store batches verbatim, and here a
lying peer cannot make it otherwise.

Not here: permission to append or truncate (`leader`, `follower`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from replog.core.log.epochs import EpochCache
from replog.core.log.producer import ProducerTable
from replog.core.types import Batch, Body


class LogView:
    """A mutable log of batches.  `copy` shares the frozen batches; equality is by content."""

    __slots__ = ("_bases", "batches", "epochs", "hw", "leo", "log_start", "producers", "unflushed")

    def __init__(
        self, batches: Iterable[Batch] = (), epochs: EpochCache | None = None, hw: int = 0, log_start: int = 0
    ) -> None:
        self.batches: list[Batch] = list(batches)
        self._bases: list[int] = [batch.base_offset for batch in self.batches]
        self.log_start = log_start
        self.leo = self.batches[-1].next_offset if self.batches else log_start
        # A checkpoint may be ahead of a log that lost its tail, or behind a log start that moved. The clamp
        # is what recovery does with it (A28).
        self.hw = min(max(hw, log_start), self.leo)
        self.epochs = EpochCache() if epochs is None else epochs
        self.producers = ProducerTable()
        # Derived from the records, never stored: it cannot list a batch that the log has lost.
        self.producers.rebuild(self.batches)
        self.unflushed = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogView) and self._key() == other._key()

    __hash__ = None  # type: ignore[assignment]  # mutable

    def _key(self) -> tuple[object, ...]:
        return (self.log_start, self.hw, self.leo, self.batches, self.epochs.entries, self.unflushed)

    def copy(self) -> LogView:
        """Return an independent copy, in time proportional to the number of batches with a small constant."""
        twin = LogView.__new__(LogView)
        twin.batches = self.batches.copy()
        twin._bases = self._bases.copy()
        twin.log_start, twin.leo, twin.hw = self.log_start, self.leo, self.hw
        twin.epochs = self.epochs.copy()
        twin.producers = self.producers.copy()
        twin.unflushed = self.unflushed
        return twin

    @property
    def last_epoch(self) -> int:
        """Return the latest epoch: that of the last record, or one that has started without a record."""
        return self.epochs.latest

    def append(self, batch: Batch) -> bool:
        """Add a stamped batch whose base is the LEO; return whether it opened a new epoch entry."""
        assert batch.base_offset == self.leo, "a log has no holes"
        # From each batch, not only on becoming leader: a follower learns epochs from the records it copies
        # (I21).
        opened = self.epochs.assign(batch.epoch, batch.base_offset)
        self.batches.append(batch)
        self._bases.append(batch.base_offset)
        self.leo = batch.base_offset + batch.count
        self.producers.update(batch)
        self.unflushed += batch.count
        assert self.log_start <= self.hw <= self.leo, "HW is in the log"
        return opened

    def truncate_to(self, offset: int) -> bool:
        """Remove every batch from `offset` on, and lower HW to it.  Return whether a record was removed.

        Epoch entries are not touched: `EpochCache.truncate_from_end` is the caller's next step (A21).
        """
        batches = self.batches
        before = len(batches)
        while batches and batches[-1].next_offset > offset:
            # A batch that is cut whole may begin before the log start, which then falls with it.
            self.log_start = min(self.log_start, batches.pop().base_offset)
            self._bases.pop()
        if len(batches) == before:
            return False
        self.leo = batches[-1].next_offset if batches else self.log_start
        assert self.log_start <= self.leo, "the log ends after its start"
        # A truncation below HW happens only after an unclean election or a loss. HW follows, because it must
        # never name an offset that is not there.
        self.hw = min(self.hw, self.leo)
        # The batches that are cut must be accepted again when their producer retries.
        self.producers.rebuild(batches)
        return True

    def reset(self, offset: int) -> None:
        """Remove everything; the log is empty and starts at `offset`."""
        self.batches, self._bases = [], []
        self.log_start = self.leo = self.hw = offset
        self.epochs = EpochCache()
        self.producers = ProducerTable()
        self.unflushed = 0

    def read(self, start: int, end: int, max_bytes: int) -> tuple[Batch, ...]:
        """Return the batches from the one that contains `start`, all below `end`, but at least one.

        The first batch may begin before `start`, as in Kafka; a reader skips what it did not request.
        """
        if start >= end:
            return ()
        index = max(bisect_right(self._bases, start) - 1, 0)
        chosen: list[Batch] = []
        room = max_bytes
        for batch in self.batches[index:]:
            # The first batch is returned whatever its size: a batch above the limit would otherwise block its
            # readers forever.
            if batch.next_offset > end or (chosen and batch.size_bytes > room):
                break
            chosen.append(batch)
            room -= batch.size_bytes
        return tuple(chosen)

    def raise_hw(self, offset: int) -> bool:
        """Raise HW to `offset`, never past the LEO, and never lower it.

        Return whether it moved (a leader's HW: I2).
        """
        target = min(offset, self.leo)
        if target <= self.hw:
            return False
        self.hw = target
        return True

    def assign_hw(self, offset: int) -> None:
        """Set HW to `offset`, clamped to the log, up or down (a follower's HW: I6)."""
        # Down, too: a new leader may have a lower HW than this follower learned from the old one, and a
        # follower is not to show more than its leader.
        self.hw = min(max(offset, self.log_start), self.leo)
        assert self.log_start <= self.hw <= self.leo, "HW is in the log"

    def advance_start(self, offset: int) -> bool:
        """Remove records before `offset` (whole batches only), which must not pass HW.

        Return whether it moved.
        """
        # Never past HW: a record that is not committed may still be needed by followers, and by the next
        # leader.
        target = min(offset, self.hw)
        if target <= self.log_start:
            return False
        # A batch that reaches past the new start stays whole, since batches are stored byte for byte.
        kept = bisect_right(self._bases, target) - 1
        if kept > 0:
            del self.batches[:kept]
            del self._bases[:kept]
        if self.batches and self.batches[0].next_offset <= target:
            del self.batches[0]
            del self._bases[0]
        self.log_start = target
        assert not self.batches or self.batches[0].next_offset > target, "no batch is below the start"
        assert self.log_start <= self.hw <= self.leo, "HW is in the log"
        self.epochs.truncate_from_start(target)
        return True

    def cells(self) -> tuple[tuple[int, Body], ...]:
        """Return the log record by record as (epoch, body), from its start, for comparing two logs."""
        hidden = max(self.log_start - self._bases[0], 0) if self._bases else 0
        records = tuple((batch.epoch, batch.body) for batch in self.batches for _ in range(batch.count))
        return records[hidden:]
