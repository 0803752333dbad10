"""Repairing a damaged partition: keep the intact beginning of its log, cut the rest, and keep copies of it.

    good    the batches from the log start on that are unchanged, up to the first that is not
    cut     everything after them, also whole segments: a log has no holes. The broker gets it from the leader
    kept    all cut data, beside the log (`quarantine.py`)

If nothing vouches for records, their CRCs do not show to which log and offset they belong. That is so for
all of them if the manifest is gone, damaged, an old copy or another log's; and for those of one segment if
headers are damaged, since its chain covers them together. They are then not kept, unless the caller adopts
them: the good ones are then the batches that follow each other with right CRCs.

Each step can be repeated: a repair that dies is done again by the next one. The order is copies, cuts, epoch
checkpoint, manifest, registry; until the manifest is written a start refuses as before.
"""

from dataclasses import dataclass, replace

from replog.store.checkpoints.checkpoint import (
    RECOVERY_POINT_FILE,
    TopicPartition,
)
from replog.store.checkpoints.manifest import MANIFEST_FILE, Manifest
from replog.store.checkpoints.registry import NOTHING, REGISTRY_FILE, Known
from replog.store.checkpoints.root import LOCK_FILE, OFFSET_FILES, OWN_FILES, Root
from replog.store.files.config import DEFAULT_CONFIG
from replog.store.files.errors import CorruptFileError, ForeignVersionError
from replog.store.files.findings import Kind
from replog.store.files.fs import Fs, is_no_file, make_directory
from replog.store.files.quarantine import clear_temporary, set_aside
from replog.store.recovery.recovery import TEXT_FILES, cut_tail, save_survey
from replog.store.recovery.survey import Survey, survey_partition
from replog.store.segments.segment import INDEX_SUFFIXES, LOG_SUFFIX, Segment, parse_base


@dataclass(frozen=True, slots=True)
class Plan:
    """The effect of a repair of one partition; offsets are half-open ranges.

    `promised` is the offset before which, according to the files, all is synced. `adoptable` are the offsets
    that are kept if records are adopted, None if something vouches for all whole ones.
    """

    key: TopicPartition
    problems: tuple[str, ...]
    kept: tuple[int, int]
    promised: int
    adoptable: tuple[int, int] | None = None


def strangers(fs: Fs, path: str) -> list[str]:
    """Return what has the name of one of the directory's files and is none, as paths in it; not the lock."""
    root = Root(fs, path)
    names = [name for name in fs.listdir(path) if name in OWN_FILES and name != LOCK_FILE]
    for key in root.partitions():
        folder = f"{key[0]}-{key[1]}"
        names += [f"{folder}/{name}" for name in fs.listdir(f"{path}/{folder}") if _is_of_log(name)]
    return [name for name in names if is_no_file(fs, f"{path}/{name}")]


def set_strangers_aside(fs: Fs, path: str, names: list[str]) -> list[str]:
    """Rename what `strangers` has found, durably, and return notes about it."""
    notes = []
    for name in names:
        folder, _, last = f"{path}/{name}".rpartition("/")
        notes.append(f"{name}: kept as {set_aside(fs, folder, last)}")
        fs.fsync_dir(folder)
    return notes


class Repairer:
    """The repair of a log directory that the caller has locked, and that was `bare` before.

    `notes` describe the actions. Errors: `ForeignVersionError` for files of newer software, which are never
    touched, and `OSError`.
    """

    def __init__(self, fs: Fs, path: str, adopts: bool = False, bare: bool = False) -> None:
        self._fs = fs
        self._adopts = adopts
        self._may_adopt = bare
        self._root = Root(fs, path)
        self._is_registry_damaged = False
        self.notes: list[str] = []
        try:
            self._root.load_registry()
        except CorruptFileError:
            self._is_registry_damaged = True
        self._was_clean = self._root.was_stopped_cleanly()

    def foreign(self) -> list[str]:
        """Return the reasons of a start to refuse the directory: files of another version, which stay."""
        reasons = []
        for name in OFFSET_FILES:
            try:
                self._root.read_offsets(name)
            except ForeignVersionError as error:
                reasons.append(str(error))
            except CorruptFileError:
                continue  # a start moves it aside
        return reasons

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions, including those without a folder."""
        return sorted({*self._root.partitions(), *self._root.missing_partitions()})

    def plan(self, key: TopicPartition) -> Plan | None:
        """Report the damage, and the part that a repair would keep; None if the partition can be opened."""
        if key in self._root.missing_partitions():
            promised = self._root.registry.partitions[key].recovery_point
            return Plan(key, ("its folder is missing",), (0, 0), promised)
        survey = self._survey(key)
        survey.close()
        problems = tuple(map(str, survey.of_kind(Kind.DAMAGE)))
        if not problems:
            return None
        if survey.is_vouched_for:
            start = survey.log_start
            whole, vouched = ((start, max(start, end)) for end in (survey.end, survey.vouched_end))
            adoptable = None if vouched == whole else whole
            return Plan(key, problems, whole if self._adopts else vouched, survey.promised, adoptable)
        # The state of the files without the manifest. It only decides what could be adopted, never what is
        # kept.
        survey = self._survey(key, ignores_manifest=True)
        survey.close()
        adoptable = survey.log_start, survey.end
        promised = max(survey.end, self._root.registry.partitions.get(key, NOTHING).recovery_point)
        return Plan(key, problems, adoptable if self._adopts else (0, 0), promised, adoptable)

    def _survey(self, key: TopicPartition, ignores_manifest: bool = False) -> Survey:
        point = self._root.point_of(key, self._was_clean, self._may_adopt)
        if ignores_manifest:
            point = replace(point, is_known=False, may_adopt=True, ignores_manifest=True)
        path = self._root.partition_path(key)
        # The broker's own settings are not known here. Indexes are hints, right with any interval.
        return survey_partition(self._fs, path, DEFAULT_CONFIG.index_interval_bytes, point)

    def apply(self, key: TopicPartition) -> None:
        """Execute `plan`."""
        path = self._root.partition_path(key)
        make_directory(self._fs, path)
        clear_temporary(self._fs, path, TEXT_FILES)
        clear_temporary(self._fs, self._root.path, OWN_FILES)
        survey = self._survey(key)
        cuts = survey.point.cuts if survey.manifest is None else survey.manifest.cuts
        if not self._adopts:
            # Batches whose headers no chain covers: their CRCs are right, but nothing shows that they belong
            # here.
            survey.drop_doubtful()
        if not survey.is_vouched_for:
            survey.close()
            survey = self._survey(key, ignores_manifest=True)
            if not self._adopts:
                survey.keep_nothing()
            # Not overwritten: it may be the only record of the synced part.
            self._put_aside(path, [MANIFEST_FILE])
        try:
            segments = self._cut(survey)
            # More cuts than any file lists, so that no older manifest or recovery point fits the repaired
            # log.
            before = Manifest(survey.name, max(cuts, survey.point.cuts) + 1, survey.log_start)
            manifest, _ = save_survey(survey, segments, before)
        finally:
            survey.close()
        # The registry last: it is to list no cut that the manifest lacks.
        self._save_root(key, manifest)

    def _cut(self, survey: Survey) -> list[Segment]:
        """Remove everything damaged from the log; return the remaining segments."""
        good = [segment for segment in survey.segments if segment.size]
        # If all good records end before the log start, none of them can be read: the log restarts at its
        # start, as after deleting old segments.
        if not good or good[-1].next_offset <= survey.log_start:
            good = []
        names = {segment.name for segment in good}
        there = self._fs.listdir(survey.directory)
        # All other segments go, also whole ones behind the damage: a log has no holes.
        aside = {name for name in there if name.endswith(LOG_SUFFIX)} - names
        aside |= {name for name in there if _is_index(name) and name[:20] + LOG_SUFFIX not in names}
        self._put_aside(survey.directory, sorted({*aside, *survey.aside}))
        for segment in good:
            if segment.file.size() > segment.size:
                cut_tail(survey, segment, self.notes)
        if not good:
            start = survey.log_start
            segment = Segment.create(self._fs, survey.directory, start, survey.index_interval)
            survey.segments = good = [segment]
        return good

    def _put_aside(self, folder: str, names: list[str]) -> None:
        for name in names:
            if self._fs.exists(f"{folder}/{name}"):
                self.notes.append(f"{name}: kept as {set_aside(self._fs, folder, name)}")
        self._fs.fsync_dir(folder)

    def _save_root(self, key: TopicPartition, manifest: Manifest) -> None:
        """Remove all references to cut records from the directory's own files."""
        root, end = self._root, manifest.flushed
        if self._is_registry_damaged:
            self._put_aside(root.path, [REGISTRY_FILE])
            self._is_registry_damaged = False
        root.registry.partitions[key] = Known(manifest.cuts, end)
        offsets = {}
        for name in OFFSET_FILES:
            try:
                offsets[name] = root.read_offsets(name)
            except CorruptFileError:
                continue
            if name == RECOVERY_POINT_FILE:
                offsets[name] |= root.recovery_points()
            else:
                # A high watermark beyond the end would claim that cut records are committed here.
                offsets[name] = {k: min(n, end) if k == key else n for k, n in offsets[name].items()}
        root.write_offsets(offsets)


def _is_of_log(name: str) -> bool:
    return name in TEXT_FILES or parse_base(name) is not None or _is_index(name)


def _is_index(name: str) -> bool:
    return any(name.endswith(suffix) and parse_base(name, suffix) is not None for suffix in INDEX_SUFFIXES)
