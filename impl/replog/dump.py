"""`replog dump DIR`: what is in a log directory, as text, checking everything and changing nothing.

    orders-0
      leader-epoch-checkpoint    0 from 0, 4 from 120
      00000000000000000000.log   12 batches, offsets 0..149, epochs 0..4, 8123 bytes, CRCs right
      00000000000000000000.index 3 entries, right

A damaged file is a line that begins with `!` and says where; there is a count of them at the end, and the
exit code is 1. The lock is neither taken nor asked for: a dump of a directory in use may show a batch half
written.

Not here: repairing, which is what opening the directory does (`replog.store.recovery`).
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import click

from replog.store.batch import BatchHeader, check_crc
from replog.store.checkpoint import (
    CLEAN_SHUTDOWN_FILE,
    EPOCH_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    METADATA_FILE,
    RECOVERY_POINT_FILE,
    read_clean_shutdown,
    read_epochs,
    read_metadata,
    read_offsets,
)
from replog.store.directory import parse_partition_name
from replog.store.errors import CorruptBatchError, InvalidRecordError, StoreError
from replog.store.fs import OsFile, OsFs, read_file
from replog.store.index import OffsetIndex, TimeIndex
from replog.store.records import Record, decode_batch
from replog.store.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, scan_batches

OFFSET_FILES = (HIGH_WATERMARK_FILE, RECOVERY_POINT_FILE, LOG_START_FILE)
NAME_WIDTH = 32
VALUE_WIDTH = 60


class ReadOnlyFs(OsFs):
    """Files that can be read without the right to write them."""

    def open(self, path: str) -> OsFile:
        """Open for reading only."""
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))


@dataclass(slots=True)
class Dump:
    """One dump: how much to show, and how many problems were met so far."""

    shows_batches: bool
    shows_records: bool
    fs: ReadOnlyFs = field(default_factory=ReadOnlyFs)
    problems: int = 0

    def lines(self, path: Path) -> Iterator[str]:
        """Yield the text of a partition's directory, or of a log directory and all partitions in it."""
        if _is_partition(path):
            yield from self._partition(path)
            return
        yield str(path)
        yield from self._read(CLEAN_SHUTDOWN_FILE, lambda: self._marker(path))
        for name in OFFSET_FILES:
            yield from self._read(name, partial(self._offsets, path, name))
        for child in sorted(path.iterdir()):
            if child.is_dir() and parse_partition_name(child.name) is not None:
                yield ""
                yield from self._partition(child)

    def _problem(self, name: str, text: object) -> str:
        self.problems += 1
        return f"! {name:{NAME_WIDTH}} {text}"

    def _read(self, name: str, read: Callable[[], str]) -> Iterator[str]:
        try:
            yield f"  {name:{NAME_WIDTH}} {read()}"
        except (StoreError, OSError) as error:
            yield self._problem(name, error)

    def _marker(self, path: Path) -> str:
        epoch = read_clean_shutdown(self.fs, str(path))
        return "none: running, or stopped uncleanly" if epoch is None else f"broker epoch {epoch}"

    def _offsets(self, path: Path, name: str) -> str:
        offsets = read_offsets(self.fs, str(path), name)
        return ", ".join(f"{topic}-{n} {offset}" for (topic, n), offset in sorted(offsets.items())) or "none"

    def _epochs(self, path: Path) -> str:
        entries = read_epochs(self.fs, str(path))
        return ", ".join(f"{epoch} from {start}" for epoch, start in entries or ()) or "none"

    def _partition(self, path: Path) -> Iterator[str]:
        yield path.name
        if (path / METADATA_FILE).exists():
            yield from self._read(METADATA_FILE, lambda: f"topic id {read_metadata(self.fs, str(path))}")
        yield from self._read(EPOCH_FILE, lambda: self._epochs(path))
        expected: int | None = None
        for segment in sorted(path.glob(f"*{LOG_SUFFIX}")):
            if len(segment.stem) != 20 or not segment.stem.isdecimal():
                yield self._problem(segment.name, "not the name of a segment")
                continue
            base = int(segment.stem)
            if expected is not None and base != expected:
                yield self._problem(segment.name, f"begins at {base}, but the one before ended at {expected}")
            found = _Segment(base, base)
            yield from self._segment(segment, found)
            yield from self._indexes(segment, found)
            expected = found.end

    def _segment(self, path: Path, found: "_Segment") -> Iterator[str]:
        """Scan one segment, showing as much as was asked for, then its summary or its damage."""
        size = path.stat().st_size
        file = self.fs.open(str(path))
        damage = ""
        try:
            for position, header in scan_batches(file, size, 0, check_crc):
                if header.base_offset != found.end:
                    raise CorruptBatchError(f"a batch of offset {header.base_offset} after {found.end}")
                found.add(position, header)
                if self.shows_batches:
                    yield f"    {_batch_text(position, header)}"
                if self.shows_records:
                    yield from self._records(file.pread(header.size_bytes, position))
        except CorruptBatchError as error:
            damage = f"damaged at byte {found.size} of {size}: {error}"
        finally:
            file.close()
        yield f"  {path.name:{NAME_WIDTH}} {found.summary()}"
        if damage:
            yield self._problem(path.name, damage)

    def _records(self, batch: bytes) -> Iterator[str]:
        try:
            yield from (f"      {_record_text(record)}" for record in decode_batch(batch))
        except (CorruptBatchError, InvalidRecordError) as error:
            yield f"      ({error})"

    def _indexes(self, segment: Path, found: "_Segment") -> Iterator[str]:
        """Compare the index files, if any, with the batches scanned."""
        for suffix, check in ((INDEX_SUFFIX, found.check_index), (TIME_INDEX_SUFFIX, found.check_time_index)):
            path = segment.with_suffix(suffix)
            if path.exists():
                data = read_file(self.fs, str(path))
                entries = check(data)
                if entries is None:
                    yield self._problem(path.name, "does not fit the log (a start rebuilds it)")
                else:
                    yield f"  {path.name:{NAME_WIDTH}} {entries} entries, right"


@dataclass(slots=True)
class _Segment:
    """What scanning a segment found."""

    base: int
    end: int
    size: int = 0
    batches: int = 0
    epochs: tuple[int, int] = (-1, -1)
    last_offsets: dict[int, int] = field(default_factory=dict)

    def add(self, position: int, header: BatchHeader) -> None:
        self.epochs = (header.leader_epoch if not self.batches else self.epochs[0], header.leader_epoch)
        self.batches += 1
        self.end = header.next_offset
        self.size = position + header.size_bytes
        self.last_offsets[position] = header.last_offset - self.base

    def summary(self) -> str:
        if not self.batches:
            return "empty"
        first, last = self.epochs
        epochs = f"epoch {first}" if first == last else f"epochs {first}..{last}"
        count = f"{self.batches} batch{'es' * (self.batches != 1)}"
        return f"{count}, offsets {self.base}..{self.end - 1}, {epochs}, {self.size} bytes, CRCs right"

    def check_index(self, data: bytes) -> int | None:
        index = OffsetIndex.decode(data, self.size + 1)
        if index is None:
            return None
        pairs = zip(index.positions, index.offsets, strict=True)
        return (
            len(index.offsets) if all(self.last_offsets.get(at) == offset for at, offset in pairs) else None
        )

    def check_time_index(self, data: bytes) -> int | None:
        index = TimeIndex.decode(data)
        known = set(self.last_offsets.values())
        return None if index is None or not known.issuperset(index.offsets) else len(index.offsets)


def _is_partition(path: Path) -> bool:
    return parse_partition_name(path.name) is not None and not (path / HIGH_WATERMARK_FILE).exists()


def _batch_text(position: int, header: BatchHeader) -> str:
    producer = ""
    if header.producer_id >= 0:
        producer = f", producer {header.producer_id}/{header.producer_epoch} from seq {header.base_sequence}"
    span = f"{header.base_offset}..{header.last_offset}"
    return f"@{position} offsets {span}, epoch {header.leader_epoch}, {header.size_bytes} bytes{producer}"


def _record_text(record: Record) -> str:
    key = "" if record.key is None else f"{_short(record.key)} = "
    return f"{record.offset}: {key}{_short(record.value)}"


def _short(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = data[:VALUE_WIDTH].decode("utf-8", "backslashreplace")
    printable = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return printable + ("..." if len(data) > VALUE_WIDTH else "")


@click.command(short_help="Show what is in a log directory.")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--batches", is_flag=True, help="Show every batch.")
@click.option("--records", is_flag=True, help="Show every batch and its records.")
@click.pass_context
def command(context: click.Context, directory: Path, batches: bool, records: bool) -> None:
    """Show segments, leader epochs and checkpoints of DIRECTORY, checking CRCs; change nothing.

    DIRECTORY is a broker's log directory or a partition in it. Exit code 1 if anything is damaged.
    """
    dump = Dump(batches or records, records)
    for line in dump.lines(directory.resolve()):
        click.echo(line)
    if dump.problems:
        click.echo(f"\n{dump.problems} problem{'s' * (dump.problems != 1)}")
        context.exit(1)
