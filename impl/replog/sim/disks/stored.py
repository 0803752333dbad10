"""The real store of a simulated broker: `replog.store` on a file system that loses what real ones can lose.

Every disk effect becomes calls of `LogDirectory` and `PartitionLog`; every batch is encoded as Kafka's
bytes.  Bodies of batches are read from segments when a message with them leaves, and are kept nowhere else
(`bodies`).  A simulated machine keeps them beside its files, which are in memory, too: so the oracles compare
the protocol's state and the content of the files record by record.

A copy shares no state, and opens the files anew when it is used; like every start it drops an epoch entry
without a record.  Not here: which faults strike when (`faults`), and how files fail (`disk`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from replog.core import effects
from replog.core.effects import Effect
from replog.core.log.epochs import EpochCache
from replog.core.log.logview import LogView
from replog.core.messages import Message
from replog.core.types import Batch
from replog.sim.cluster.storage import Chooser, Recovered, StorageError
from replog.sim.disks import bodies
from replog.sim.disks.bodies import StoredBody
from replog.sim.disks.disk import CrashedError, Faults, SimFs
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.errors import StoreError
from replog.store.files.fs import Fs
from replog.store.partition import PartitionLog
from replog.store.segments.records import ProducerFields, Record, encode_batch

DIRECTORY = "data"
TOPIC = "t"
KEY = (TOPIC, 0)
# So small that runs of seconds roll segments and write index entries.
CONFIG = LogConfig(segment_bytes=4_096, index_interval_bytes=512)

T = TypeVar("T")


class FileStorage:
    """A Kafka log directory with one partition, driven by the protocol's disk effects, on any file system."""

    __slots__ = ("_config", "_directory", "_end", "_flushed", "_fs", "_key", "_path")

    def __init__(
        self, fs: Fs, path: str = DIRECTORY, config: LogConfig = CONFIG, key: tuple[str, int] = KEY
    ) -> None:
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
        match effect:
            case effects.Append(batches):
                self._log().append_as_follower(b"".join(map(encode, batches)))
                for batch in batches:
                    if isinstance(batch.body, StoredBody):
                        batch.body.written()
            case effects.StoreEpochs(entries):
                self._log().store_epochs(entries)
            case effects.StoreHighWatermark(offset):
                self._opened().checkpoint({self._key: offset})
            case effects.Truncate(offset):
                self._log().truncate_to(offset)
            case effects.Flush():
                self._log().flush()
            case effects.AdvanceStart(offset):
                self._log().advance_log_start(offset)
            case effects.Reset(offset):
                self._log().reset(offset)
            case effects.Delete():
                self._opened().delete(*self._key)
                self._end = self._flushed = 0
            case _:
                raise AssertionError(f"{effect} is no disk effect")

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
            with suppress(CrashedError, OSError, StoreError):
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
        except (StoreError, CrashedError) as error:
            raise StorageError(str(error) or type(error).__name__) from error


class StoreStorage(FileStorage):
    """One simulated machine's disk with a Kafka log directory on it."""

    __slots__ = ("fs",)

    def __init__(self) -> None:
        self.fs = SimFs()
        super().__init__(self.fs)

    def without_bodies(self, message: Message) -> Message:
        """Return the message unchanged: the oracles compare the bodies of logs."""
        return message

    def _kept(self, batch: Batch) -> Batch:
        return batch

    def crash(self) -> None:
        """Kill the process; the page cache is kept."""
        self.abandon()
        self.fs.process_crash()

    def lose_power(self, choose: Chooser) -> None:
        """Cut the power; then determine, on a copy, how much a start would recover."""
        self.abandon()
        self.fs.power_loss(choose)
        # On a copy, because a start repairs: this disk is to keep what the power loss left until its own
        # start.
        self._end = self._flushed = self.copy().recover().log.leo

    def open(self) -> None:
        """Open the files, which a copy does at its first use."""
        self._opened()

    def arm(self, occasion: int, kind: int) -> None:
        """Arm one disk fault: an fsync that fails, a write that fails, or a disk that is full from now on."""
        faults = self.fs.faults = Faults()
        if occasion < 0:
            return
        if kind == 0:
            faults.fail_fsync_in = occasion
        elif kind == 1:
            faults.fail_write_in = occasion
        else:
            faults.capacity_bytes = self.fs.used_bytes

    def is_armed(self) -> bool:
        """Return whether a fault is still pending."""
        faults = self.fs.faults
        counters = (faults.fail_fsync_in, faults.fail_write_in, faults.capacity_bytes)
        return any(counter is not None for counter in counters)

    def copy(self) -> StoreStorage:
        """Copy the disk; the copy reopens its files, without the armed faults of this one."""
        twin = StoreStorage()
        twin.fs.restore(self.fs)
        # The copy has its own process: handles and the lock of this one are not valid there.
        twin.fs.process_crash()
        # A look at a copy must not use up the fault that is armed for the original.
        twin.fs.faults = Faults()
        twin._end, twin._flushed = self.end(), self.flushed()
        return twin


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
