"""A broker's disk in the demo: the real store on the operating system's files, one directory per broker.

The counterpart of `StoreStorage`, which is the same store on a disk that can lose things. Here a "crash"
leaves handles and lock as the death of a process would: released, nothing synced, no marker.
"""

from typing import ClassVar

from replog.run.files import FileStorage
from replog.sim.cluster.storage import Chooser
from replog.store.files.config import LogConfig
from replog.store.files.fs import OsFs

CONFIG = LogConfig(segment_bytes=16_384, index_interval_bytes=1_024)


class BrokerFiles(FileStorage):
    """The log directory of one broker; open between `recover` and `close` or `crash`."""

    failures: ClassVar[tuple[type[Exception], ...]] = ()
    """None: the world handles planned failures, and a real one ends the demo."""

    __slots__ = ()

    def __init__(self, path: str, key: tuple[str, int]) -> None:
        super().__init__(OsFs(), path, CONFIG, key)

    def crash(self) -> None:
        """Release everything as a killed process does."""
        self.abandon()

    def lose_power(self, choose: Chooser) -> None:
        """Refuse: real files cannot be made to lose power."""
        raise NotImplementedError("power losses need the simulated disk")

    def arm(self, occasion: int, kind: int) -> None:
        """Refuse: faults of real files cannot be planned."""
        raise NotImplementedError("disk faults need the simulated disk")

    def is_armed(self) -> bool:
        """Return False: no fault is planned."""
        return False

    def copy(self) -> "BrokerFiles":
        """Refuse: two brokers cannot share files."""
        raise NotImplementedError("real files cannot be copied as a value")
