"""The durable side of the leader epoch cache: the core's `EpochCache` and files that agree with it.

    cache (0,0) (4,120), log end 150          assign(5, 150)        truncate_from_end(120)
                                          ->  (0,0)(4,120)(5,150)   (0,0)

Every change is written and synced before it is visible (`LeaderEpochFileCache.writeToFile`), to the manifest
first, which is its owner's, then to the checkpoint; so these files never have less than the log does. After a
crash they may have more, an epoch whose records were lost or never written: opening cuts them at the log's
end.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from replog.core.log.epochs import EpochCache
from replog.store.checkpoints.checkpoint import EpochEntry, write_epochs
from replog.store.files.errors import CorruptBatchError
from replog.store.files.fs import Fs
from replog.store.segments.batch import MAX_OFFSET, BatchHeader, Buffer, check_crc

Entries = Sequence[tuple[int, int]]


def epoch_at(entries: Entries, offset: int) -> int | None:
    """Return the epoch that wrote an offset, or None before the first entry."""
    number = bisect_right(entries, offset, key=lambda entry: entry[1])
    return entries[number - 1][0] if number else None


def between(entries: Iterable[tuple[int, int]], start: int, end: int) -> tuple[EpochEntry, ...]:
    """Return the entries of a log with this start and end."""
    cache = EpochCache(entries)
    cache.truncate_from_start(start)
    cache.truncate_from_end(end)
    return tuple(EpochEntry(*entry) for entry in cache.entries)


class EpochFile:
    """The entries of one partition; a change that fails with `OSError` leaves them as they were."""

    __slots__ = ("_announce", "_directory", "_fs", "entries", "latest")

    def __init__(
        self,
        fs: Fs,
        directory: str,
        entries: Iterable[tuple[int, int]],
        announce: Callable[[tuple[EpochEntry, ...]], None],
    ) -> None:
        """Start with the contents of the files; `announce` gets their next contents, and may write them."""
        self._fs = fs
        self._directory = directory
        self._announce = announce
        self._show(entries)

    def _show(self, entries: Iterable[tuple[int, int]]) -> None:
        self.entries = tuple(EpochEntry(*entry) for entry in entries)
        self.latest = self.entries[-1].epoch if self.entries else -1

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` continues or starts at `start_offset`, removing contradicted entries."""
        cache = EpochCache(self.entries)
        # A leader that never wrote left an entry without a record. A record of the epoch before it may
        # follow nevertheless, and that epoch must keep its start offset.
        cache.truncate_from_end(start_offset)
        if cache.latest != epoch:
            cache.assign(epoch, start_offset)
        self.replace(cache.entries)

    def truncate_from_end(self, offset: int) -> None:
        """Remove the entries that start at `offset` or beyond, even if the log already ended before it."""
        cache = EpochCache(self.entries)
        if cache.truncate_from_end(offset):
            self.replace(cache.entries)

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        """Write these entries, durably, unless they are already written."""
        wanted = tuple(EpochEntry(*entry) for entry in entries)
        if wanted != self.entries:
            # The manifest before the checkpoint: a crash in between leaves a checkpoint that is behind, which
            # a start rebuilds from the manifest.
            self._announce(wanted)
            self.write(wanted)

    def write(self, entries: tuple[EpochEntry, ...]) -> None:
        """Write entries that are already in the owner's manifest."""
        if entries != self.entries:
            write_epochs(self._fs, self._directory, entries)
            self._show(entries)


class EpochWalk:
    """The checks of a scan: CRCs, and that every batch has its expected epoch.

    `known` has the epochs by offset, None if it is only known that they never decrease. `seen` has those
    of the batches, and `stray` the offset of the first batch whose epoch is not the known one.
    """

    def __init__(self, known: Entries | None, checkpoint: Entries) -> None:
        self._known = known
        self._checkpoint = checkpoint
        self._latest = -1
        self._until = -1
        self.seen = EpochCache()
        self.stray: int | None = None
        self.is_known_elsewhere = False

    def check_synced(self, data: Buffer, header: BatchHeader, start: int) -> None:
        """Check a batch that the chain covers: a wrong epoch is recorded, and the chain decides."""
        check_crc(data, header, start)
        if header.leader_epoch == self._latest and header.last_offset < self._until:
            # The common case: the same epoch, short of the next known one. No lookup for each batch.
            return
        if not self._fits(header) and self.stray is None:
            self.stray = header.base_offset
        self._note(header)

    def check_tail(self, data: Buffer, header: BatchHeader, start: int) -> None:
        """Check a batch that is confirmed only by its CRC; raises `CorruptBatchError`."""
        check_crc(data, header, start)
        if header.leader_epoch == self._latest and header.last_offset < self._until:
            return
        if header.leader_epoch < max(self._latest, 0):
            # Epochs never fall along a log. The epoch is outside the CRC, so this is the only trace of a
            # flipped bit in it.
            raise CorruptBatchError(f"epoch {header.leader_epoch} follows {self._latest}")
        if not self._fits(header):
            in_checkpoint = epoch_at(self._checkpoint, header.base_offset)
            # Two files against one: if the checkpoint and the batch agree, it is the manifest that is old.
            self.is_known_elsewhere = in_checkpoint == header.leader_epoch
            span = f"{header.base_offset}..{header.last_offset}"
            raise CorruptBatchError(f"epoch {header.leader_epoch} at {span}, where others are known")
        self._note(header)

    def _fits(self, header: BatchHeader) -> bool:
        """Compare a batch with the known epochs; it must not reach into the next one's offsets."""
        if self._known is None:
            self._until = MAX_OFFSET
            return True
        epoch = epoch_at(self._known, header.base_offset)
        starts = (start for _, start in self._known if start > header.base_offset)
        end = min(starts, default=MAX_OFFSET)
        is_right = epoch is None or (header.leader_epoch == epoch and header.last_offset < end)
        self._until = end if is_right else -1
        return is_right

    def _note(self, header: BatchHeader) -> None:
        self._latest = header.leader_epoch
        self.seen.assign(header.leader_epoch, header.base_offset)
