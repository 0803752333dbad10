"""The log directory of a broker that serves clients: a folder for each partition, batches byte for byte.

The counterpart of `FileStorage` for several partitions in one directory, as Kafka has them.  High watermarks
are gathered and written together (`checkpoint`), since each writing syncs the whole directory's checkpoints.

Not here: when to checkpoint, and which partitions there are (`serve.host`).
"""

from __future__ import annotations

from replog.core.effects import Append, Delete, Effect, StoreHighWatermark
from replog.core.log.logview import LogView
from replog.core.types import Batch
from replog.run import files
from replog.run.opaque import Encoded, stamped, stored
from replog.store.checkpoints.checkpoint import TopicPartition, parse_partition_name
from replog.store.directory import LogDirectory
from replog.store.files.errors import InvalidRecordError
from replog.store.segments.records import decode_batch

Batches = tuple[Batch, ...]
MAX_TIMESTAMP = -3
"""ListOffsets: the latest time."""
NO_RECORD = (-1, -1, -1)


class PartitionFiles:
    """The partitions of one directory, by name (`orders-3`); all methods may raise `StoreError`."""

    def __init__(self, directory: LogDirectory) -> None:
        self.directory = directory
        self._high_watermarks: dict[TopicPartition, int] = {}

    def names(self) -> list[str]:
        """Return the partitions that have a log."""
        return [f"{topic}-{number}" for topic, number in self.directory.logs]

    def recover(self, name: str) -> LogView:
        """Return the log of a partition, read from the headers of its batches; an empty one if it is new."""
        key = key_of(name)
        log = self.directory.log(*key)
        return files.view_of(self.directory, key, map(stored, log.headers(log.log_start)))

    def perform(self, name: str, effect: Effect) -> None:
        """Perform a disk effect of a partition."""
        key = key_of(name)
        if isinstance(effect, StoreHighWatermark):
            self._high_watermarks[key] = effect.offset
            return
        files.perform(self.directory, key, effect, stamped)
        if isinstance(effect, Append):
            for batch in effect.batches:
                if isinstance(batch.body, Encoded):
                    batch.body.release()
        elif isinstance(effect, Delete):
            self._high_watermarks.pop(key, None)

    def read(self, name: str, batches: Batches) -> bytes:
        """Return the bytes of consecutive batches of a partition."""
        if not batches:
            return b""
        return files.read_bytes(self.directory.log(*key_of(name)), batches, sum(map(_most_bytes, batches)))

    def first_after(self, name: str, timestamp: int, end: int) -> tuple[int, int, int]:
        """Return offset, time and leader epoch of the first record with a time of at least `timestamp`.

        `MAX_TIMESTAMP` stands for the latest time there is.  `NO_RECORD` if there is none below offset `end`.
        A batch whose codec cannot be read here has its latest time at its first offset.
        """
        log = self.directory.log(*key_of(name))
        wanted = log.max_timestamp if timestamp == MAX_TIMESTAMP else timestamp
        for header in log.headers_since(wanted) if wanted >= 0 else ():
            start = max(header.base_offset, log.log_start)
            try:
                records = decode_batch(log.read(start, 1))
            except InvalidRecordError:
                times = [(start, header.max_timestamp)]
            else:
                times = [(each.offset, each.timestamp) for each in records]
            for offset, time in times:
                if time >= wanted and offset >= start:
                    return (offset, time, header.leader_epoch) if offset < end else NO_RECORD
        return NO_RECORD

    def with_values(self, name: str, batches: Batches) -> Batches:
        """Return batches with the value of their records as bodies: those of the log of groups."""
        return tuple(files.decoded_all(self.read(name, batches)))

    def checkpoint(self) -> None:
        """Write the high watermarks that have been stored since the last time."""
        if self._high_watermarks:
            self.directory.checkpoint(self._high_watermarks)
            self._high_watermarks = {}

    def close(self, broker_epoch: int) -> None:
        """Shut the directory down cleanly."""
        self.directory.shut_down(self._high_watermarks, broker_epoch)


def _most_bytes(batch: Batch) -> int:
    """Return at least the size of a batch in a segment."""
    return batch.size_bytes + (0 if isinstance(batch.body, Encoded) else batch.count * files.RECORD_BYTES)


def key_of(name: str) -> TopicPartition:
    """Return the topic and the number of a partition."""
    key = parse_partition_name(name)
    assert key is not None, f"{name!r} is no partition"
    return key
