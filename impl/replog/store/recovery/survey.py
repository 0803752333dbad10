"""The contents of a partition's folder, and their differences from its manifest. Changes nothing.

The synced part is recorded (`manifest.py`), so a flipped bit in it is never a torn tail. Segments
that are listed with their whole size are not read now: they are compared at their first use, except the
last one of a folder that was not stopped cleanly. `replog dump` and `replog repair` read everything.

Three files have the leader epochs: the batches, the manifest and the epoch checkpoint. Below the last synced
byte the chain determines the right batch. After it the manifest has every epoch before its first record is
written, so a batch of another epoch was damaged, unless the checkpoint has that epoch too: then the manifest
is an old copy.

The kinds of findings: `findings.py`. Not here: repairs (`recovery.py`, `repair.py`), and the directory's
checkpoints (`directory.py`).
"""

from collections.abc import Iterable

from replog.core.log.epochs import EpochCache
from replog.store.checkpoints.checkpoint import EPOCH_FILE, EpochEntry, read_epochs
from replog.store.checkpoints.manifest import MANIFEST_FILE, Manifest, Mark, Reading, read_manifest
from replog.store.files.errors import CorruptBatchError, CorruptFileError
from replog.store.files.findings import Finding, Kind, OpenPoint
from replog.store.files.fs import Fs, file_size
from replog.store.recovery.indexes import lone_indexes, wrong_indexes
from replog.store.segments.contents import has_chain
from replog.store.segments.epochs import EpochWalk, between, epoch_at
from replog.store.segments.segment import (
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    Segment,
    is_removed_file,
    parse_base,
    segment_name,
)


class Survey:
    """The result; `segments` are open, and contain the intact part, up to the first damage or fault."""

    def __init__(self, fs: Fs, directory: str, index_interval: int, point: OpenPoint) -> None:
        self.fs = fs
        self.directory = directory
        self.name = directory.rstrip("/").rpartition("/")[2]
        self.index_interval = index_interval
        self.point = point
        self.reading: Reading | None = None
        self.findings: list[Finding] = []
        self.segments: list[Segment] = []
        self.scanned: list[Segment] = []
        self.cut: list[Segment] = []
        self.aside: list[str] = []
        self.removed: list[int] = []
        self.missing: int | None = None
        self.doubt: int | None = None
        self.log_start = point.log_start
        self.scanned_bytes = 0
        self.is_adopted = False
        self.is_vouched_for = False
        self.epochs: tuple[EpochEntry, ...] = ()
        self.checkpoint_epochs: tuple[EpochEntry, ...] | None = None
        self._are_epochs_wrong = False
        self._sizes: dict[int, int] = {}
        self._walk = EpochWalk(None, ())

    @property
    def manifest(self) -> Manifest | None:
        """The manifest, if it could be read."""
        return None if self.reading is None else self.reading.manifest

    @property
    def end(self) -> int:
        """The offset after the last good batch."""
        if self.segments:
            return self.segments[-1].next_offset
        return self.log_start if self.missing is None else self.missing

    @property
    def vouched_end(self) -> int:
        """Like `end`, but at most `doubt`, after which only CRCs confirm batches that may be damaged."""
        return self.end if self.doubt is None else min(self.doubt, self.end)

    @property
    def unindexed(self) -> list[Segment]:
        """The segments that were read and need new index files, because other segments follow."""
        return [s for s in self.scanned if self.missing is not None or s is not self.segments[-1]]

    @property
    def promised(self) -> int:
        """The offset before which, according to the files themselves, everything was synced."""
        point = self.point.recovery_point if self._is_recovery_point_of_now() else 0
        return max(0 if self.manifest is None else self.manifest.flushed, point)

    def of_kind(self, kind: Kind) -> list[Finding]:
        """Return the findings of one kind, in order of the files."""
        return [finding for finding in self.findings if finding.kind is kind]

    def close(self) -> None:
        """Release the files."""
        for segment in self.segments:
            segment.close()

    def note(self, kind: Kind, file: str, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(kind, file, text))

    def _note_files(self, findings: Iterable[tuple[Finding, bool]]) -> None:
        """Add findings; files paired with True are set aside."""
        for finding, goes_aside in findings:
            self.findings.append(finding)
            self.aside += [finding.file] * goes_aside

    def keep_nothing(self) -> None:
        """Treat nothing as intact: an empty log that begins at 0."""
        self.close()
        self.segments, self.cut = [], []
        self.missing, self.log_start = None, 0
        self.epochs = ()
        if EPOCH_FILE not in self.aside and self.checkpoint_epochs:
            self.aside.append(EPOCH_FILE)
        self.checkpoint_epochs = ()

    def drop_doubtful(self) -> None:
        """Treat nothing from `doubt` on as intact."""
        for segment in self.segments:
            if self.doubt is not None and segment.size and self.doubt < segment.next_offset:
                position, _ = segment.boundary(max(self.doubt, segment.base_offset))
                segment.contents = segment.contents_before(position)

    def look(self) -> None:
        """Compare everything; raises only `ForeignVersionError` and `OSError`."""
        names = self.fs.listdir(self.directory)
        # The manifest first: it decides which files belong here and how far each must be right. The epochs
        # next, because each batch that is read is compared with them.
        self._read_manifest()
        self._read_epochs()
        self._list_files(names)
        self._check_adoption()
        known = None if self.manifest is None else self.manifest.epochs
        self._walk = EpochWalk(known, self.checkpoint_epochs or ())
        marks = () if self.manifest is None else self.manifest.marks
        is_whole = all(self._is_whole(mark, mark is marks[-1]) for mark in marks)
        # After damage nothing follows: later bytes cannot be part of the log.
        if is_whole or not self.of_kind(Kind.DAMAGE):
            self._check_unlisted(is_whole)
        # After the files, since it compares them with the directory's recovery point; then the
        # epochs, which are cut to the same end.
        self._check_end()
        self._check_epochs()
        self._note_files(lone_indexes(names))

    def _read_manifest(self) -> None:
        if self.point.ignores_manifest:
            return
        try:
            self.reading = read_manifest(self.fs, self.directory)
        except CorruptFileError as error:
            self.findings.append(Finding(Kind.DAMAGE, MANIFEST_FILE, _without_name(error)))
            return
        if self.reading is None:
            return
        manifest = self.reading.manifest
        self.log_start = manifest.log_start
        # More cuts than the registry lists are right: a crash came between the two writes of a cut. Fewer
        # mean that an old file was put back.
        self.is_vouched_for = manifest.name == self.name and manifest.cuts >= self.point.cuts
        if manifest.name != self.name:
            self.note(Kind.DAMAGE, MANIFEST_FILE, f"belongs to {manifest.name}")
        elif not self.is_vouched_for:
            text = f"is an old copy: the log has been cut {self.point.cuts} times, here {manifest.cuts}"
            self.note(Kind.DAMAGE, MANIFEST_FILE, text)
        if self.reading.fault:
            self.note(Kind.DERIVED, MANIFEST_FILE, self.reading.fault)

    def _read_epochs(self) -> None:
        try:
            self.checkpoint_epochs = read_epochs(self.fs, self.directory)
        except CorruptFileError as error:
            self.note(Kind.DERIVED, EPOCH_FILE, f"{_without_name(error)}: rebuilt")
            self.aside.append(EPOCH_FILE)
            self.checkpoint_epochs = ()

    def _list_files(self, names: tuple[str, ...]) -> None:
        """Record the sizes of the segment files by base offset, except for those that are to be removed."""
        for name in names:
            if not name.endswith(LOG_SUFFIX):
                continue
            base = parse_base(name)
            if base is None:
                self.note(Kind.DAMAGE, name, "not a segment of this log (20 digits expected)")
                self.aside.append(name)
                continue
            self._sizes[base] = file_size(self.fs, f"{self.directory}/{name}")
        if self.manifest is None:
            self.log_start = max(self.point.log_start, min(self._sizes, default=0))
        for removal in () if self.manifest is None else self.manifest.removals:
            base, size = removal.base_offset, self._sizes.get(removal.base_offset)
            # By size and chain, not by name alone: a segment with this base offset may have been written
            # since.
            if size == removal.size and is_removed_file(self.fs, self.directory, removal):
                self.removed.append(base)
            elif size:
                self._put_aside(Kind.STRANGER, base, "is not the file that was dropped")
            else:
                continue
            del self._sizes[base]

    def _check_adoption(self) -> None:
        """Decide, without a manifest, between a new partition, files of other software, and damage."""
        has_data = any(self._sizes.values()) or bool(self.checkpoint_epochs) or self.point.is_known
        if self.reading is not None or not has_data or self.of_kind(Kind.DAMAGE):
            return
        if self.point.may_adopt:
            self.is_adopted = True
        else:
            text = "is missing: it was lost, or other software wrote this log"
            self.note(Kind.DAMAGE, MANIFEST_FILE, text)

    def _is_whole(self, mark: Mark, is_last: bool) -> bool:
        """Adopt or read one segment; return whether the next one may follow."""
        size = self._sizes.pop(mark.base_offset, None)
        # An empty segment need not exist: its mark is written before the file is.
        if size is None and mark.size == 0 and is_last:
            self.missing = mark.base_offset
            return True
        if size is None:
            synced = f"{mark.size} bytes with offsets {mark.base_offset}..{mark.next_offset - 1} were synced"
            self.note(Kind.DAMAGE, segment_name(mark.base_offset), f"is missing; {synced}")
            return False
        segment = self._open(mark.base_offset)
        # A file of the listed size can wait until it is used. After an unclean stop the last one cannot: a
        # tail may follow, and only reading finds its end.
        may_wait = not self.point.reads_all and (self.point.was_clean or not is_last)
        if may_wait and size == mark.size and segment.take_over(mark):
            return True
        self.scanned.append(segment)
        self._note_files(wrong_indexes(self.fs, self.directory, segment.base_offset, mark.sums))
        if not self._is_as_marked(segment, mark, size):
            return False
        segment.mark = mark
        if is_last and not self.point.was_clean:
            return size == mark.size or self._take_tail(segment, size)
        # Only the last segment can have a torn tail, and only after an unclean stop; these bytes came from
        # elsewhere.
        if size > mark.size:
            self.note(Kind.TAIL, segment.name, f"{size - mark.size} bytes behind its last batch")
            self.cut.append(segment)
        return True

    def _is_as_marked(self, segment: Segment, mark: Mark, size: int) -> bool:
        """Read the synced part of a segment; return whether it has the bytes that were written."""
        contents = segment.contents
        self._walk.stray = None
        text = ""
        try:
            # Not beyond the mark: a torn tail must not change the verdict on synced bytes.
            segment.scan(contents, min(mark.size, size), self._walk.check_synced)
            if size < mark.size:
                text = f"ends at byte {size}, and {mark.size} were synced"
        except CorruptBatchError as error:
            text = f"damaged at byte {contents.size}: {error}"
        self.scanned_bytes += contents.size
        # CRCs and chain together cover every byte; either alone leaves some of them open.
        if not text and (contents.next_offset, contents.chain) == (mark.next_offset, mark.chain):
            self._are_epochs_wrong = self._are_epochs_wrong or self._walk.stray is not None
            return True
        stray = self._walk.stray
        if stray is not None and contents.base_offset <= stray < contents.next_offset:
            position, _ = segment.boundary(stray)
            segment.contents = segment.contents_before(position)
            text = f"damaged at byte {position}: the leader epoch of offset {stray} is not the one written"
        text = text or f"its first {mark.size} bytes are not those written, although their CRCs are correct"
        self.note(Kind.DAMAGE, segment.name, text)
        known = () if self.manifest is None else self.manifest.epochs
        # The headers themselves are in doubt, all of them, since the chain is a single number for the
        # segment.
        if not has_chain(segment.file, mark.size, mark.chain, known):
            self.doubt = segment.base_offset
        return False

    def _take_tail(self, segment: Segment, size: int) -> bool:
        """Read on after the synced part; return whether all of the rest are batches that follow."""
        before = segment.size
        try:
            segment.scan(segment.contents, size, self._walk.check_tail)
        except CorruptBatchError as error:
            kind, what = Kind.TAIL, f"cut at offset {segment.next_offset}"
            if self._walk.is_known_elsewhere:
                kind, what = Kind.DAMAGE, f"{MANIFEST_FILE} is an old copy"
            elif self.reading is not None and self.reading.fault:
                kind, what = Kind.DAMAGE, f"damaged at byte {segment.size}, which may have been synced"
            if kind is Kind.DAMAGE and self.manifest is not None:
                self.doubt = self.manifest.flushed
            self.note(kind, segment.name, f"{what}: {error}")
            self.cut.append(segment)
        finally:
            self.scanned_bytes += segment.size - before
        return segment.size == size

    def _check_unlisted(self, is_open: bool) -> None:
        """Follow the segments started after the last flush; set aside those that do not follow."""
        may_begin = self.manifest is None
        # After a clean stop the manifest lists every segment; one it does not list came from elsewhere.
        is_stray = self.point.was_clean and not may_begin
        for base, size in sorted(self._sizes.items()):
            # A crash may come between the creation of a segment and the flush that lists it. Such a segment
            # begins exactly where the log ends.
            if is_open and (base == self.end or (may_begin and not self.segments)) and not is_stray:
                segment = self._open(base)
                self.scanned.append(segment)
                self._note_files(wrong_indexes(self.fs, self.directory, base, None))
                is_open = self._take_tail(segment, size)
            elif base < self.end or is_stray:
                self._put_aside(Kind.STRANGER, base, "is not part of this log")
            else:
                self._put_aside(Kind.TAIL, base, f"does not follow offset {self.end}")

    def _put_aside(self, kind: Kind, base: int, text: str) -> None:
        self.note(kind, segment_name(base), text)
        names = (segment_name(base, suffix) for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES))
        self.aside += [name for name in names if self.fs.exists(f"{self.directory}/{name}")]

    def _open(self, base: int) -> Segment:
        segment = Segment.open(self.fs, self.directory, base, self.index_interval)
        self.segments.append(segment)
        return segment

    def _is_recovery_point_of_now(self) -> bool:
        """Return whether nothing was cut since the directory's recovery point was written."""
        return self.manifest is None or self.manifest.cuts == self.point.cuts

    def _check_end(self) -> None:
        """Compare the manifest and the log with the directory's recovery point."""
        point, manifest = self.point.recovery_point, self.manifest
        if not self._is_recovery_point_of_now() or self.of_kind(Kind.DAMAGE):
            return
        # The recovery point was written after the manifest it was taken from, so it can only be behind it,
        # unless the manifest is an old copy.
        if manifest is not None and manifest.flushed < point and self.reading and not self.reading.fault:
            text = f"is an old copy: records up to {point} were synced, here {manifest.flushed}"
            self.note(Kind.DAMAGE, MANIFEST_FILE, text)
            self.doubt = manifest.flushed
        elif point > self.end:
            self.note(Kind.DAMAGE, self.name, f"ends at {self.end}, and records up to {point} were synced")

    def _check_epochs(self) -> None:
        """Decide which leader epochs are correct, and compare them with the checkpoint."""
        known = () if self.manifest is None else self.manifest.epochs
        listed = self.epochs = between(known, self.log_start, self.end)
        is_covered = self.end == self.log_start or epoch_at(self.epochs, self.log_start) is not None
        # The chain has vouched for the batches, so where manifest and batches differ, the batches are right.
        if self.manifest is None or self._are_epochs_wrong or not is_covered:
            self.epochs = between(self._epochs_of_batches(), self.log_start, self.end)
        if self.checkpoint_epochs is None:
            if self.epochs and not self.is_adopted:
                self.note(Kind.DERIVED, EPOCH_FILE, "is missing: rebuilt")
            return
        entries = between(self.checkpoint_epochs, self.log_start, self.end)
        # A cut lowers the log start before its records go. Those that a crash leaves then are older than the
        # first entry of both files: a checkpoint that agrees with the manifest is behind, not wrong.
        is_cut = self.manifest is not None and self.manifest.flushed == self.log_start and not is_covered
        is_right = entries == self.epochs or (is_cut and entries == listed)
        if not is_right and EPOCH_FILE not in self.aside:
            self.note(Kind.DERIVED, EPOCH_FILE, "the leader epochs do not fit the log: rebuilt")
            self.aside.append(EPOCH_FILE)

    def _epochs_of_batches(self) -> list[tuple[int, int]]:
        if self.manifest is None:
            return self._walk.seen.entries
        cache = EpochCache()
        try:
            for segment in self.segments:
                for header in segment.headers(segment.base_offset) if segment.size else ():
                    cache.assign(header.leader_epoch, header.base_offset)
        except CorruptBatchError as error:
            self.note(Kind.DAMAGE, segment.name, str(error))
        return cache.entries


def survey_partition(fs: Fs, directory: str, index_interval: int, point: OpenPoint) -> Survey:
    """Survey a partition's folder, which must exist; the caller closes or keeps the survey's segments.

    Damage is in the findings. Raises `ForeignVersionError` for files of newer software, and `OSError`.
    """
    survey = Survey(fs, directory, index_interval, point)
    try:
        survey.look()
    except BaseException:
        survey.close()
        raise
    return survey


def _without_name(error: CorruptFileError) -> str:
    return str(error).partition(": ")[2]
