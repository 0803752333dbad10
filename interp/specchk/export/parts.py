"""Tables as Parquet files, written in parts that are complete or absent.

    DIR.unfinished-HOST-PID/       until everything is there; then renamed to DIR
        states/part-0-00000.parquet
        edges/...
        manifest.json              last

A part is made in memory, row group by row group, written beside its place and then renamed (`kept.replace`),
so a reader never sees half of one.  At a URI files are written in place, the manifest last.
"""

from __future__ import annotations

import os
import shutil
import socket
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, field

from specchk.export.places import answering, local_path, storage_at
from specchk.export.storage import Data, Unwritable
from specchk.kept import replace
from specchk.search.engine import Unusable

MANIFEST = "manifest.json"  # the last file of an export
_TRIAL = "trial"  # a file that is written to check whether any can be
PART_BYTES = 1 << 24  # compressed; a part that has as many is written
PART_ROWS = 1 << 22
# A column of more different values than this is written plainly: most are names of states, which are random.
DICTIONARY_BYTES = 1 << 16


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

    def write(self, name: str, data: Sequence[Data]) -> None:
        """Write a file, given in pieces; `Unwritten`."""
        with _writing(self.target / name):
            replace(self._path(name), data)

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


class RemoteDraft(Struct, frozen=True):
    """A draft in another file system, without atomic renaming: its manifest makes it an export."""

    target: str

    def write(self, name: str, data: Sequence[Data]) -> None:
        """See `LocalDraft`."""
        try:
            storage_at(self.target).write(name, data)
        except (Unwritable, Unusable) as error:
            raise Unwritten(str(error)) from error

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


Draft = LocalDraft | RemoteDraft


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
    """Writes one writer's parts of a table.

    Readers see the types of `schema`; texts in what is added may be positions in a dictionary.
    """

    draft: Draft
    table: str
    schema: pa.Schema
    writer: int = 0
    parts: list[TablePart] = field(default_factory=list)
    _sink: Any = None
    _file: Any = None
    _rows: int = 0

    def add(self, rows: pa.Table) -> None:
        """Add some rows as a row group; `Unwritten`."""
        if not rows.num_rows:
            return
        if self._file is None:
            self._open(rows.schema)
        self._file.write_table(rows.replace_schema_metadata(self._metadata), row_group_size=rows.num_rows)
        self._rows += rows.num_rows
        if self._sink.tell() >= PART_BYTES or self._rows >= PART_ROWS:
            self._flush()

    def close(self) -> list[TablePart]:
        """Write the rest, for the first writer at least an empty part; return all parts; `Unwritten`."""
        if self._file is None and not self.parts and not self.writer:
            self._open(self.schema)
        if self._file is not None:
            self._flush()
        return self.parts

    @property
    def _metadata(self) -> dict[str, bytes]:
        """The types of `schema`: Arrow would let readers make dictionaries again, not possible in lists."""
        return {"ARROW:schema": b64encode(self.schema.serialize().to_pybytes())}

    def _open(self, schema: pa.Schema) -> None:
        self._sink = pa.BufferOutputStream()
        self._file = pq.ParquetWriter(
            self._sink, schema.with_metadata(self._metadata), store_schema=False, compression="zstd",
            # The fastest level, since threads write while they list steps.
            compression_level=1, dictionary_pagesize_limit=DICTIONARY_BYTES, write_statistics=["level"],
        )  # fmt: skip

    def _flush(self) -> None:
        self._file.close()
        name, data = part_name(self.table, self.writer, len(self.parts)), self._sink.getvalue()
        self.draft.write(name, [memoryview(data)])
        self.parts.append(TablePart(self.table, name, self._rows, data.size))
        self._sink = self._file = None
        self._rows = 0


def part_name(table: str, writer: int, number: int) -> str:
    """The path of a part of a table below the export."""
    return f"{table}/part-{writer}-{number:05d}.parquet"
