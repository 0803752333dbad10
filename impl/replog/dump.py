"""`replog dump DIR`: the contents of a log directory, as text, checking everything and changing nothing.

    orders-0
      log-manifest               log start 0, synced to 150, cut 0 times
      leader-epoch-checkpoint    0 from 0, 4 from 120
      00000000000000000000.log   12 batches, offsets 0..149, epochs 0..4, 8123 bytes, CRCs correct
      00000000000000000000.index 3 entries, correct

A line that begins with `!` names anything damaged or inconsistent, and its place; the end has a count of
them, and the exit code is 1. The lock is not needed: a dump of a directory in use may show a batch half
written.

Not here: mending, which opening the directory (`replog.store.recovery`) or `replog repair` does, and the text
of a file's content (`dump_text.py`).
"""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from replog.dump_text import SegmentText, batch_text, record_text
from replog.store.checkpoints import checkpoint
from replog.store.checkpoints.checkpoint import TopicPartition
from replog.store.checkpoints.manifest import MANIFEST_FILE, Manifest
from replog.store.checkpoints.registry import REGISTRY_FILE
from replog.store.checkpoints.root import OFFSET_FILES, OWN_FILES, Root
from replog.store.files.config import DEFAULT_CONFIG
from replog.store.files.errors import CorruptBatchError, CorruptFileError, InvalidRecordError, StoreError
from replog.store.files.findings import Kind
from replog.store.files.fs import Fs, OsFile, OsFs, file_size, open_file, read_file
from replog.store.files.quarantine import is_quarantined
from replog.store.recovery.survey import Survey, survey_partition
from replog.store.segments.batch import check_crc
from replog.store.segments.index import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from replog.store.segments.records import decode_batch
from replog.store.segments.segment import parse_base, scan_batches, segment_name

NAME_WIDTH = 32


class ReadOnlyFs(OsFs):
    """A file system that is only read, without the right to write."""

    def open(self, path: str) -> OsFile:
        """Open for reading only."""
        # A dump is often run by a user who may read the broker's files and not write them.
        return OsFile(open_file(path, os.O_RDONLY))


@dataclass(slots=True)
class Dump:
    """One dump: how much to show, and the number of problems found so far."""

    shows_batches: bool
    shows_records: bool
    fs: Fs = field(default_factory=ReadOnlyFs)
    problems: int = 0
    was_clean: bool = False
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    def lines(self, path: str) -> Iterator[str]:
        """Yield the text of a partition's directory, or of a log directory with all its partitions."""
        parent, _, name = path.rpartition("/")
        key = checkpoint.parse_partition_name(name)
        # A log directory may be called like a partition; then it has files of its own.
        if key is not None and set(OWN_FILES).isdisjoint(self.fs.listdir(path)):
            root = Root(self.fs, parent or "/")
            # The directory's checkpoints say where this log was safe, so they are read, but shown only
            # where they are wrong.
            yield from (line for line in self._read_root(root) if line.startswith("!"))
            if not any(
                name == MANIFEST_FILE or parse_base(name) is not None for name in self.fs.listdir(path)
            ):
                yield self._problem(name, "not a log: it has neither a manifest nor a segment")
            yield from self._partition(root, key)
            return
        root = Root(self.fs, path)
        yield path
        # An empty log directory is one, too, but a folder of somebody's letters must not pass for a sound
        # one.
        if set(OWN_FILES).isdisjoint(self.fs.listdir(path)) and not root.partitions():
            yield self._problem("", "not a log directory: it has no file of a broker and no partition")
            return
        yield from self._read_root(root)
        for key in root.partitions():
            yield ""
            yield from self._partition(root, key)
        for key in root.missing_partitions():
            yield ""
            yield self._problem(f"{key[0]}-{key[1]}", f"its folder is missing ({REGISTRY_FILE} lists it)")

    def _problem(self, name: str, text: object) -> str:
        self.problems += 1
        return f"! {name:{NAME_WIDTH}} {text}"

    def _read(self, name: str, read: Callable[[], str]) -> Iterator[str]:
        try:
            yield f"  {name:{NAME_WIDTH}} {read()}"
        except OSError as error:
            yield self._problem(name, error.strerror or error)
        except StoreError as error:
            yield self._problem(name, str(error).removeprefix(f"{name}: "))

    def _read_root(self, root: Root) -> list[str]:
        """Return the lines of the directory's own files; their offsets are kept for the partitions."""
        lines = [*self._read(REGISTRY_FILE, lambda: _registry_text(root))]
        lines += self._read(checkpoint.CLEAN_SHUTDOWN_FILE, lambda: self._marker_text(root))
        for name in OFFSET_FILES:
            lines += self._read(name, partial(self._offsets_text, root, name))
        names = self.fs.listdir(root.path)
        return lines + [self._kept_text(root.path, name) for name in names if is_quarantined(name)]

    def _marker_text(self, root: Root) -> str:
        epoch = root.read(checkpoint.CLEAN_SHUTDOWN_FILE, checkpoint.read_clean_shutdown, None)
        self.was_clean = epoch is not None
        return "none: running, or stopped uncleanly" if epoch is None else f"broker epoch {epoch}"

    def _offsets_text(self, root: Root, name: str) -> str:
        self.offsets[name] = root.read_offsets(name)
        rows = (f"{topic}-{n} {offset}" for (topic, n), offset in sorted(self.offsets[name].items()))
        return ", ".join(rows) or "none"

    def _kept_text(self, folder: str, name: str) -> str:
        size = file_size(self.fs, f"{folder}/{name}")
        return f"  {name:{NAME_WIDTH}} {size} bytes, kept by a start or a repair"

    def _partition(self, root: Root, key: TopicPartition) -> Iterator[str]:
        """Yield all of a partition's files, then any inconsistencies between them."""
        path = root.partition_path(key)
        point = root.point_of(key, self.was_clean, root.is_bare())
        yield f"{key[0]}-{key[1]}"
        try:
            survey = survey_partition(self.fs, path, DEFAULT_CONFIG.index_interval_bytes, point)
        except (StoreError, OSError) as error:
            yield self._problem(f"{key[0]}-{key[1]}", error)
            return
        with closing(survey):
            yield from self._files(path, survey)
            yield from self._offsets_problems(key, survey)

    def _files(self, path: str, survey: Survey) -> Iterator[str]:
        names = self.fs.listdir(path)
        if checkpoint.METADATA_FILE in names:
            yield from self._read(
                checkpoint.METADATA_FILE, lambda: f"topic id {checkpoint.read_metadata(self.fs, path)}"
            )
        if survey.manifest is not None or survey.is_adopted:
            yield f"  {MANIFEST_FILE:{NAME_WIDTH}} {_manifest_text(survey.manifest)}"
        # What the survey finds is shown at the end, once, in its words, which are those of a start.
        reported = {finding.file for finding in survey.findings}
        if checkpoint.EPOCH_FILE not in reported:
            yield from self._read(checkpoint.EPOCH_FILE, lambda: self._epochs_text(path))
        for base in sorted(base for name in names if (base := parse_base(name)) is not None):
            text = SegmentText(base)
            damage = yield from self._segment(f"{path}/{segment_name(base)}", text)
            if damage and segment_name(base) not in reported:
                yield self._problem(segment_name(base), damage)
            yield from self._indexes(path, text, reported)
        yield from (self._kept_text(path, name) for name in names if is_quarantined(name))
        yield from (self._problem(finding.file, finding.text) for finding in survey.findings)

    def _epochs_text(self, path: str) -> str:
        entries = checkpoint.read_epochs(self.fs, path)
        return ", ".join(f"{epoch} from {start}" for epoch, start in entries or ()) or "none"

    def _offsets_problems(self, key: TopicPartition, survey: Survey) -> Iterator[str]:
        """Yield what the directory's checkpoints state about offsets that the log does not contain."""
        # A damaged log ends early in any case; the numbers of the checkpoints would only repeat it.
        if survey.of_kind(Kind.DAMAGE):
            return
        high_watermarks, log_starts = checkpoint.HIGH_WATERMARK_FILE, checkpoint.LOG_START_FILE
        for name, what in ((high_watermarks, "high watermark"), (log_starts, "log start")):
            offset = self.offsets.get(name, {}).get(key, 0)
            if offset > survey.end:
                yield self._problem(name, f"{what} {offset}, but {survey.name} ends at {survey.end}")

    def _segment(self, path: str, text: SegmentText) -> Generator[str, None, str]:
        """Scan one segment, showing as much as requested, then its summary; return the damage."""
        size = file_size(self.fs, path)
        file = self.fs.open(path)
        damage = ""
        try:
            for position, header in scan_batches(file, size, 0, check_crc):
                # A batch may be whole and not belong here: its checksum says nothing of its place.
                if header.base_offset != text.end:
                    raise CorruptBatchError(f"a batch of offset {header.base_offset} after {text.end}")
                text.add(position, header)
                if self.shows_batches:
                    yield f"    {batch_text(position, header)}"
                if self.shows_records:
                    yield from self._records(file.pread(header.size_bytes, position))
        except CorruptBatchError as error:
            damage = f"damaged at byte {text.size} of {size}: {error}"
        finally:
            file.close()
        yield f"  {segment_name(text.base):{NAME_WIDTH}} {text.summary()}"
        return damage

    def _records(self, batch: bytes) -> Iterator[str]:
        try:
            yield from (f"      {record_text(record)}" for record in decode_batch(batch))
        except (CorruptBatchError, InvalidRecordError) as error:
            yield f"      ({error})"

    def _indexes(self, path: str, text: SegmentText, reported: set[str]) -> Iterator[str]:
        """Compare the index files, if any, with the scanned batches."""
        for suffix, check in ((INDEX_SUFFIX, text.check_index), (TIME_INDEX_SUFFIX, text.check_time_index)):
            name = segment_name(text.base, suffix)
            if name in reported or not self.fs.exists(f"{path}/{name}"):
                continue
            entries = check(read_file(self.fs, f"{path}/{name}"))
            if entries is None:
                yield self._problem(name, "does not fit the log")
            else:
                yield f"  {name:{NAME_WIDTH}} {entries} {'entry' if entries == 1 else 'entries'}, correct"


def _registry_text(root: Root) -> str:
    if not root.load_registry():
        if root.is_bare():
            return "none: no broker has used this directory"
        raise CorruptFileError("is missing: nothing vouches for the checkpoints")
    count = len(root.registry.partitions)
    return f"{count} partition{'s' * (count != 1)}"


def _manifest_text(manifest: Manifest | None) -> str:
    if manifest is None:
        return "none: a start would accept the files as they are"
    times = "once" if manifest.cuts == 1 else f"{manifest.cuts} times"
    return f"log start {manifest.log_start}, synced to {manifest.flushed}, cut {times}"


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--batches", is_flag=True, help="Show every batch.")
@click.option("--records", is_flag=True, help="Show every batch with its records.")
@click.pass_context
def command(context: click.Context, directory: Path, batches: bool, records: bool) -> None:
    """Check DIRECTORY, and show its segments, leader epochs and checkpoints; change nothing.

    DIRECTORY is a broker's log directory or a partition in it. The exit code is 1 if anything is damaged or
    inconsistent.
    """
    dump = Dump(batches or records, records)
    for line in dump.lines(str(directory.resolve())):
        click.echo(line)
    if dump.problems:
        click.echo(f"\n{dump.problems} problem{'s' * (dump.problems != 1)}")
        context.exit(1)
