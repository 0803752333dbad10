"""Opening a partition's folder: repair the traces of a crash, reject what only damage can explain.

    survey (`survey.py`)     any DAMAGE: `DamagedLogError`, and every file stays unchanged
    mend                     copies of tails, then the cuts; strangers and wrong indexes aside
    sync                     the scanned part, written again: after the death of a process it may be only in
                             the page cache (KAFKA-10101), for good if its sync failed; from now on it
                             counts as flushed
    save                     epoch checkpoint and manifest, if they changed

A start removes no byte of a log, except segment files that the manifest lists as dropped. Rules: A28 of
the project's Kafka reference (`LogLoader.recoverLog`), with one difference: Kafka cuts at the first bad batch
from the recovery point's segment on, and has no record of the synced part. Reopening a log
changes nothing.

Not here: the directory-wide checkpoints and the clean marker (`directory.py`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replog.store.checkpoints.checkpoint import EPOCH_FILE, METADATA_FILE, EpochEntry, write_epochs
from replog.store.checkpoints.manifest import MANIFEST_FILE, Manifest, ManifestFile
from replog.store.files.config import LogConfig
from replog.store.files.errors import DamagedLogError
from replog.store.files.findings import Kind, OpenPoint
from replog.store.files.fs import Fs, file_size, make_directory, read_file
from replog.store.files.quarantine import clear_temporary, keep_copy, set_aside
from replog.store.recovery.survey import Survey, survey_partition
from replog.store.segments.index import could_be_index
from replog.store.segments.segment import INDEX_SUFFIXES, REPAIR_HINT, Segment, parse_base, segment_name

TEXT_FILES = EPOCH_FILE, MANIFEST_FILE, METADATA_FILE


@dataclass(frozen=True, slots=True)
class Recovery:
    """The findings and actions of opening; `notes` are sentences for a person."""

    scanned_bytes: int
    cut_bytes: int
    dropped_segments: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """A log as recovered: at least one segment, contiguous, all of it durable, and its manifest."""

    segments: list[Segment]
    manifest: Manifest
    file: ManifestFile
    recovery: Recovery


def manifest_of(
    before: Manifest,
    segments: Sequence[Segment],
    epochs: Iterable[EpochEntry],
) -> Manifest:
    """Return the manifest of a log: its name, cuts and start, and the synced part of its segments."""
    marks = tuple(segment.mark for segment in segments if segment.mark is not None)
    return Manifest(before.name, before.cuts, before.log_start, tuple(epochs), marks)


def open_partition(fs: Fs, directory: str, config: LogConfig, point: OpenPoint) -> Opened:
    """Open, repair and describe a partition's folder (created if there is none).

    Raises `DamagedLogError` for what `replog repair` must decide, `ForeignVersionError` for an epoch
    checkpoint or manifest of another version, and `OSError`.
    """
    make_directory(fs, directory)
    survey = survey_partition(fs, directory, config.index_interval_bytes, point)
    # Before the first change: a start either understands all that it finds or leaves all of it for a repair.
    damage = survey.of_kind(Kind.DAMAGE)
    if damage:
        survey.close()
        raise DamagedLogError(f"{directory}: {'; '.join(map(str, damage))} ({REPAIR_HINT})")
    return _mend(survey)


def _mend(survey: Survey) -> Opened:
    """Bring the folder into the state that the survey determined."""
    fs, directory = survey.fs, survey.directory
    notes = [f"{MANIFEST_FILE}: missing; the files were accepted as they are"] * survey.is_adopted
    notes += [str(finding) for finding in survey.findings]
    for base in survey.removed:
        notes += remove(survey, base)
    dropped = [name for name in survey.aside if parse_base(name) is not None]
    cut_bytes = sum(file_size(fs, f"{directory}/{name}") for name in dropped)
    # Renamed before new files are made, because these get the same names.
    notes += [f"{name}: kept as {set_aside(fs, directory, name)}" for name in survey.aside]
    # Tails are cut before anything is synced or indexed: an index of bytes that go would point at nothing.
    cut_bytes += sum(cut_tail(survey, segment, notes) for segment in survey.cut)
    notes += [f"not text: kept as {kept}" for kept in clear_temporary(fs, directory, TEXT_FILES)]
    segments = survey.segments
    if survey.missing is not None or not segments:
        # A log has a segment to append to, even an empty log: its base offset is where the log continues.
        segments.append(Segment.create(fs, directory, survey.end, survey.index_interval))
    before = survey.manifest or Manifest(survey.name, survey.point.cuts, survey.log_start)
    manifest, file = save_survey(survey, segments, before)
    report = Recovery(survey.scanned_bytes, cut_bytes, len(dropped), tuple(notes))
    return Opened(segments, manifest, file, report)


def remove(survey: Survey, base: int) -> list[str]:
    """Remove the files of a dropped segment, except for files that are not its indexes; return notes."""
    notes = []
    for suffix in INDEX_SUFFIXES:
        path = f"{survey.directory}/{segment_name(base, suffix)}"
        # The manifest vouches for the removal of the log file only.
        if survey.fs.exists(path) and not could_be_index(read_file(survey.fs, path), suffix):
            kept = set_aside(survey.fs, survey.directory, segment_name(base, suffix))
            notes.append(f"{segment_name(base, suffix)}: not an index: kept as {kept}")
    Segment.open(survey.fs, survey.directory, base, survey.index_interval).delete()
    return notes


def cut_tail(survey: Survey, segment: Segment, notes: list[str]) -> int:
    """Cut a file after the segment's contents, after copying the rest; return the number of bytes removed."""
    size, position = segment.file.size(), segment.size
    # The copy is durable when this returns, and only then is the original cut.
    kept = keep_copy(survey.fs, survey.directory, segment.name, segment.file, position)
    notes.append(f"{segment.name}: {size - position} bytes cut, {f'kept as {kept}' if kept else 'all zero'}")
    segment.truncate(segment.contents)
    return size - position


def save_survey(survey: Survey, segments: list[Segment], before: Manifest) -> tuple[Manifest, ManifestFile]:
    """Sync the files read, write the derived ones, then the manifest: `before`, with these segments."""
    fs, directory = survey.fs, survey.directory
    for segment in segments:
        # Only the part read now: an adopted, unread segment was synced by the process that listed it.
        if segment in survey.scanned or segment.mark is None:
            # Read from the page cache and written again, because a sync alone skips pages that the kernel
            # treats as clean.
            segment.rewrite()
            segment.flush()
            if segment in survey.unindexed:
                segment.seal()
            segment.synced_mark()
    if survey.epochs != (survey.checkpoint_epochs or ()):
        write_epochs(fs, directory, survey.epochs)
    # Renames, new segments and removals become durable before the manifest that takes them for granted.
    fs.fsync_dir(directory)
    manifest = manifest_of(before, segments, survey.epochs)
    # Last of all. Until it is written, another start finds what this one found, and does the same again.
    file = ManifestFile(fs, directory, survey.reading)
    file.save(manifest)
    return manifest, file
