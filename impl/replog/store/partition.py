"""One partition's log: append, read, truncate, flush, and the guarantees of each.

    log_start        flushed          log_end (LEO)
        |---- durable ---|-- page cache --|            a power loss keeps a prefix that ends in the second
        part

Invariants: segments are contiguous and the last one is written to; `log_start <= flushed <= log_end`; batches
are stored byte for byte; an epoch is in its files before its first record is in the log, and out of them only
after its records are. The manifest (`manifest.py`) lists only synced data: it is written after a
sync, and before synced bytes are cut or dropped. `truncate_to` is durable when it returns, so nothing
truncated comes back, and the directory's recovery point is lowered first, so nothing written later is
mistaken for synced.

Errors: `StoreError` only. The first `OSError` takes the whole directory offline (`health.py`).

Not here: the high watermark (the protocol's), the checkpoints of the directory (`directory.py`), any clock.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from replog.store.checkpoints.checkpoint import EpochEntry
from replog.store.checkpoints.manifest import Manifest, Mark, Removal, empty_mark
from replog.store.files.config import DEFAULT_CONFIG, LogConfig
from replog.store.files.errors import (
    CorruptBatchError,
    DamagedLogError,
    InvalidRecordError,
    OffsetOutOfRangeError,
)
from replog.store.files.findings import NOTHING_KNOWN, OpenPoint
from replog.store.files.fs import Fs
from replog.store.files.health import Health
from replog.store.recovery.recovery import Recovery, manifest_of, open_partition
from replog.store.segments.batch import (
    MAX_OFFSET,
    BatchHeader,
    Buffer,
    check_produced,
    check_replicated,
    check_size,
    stamped_parts,
)
from replog.store.segments.epochs import EpochFile, between
from replog.store.segments.segment import Segment


def ignore_lowering(_offset: int, _cuts: int) -> None:
    """Do nothing, in place of the directory when a log is used alone: there are no checkpoints."""


class PartitionLog:
    """An open log. Made by `PartitionLog.open`; not thread-safe."""

    __slots__ = (
        "_config", "_directory", "_epochs", "_fs", "_health", "_lower_checkpoints",
        "_manifest", "_manifest_file", "_names_synced", "_segments", "flushed", "log_end", "recovery",
    )  # fmt: skip

    def __init__(self, fs: Fs, directory: str, config: LogConfig, point: OpenPoint, health: Health) -> None:
        opened = open_partition(fs, directory, config, point)
        self._fs = fs
        self._directory = directory
        self._config = config
        self._health = health
        self._lower_checkpoints: Callable[[int, int], None] = ignore_lowering
        self._segments = opened.segments
        self._manifest = opened.manifest
        self._manifest_file = opened.file
        self._epochs = EpochFile(fs, directory, opened.manifest.epochs, self._save_manifest)
        self._names_synced = True
        self.recovery: Recovery = opened.recovery
        self.log_end = opened.segments[-1].next_offset
        # A start syncs all that it keeps, so nothing of it can be lost later.
        self.flushed = self.log_end

    @classmethod
    def open(
        cls,
        fs: Fs,
        directory: str,
        config: LogConfig = DEFAULT_CONFIG,
        point: OpenPoint = NOTHING_KNOWN,
        health: Health | None = None,
    ) -> "PartitionLog":
        """Open a partition directory, repairing traces of a crash (`recovery.py`; `recovery` has the report).

        Raises `CorruptFileError`, `ForeignVersionError`, or `StorageOfflineError` for an `OSError`.
        """
        health = health or Health()
        health.check()
        try:
            return cls(fs, directory, config, point, health)
        except OSError as error:
            raise health.fail(f"opening {directory}", error) from error

    def on_lowering(self, callback: Callable[[int, int], None]) -> None:
        """Call `callback(offset, cuts)` before synced records are cut at `offset`, for the `cuts`-th time.

        So that no checkpoint states more.
        """
        self._lower_checkpoints = callback

    @property
    def log_start(self) -> int:
        """The offset of the first record that can be read."""
        return self._manifest.log_start

    @property
    def cuts(self) -> int:
        """The number of times that synced records were truncated."""
        return self._manifest.cuts

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        """The leader epochs on disk."""
        return self._epochs.entries

    @property
    def segment_bases(self) -> tuple[int, ...]:
        """The base offsets of the segments."""
        return tuple(segment.base_offset for segment in self._segments)

    def append_as_leader(self, batch: Buffer, leader_epoch: int) -> BatchHeader:
        """Check a producer's batch, stamp base offset and epoch in place, append it; return its header.

        For a user of the store alone; a batch that `core.broker.leader` has stamped is appended like a
        follower's.  Raises `BatchTooLargeError`, `InvalidRecordError` or `CorruptBatchError` before anything
        is written.
        """
        self._health.check()
        check_size(len(batch), self._config.largest_batch)
        header = check_produced(batch)
        latest = max(self._epochs.latest, self._last_record_epoch())
        if leader_epoch < max(latest, 0):
            raise InvalidRecordError(f"epoch {leader_epoch} is older than the log's {latest}")
        parts = stamped_parts(batch, self.log_end, leader_epoch)
        header = header._replace(base_offset=self.log_end, leader_epoch=leader_epoch)
        self._write([(header, parts)])
        return header

    def append_as_follower(self, batches: Buffer) -> int:
        """Append batches that a leader has stamped, this one or another; return the new log end.

        All are checked before the first is written: they must follow the log and each other without a hole,
        with epochs that never decrease (`InvalidRecordError`), and with right CRCs (`CorruptBatchError`).
        """
        self._health.check()
        writes = check_replicated(batches, self.log_end, self._config.largest_batch)
        if writes and writes[0][0].leader_epoch < self._last_record_epoch():
            raise InvalidRecordError(f"epoch {writes[0][0].leader_epoch} is older than the last record's")
        self._write((header, (part,)) for header, part in writes)
        return self.log_end

    def _last_record_epoch(self) -> int:
        """Return the epoch of the last record in the files, -1 for none."""
        for entry in reversed(self._epochs.entries):
            if entry.start_offset < self.log_end:
                return entry.epoch
        # No record is left above the log start, but files have those below it. An older epoch behind them
        # would look damaged to the next start.
        last = next((segment for segment in reversed(self._segments) if segment.size), None)
        try:
            with self._health.during(f"reading {self._directory}"):
                headers = last.headers(last.base_offset) if last else ()
                return max((header.leader_epoch for header in headers), default=-1)
        except CorruptBatchError as error:
            raise DamagedLogError(str(error)) from error

    def _write(self, writes: Iterable[tuple[BatchHeader, tuple[Buffer, ...]]]) -> None:
        """Append checked batches, rolling as needed, then apply `flush_messages`."""
        try:
            # A segment that a start took over unread must not grow: its damage would then lie in the middle
            # of records that were synced after it.
            self._segments[-1].verify()
            for header, parts in writes:
                # Durable before the first record of the epoch is written: a record whose epoch no file
                # has would look damaged to the next start.
                if header.leader_epoch != self._epochs.latest:
                    self._epochs.assign(header.leader_epoch, header.base_offset)
                segment = self._segments[-1]
                if not segment.fits(header, self._config.segment_bytes):
                    # Between batches only: a batch lies in one segment, so a segment can be scanned alone.
                    segment = self._roll()
                segment.append(header, *parts)
                # Batch by batch: if a later one fails, the end is where the file's whole batches end.
                self.log_end = header.next_offset
        except CorruptBatchError as error:
            raise DamagedLogError(str(error)) from error
        except OSError as error:
            raise self._health.fail(f"appending to {self._directory}", error) from error
        assert self.log_end == self._segments[-1].next_offset, "the log ends with its last segment"
        limit = self._config.flush_messages
        # After the whole request, not after each batch: the caller promises nothing before this returns.
        if limit is not None and self.log_end - self.flushed >= limit:
            self.flush()

    def _roll(self) -> Segment:
        """Seal the last segment and start another at the log end."""
        last = self._segments[-1]
        if not last.is_sealed:
            self._withdraw_indexes(last)
        last.seal()
        # All of it was synced before, so only the checksums are new. Otherwise the mark must wait for a
        # flush, which syncs the records first.
        if last.mark is not None and last.mark.size == last.size:
            last.synced_mark()
        segment = Segment.create(self._fs, self._directory, self.log_end, self._config.index_interval_bytes)
        self._segments.append(segment)
        # A synced file in a directory that was not synced has no name after a power loss. The next flush does
        # both, and only then counts the records.
        self._names_synced = False
        if self._config.flush_on_roll:
            self.flush()
        return segment

    def _withdraw_indexes(self, segment: Segment) -> None:
        """Withdraw the manifest's checksums of a segment's indexes, whose files are about to change."""
        if segment.mark is not None and segment.mark.sums is not None:
            segment.mark = segment.mark._replace(sums=None)
            self._save_manifest(self._epochs.entries)

    def read(self, offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Return whole batches from the one that contains `offset`, at least one, none reaching `end_offset`.

        Empty between `end_offset` (default: the log end) and the log end; `OffsetOutOfRangeError` outside
        `[log_start, log_end]`; `CorruptBatchError` where the file is damaged. Batches end with their segment.
        """
        self._health.check()
        if not self.log_start <= offset <= self.log_end:
            raise OffsetOutOfRangeError(f"offset {offset} is not in {self.log_start}..{self.log_end}")
        end = self.log_end if end_offset is None else min(end_offset, self.log_end)
        if offset >= end:
            return b""
        try:
            return self._segment_of(offset).read(offset, max_bytes, end)
        except OSError as error:
            raise self._health.fail(f"reading {self._directory}", error) from error

    def _segment_of(self, offset: int) -> Segment:
        segments = self._segments
        if offset >= segments[-1].base_offset:
            return segments[-1]
        return segments[bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1]

    def headers(self, start_offset: int = 0) -> Iterator[BatchHeader]:
        """Yield the batch headers from the one that contains `start_offset` (or the log start) to the end."""
        offset = max(start_offset, self.log_start)
        with self._health.during(f"reading {self._directory}"):
            while offset < self.log_end:
                segment = self._segment_of(offset)
                yield from segment.headers(offset)
                offset = segment.next_offset

    @property
    def max_timestamp(self) -> int:
        """The latest time that a batch has in its header; -1 if none has one."""
        return max(segment.contents.max_timestamp for segment in self._segments)

    def headers_since(self, timestamp: int) -> Iterator[BatchHeader]:
        """Yield the headers of the batches with a record as late as `timestamp`, 0 or more."""
        with self._health.during(f"reading {self._directory}"):
            for segment in self._segments:
                contents = segment.contents
                if contents.max_timestamp >= timestamp and segment.next_offset > self.log_start:
                    start = segment.base_offset + contents.time_index.lookup(timestamp)
                    later = segment.headers(max(start, self.log_start))
                    yield from (header for header in later if header.max_timestamp >= timestamp)

    def store_epochs(self, entries: Iterable[tuple[int, int]]) -> None:
        """Replace the leader epochs, durably (the protocol keeps its own cache and reports its changes)."""
        with self._health.during(f"writing the epochs of {self._directory}"):
            self._epochs.replace(entries)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Record, durably, that `epoch` begins at `start_offset`."""
        with self._health.during(f"writing the epochs of {self._directory}"):
            self._epochs.assign(epoch, start_offset)

    def flush(self) -> None:
        """Make everything up to the log end durable; `flushed` moves only after every sync succeeded."""
        with self._health.during(f"syncing {self._directory}"):
            grown = [s for s in self._segments if s.next_offset > self.flushed or s.mark is None]
            # Records, then names, then the manifest. It may vouch for bytes only when both are durable: a
            # line that came too early would turn a torn tail into damage.
            for segment in grown:
                segment.flush()
            if not self._names_synced:
                self._fs.fsync_dir(self._directory)
                self._names_synced = True
            for segment in grown:
                segment.synced_mark()
            self._save_manifest(self._epochs.entries)
        # Outside the block: an error leaves it unchanged.
        self.flushed = self.log_end

    def _save_manifest(self, epochs: Iterable[EpochEntry]) -> None:
        """Make everything synced so far, and these epochs, durable."""
        self._manifest_file.save(manifest_of(self._manifest, self._segments, epochs))

    def truncate_to(self, offset: int) -> int:
        """Durably remove every batch that reaches `offset`, and the epochs that start there or later.

        Returns the log end: lower than `offset` if that lies inside a batch. Below the log start nothing is
        left but an empty log at `offset`.
        """
        if offset < 0:
            raise OffsetOutOfRangeError(f"offset {offset} is below 0")
        if offset < self._segments[0].base_offset:
            self.reset(offset)
            return self.log_end
        with self._health.during(f"truncating {self._directory}"):
            if offset < self.log_end:
                self._cut(offset)
                offset = self.log_end
            # Even without removed records: an epoch begun at the log's end has an entry and no record (B23).
            self._epochs.truncate_from_end(offset)
        return self.log_end

    def _cut(self, offset: int) -> None:
        """Lower the recorded offsets, delete segments from the end, then cut the one that has `offset`."""
        holder = self._segment_of(offset)
        position, end = holder.boundary(offset)
        # Computed before anything changes: reading the headers may find damage, and then nothing may be cut.
        contents = holder.contents_before(position)
        # Only a cut of synced records must be recorded.
        if end < self.flushed:
            holder.mark = Mark(holder.base_offset, position, end, contents.chain)
            marks = (*(s.mark for s in self._segments if s.mark and s.base_offset <= holder.base_offset),)
            self._note_cut(replace(self._manifest, log_start=min(self.log_start, end), marks=marks))
        else:
            self._withdraw_indexes(holder)
        # From the top down, so that a crash in between leaves a log without a hole.
        while self._segments[-1] is not holder:
            self._segments[-1].delete()
            self._segments.pop()
        holder.truncate(contents)
        # Removed durably before an append can use the offsets again.
        self._fs.fsync_dir(self._directory)
        self.log_end = end
        self.flushed = min(self.flushed, end)
        assert self.log_start <= end == holder.next_offset, "the log ends with its last segment"

    def _note_cut(self, left: Manifest) -> None:
        """Remove synced records that are about to be cut from the manifest and the checkpoints."""
        # The number of cuts shows that an older copy, which lists more, is old.
        manifest = replace(left, cuts=left.cuts + 1, epochs=self._epochs.entries)
        # The manifest before the records, the reverse of a flush: a crash in between leaves unlisted bytes,
        # a tail. In the other order the listed bytes would be missing, which is damage.
        self._manifest_file.save(manifest)
        self._manifest = replace(manifest, removals=())
        # After the manifest: a registry that already has the cut would refuse the manifest of before it.
        self._lower_checkpoints(self._manifest.flushed, self._manifest.cuts)

    def reset(self, offset: int) -> None:
        """Durably remove everything and start an empty log at `offset` (the leader starts later)."""
        with self._health.during(f"resetting {self._directory}"):
            mark = empty_mark(offset)
            # Listed, so that a start after a crash may delete the files that are left.
            removals = _removals(self._segments)
            self._note_cut(replace(self._manifest, log_start=offset, marks=(mark,), removals=removals))
            while self._segments:
                self._segments[-1].delete()
                self._segments.pop()
            segment = Segment.create(self._fs, self._directory, offset, self._config.index_interval_bytes)
            segment.mark = mark
            self._segments.append(segment)
            self._fs.fsync_dir(self._directory)
            self._epochs.replace(())
            self._save_manifest(())
        self.log_end = self.flushed = offset

    def advance_log_start(self, offset: int) -> int:
        """Raise the log start, durably; delete segments that end there or before, and return their number."""
        self._health.check()
        if offset > self.log_end:
            raise OffsetOutOfRangeError(f"log start {offset} is beyond the log end {self.log_end}")
        if offset <= self.log_start:
            return 0
        # Otherwise a power loss could leave a log that ends before its durable start.
        if offset > self.flushed:
            self.flush()
        dead = [segment for segment in self._segments[:-1] if segment.next_offset <= offset]
        with self._health.during(f"deleting from {self._directory}"):
            self._manifest = replace(self._manifest, log_start=offset)
            kept = self._segments[len(dead) :]
            kept[0].mark = kept[0].mark or empty_mark(kept[0].base_offset)
            epochs = between(self._epochs.entries, offset, MAX_OFFSET)
            left = manifest_of(self._manifest, kept, epochs)
            # First the manifest, then the files: the next start finishes removals that are listed.
            self._manifest_file.save(replace(left, removals=_removals(dead)))
            self._epochs.write(epochs)
            for segment in dead:
                segment.delete()
            # The next manifest does not list them: were it durable first, they could come back unexplained.
            if dead:
                self._fs.fsync_dir(self._directory)
        self._segments = kept
        assert kept[0].base_offset <= offset <= self.flushed <= self.log_end, "the start is durable"
        return len(dead)

    def seal(self) -> None:
        """Flush, and write the last segment's indexes, as a clean shutdown requires."""
        self.flush()
        with self._health.during(f"sealing {self._directory}"):
            # After the flush: the checksums are to vouch for indexes of synced records.
            self._segments[-1].seal()
            self._fs.fsync_dir(self._directory)
            self._segments[-1].synced_mark()
            self._save_manifest(self._epochs.entries)

    def close(self) -> None:
        """Release the file handles without flushing; closing twice is harmless."""
        for segment in self._segments:
            segment.close()


def _removals(segments: Iterable[Segment]) -> tuple[Removal, ...]:
    return tuple(Removal(s.base_offset, s.size, s.contents.chain) for s in segments)
