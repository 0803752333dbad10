"""One partition's log on disk: the signatures the world is written against (the bodies follow)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from replog.store.fs import Fs


class BatchHeader(NamedTuple):
    """The 61 bytes before the records of a v2 batch, in wire order."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int


class EpochEntry(NamedTuple):
    """A leader epoch and the first offset written in it."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Sizes and policies of one log; the defaults are Kafka's."""

    segment_bytes: int = 1 << 30
    index_interval_bytes: int = 4096
    max_batch_bytes: int = 1_048_588
    flush_messages: int | None = None
    flush_ms: int | None = None
    flush_on_roll: bool = True
    retention_bytes: int | None = None
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Recovery:
    """What opening a log found and did."""

    clean: bool
    scanned_bytes: int
    cut_bytes: int
    dropped_segments: int
    rebuilt_indexes: int
    notes: tuple[str, ...]


class PartitionLog(Protocol):
    """A log of record batches (v2), stored verbatim. All failures are `StoreError`s."""

    log_start: int  # first offset kept
    log_end: int  # LEO: the next offset
    flushed: int  # durable end (recovery point): a power loss keeps at least the records below it
    epochs: tuple[EpochEntry, ...]  # both fields strictly increasing
    recovery: Recovery

    def append_as_leader(self, batch: bytes, leader_epoch: int) -> int:
        """Check one client batch, stamp base offset and epoch in place, append; return the base offset."""

    def append_as_follower(self, batches: bytes) -> int:
        """Append stamped batches verbatim (contiguous from `log_end`); return the new log end."""

    def read(self, offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Return whole batches from the one holding `offset`, at least one if any, none reaching `end_offset`."""

    def headers(self, start_offset: int = 0) -> Iterator[BatchHeader]:
        """Walk the batch headers from the one holding `start_offset` (rebuilds producer state, digests)."""

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Add an epoch entry (no-op unless newer than the latest), durably."""

    def truncate_to(self, offset: int) -> int:
        """Durably drop every batch reaching `offset` or beyond and epoch entries from there; return the log end."""

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and start an empty log at `offset`."""

    def flush(self) -> None:
        """Make everything up to `log_end` durable; `flushed` becomes `log_end`."""

    def flush_if_due(self, now_ms: int) -> None:
        """Apply the flush policy's clock."""

    def advance_log_start(self, offset: int) -> None:
        """Raise `log_start` (DeleteRecords, or the leader's log start); whole dead segments are deleted."""

    def apply_retention(self, now_ms: int, high_watermark: int) -> int:
        """Delete old segments by size and time, never past the high watermark; return how many."""

    def offset_for_time(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Return (offset, timestamp) of the first record at or after a time."""

    def close(self) -> None:
        """Release the files; no flush."""


class LogDir(Protocol):
    """A broker's directory: lock, markers, the per-directory checkpoints, and its partitions `topic-N`."""

    logs: dict[tuple[str, int], PartitionLog]
    high_watermarks: dict[tuple[str, int], int]  # as read at open
    was_clean: bool
    broker_epoch: int | None  # from the clean-shutdown marker

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return a partition's log, created empty at first use."""

    def checkpoint(self, high_watermarks: dict[tuple[str, int], int]) -> None:
        """Write the high watermark, recovery point and log start checkpoints."""

    def shut_down(self, high_watermarks: dict[tuple[str, int], int], broker_epoch: int) -> None:
        """Flush all, checkpoint, write the clean-shutdown marker, release the lock."""

    def abandon(self) -> None:
        """Release the handles and the lock as the death of the process would: no flush, no marker."""


def open_log(fs: Fs, directory: str, config: LogConfig, recovery_point: int = 0) -> PartitionLog: ...


def open_dir(fs: Fs, directory: str, config: LogConfig) -> LogDir: ...
