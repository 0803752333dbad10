"""Tables as Parquet files, written in parts that are complete or absent.

    DIR.unfinished-HOST-PID/       until everything is there; then renamed to DIR
        states/part-0-00000.parquet
        edges/...
        manifest.json              last

A part is written beside its place, row group by row group, and then renamed (`kept.Replacement`), so a
reader never sees half of one.  At a URI files are made in memory and written in place, the manifest last.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, field

from specchk.export.parquet.files import PageFile
from specchk.export.parquet.pages import ColumnChunk, Data, FileColumn
from specchk.export.storage import Unwritable, answering, local_path, storage_at
from specchk.kept import Replacement, replace
from specchk.search.engine import Unusable

MANIFEST = "manifest.json"  # the last file of an export
_TRIAL = "trial"  # a file that is written to check whether any can be
PART_BYTES = 1 << 24  # compressed; a part that has as many is written
PART_ROWS = 1 << 22


class Unwritten(Exception):
    """An export that cannot be written; the text gives path and reason."""


class TablePart(Struct, frozen=True):
    """A file of a table: its path below the export, its rows and bytes."""

    table: str
    file: str
    rows: int
    size: int


class LocalDraft(Struct, frozen=True):
    """A draft in a directory of this machine, or in one that all machines have mounted.

    Like the other kind, it is a value that is sent to executors; `target` is the export's place.
    """

    target: Path
    folder: Path

    @classmethod
    def at(cls, target: Path) -> LocalDraft:
        """A new draft beside the target; `Unwritten`."""
        target = target.absolute()
        folder = target.with_name(f"{target.name}.unfinished-{socket.gethostname()}-{os.getpid()}")
        try:
            shutil.rmtree(folder, ignore_errors=True)  # of an earlier process with the same number
            folder.mkdir(parents=True)
        except OSError as error:
            raise Unwritten(f"{folder}: {error.strerror or error}") from error
        return cls(target, folder)

    def write(self, name: str, data: Sequence[bytes]) -> None:
        """Write a file, given in pieces; `Unwritten`."""
        with _writing(self.target / name):
            replace(self._path(name), data)

    def begin(self, name: str) -> LocalPart:
        """Open a file to be written piece by piece; `Unwritten`."""
        with _writing(self.target / name):
            return LocalPart(self.target / name, Replacement(self._path(name)))

    def _path(self, name: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        return path

    def has(self, name: str) -> bool:
        """Whether a written file is visible from here."""
        return (self.folder / name).is_file()

    def finish(self, manifest: bytes) -> None:
        """Make the export appear, with its manifest; `Unwritten`."""
        self.write(MANIFEST, [manifest])
        with _writing(self.target):
            for left in self.folder.glob("*/.*"):  # by an executor that was killed
                left.unlink()
            # In one step: a directory that is visible is complete.
            self.folder.rename(self.target)

    def abandon(self) -> None:
        """Remove the written files, unless they are a complete export, which is elsewhere."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritten(f"{path}: {error.strerror or error}") from error


class LocalPart(Struct, frozen=True):
    """A file of a `LocalDraft`; `shown` is its final path."""

    shown: Path
    file: Replacement

    def write(self, pieces: Sequence[Data]) -> None:
        """Write some pieces, which may change afterwards; `Unwritten`."""
        with _writing(self.shown):
            self.file.write(pieces)

    def finish(self) -> None:
        """Make the file appear; `Unwritten`."""
        with _writing(self.shown):
            self.file.finish()

    def abandon(self) -> None:
        """Remove the file, unless it is finished."""
        self.file.abandon()


class RemoteDraft(Struct, frozen=True):
    """A draft in another file system, without atomic renaming: its manifest makes it an export."""

    target: str

    def write(self, name: str, data: Sequence[bytes]) -> None:
        """See `LocalDraft`."""
        try:
            storage_at(self.target).write(name, data)
        except (Unwritable, Unusable) as error:
            raise Unwritten(str(error)) from error

    def begin(self, name: str) -> HeldPart:
        """See `LocalDraft`."""
        return HeldPart(self, name)

    def has(self, name: str) -> bool:
        """See `LocalDraft`."""
        return storage_at(self.target).exists(name)

    def finish(self, manifest: bytes) -> None:
        """See `LocalDraft`."""
        self.write(MANIFEST, [manifest])

    def abandon(self) -> None:
        """See `LocalDraft`."""
        with suppress(OSError, Unusable):
            storage = storage_at(self.target)
            if not storage.exists(MANIFEST):
                storage.remove("")


class HeldPart(Struct, frozen=True):
    """A file of a `RemoteDraft`, in memory until it is finished."""

    draft: RemoteDraft
    name: str
    pieces: list[bytes] = field(default_factory=list)

    def write(self, pieces: Sequence[Data]) -> None:
        """See `LocalPart`."""
        self.pieces.extend(map(bytes, pieces))

    def finish(self) -> None:
        """See `LocalPart`."""
        self.draft.write(self.name, self.pieces)

    def abandon(self) -> None:
        """See `LocalPart`."""
        self.pieces.clear()


Draft = LocalDraft | RemoteDraft
PartFile = LocalPart | HeldPart


def draft_at(place: str) -> Draft:
    """A new export at a path or URI; raises `Unwritten`."""
    path = local_path(place)
    return RemoteDraft(place.rstrip("/")) if path is None else LocalDraft.at(path)


def place_refused(place: str) -> str | None:
    """The reason why no export can be created at a path or URI, or None."""
    target = local_path(place)
    if target is None:
        return _uri_refused(place)
    if target.is_dir() and not any(target.iterdir()):
        return None  # the renaming in `finish` replaces an empty directory
    if target.exists():
        kind = "an export already" if (target / MANIFEST).is_file() else "something else"
        if target.is_dir():
            return f"{target} is there, and has {kind}: choose another place, or remove it"
        return f"{target} is a file: choose another place"
    near = next(parent for parent in target.absolute().parents if parent.exists())
    if not near.is_dir():
        return f"{target} cannot be made: {near} is a file"
    return None if os.access(near, os.W_OK) else f"{target} cannot be made: {near} cannot be written"


def _uri_refused(place: str) -> str | None:
    try:
        storage = answering(place)
        if storage.folders() or storage.file_names(""):
            return f"{place} is there, and is not empty: choose another place, or remove it"
        storage.write(_TRIAL, [b""])
        storage.remove_file(_TRIAL)
    except Unwritable as error:
        return f"{place} cannot be written ({str(error).partition(chr(10))[0]})"
    except (Unusable, OSError) as error:
        return str(error).partition("\n")[0]
    return None


class TableWriter(Struct):
    """Writes one writer's parts of a table with Arrow rows."""

    draft: Draft
    table: str
    schema: pa.Schema
    parts: list[TablePart] = field(default_factory=list)
    _sink: Any = None
    _file: Any = None
    _rows: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add some rows as a row group."""
        if not batch.num_rows:
            return
        if self._file is None:
            self._open()
        self._file.write_batch(batch, row_group_size=batch.num_rows)
        self._rows += batch.num_rows
        if self._sink.tell() >= PART_BYTES or self._rows >= PART_ROWS:
            self._flush()

    def close(self) -> list[TablePart]:
        """Write the rest, at least an empty part; return all parts."""
        if self._file is None and not self.parts:
            self._open()
        if self._file is not None:
            self._flush()
        return self.parts

    def _open(self) -> None:
        self._sink = pa.BufferOutputStream()
        self._file = pq.ParquetWriter(self._sink, self.schema, compression="zstd", compression_level=1)

    def _flush(self) -> None:
        self._file.close()
        # Number 0: only tables of packed states have several writers.
        name, data = part_name(self.table, 0, len(self.parts)), self._sink.getvalue().to_pybytes()
        self.draft.write(name, [data])
        self.parts.append(TablePart(self.table, name, self._rows, len(data)))
        self._sink = self._file = None
        self._rows = 0


class PageWriter:
    """Writes one writer's parts of a table with rows as pages; `release` removes an incomplete part."""

    def __init__(self, draft: Draft, table: str, schema: pa.Schema, writer: int = 0) -> None:
        self._draft, self._table, self._writer = draft, table, writer
        self._pages = PageFile(schema)
        self._file: PartFile | None = None
        self._parts: list[TablePart] = []

    @property
    def columns(self) -> list[FileColumn]:
        """The columns of plain values, in the order in which a row group has them."""
        return self._pages.columns

    def add(self, rows: int, chunks: Sequence[ColumnChunk]) -> None:
        """Add some rows as a row group; `Unwritten`."""
        self._write(self._pages.add(rows, chunks))
        if self._pages.size >= PART_BYTES or self._pages.rows >= PART_ROWS:
            self._finish()

    def close(self) -> list[TablePart]:
        """Write the rest, for the first writer at least an empty part; return all parts; `Unwritten`."""
        if self._file is not None or (not self._parts and not self._writer):
            self._finish()
        return self._parts

    def release(self) -> None:
        """Remove an incomplete part."""
        if self._file is not None:
            self._file.abandon()

    @property
    def _name(self) -> str:
        return part_name(self._table, self._writer, len(self._parts))

    def _write(self, pieces: Sequence[Data]) -> PartFile:
        if self._file is None:
            self._file = self._draft.begin(self._name)
        self._file.write(pieces)
        return self._file

    def _finish(self) -> None:
        rows, before = self._pages.rows, self._pages.size
        pieces = self._pages.finish()
        size = before + sum(map(len, pieces))
        self._write(pieces).finish()
        self._parts.append(TablePart(self._table, self._name, rows, size))
        self._file = None


def part_name(table: str, writer: int, number: int) -> str:
    """The path of a part of a table below the export."""
    return f"{table}/part-{writer}-{number:05d}.parquet"
