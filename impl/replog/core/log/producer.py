"""Idempotent producers: the state of each producer id, derived from the log itself.

Theory: KIP-98; rule A2 of the project's Kafka reference (ProducerAppendInfo, ProducerStateEntry).  Per
producer id the last `WINDOW` batches are known; a batch equal to one of them is a duplicate and is answered
with its old offset, a batch that does not follow the last one is refused.

Invariant: the table is a function of the log.  Followers update it as they append, a truncation rebuilds
it, so a new leader recognises exactly the duplicates of batches that it holds.

Not here: transactions.  DUPLICATE_SEQUENCE_NUMBER (46) is not used: like Kafka today, an old duplicate
outside the window is OUT_OF_ORDER_SEQUENCE_NUMBER.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from replog.core.types import Batch, Error

WINDOW = 5
"""How many batches of a producer can be recognised: its limit of requests in flight."""
SEQUENCE_LIMIT = 1 << 31
"""Sequence numbers wrap here to 0."""


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """One remembered batch of a producer: its first and last sequence numbers, and its place in the log."""

    first_seq: int
    last_seq: int
    base_offset: int


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """The newest epoch of a producer id, and its last batches, oldest first."""

    epoch: int
    batches: tuple[SeenBatch, ...]


def last_seq(batch: Batch) -> int:
    """Return the sequence number of the batch's last record, wrapped."""
    return (batch.first_seq + batch.count - 1) % SEQUENCE_LIMIT


def find_duplicate(entry: ProducerEntry, batch: Batch) -> SeenBatch | None:
    """Return the remembered batch with exactly these sequence numbers, if it is of the epoch of `batch`."""
    # Sequence numbers begin at 0 in each producer epoch, so equal numbers of another epoch mean nothing.
    if entry.epoch != batch.producer_epoch:
        return None
    last = last_seq(batch)
    # Both ends must match. A batch with the same start that is longer has new records.
    for seen in entry.batches:
        if seen.first_seq == batch.first_seq and seen.last_seq == last:
            return seen
    return None


def check_sequence(entry: ProducerEntry | None, batch: Batch) -> Error:
    """Return whether a client's batch, not a duplicate, may be appended (A2)."""
    # No entry: the producer is new, or its records were deleted. Refusing it would stop a producer
    # whose only fault is to have been idle.
    if entry is None:
        return Error.NONE
    # A newer instance of the producer has taken over; batches of the old one are fenced.
    if batch.producer_epoch < entry.epoch:
        return Error.INVALID_PRODUCER_EPOCH
    if batch.producer_epoch > entry.epoch:
        return Error.NONE if batch.first_seq == 0 else Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    # A gap means that an earlier batch in flight was lost. Accepting this one would put it before that
    # batch's retry, out of order (B26).
    expected = (entry.batches[-1].last_seq + 1) % SEQUENCE_LIMIT
    return Error.NONE if batch.first_seq == expected else Error.OUT_OF_ORDER_SEQUENCE_NUMBER


@dataclass(slots=True)
class ProducerTable:
    """Producer id -> entry; `copy` is cheap because entries are frozen."""

    entries: dict[int, ProducerEntry] = field(default_factory=dict)

    def copy(self) -> ProducerTable:
        """Return an independent copy."""
        return ProducerTable(dict(self.entries))

    def duplicate_of(self, batch: Batch) -> SeenBatch | None:
        """Return the batch in the log that `batch` repeats, if it is still in the window."""
        entry = self.entries.get(batch.producer_id)
        return None if entry is None else find_duplicate(entry, batch)

    def check(self, batch: Batch) -> Error:
        """Return whether a client may append `batch`."""
        return check_sequence(self.entries.get(batch.producer_id), batch)

    def update(self, batch: Batch) -> None:
        """Record that `batch` was appended; batches without a producer id change nothing."""
        if batch.producer_id < 0:
            return
        seen = SeenBatch(batch.first_seq, last_seq(batch), batch.base_offset)
        entry = self.entries.get(batch.producer_id)
        older = entry.batches if entry is not None and entry.epoch == batch.producer_epoch else ()
        self.entries[batch.producer_id] = ProducerEntry(batch.producer_epoch, (*older, seen)[-WINDOW:])

    def rebuild(self, batches: Iterable[Batch]) -> None:
        """Rebuild the table from `batches`, the whole log."""
        self.entries = {}
        for batch in batches:
            self.update(batch)
