"""Tables as Parquet files, written in parts that are whole or not there.

    DIR.unfinished-HOST-PID/       until everything is there; then renamed to DIR
        states/part-0-00000.parquet
        edges/...
        manifest.json              last

A part is made in memory and written at once (`kept.replace`), so memory is bounded by the parts that are
open, and a reader never sees half of one.  At a URI files are written in place, the manifest last.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from specchk.export.parquet.files import PageFile
from specchk.export.parquet.pages import ColumnChunk, FileColumn
from specchk.export.storage import Unwritable, answering, local_path, storage_at
from specchk.kept import replace
from specchk.search.engine import Unusable

MANIFEST = "manifest.json"  # the last file of an export
_TRIAL = "trial"  # a file that is written to see whether any can be
PART_BYTES = 1 << 24  # compressed; a part that has as many is written
PART_ROWS = 1 << 22


class Unwritten(Exception):
    """An export that cannot be written; the text has path and reason."""


@dataclass(frozen=True, slots=True)
class TablePart:
    """A file of a table: its path below the export, its rows and bytes."""

    table: str
    file: str
    rows: int
    size: int


class Draft(Protocol):
    """A directory that becomes an export when all is in it; a value that is sent to executors."""

    @property
    def target(self) -> Path | str:
        """The export's place."""

    def write(self, name: str, data: Sequence[bytes]) -> None:
        """A file, in pieces; `Unwritten`."""

    def has(self, name: str) -> bool:
        """Whether a file that was written is seen from here."""

    def finish(self, manifest: bytes) -> None:
        """Make the export appear, with its manifest; `Unwritten`."""

    def abandon(self) -> None:
        """Remove what was written, unless it is an export."""


@dataclass(frozen=True, slots=True)
class LocalDraft:
    """A directory of this machine, or one that all machines have mounted."""

    target: Path
    folder: Path

    @classmethod
    def at(cls, target: Path) -> LocalDraft:
        """A new one beside the target; `Unwritten`."""
        target = target.absolute()
        folder = target.with_name(f"{target.name}.unfinished-{socket.gethostname()}-{os.getpid()}")
        try:
            shutil.rmtree(folder, ignore_errors=True)  # of a process of the same number, long ago
            folder.mkdir(parents=True)
        except OSError as error:
            raise Unwritten(f"{folder}: {error.strerror or error}") from error
        return cls(target, folder)

    def write(self, name: str, data: Sequence[bytes]) -> None:
        """See `Draft`."""
        path = self.folder / name
        try:
            path.parent.mkdir(exist_ok=True)
            replace(path, data)
        except OSError as error:
            raise Unwritten(f"{self.target / name}: {error.strerror or error}") from error

    def has(self, name: str) -> bool:
        """See `Draft`."""
        return (self.folder / name).is_file()

    def finish(self, manifest: bytes) -> None:
        """See `Draft`."""
        self.write(MANIFEST, [manifest])
        try:
            # In one step: whoever sees the directory sees all of it.
            self.folder.rename(self.target)
        except OSError as error:
            raise Unwritten(f"{self.target}: {error.strerror or error}") from error

    def abandon(self) -> None:
        """See `Draft`; nothing is left of it once it was renamed."""
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class RemoteDraft:
    """A directory of another file system, where none is renamed at once: its manifest makes it an export."""

    target: str

    def write(self, name: str, data: Sequence[bytes]) -> None:
        """See `Draft`."""
        try:
            storage_at(self.target).write(name, data)
        except (Unwritable, Unusable) as error:
            raise Unwritten(str(error)) from error

    def has(self, name: str) -> bool:
        """See `Draft`."""
        return storage_at(self.target).exists(name)

    def finish(self, manifest: bytes) -> None:
        """See `Draft`."""
        self.write(MANIFEST, [manifest])

    def abandon(self) -> None:
        """See `Draft`."""
        with suppress(OSError, Unusable):
            storage = storage_at(self.target)
            if not storage.exists(MANIFEST):
                storage.remove("")


def draft_at(place: str) -> Draft:
    """A new export at a path or URI; `Unwritten`."""
    path = local_path(place)
    return RemoteDraft(place.rstrip("/")) if path is None else LocalDraft.at(path)


def place_refused(place: str) -> str | None:
    """Why no export can be made at a path or URI, or None."""
    target = local_path(place)
    if target is None:
        return _uri_refused(place)
    if target.is_dir() and not any(target.iterdir()):
        return None  # what `finish` renames replaces an empty directory
    if target.exists():
        kind = "an export already" if (target / MANIFEST).is_file() else "something else"
        return (
            f"{target} is there, and has {kind}: choose another place, or remove it"
            if (target.is_dir())
            else f"{target} is a file: choose another place"
        )
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


@dataclass(slots=True)
class TableWriter:
    """Writes one writer's parts of a table whose rows are Arrow's."""

    draft: Draft
    table: str
    schema: pa.Schema
    parts: list[TablePart] = field(default_factory=list)
    _sink: Any = None
    _file: Any = None
    _rows: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Some more rows, a row group."""
        if not batch.num_rows:
            return
        if self._file is None:
            self._open()
        self._file.write_batch(batch, row_group_size=batch.num_rows)
        self._rows += batch.num_rows
        if self._sink.tell() >= PART_BYTES or self._rows >= PART_ROWS:
            self._flush()

    def close(self) -> list[TablePart]:
        """Write what is left, at least an empty part; all parts."""
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
        self.parts.append(
            written_part(
                self.draft, self.table, 0, len(self.parts), [self._sink.getvalue().to_pybytes()], self._rows
            )
        )
        self._sink = self._file = None
        self._rows = 0


class PageWriter:
    """Writes one writer's parts of a table whose rows are pages."""

    def __init__(self, draft: Draft, table: str, schema: pa.Schema, writer: int = 0) -> None:
        self._draft, self._table, self._writer = draft, table, writer
        self._file = PageFile(schema)
        self._parts: list[TablePart] = []

    @property
    def columns(self) -> list[FileColumn]:
        """The columns of plain values, in the order in which a row group has them."""
        return self._file.columns

    def add(self, rows: int, chunks: Sequence[ColumnChunk]) -> None:
        """Some more rows, a row group."""
        self._file.add(rows, chunks)
        if self._file.size >= PART_BYTES or self._file.rows >= PART_ROWS:
            self._flush()

    def close(self) -> list[TablePart]:
        """Write what is left, of a first writer at least an empty part; all parts."""
        if self._file.rows or (not self._parts and not self._writer):
            self._flush()
        return self._parts

    def _flush(self) -> None:
        rows, data = self._file.rows, self._file.finished()
        number = len(self._parts)
        self._parts.append(written_part(self._draft, self._table, self._writer, number, data, rows))
        self._file.empty()


def written_part(
    draft: Draft, table: str, writer: int, number: int, data: Sequence[bytes], rows: int
) -> TablePart:
    """Write a part of a table; `Unwritten`."""
    name = f"{table}/part-{writer}-{number:05d}.parquet"
    draft.write(name, data)
    return TablePart(table, name, rows, sum(map(len, data)))
