"""Opening a partition directory: what is on the disk, what of it can be believed, and what to cut.

    files                          believed                                 otherwise segments below the
    their indexes, checked at the end;       indexes rebuilt from the headers; damage
      recovery point                 the content was synced                   is noted and kept: reads of it
      fail
    segments from the recovery     after a clean shutdown, like the above;  cut at the first bytes that are
    not the
      point on                       else batch by batch, with CRC            next batch, and drop what
      follows
    leader-epoch-checkpoint        if it agrees with the batches met        rebuilt from the batches' epochs
    *.tmp, *.deleted, lone index   never                                    removed

Data that was synced is never cut because of what was not: a hole below the recovery point stays a hole that
answers CORRUPT_MESSAGE. What was scanned is synced before it counts as flushed, because after the death of
the process it may still be nowhere but in the page cache (KAFKA-10101). Rules: A28 of the project's Kafka
reference (`LogLoader.recoverLog`). Re-opening what was recovered changes nothing.

Not here: the directory-wide checkpoints and the clean marker (`directory.py`).
"""

from bisect import bisect_right
from dataclasses import dataclass

from replog.core.epochs import EpochCache
from replog.store.batch import check_crc
from replog.store.checkpoint import EpochEntry, read_epochs
from replog.store.config import LogConfig
from replog.store.epochs import EpochFile
from replog.store.errors import CorruptBatchError, CorruptFileError, ForeignVersionError
from replog.store.fs import Fs, make_directory
from replog.store.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    scan_batches,
    unchecked,
)

LEFTOVER_SUFFIXES = (".tmp", ".deleted", ".swap", ".cleaned")


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """What the directory's checkpoints say about a partition before its files are read."""

    recovery_point: int = 0
    log_start: int = 0
    was_clean: bool = False


NOTHING_KNOWN = OpenPoint()


@dataclass(frozen=True, slots=True)
class Recovery:
    """What opening found and did; `notes` are sentences for a person."""

    was_clean: bool
    scanned_bytes: int
    cut_bytes: int
    dropped_segments: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A log as recovered: at least one segment, contiguous, all of it durable, and the epochs that fit it."""

    segments: list[Segment]
    log_start: int
    epochs: EpochFile
    recovery: Recovery


def open_partition(fs: Fs, directory: str, config: LogConfig, point: OpenPoint) -> Opened:
    """Open, repair and describe a partition directory (created if there is none).

    Corrupt data is repaired or noted, not raised. Raises `CorruptFileError` for a name that is no segment's,
    `ForeignVersionError` for an epoch checkpoint of another version, and `OSError`.
    """
    make_directory(fs, directory)
    loader = _Loader(fs, directory, config, point)
    loader.load_segments(_tidy(fs, directory))
    log_start = max(point.log_start, loader.segments[0].base_offset)
    epochs = loader.load_epochs(log_start)
    fs.fsync_dir(directory)
    report = Recovery(point.was_clean, loader.scanned, loader.cut, loader.dropped, tuple(loader.notes))
    return Opened(loader.segments, log_start, epochs, report)


def _tidy(fs: Fs, directory: str) -> list[int]:
    """Remove leftovers and lone indexes; return the base offsets of the segments, ascending."""
    names = fs.listdir(directory)
    bases = [_base_offset(name) for name in names if name.endswith(LOG_SUFFIX)]
    for name in names:
        stem, dot, suffix = name.rpartition(".")
        is_index = dot + suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        if name.endswith(LEFTOVER_SUFFIXES) or (is_index and stem + LOG_SUFFIX not in names):
            fs.unlink(f"{directory}/{name}")
    return sorted(bases)


def _base_offset(name: str) -> int:
    stem = name.removesuffix(LOG_SUFFIX)
    if len(stem) == 20 and stem.isascii() and stem.isdecimal() and int(stem) < 1 << 63:
        return int(stem)
    raise CorruptFileError(f"{name}: not a segment of this log (20 digits expected)")


class _Loader:
    """The state of one opening."""

    def __init__(self, fs: Fs, directory: str, config: LogConfig, point: OpenPoint) -> None:
        self._fs = fs
        self._directory = directory
        self._interval = config.index_interval_bytes
        self._point = point
        self._scan_start = -1
        self._scanned_epochs = EpochCache()
        self.segments: list[Segment] = []
        self.notes: list[str] = []
        self.scanned = self.cut = self.dropped = 0

    def load_segments(self, bases: list[int]) -> None:
        """Bring `segments` to a state that can be believed, at least one."""
        trusted = len(bases) if self._point.was_clean else bisect_right(bases, self._point.recovery_point) - 1
        for number, base in enumerate(bases):
            if number >= trusted and self.segments and self.segments[-1].next_offset != base:
                self.notes.append(f"segment {base} does not follow offset {self.segments[-1].next_offset}")
                self._drop(bases[number:])
                break
            segment = Segment.open(self._fs, self._directory, base, self._interval)
            self.segments.append(segment)
            if number < min(trusted, len(bases) - 1):
                self._trust(segment, bases[number + 1])
            elif not (number < trusted and segment.load()) and not self._scan(segment):
                self._drop(bases[number + 1 :])
                break
        self._check_ends()

    def _check_ends(self) -> None:
        """Compare the end of the log with what the checkpoints promise, and make sure there is a segment."""
        end = self.segments[-1].next_offset if self.segments else 0
        if self.segments and end < self._point.log_start:
            self.notes.append(f"the log ends at {end}, before its start {self._point.log_start}: dropped")
            self._drop([segment.base_offset for segment in self.segments])
            self.segments.clear()
        elif end < self._point.recovery_point:
            self.notes.append(f"the recovery point {self._point.recovery_point} is beyond the end {end}")
        if not self.segments:
            start = self._point.log_start
            self.segments.append(Segment.create(self._fs, self._directory, start, self._interval))

    def _trust(self, segment: Segment, next_base: int) -> None:
        """Take over a synced segment; its end is where the next one begins, whatever its content says."""
        if segment.load() and segment.next_offset == next_base:
            return
        segment.reset()
        try:
            segment.rescan(segment.file.size())
            segment.seal()
            self.notes.append(f"segment {segment.base_offset}: indexes rebuilt")
        except CorruptBatchError as error:
            self.notes.append(f"segment {segment.base_offset}: damaged after {segment.next_offset}: {error}")
        if segment.next_offset != next_base:
            self.notes.append(
                f"segment {segment.base_offset}: no records {segment.next_offset}..{next_base - 1}"
            )
            segment.end_at(next_base)

    def _scan(self, segment: Segment) -> bool:
        """Check a segment batch by batch, cut it at the first fault, sync it; tell whether it was whole."""
        segment.reset()
        if self._scan_start < 0:
            self._scan_start = segment.base_offset
        size = segment.file.size()
        try:
            for position, header in scan_batches(segment.file, size, 0, check_crc):
                if header.base_offset != segment.next_offset:
                    raise CorruptBatchError(f"offset {header.base_offset} follows {segment.next_offset}")
                if header.leader_epoch < max(self._scanned_epochs.latest, 0):
                    raise CorruptBatchError(
                        f"epoch {header.leader_epoch} follows {self._scanned_epochs.latest}"
                    )
                self._scanned_epochs.assign(header.leader_epoch, header.base_offset)
                segment.note(position, header)
        except CorruptBatchError as error:
            self.notes.append(f"segment {segment.base_offset}: cut at offset {segment.next_offset}: {error}")
        self.scanned += segment.size
        self.cut += size - segment.size
        if segment.size < size:
            segment.file.truncate(segment.size)
        segment.flush()
        return segment.size == size

    def _drop(self, bases: list[int]) -> None:
        """Delete segments, the highest first: a crash in between leaves no hole."""
        for base in reversed(bases):
            segment = Segment.open(self._fs, self._directory, base, self._interval)
            self.cut += segment.file.size()
            segment.delete()
        self.dropped += len(bases)

    def load_epochs(self, log_start: int) -> EpochFile:
        """Read the epoch checkpoint and cut it at the log's ends, or rebuild it from the batches."""
        entries = self._read_epochs()
        file = EpochFile(self._fs, self._directory, entries or ())
        cache = EpochCache(file.entries)
        cache.truncate_from_start(log_start)
        cache.truncate_from_end(self.segments[-1].next_offset)
        if entries is None or not self._agrees(cache, log_start):
            if entries is not None:
                self.notes.append("the leader epochs do not fit the log: rebuilt")
            cache = self._rebuild_epochs(log_start)
        file.replace(cache.entries)
        return file

    def _read_epochs(self) -> tuple[EpochEntry, ...] | None:
        try:
            return read_epochs(self._fs, self._directory)
        except ForeignVersionError:
            raise
        except CorruptFileError as error:
            self.notes.append(f"{error}: rebuilt")
            return None

    def _agrees(self, cache: EpochCache, log_start: int) -> bool:
        """Tell whether the entries cover the log, end with its epoch, and are those of the batches met."""
        last_epoch = next((s.last_epoch for s in reversed(self.segments) if s.size), -1)
        if self.segments[-1].next_offset == log_start or last_epoch < 0:
            return True
        if cache.latest != last_epoch or cache.entries[0][1] > log_start:
            return False
        if not self._scanned_epochs.entries:
            return True
        start = max(self._scan_start, log_start)
        known, seen = EpochCache(cache.entries), self._scanned_epochs.copy()
        known.truncate_from_start(start)
        seen.truncate_from_start(start)
        return known == seen

    def _rebuild_epochs(self, log_start: int) -> EpochCache:
        """Collect the epochs of all batches that can be read."""
        cache = EpochCache()
        for segment in self.segments:
            try:
                for _, header in scan_batches(segment.file, segment.size, 0, unchecked):
                    if header.leader_epoch > cache.latest:
                        cache.assign(header.leader_epoch, header.base_offset)
            except CorruptBatchError:
                continue
        cache.truncate_from_start(log_start)
        cache.truncate_from_end(self.segments[-1].next_offset)
        return cache
