"""The durable side of the leader epoch cache: the core's `EpochCache` and a file that agrees with it.

    cache (0,0) (4,120), log end 150          assign(5, 150)        truncate_from_end(120)
                                          ->  (0,0)(4,120)(5,150)   (0,0)

Every change is written and synced before it is visible (`LeaderEpochFileCache.writeToFile`), so the file
never knows less than the log does. After a crash it may know more, an epoch whose records were lost or
never written: opening cuts it at the log's end.
"""

from collections.abc import Iterable

from replog.core.epochs import EpochCache
from replog.store.checkpoint import EpochEntry, write_epochs
from replog.store.fs import Fs


class EpochFile:
    """The entries of one partition; a change that fails with `OSError` leaves them as they were."""

    __slots__ = ("_directory", "_fs", "entries", "latest")

    def __init__(self, fs: Fs, directory: str, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._fs = fs
        self._directory = directory
        self._show(entries)

    def _show(self, entries: Iterable[tuple[int, int]]) -> None:
        self.entries = tuple(EpochEntry(*entry) for entry in entries)
        self.latest = self.entries[-1].epoch if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` begins at `start_offset`, dropping entries this contradicts."""
        cache = EpochCache(self.entries)
        if cache.assign(epoch, start_offset):
            self.replace(cache.entries)

    def truncate_from_end(self, offset: int) -> None:
        """Drop the entries that start at `offset` or beyond, even if the log already ended before it."""
        cache = EpochCache(self.entries)
        if cache.truncate_from_end(offset):
            self.replace(cache.entries)

    def truncate_from_start(self, offset: int) -> None:
        """Drop what ends at or before `offset`; the epoch that covers it now begins there."""
        cache = EpochCache(self.entries)
        if cache.truncate_from_start(offset):
            self.replace(cache.entries)

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        """Write these entries, durably, unless they are the ones written already."""
        wanted = tuple(EpochEntry(*entry) for entry in entries)
        if wanted != self.entries:
            write_epochs(self._fs, self._directory, wanted)
            self._show(wanted)
