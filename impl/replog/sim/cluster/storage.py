"""The disk of a simulated broker: an interface with faults, and a fast model, values instead of bytes.

`MemoryStorage` is the contract of the real store in thirty lines of state: appended batches are in the page
cache until a flush, a truncation and an epoch checkpoint are durable when they return, a power loss keeps a
prefix that ends anywhere in the unflushed part.  It makes runs fast; `replog.sim.disks.stored` has the real
store on a simulated disk behind the same interface, and a run can use either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from replog.core import effects
from replog.core.effects import Effect
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.core.messages import Message
from replog.core.types import Batch
from replog.run.storage import BrokerStorage, Recovered, StorageError

__all__ = ["Chooser", "MemoryStorage", "Recovered", "Storage", "StorageError"]

Chooser = Callable[[int], int]
"""choose(n) is one of 0..n-1; all chance of a storage comes from here."""


class Storage(BrokerStorage, Protocol):
    """One simulated broker's disk, which can fail and be cut off from power."""

    def crash(self) -> None:
        """Lose the process, but keep the page cache."""

    def lose_power(self, choose: Chooser) -> None:
        """Lose the process and the part of the unflushed tail that `choose` selects."""

    def flush(self) -> None:
        """Make everything durable, like the operating system in the background."""

    def flushed(self) -> int:
        """Return the offset before which no record can be lost."""

    def end(self) -> int:
        """Return the offset after the last record in the page cache."""

    def arm(self, occasion: int, kind: int) -> None:
        """Make the disk fail at the `occasion`-th write or flush from now; `kind` selects the failure.

        0 is the next one, -1 none.
        """

    def is_armed(self) -> bool:
        """Return whether a failure is still pending."""

    def copy(self) -> Storage:
        """Return an independent copy."""


@dataclass(slots=True)
class MemoryStorage:
    """A disk as values; see the module's docstring."""

    log_start: int = 0
    batches: list[Batch] = field(default_factory=list)
    flushed_offset: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    hw_checkpoint: int = 0
    clean_epoch: int = -1
    fails_in: int = -1

    def recover(self) -> Recovered:
        """Build a log view from the disk; the clean marker is consumed."""
        log = LogView(self.batches, None, self.hw_checkpoint, self.log_start)
        log.epochs = EpochCache(self.epochs)
        # As the real store does at a start (A28): an entry without a record was written before a crash.
        log.epochs.truncate_from_end(log.leo)
        # Used once. A process that dies from here on was not stopped cleanly.
        marker, self.clean_epoch = self.clean_epoch, -1
        self.epochs = tuple(log.epochs.entries)
        return Recovered(log, marker)

    def with_bodies(self, message: Message) -> Message:
        """Return the message unchanged: log and disk share the bodies, which are values."""
        return message

    def perform(self, effect: Effect) -> None:
        """Apply one disk effect to the values."""
        if self.fails_in >= 0:
            self.fails_in -= 1
            if self.fails_in < 0:
                raise StorageError(f"the disk failed under {effect}")
        match effect:
            case effects.Append(batches):
                self.batches.extend(batches)
            case effects.StoreEpochs(entries):
                self.epochs = entries
            case effects.StoreHighWatermark(offset):
                self.hw_checkpoint = offset
            case effects.Truncate(offset):
                self._truncate(offset)
            case effects.Flush():
                self.flush()
            case effects.AdvanceStart(offset):
                self._advance_start(offset)
            case effects.Reset(offset):
                self.batches, self.log_start, self.flushed_offset = [], offset, offset
            case effects.Delete():
                self.batches, self.log_start, self.flushed_offset = [], 0, 0
                self.epochs, self.hw_checkpoint = (), 0
            case _:
                raise AssertionError(f"{effect} is no disk effect")

    def close(self, broker_epoch: int) -> None:
        """Flush, and write the marker."""
        self.flush()
        self.clean_epoch = broker_epoch

    def crash(self) -> None:
        """Do nothing: the page cache is the operating system's."""

    def lose_power(self, choose: Chooser) -> None:
        """Keep a prefix that contains at least the flushed part."""
        # Only batches can be lost: epoch entries (I22) and the HW checkpoint were synced when they were
        # stored. An entry whose batch is lost here goes at the next start.
        durable = sum(batch.next_offset <= self.flushed_offset for batch in self.batches)
        kept = durable + choose(len(self.batches) - durable + 1)
        del self.batches[kept:]
        # What survived is on the platter: the next power loss cannot take it.
        self.flush()

    def flush(self) -> None:
        """Mark everything as durable."""
        self.flushed_offset = self.end()

    def flushed(self) -> int:
        """Return the durable end."""
        return self.flushed_offset

    def arm(self, occasion: int, kind: int) -> None:
        """Fail at an effect; all kinds have the same result here."""
        del kind
        self.fails_in = occasion

    def is_armed(self) -> bool:
        """Return whether a later effect will fail."""
        return self.fails_in >= 0

    def copy(self) -> MemoryStorage:
        """Return a copy that shares the frozen batches and has its own list."""
        return MemoryStorage(
            self.log_start,
            self.batches.copy(),
            self.flushed_offset,
            self.epochs,
            self.hw_checkpoint,
            self.clean_epoch,
            self.fails_in,
        )

    def end(self) -> int:
        """Return the offset after the last batch."""
        return self.batches[-1].next_offset if self.batches else self.log_start

    def _advance_start(self, offset: int) -> None:
        kept = EpochCache(self.epochs)
        kept.truncate_from_start(offset)
        self.log_start, self.epochs = offset, tuple(kept.entries)
        self.batches = [batch for batch in self.batches if batch.next_offset > offset]
        # As the store does: no power loss leaves a log that ends before its start.
        self.flushed_offset = max(self.flushed_offset, offset)

    def _truncate(self, offset: int) -> None:
        while self.batches and self.batches[-1].next_offset > offset:
            self.log_start = min(self.log_start, self.batches.pop().base_offset)
        self.flushed_offset = min(self.flushed_offset, self.end())
