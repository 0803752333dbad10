"""A broker's log directory: the lock, the clean-shutdown marker, the checkpoints, and the partitions in it.

    data/
      .lock                               held while open; another process gets `DirectoryInUseError`
      .kafka_cleanshutdown                only between a clean stop and the next start
      replication-offset-checkpoint       high watermarks      a lower bound; unreadable: 0
      recovery-point-offset-checkpoint    synced offsets       a lower bound; unreadable: 0, all is scanned
      log-start-offset-checkpoint         log starts           unreadable: the first segment's base
      orders-0/  orders-1/ ...            one directory a partition (`partition.py`)

The marker is removed, durably, before anything else happens: from then on the directory counts as dirty.
The recovery point is written only after what it promises was synced, and lowered before anything below it
is truncated. A checkpoint of another version stops the opening; an unreadable one is noted, because each
has a safe default.

Not here: which partitions a broker should have, and when to checkpoint (the caller owns the clock).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from replog.store.checkpoint import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    TopicPartition,
    read_clean_shutdown,
    read_offsets,
    write_clean_shutdown,
    write_offsets,
)
from replog.store.config import DEFAULT_CONFIG, LogConfig
from replog.store.errors import CorruptFileError, DirectoryInUseError, ForeignVersionError, StoreError
from replog.store.fs import Fs, Lock, make_directory
from replog.store.health import Health
from replog.store.partition import PartitionLog
from replog.store.recovery import OpenPoint

T = TypeVar("T")

LOCK_FILE = ".lock"
PARTITION_NAME = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")


def parse_partition_name(name: str) -> TopicPartition | None:
    """Split `orders-3` into its topic and partition; None if it is no partition's name."""
    match = PARTITION_NAME.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


class LogDirectory:
    """An open directory; `open` makes one, `shut_down` or `abandon` ends it. Not thread-safe."""

    def __init__(self, fs: Fs, path: str, config: LogConfig, lock: Lock) -> None:
        self._fs = fs
        self._path = path
        self._config = config
        self._lock = lock
        self.health = Health()
        self.notes: list[str] = []
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.broker_epoch: int | None = None
        self.was_clean = False
        self.high_watermarks: dict[TopicPartition, int] = {}
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_starts: dict[TopicPartition, int] = {}

    @classmethod
    def open(cls, fs: Fs, path: str, config: LogConfig = DEFAULT_CONFIG) -> "LogDirectory":
        """Lock the directory (created if missing), read its checkpoints, open and repair all its partitions.

        Raises `DirectoryInUseError`, `ForeignVersionError`, `CorruptFileError` or `StorageOfflineError`;
        the lock is released then.
        """
        try:
            make_directory(fs, path)
            lock = fs.lock(f"{path}/{LOCK_FILE}")
        except BlockingIOError as error:
            raise DirectoryInUseError(f"{path} is in use by another process (lock on {LOCK_FILE})") from error
        except OSError as error:
            raise Health().fail(f"opening {path}", error) from error
        directory = cls(fs, path, config, lock)
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
        self.broker_epoch = self._tolerate(partial(read_clean_shutdown, self._fs, self._path), None)
        self.was_clean = self.broker_epoch is not None
        self.high_watermarks = self._read_offsets(HIGH_WATERMARK_FILE)
        self._recovery_points = self._read_offsets(RECOVERY_POINT_FILE)
        self._log_starts = self._read_offsets(LOG_START_FILE)
        if self._fs.exists(f"{self._path}/{CLEAN_SHUTDOWN_FILE}"):
            self._fs.unlink(f"{self._path}/{CLEAN_SHUTDOWN_FILE}")
            self._fs.fsync_dir(self._path)
        for name in self._fs.listdir(self._path):
            key = parse_partition_name(name)
            if key is not None and self._fs.is_dir(f"{self._path}/{name}"):
                self._open_log(key)

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        return self._tolerate(partial(read_offsets, self._fs, self._path, name), {})

    def _tolerate(self, read: Callable[[], T], default: T) -> T:
        """Read a checkpoint, or note why it cannot be read and take the default."""
        try:
            return read()
        except ForeignVersionError:
            raise
        except CorruptFileError as error:
            self.notes.append(f"{error}: ignored")
            return default

    def _open_log(self, key: TopicPartition) -> PartitionLog:
        point = OpenPoint(self._recovery_points.get(key, 0), self._log_starts.get(key, 0), self.was_clean)
        log = PartitionLog.open(self._fs, self.partition_path(key), self._config, point, self.health)
        log.on_lowering(partial(self._lower_checkpoints, key))
        self.notes += [f"{key[0]}-{key[1]}: {note}" for note in log.recovery.notes]
        self.logs[key] = log
        return log

    def partition_path(self, key: TopicPartition) -> str:
        """Return the path of a partition's directory."""
        return f"{self._path}/{key[0]}-{key[1]}"

    def log(self, topic: str, partition: int) -> PartitionLog:
        """Return a partition's log; one that does not exist is created, empty."""
        key = topic, partition
        if key in self.logs:
            return self.logs[key]
        if parse_partition_name(f"{topic}-{partition}") != key:
            raise CorruptFileError(f"{topic!r} partition {partition} cannot be a directory's name")
        return self._open_log(key)

    def checkpoint(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write the three checkpoints: these high watermarks, and what is synced and kept of every log.

        Partitions that are not mentioned keep the high watermark they had.
        """
        self.health.check()
        self.high_watermarks.update(high_watermarks)
        self._log_starts = {
            key: log.log_start for key, log in self.logs.items() if log.log_start > log.segment_bases[0]
        }
        self._recovery_points = {key: log.flushed for key, log in self.logs.items()}
        self._write(HIGH_WATERMARK_FILE, self.high_watermarks)
        self._write(LOG_START_FILE, self._log_starts)
        self._write(RECOVERY_POINT_FILE, self._recovery_points)

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, int]) -> None:
        """Write these high watermarks only (every few seconds, where the others take a minute)."""
        self.health.check()
        self.high_watermarks.update(high_watermarks)
        self._write(HIGH_WATERMARK_FILE, self.high_watermarks)

    def _lower_checkpoints(self, key: TopicPartition, offset: int) -> None:
        """Let no checkpoint say more than `offset` about a log that is about to be cut there."""
        if self._recovery_points.get(key, 0) > offset:
            self._recovery_points[key] = offset
            self._write(RECOVERY_POINT_FILE, self._recovery_points)
        if self._log_starts.get(key, 0) > offset:
            self._log_starts[key] = offset
            self._write(LOG_START_FILE, self._log_starts)

    def _write(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        with self.health.during(f"writing {name}"):
            write_offsets(self._fs, self._path, name, offsets)

    def shut_down(self, high_watermarks: Mapping[TopicPartition, int], broker_epoch: int = -1) -> None:
        """Stop cleanly: sync everything, write the checkpoints, then the marker, and release the lock.

        Raises `StorageOfflineError` without leaving a marker if anything failed, now or before.
        """
        try:
            for log in self.logs.values():
                log.seal()
            self.checkpoint(high_watermarks)
            with self.health.during(f"writing {CLEAN_SHUTDOWN_FILE}"):
                write_clean_shutdown(self._fs, self._path, broker_epoch)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release the files and the lock as the death of the process would: nothing is synced or written."""
        for log in self.logs.values():
            log.close()
        self._lock.close()
