"""The bridge from the protocol's effects to real files: `replog.store` on any file system.

Every disk effect becomes calls of `LogDirectory` and `PartitionLog`; every batch is encoded as Kafka's
bytes.  Bodies of batches are read from segments when a message with them leaves, and are kept nowhere else
(`bodies`).

A directory that is opened anew, like at every start, drops an epoch entry without a record.  Not here: file
systems that fail (`sim.disks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import ClassVar, TypeVar

from replog.core import effects
from replog.core.effects import Effect
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.core.messages import Message
from replog.core.types import Batch
from replog.run import bodies
from replog.run.bodies import StoredBody
from replog.run.storage import Recovered, StorageError
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import StoreError
from replog.store.files.fs import Fs
from replog.store.partition import PartitionLog
from replog.store.segments.records import ProducerFields, Record, encode_batch

T = TypeVar("T")


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
            batches = map(self._kept, read_batches(log))
            view = LogView(batches, None, directory.high_watermarks.get(self._key, 0), log.log_start)
            view.epochs = EpochCache(log.epochs)
            return Recovered(view, -1 if directory.broker_epoch is None else directory.broker_epoch)

        return self._guard(read)

    def without_bodies(self, message: Message) -> Message:
        """Return a message with handles in place of bodies, whose bytes `Append` writes."""
        return message if bodies.is_own_log(message) else bodies.with_batches(message, bodies.handles_of)

    def with_bodies(self, message: Message) -> Message:
        """Return a message with its bodies, read from the segments."""
        return bodies.with_batches(message, self.read)

    def read(self, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
        """Return consecutive batches of the log with their bodies, read from the segments."""
        return self._guard(lambda: bodies.read_bodies(self._log(), batches))

    def _kept(self, batch: Batch) -> Batch:
        """Return a batch of a segment in the form that memory keeps."""
        return bodies.with_body(batch, StoredBody(batch.content).written())

    def perform(self, effect: Effect) -> None:
        """Perform a disk effect with the store's own calls."""
        self._guard(lambda: self._perform(effect))

    def _perform(self, effect: Effect) -> None:
        perform(self._opened(), self._key, effect, encode)
        match effect:
            case effects.Append(batches):
                for batch in batches:
                    if isinstance(batch.body, StoredBody):
                        batch.body.written()
            case effects.Delete():
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
    body = batch.body
    records = [Record(body.unwritten if isinstance(body, StoredBody) else batch.content)] * batch.count
    producer = ProducerFields(batch.producer_id, batch.producer_epoch, batch.first_seq)
    return encode_batch(records, producer, batch.base_offset, batch.epoch)


def read_batches(log: PartitionLog) -> Iterator[Batch]:
    """Read and decode a whole log, batch by batch."""
    for header in log.headers(log.log_start):
        # No batch fits a byte, so exactly the first one is returned. The log may start inside of it.
        data = log.read(max(header.base_offset, log.log_start), 1)
        yield bodies.decoded(header, data[: header.size_bytes])
