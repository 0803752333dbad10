"""A broker's log directory: the lock, the clean-shutdown marker, the checkpoints, and the partitions.

    data/
      .lock                               held while open; another process gets `DirectoryInUseError`
      .kafka_cleanshutdown                only between a clean stop and the next start
      replication-offset-checkpoint       high watermarks      a lower bound; if not trusted: 0
      recovery-point-offset-checkpoint    synced offsets       for Kafka's tools; the registry has them
      log-start-offset-checkpoint         log starts           from the manifests
      directory-manifest                  the partitions, and checksums of the files above (`registry.py`)
      orders-0/  orders-1/ ...            one directory a partition (`partition.py`)
      orders-2.0-delete/                  one that is being deleted; the next start completes the deletion

The marker is removed, durably, before anything else happens: from then on the directory counts as dirty.
A checkpoint of another version stops the opening; one that is unreadable, or not the last one written, is
noted and moved aside, because each has a safe default. A partition whose synced records are damaged stays
closed (`damaged`), with all its files unchanged; the others are opened. While one is closed, the directory
does not count as stopped cleanly.

Not here: which partitions a broker should have, and when to checkpoint (the caller owns the clock).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TypeVar

from replog.store.checkpoints.checkpoint import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    TopicPartition,
    parse_partition_name,
    read_clean_shutdown,
    render_clean_shutdown,
)
from replog.store.checkpoints.registry import NOTHING, REGISTRY_FILE, Known
from replog.store.checkpoints.root import LOCK_FILE, OWN_FILES, Root
from replog.store.files.config import DEFAULT_CONFIG, LogConfig
from replog.store.files.errors import (
    CorruptFileError,
    DamagedLogError,
    DirectoryInUseError,
    StoreError,
)
from replog.store.files.findings import OpenPoint
from replog.store.files.fs import Fs, Lock, make_directory
from replog.store.files.health import Health
from replog.store.files.quarantine import clear_temporary, set_aside
from replog.store.partition import PartitionLog
from replog.store.segments.segment import REPAIR_HINT

T = TypeVar("T")


class LogDirectory:
    """An open directory; `open` makes one, `shut_down` or `abandon` ends it. Not thread-safe."""

    def __init__(self, fs: Fs, path: str, config: LogConfig, lock: Lock) -> None:
        self._fs = fs
        self._path = path
        self._root = Root(fs, path)
        self._config = config
        self._lock = lock
        self.health = Health()
        self.notes: list[str] = []
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.broker_epoch: int | None = None
        self.was_clean = False
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.damaged: dict[TopicPartition, str] = {}
        self._log_starts: dict[TopicPartition, int] = {}
        self._may_adopt = False

    @classmethod
    def open(cls, fs: Fs, path: str, config: LogConfig = DEFAULT_CONFIG) -> "LogDirectory":
        """Lock the directory (created if missing), read its checkpoints, and open all its partitions.

        Damaged partitions are in `damaged`. Raises `DirectoryInUseError`, `ForeignVersionError` or
        `StorageOfflineError`; the lock is released then.
        """
        lock, is_bare = lock_directory(fs, path)
        directory = cls(fs, path, config, lock)
        directory._may_adopt = is_bare
        try:
            directory._load()
        except OSError as error:
            directory.abandon()
            raise directory.health.fail(f"opening {path}", error) from error
        except StoreError:
            directory.abandon()
            raise
        return directory

    def _load(self) -> None:
        for kept in clear_temporary(self._fs, self._path, OWN_FILES):
            self.notes.append(f"not text: kept as {kept}")
        # Before all other files, since it determines which of them can be trusted.
        self._load_registry()
        # Read before it is removed, removed before a partition is opened: a start that dies half way must be
        # followed by one that counts as unclean.
        marker = partial(self._root.read, CLEAN_SHUTDOWN_FILE, read_clean_shutdown, None)
        self.broker_epoch = self._load_file(CLEAN_SHUTDOWN_FILE, marker, None)
        self.was_clean = self.broker_epoch is not None
        self.high_watermarks = self._load_offsets(HIGH_WATERMARK_FILE)
        # For its checksum only: the synced offsets are in the registry; a wrong file must be noted and moved
        # aside.
        self._load_offsets(RECOVERY_POINT_FILE)
        self._log_starts = self._load_offsets(LOG_START_FILE)
        # Its checksum goes first. A marker that reappears, because its removal was not durable, is then not
        # trusted.
        self._root.forget(CLEAN_SHUTDOWN_FILE)
        if self._fs.exists(f"{self._path}/{CLEAN_SHUTDOWN_FILE}"):
            self._fs.unlink(f"{self._path}/{CLEAN_SHUTDOWN_FILE}")
        # Nothing may be written to a log while the marker can still come back: it would vouch for a log it
        # has not seen.
        self._fs.fsync_dir(self._path)
        for key in self._root.partitions():
            self._open_or_close(key)
        for name in self._root.retired():
            self._root.clear(name)
        # A listed partition without a folder is a loss, not a new partition: an empty log in its place would
        # hide that its records are lost.
        for key in self._root.missing_partitions():
            point = self._root.registry.partitions[key].recovery_point
            self._close(key, f"its folder is missing, but records up to {point} were synced ({REPAIR_HINT})")
        # The ends that the starts have synced, so that the next start can check each log against them.
        self._root.write({})

    def _load_registry(self) -> None:
        try:
            is_there = self._root.load_registry()
        except CorruptFileError as error:
            self._put_aside(REGISTRY_FILE, str(error))
            return
        if not (is_there or self._may_adopt):
            self.notes.append(f"{REGISTRY_FILE} is missing: rebuilt from the partitions")

    def _load_file(self, name: str, read: Callable[[], T], default: T) -> T:
        """Read a file; if it is not trusted, note the reason, move it aside, and return the default."""
        try:
            return read()
        except CorruptFileError as error:
            self._put_aside(name, str(error))
            return default

    def _load_offsets(self, name: str) -> dict[TopicPartition, int]:
        return self._load_file(name, partial(self._root.read_offsets, name), {})

    def _put_aside(self, name: str, text: str) -> None:
        kept = set_aside(self._fs, self._path, name)
        self.notes.append(f"{text}: ignored, and kept as {kept}")

    def _open_or_close(self, key: TopicPartition) -> None:
        try:
            self._open_log(key)
        except CorruptFileError as error:
            self._close(key, str(error))

    def _close(self, key: TopicPartition, text: str) -> None:
        """Record that a partition is damaged: it can be neither used nor created."""
        self.damaged[key] = text
        self.notes.append(f"{key[0]}-{key[1]} stays closed: {text}")
        # Listed in any case: if it were not, a start after the removal of the folder would create it again.
        self._root.registry.partitions.setdefault(key, NOTHING)

    def _open_log(self, key: TopicPartition) -> PartitionLog:
        known = self._root.registry.partitions.get(key)
        cuts, recovery_point = known or NOTHING
        is_known = known is not None
        point = OpenPoint(recovery_point, 0, self.was_clean, cuts, is_known, self._may_adopt and not is_known)
        path = self._root.partition_path(key)
        log = PartitionLog.open(self._fs, path, self._config, point, self.health)
        log.on_lowering(partial(self._lower_checkpoints, key))
        self.notes += [f"{key[0]}-{key[1]}: {note}" for note in log.recovery.notes]
        self._root.registry.partitions[key] = Known(log.cuts, log.flushed)
        self.logs[key] = log
        return log

    def partition_path(self, key: TopicPartition) -> str:
        """Return the path of a partition's directory."""
        return self._root.partition_path(key)

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return a partition's log; if it does not exist, create an empty one.

        Raises `DamagedLogError` for one that stays closed.
        """
        key = topic, partition
        if key in self.logs:
            return self.logs[key]
        if key in self.damaged:
            raise DamagedLogError(f"{topic}-{partition} stays closed: {self.damaged[key]}")
        # The name must parse as the same partition; a topic with a slash would leave the directory.
        if parse_partition_name(f"{topic}-{partition}") != key:
            raise CorruptFileError(f"{topic!r} partition {partition} cannot be a directory's name")
        log = self._open_log(key)
        # The partition is listed before it has a record, so that its loss will be detected.
        self._write({})
        return log

    def delete(self, topic: str, partition: int) -> None:
        """Durably remove a partition, its files and its checkpoints; it need not exist.

        Raises `DamagedLogError` for one that stays closed: its records may be wanted by a repair.
        """
        key = topic, partition
        if key in self.damaged:
            raise DamagedLogError(f"{topic}-{partition} stays closed: {self.damaged[key]}")
        log = self.logs.pop(key, None)
        if log is None:
            return
        # Emptied first: a crash from here on leaves an empty log under this name, or none. Records that come
        # back would be those of a replica that was removed.
        log.reset(0)
        log.close()
        for known in (self.high_watermarks, self._log_starts, self._root.registry.partitions):
            known.pop(key, None)
        # Removed from the list before its folder: a listed partition without a folder is a loss.
        self._write_all()
        with self.health.during(f"deleting {self._root.partition_path(key)}"):
            self._root.clear(self._root.retire(key))

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the three checkpoints: these high watermarks, and the recovery point and start of every log.

        Partitions that are not mentioned, and closed ones, keep what they had.
        """
        self.health.check()
        self.high_watermarks.update(high_watermarks)
        # A closed partition keeps its numbers; a repair needs them.
        closed = {key: start for key, start in self._log_starts.items() if key in self.damaged}
        starts = {
            # As Kafka does: without an entry the log starts where its first segment does.
            key: log.log_start
            for key, log in self.logs.items()
            if log.log_start > log.segment_bases[0]
        }
        self._log_starts = closed | starts
        self._root.registry.partitions |= {k: Known(log.cuts, log.flushed) for k, log in self.logs.items()}
        self._write_all()

    def _lower_checkpoints(self, key: TopicPartition, offset: int, cuts: int) -> None:
        """Lower the checkpoints to `offset` for a log that is about to be truncated there."""
        known = self._root.registry.partitions
        # Both numbers in one write. Cuts without the lower recovery point would call the shorter log damaged,
        # the other way round an old manifest would pass.
        known[key] = Known(cuts, min(known.get(key, NOTHING).recovery_point, offset))
        lowered = {RECOVERY_POINT_FILE: self._root.recovery_points()}
        if self._log_starts.get(key, 0) > offset:
            self._log_starts[key] = offset
            lowered[LOG_START_FILE] = self._log_starts
        self._write(lowered)

    def _write_all(self) -> None:
        self._write(
            {
                HIGH_WATERMARK_FILE: self.high_watermarks,
                LOG_START_FILE: self._log_starts,
                RECOVERY_POINT_FILE: self._root.recovery_points(),
            }
        )

    def _write(self, checkpoints: Mapping[str, Mapping[TopicPartition, int]]) -> None:
        with self.health.during(f"writing {' and '.join(checkpoints) or REGISTRY_FILE}"):
            self._root.write_offsets(checkpoints)

    def shut_down(self, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int = -1) -> None:
        """Stop cleanly: sync everything, write the checkpoints, then the marker, and release the lock.

        Raises `StorageOfflineError` without leaving a marker if anything failed, now or before (a disk that
        refuses even its removal keeps one, over logs that are synced). A directory with a closed partition
        gets no marker.
        """
        try:
            # Logs, then checkpoints, then the marker: it states that all before it is on disk, so it comes
            # last.
            for log in self.logs.values():
                log.seal()
            self.checkpoint(high_watermarks)
            # The marker would let the next start skip the reading of a log that needs it.
            if not self.damaged:
                with self.health.during(f"writing {CLEAN_SHUTDOWN_FILE}"):
                    self._write_marker(broker_epoch)
        finally:
            self.abandon()

    def _write_marker(self, broker_epoch: int) -> None:
        try:
            self._root.write({CLEAN_SHUTDOWN_FILE: render_clean_shutdown(broker_epoch)})
        except OSError:
            marker = f"{self._path}/{CLEAN_SHUTDOWN_FILE}"
            # The sync of its name may be what failed, when it has the name already.
            with suppress(OSError):
                self._fs.unlink(marker)
            raise

    def abandon(self) -> None:
        """Release the files and the lock like the death of the process: nothing is synced or written."""
        for log in self.logs.values():
            log.close()
        self._lock.close()


def lock_directory(fs: Fs, path: str) -> tuple[Lock, bool]:
    """Lock a directory, created if missing; return also whether it was bare (`Root.is_bare`).

    Raises `DirectoryInUseError` or `StorageOfflineError`.
    """
    try:
        make_directory(fs, path)
        # Before the lock, whose file would make the directory look used.
        is_bare = Root(fs, path).is_bare()
        return fs.lock(f"{path}/{LOCK_FILE}"), is_bare
    except BlockingIOError as error:
        raise DirectoryInUseError(f"{path} is in use by another process (lock on {LOCK_FILE})") from error
    except OSError as error:
        raise Health().fail(f"opening {path}", error) from error
