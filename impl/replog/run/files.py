"""The bridge from the protocol's effects to real files: `replog.store` on any file system.

Every disk effect becomes calls of `LogDirectory` and `PartitionLog`; every batch is encoded as Kafka's
bytes.  A batch in memory has its body, the value of each of its records; the bodies in a message that leaves
are read from the segments all the same, and have to be those in memory.

A directory that is opened anew, like at every start, drops an epoch entry without a record.  Not here: file
systems that fail (`sim.disks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar, TypeVar

from replog.core import effects
from replog.core.effects import Effect
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.core.messages import FetchReply, ForPartition, GroupLog, Message
from replog.core.types import Batch
from replog.run.storage import Recovered, StorageError
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import CorruptBatchError, StoreError
from replog.store.files.fs import Fs
from replog.store.partition import PartitionLog
from replog.store.segments.batch import HEADER_BYTES, BatchHeader, iterate_headers
from replog.store.segments.records import ProducerFields, Record, encode_batch, first_value

T = TypeVar("T")
RECORD_BYTES = 32
"""More than any record has beside its value, as `encode` writes it."""


class FileStorage:
    """A Kafka log directory with one partition, driven by the protocol's disk effects.

    For the simulator and the demo; a process that serves has `run.partitions`.  `path` is the directory on
    `fs`; `key` is the partition's topic and number.
    """

    failures: ClassVar[tuple[type[Exception], ...]] = (StoreError,)
    """The exceptions of the file system and of the store that are a `StorageError` of the disk."""

    __slots__ = ("_config", "_directory", "_end", "_flushed", "_fs", "_key", "_path")

    def __init__(self, fs: Fs, path: str, config: LogConfig, key: tuple[str, int]) -> None:
        self._fs = fs
        self._path = path
        self._config = config
        self._key = key
        self._directory: LogDirectory | None = None
        self._end = self._flushed = 0

    def recover(self) -> Recovered:
        """Open the directory like a starting broker, and decode the log."""

        def read() -> Recovered:
            directory = self._directory = LogDirectory.open(self._fs, self._path, self._config)
            log = directory.log(*self._key)
            view = view_of(directory, self._key, read_batches(log))
            return Recovered(view, -1 if directory.broker_epoch is None else directory.broker_epoch)

        return self._guard(read)

    def with_bodies(self, message: Message) -> Message:
        """Return a message with its bodies, read from the segments."""
        match message:
            case FetchReply(batches=batches) | GroupLog(batches=batches) if batches:
                return replace(message, batches=self._guard(lambda: self._read(batches)))
            case ForPartition(message=inner):
                changed = self.with_bodies(inner)
                return message if changed is inner else replace(message, message=changed)
        return message

    def _read(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        room = sum(HEADER_BYTES + batch.count * (RECORD_BYTES + len(batch.body)) for batch in batches)
        read = tuple(decoded_all(read_bytes(self._log(), batches, room)))
        # The file has its own CRC of each batch, which does not show whether it is this one.
        if read != batches:
            first = batches[0].base_offset
            raise CorruptBatchError(f"other batches than those written, from offset {first} on")
        return read

    def perform(self, effect: Effect) -> None:
        """Perform a disk effect with the store's own calls."""
        self._guard(lambda: self._perform(effect))

    def _perform(self, effect: Effect) -> None:
        perform(self._opened(), self._key, effect, encode)
        if isinstance(effect, effects.Delete):
            self._end = self._flushed = 0

    @property
    def hw_checkpoint(self) -> int:
        """Return the HW in replication-offset-checkpoint; 0 if there is none."""
        return self._opened().high_watermarks.get(self._key, 0)

    def close(self, broker_epoch: int) -> None:
        """Shut the directory down cleanly."""
        directory = self._opened()
        self._guard(lambda: directory.shut_down({}, broker_epoch))
        self.abandon()

    def flush(self) -> None:
        """Sync the log."""
        log = self._existing()
        if log is not None:
            self._guard(log.flush)

    def flushed(self) -> int:
        """Return the durable end; if no process runs, the one known to the last process."""
        log = self._existing()
        return self._flushed if log is None else log.flushed

    def end(self) -> int:
        """Return the log end; if no process runs, the end of its files."""
        log = self._existing()
        return self._end if log is None else log.log_end

    def abandon(self) -> None:
        """Release the files like the death of the process, remembering the ends of the log."""
        if self._directory is not None:
            log = self._existing()
            if log is not None:
                self._end, self._flushed = log.log_end, log.flushed
            # The process is dead: what fails while its handles are released concerns nobody.
            with suppress(OSError, StoreError, *self.failures):
                self._directory.abandon()
            self._directory = None

    def _existing(self) -> PartitionLog | None:
        return None if self._directory is None else self._directory.logs.get(self._key)

    def _log(self) -> PartitionLog:
        return self._opened().log(*self._key)

    def _opened(self) -> LogDirectory:
        if self._directory is None:
            self._directory = LogDirectory.open(self._fs, self._path, self._config)
        return self._directory

    def _guard(self, action: Callable[[], T]) -> T:
        """Run a call of the store; any failure is a `StorageError` of the disk."""
        try:
            return action()
        except self.failures as error:
            raise StorageError(str(error) or type(error).__name__) from error


def perform(
    directory: LogDirectory, key: tuple[str, int], effect: Effect, encoded: Callable[[Batch], bytes]
) -> None:
    """Perform a disk effect on a partition of a directory, with `encoded` for the bytes of a batch."""
    match effect:
        case effects.Append(batches):
            directory.log(*key).append_as_follower(b"".join(map(encoded, batches)))
        case effects.StoreEpochs(entries):
            directory.log(*key).store_epochs(entries)
        case effects.StoreHighWatermark(offset):
            directory.checkpoint({key: offset})
        case effects.Truncate(offset):
            directory.log(*key).truncate_to(offset)
        case effects.Flush():
            directory.log(*key).flush()
        case effects.AdvanceStart(offset):
            directory.log(*key).advance_log_start(offset)
        case effects.Reset(offset):
            directory.log(*key).reset(offset)
        case effects.Delete():
            directory.delete(*key)
        case _:
            raise AssertionError(f"{effect} is no disk effect")


def encode(batch: Batch) -> bytes:
    """Return a batch as Kafka's bytes: the body is the value of each record."""
    records = [Record(batch.content)] * batch.count
    producer = ProducerFields(batch.producer_id, batch.producer_epoch, batch.first_seq)
    return encode_batch(records, producer, batch.base_offset, batch.epoch)


def read_batches(log: PartitionLog) -> Iterator[Batch]:
    """Read and decode a whole log, batch by batch."""
    for header in log.headers(log.log_start):
        # No batch fits a byte, so exactly the first one is returned. The log may start inside of it.
        data = log.read(max(header.base_offset, log.log_start), 1)
        yield _decoded(header, data[: header.size_bytes])


def read_bytes(log: PartitionLog, batches: Sequence[Batch], room: int) -> bytes:
    """Return the bytes of consecutive batches of a log, about `room`; raises `StoreError`."""
    # The log may start inside of its first batch, which is whole all the same.
    start, end = max(batches[0].base_offset, log.log_start), batches[-1].next_offset
    parts: list[bytes] = []
    while start < end:
        # Once for each segment, as a rule.
        data = log.read(start, room, end)
        if not data:
            raise CorruptBatchError(f"no whole batch at offset {start} below {end}")
        parts.append(data)
        start = max(header.next_offset for _, header in iterate_headers(data))
    return b"".join(parts)


def decoded_all(data: bytes) -> Iterator[Batch]:
    """Yield the batches in bytes of a segment, in the protocol's form."""
    for position, header in iterate_headers(data):
        yield _decoded(header, memoryview(data)[position : position + header.size_bytes])


def _decoded(header: BatchHeader, data: bytes | memoryview) -> Batch:
    """Return a batch in the protocol's form: the body is the value of each record."""
    value = first_value(data, header)
    return Batch(
        header.base_offset,
        header.leader_epoch,
        header.record_count,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        b"" if value is None else value,
    )


def view_of(directory: LogDirectory, key: tuple[str, int], batches: Iterator[Batch]) -> LogView:
    """Return the log of a partition as it is at a start, with these batches."""
    log = directory.log(*key)
    view = LogView(batches, None, directory.high_watermarks.get(key, 0), log.log_start)
    view.epochs = EpochCache(log.epochs)
    return view
