"""The store of a simulated broker: the bridge to real files, on a disk that loses what real ones can lose.

A copy shares no state, and opens the files anew when it is used.  Not here: which faults strike when
(`faults`), and how files fail (`disk`).
"""

from __future__ import annotations

from typing import ClassVar

from replog.run.files import FileStorage
from replog.sim.cluster.storage import Chooser
from replog.sim.disks.disk import CrashedError, Faults, SimFs
from replog.store.files.config import LogConfig
from replog.store.files.errors import StoreError

DIRECTORY = "data"
TOPIC = "t"
KEY = (TOPIC, 0)
# So small that runs of seconds roll segments and write index entries.
CONFIG = LogConfig(segment_bytes=4_096, index_interval_bytes=512)


class StoreStorage(FileStorage):
    """One simulated machine's disk with a Kafka log directory on it."""

    failures: ClassVar[tuple[type[Exception], ...]] = (StoreError, CrashedError)

    __slots__ = ("fs",)

    def __init__(self) -> None:
        self.fs = SimFs()
        super().__init__(self.fs, DIRECTORY, CONFIG, KEY)

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
