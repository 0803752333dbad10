"""Tables of rows that executors write as Parquet, one part of each table per piece of work.

    PLACE/recordings/part-000000.parquet      written whole or not at all; a piece that is done again replaces
    PLACE/unexplained/part-000000.parquet     its parts, so that each row is there once
    PLACE/manifest.json                       last: `specchk sql PLACE` reads what it lists

The columns are values of another room; their types are words: `text`, `texts`, `int`, `float`, `bool`.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from specchk.export.manifest import manifest_of
from specchk.export.parts import MANIFEST, TablePart
from specchk.export.places import require_answer, storage_at
from specchk.export.storage import Storage, Unwritable
from specchk.search.engine import Unusable
from specchk.spark.pipeline.files import names_in

GROWING = "growing.json"
Columns = Mapping[str, Sequence[tuple[str, str]]]
_TYPES: Mapping[str, pa.DataType] = MappingProxyType({
    "text": pa.string(), "texts": pa.list_(pa.string()), "int": pa.int64(), "float": pa.float64(),
    "bool": pa.bool_(),
})  # fmt: skip


class TablesAt(Struct, frozen=True):
    """Writes table parts at a place that executors and driver share; a value that can be sent."""

    place: str
    columns: Columns

    def __call__(self, name: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Write a part of each table; `Unusable` if there is no space."""
        storage = storage_at(self.place, durable=False)
        for table, columns in self.columns.items():
            schema = _schema(columns)
            sink = pa.BufferOutputStream()
            data = pa.Table.from_pylist(list(rows.get(table, ())), schema=schema)
            pq.write_table(data, sink, compression="zstd", compression_level=1)
            self._write(storage, f"{table}/part-{name}.parquet", memoryview(sink.getvalue()))

    @contextmanager
    def claimed(self, purpose: str, *, may_continue: bool) -> Iterator[None]:
        """Claim the place for one run alone.

        `Unusable` if it is a file, is not empty, or is claimed by another run; a stream may continue its own
        tables.
        """
        require_answer(self.place)
        _require_free(self.place, may_continue=may_continue)
        with storage_at(self.place).claim(purpose):
            # Again, since another run may have had it meanwhile.
            _require_free(self.place, may_continue=may_continue)
            yield

    def drop(self, prefix: str) -> None:
        """Remove the parts with this name prefix, from the driver; `Unusable` if that is not possible."""
        storage = storage_at(self.place)
        for table in self.columns:
            for name in _parts_of(storage, table):
                if name.startswith(f"{table}/part-{prefix}"):
                    try:
                        storage.remove_file(name)
                    except OSError as error:
                        host, reason = socket.gethostname(), error.strerror or error
                        place = storage.name_of(name)
                        raise Unusable(f"--tables: {host} cannot remove {place}: {reason}") from error

    def finish(self, about: Mapping[str, Any], table: str, rows: int) -> None:
        """Write the manifest, from the driver; `Unusable` if it does not see this many rows of a table."""
        storage = storage_at(self.place)
        try:
            parts = [part for one in self.columns for part in self._parts(storage, one)]
        except (OSError, pa.ArrowException) as error:
            raise Unusable(
                f"--tables: {socket.gethostname()} cannot read the parts of {self.place}: {error}"
            ) from error
        there = sum(part.rows for part in parts if part.table == table)
        if there < rows:
            raise Unusable(
                f"--tables: {socket.gethostname()} sees {there} rows of {self.place}/{table} "
                f"instead of {rows}: all machines need the same directory under that name"
            )
        columns = {one: {f.name: str(f.type) for f in _schema(of)} for one, of in self.columns.items()}
        self._write(storage, MANIFEST, manifest_of({"constants": {}, **about}, parts, columns))

    def growing(self) -> list[str]:
        """The unfinished recordings left by an earlier run."""
        storage = storage_at(self.place)
        if not storage.exists(GROWING):
            return []
        try:
            with storage.open(GROWING) as file:
                return [str(name) for name in json.loads(file.read())]
        except (OSError, ValueError, TypeError) as error:
            reason = f"{storage.name_of(GROWING)} is damaged; unfinished recordings are named there"
            raise Unusable(f"--tables: {reason}") from error

    def keep_growing(self, places: Sequence[str]) -> None:
        """Record the unfinished recordings for a later run; `Unusable` if there is no space."""
        self._write(storage_at(self.place), GROWING, json.dumps(places).encode())

    @property
    def checkpoint(self) -> str:
        """The place where a stream records the files that it has seen."""
        return f"{self.place.rstrip('/')}/checkpoint"

    def _parts(self, storage: Storage, table: str) -> Iterator[TablePart]:
        """The parts of a table, with the row counts in their footers."""
        for name in _parts_of(storage, table):
            with storage.open(name) as file:
                rows, size = pq.read_metadata(file).num_rows, file.seek(0, os.SEEK_END)
            yield TablePart(table, name, rows, size)

    def _write(self, storage: Storage, name: str, data: bytes | memoryview) -> None:
        try:
            storage.write(name, [data])
        except Unwritable as error:
            raise Unusable(f"--tables: {socket.gethostname()} cannot write {error}") from None


def _parts_of(storage: Storage, table: str) -> list[str]:
    """The paths of a table's parts, without drafts."""
    return [f"{table}/{name}" for name in storage.file_names(table) if name.endswith(".parquet")]


def _schema(columns: Sequence[tuple[str, str]]) -> pa.Schema:
    return pa.schema([(name, _TYPES[word]) for name, word in columns])


def _require_free(place: str, *, may_continue: bool) -> None:
    try:
        # Claims are left behind, and do not count as contents.
        there = [name for name in names_in(place) if not name.startswith(("claim", "bid-", "held-"))]
    except NotADirectoryError:
        raise Unusable(f"--tables: {place} is a file: choose another place") from None
    except OSError as error:
        raise Unusable(f"--tables: {place}: {error.strerror or error}") from error
    if there and not (may_continue and "checkpoint" in there):
        raise Unusable(f"--tables: {place} has something: choose another place, or remove it")
