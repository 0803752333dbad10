"""A broker's disk for the demo: the real store on the operating system's files, one directory a broker.

The counterpart of `replog.sim.disks.stored`, which is the same store on a disk that can lose things. Here a
"crash" leaves handles and lock as the death of a process would: released, nothing synced, no marker.

A disk that really fails ends the demo: `StoreError` passes through the world, which handles planned failures
only.
"""

from collections.abc import Iterator

from replog.core.effects import Effect, Flush
from replog.sim.cluster.storage import Chooser, Recovered
from replog.sim.disks.stored import KEY, perform, recovered
from replog.store.directory import LogDirectory
from replog.store.files.config import LogConfig
from replog.store.files.fs import OsFs

CONFIG = LogConfig(segment_bytes=16_384, index_interval_bytes=1_024)


class BrokerFiles:
    """The log directory of one broker; open between `recover` and `close` or `crash`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._directory: LogDirectory | None = None
        self._end = self._flushed = 0

    def recover(self) -> Recovered:
        """Open the directory as a starting broker does."""
        self._directory = LogDirectory.open(OsFs(), self.path, CONFIG)
        return recovered(self._directory)

    def perform(self, effect: Effect) -> None:
        """Do what a disk effect says."""
        perform(self._open(), effect)

    def close(self, broker_epoch: int) -> None:
        """Shut down cleanly."""
        self._open().shut_down({}, broker_epoch)
        self._forget()

    def crash(self) -> None:
        """Let go of everything as a killed process does."""
        if self._directory is not None:
            self._directory.abandon()
            self._forget()

    def lose_power(self, choose: Chooser) -> None:
        """Refuse: real files cannot be made to lose power."""
        raise NotImplementedError("power losses need the simulated disk")

    def flush(self) -> None:
        """Sync the log, if a process has it open."""
        if self._directory is not None:
            self.perform(Flush())

    def flushed(self) -> int:
        """Return the durable end."""
        return self._flushed if self._directory is None else self._directory.log(*KEY).flushed

    def end(self) -> int:
        """Return the log end."""
        return self._end if self._directory is None else self._directory.log(*KEY).log_end

    def arm(self, occasion: int, kind: int) -> None:
        """Refuse: real files fail when they like."""
        raise NotImplementedError("disk faults need the simulated disk")

    def is_armed(self) -> bool:
        """Return False: no fault is planned."""
        return False

    def copy(self) -> "BrokerFiles":
        """Refuse: two brokers cannot share files."""
        raise NotImplementedError("real files cannot be copied as a value")

    def _open(self) -> LogDirectory:
        assert self._directory is not None, "the process runs"
        return self._directory

    def _forget(self) -> None:
        if self._directory is not None:
            self._end, self._flushed = self._directory.log(*KEY).log_end, self._directory.log(*KEY).flushed
            self._directory = None


def each_broker(path: str) -> Iterator[BrokerFiles]:
    """Yield the storages of brokers 0, 1, 2, ... below `path`."""
    number = 0
    while True:
        yield BrokerFiles(f"{path}/broker-{number}")
        number += 1
