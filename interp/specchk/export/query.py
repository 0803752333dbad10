"""SQL over exports, on one machine: a view for each table, and one read-only statement.

Of several exports each has a schema named as its directory, and the tables of the first one need no schema.
DuckDB reaches files only by `_Files`, which opens those of the manifests, for reading.  Neither the kind of
a statement nor `allowed_directories` would do: `explain analyze copy` and `with x as (copy ...)` write, and
files that may be read there may be written, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from threading import get_ident
from typing import Any, BinaryIO

import duckdb
from fsspec import AbstractFileSystem
from msgspec import Struct

from specchk.export.columns import distinct
from specchk.export.manifest import Export
from specchk.export.pairs import Pairs
from specchk.export.places import local_path
from specchk.export.storage import Storage
from specchk.guardian import temporary_folder

Reader = Callable[[Any], Any]
AT_ONCE = 1024
_ROOT = "export://"
_NAMES = ("varchar", "enum")
# Of a map with such keys DuckDB gives a list of its keys and one of its values, as of a struct.
_UNHASHABLE = ("array", "list", "map", "struct", "tuple", "union")
_READS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_NO_COLUMN = re.compile(r'(?:Referenced column|column named) "([^"]+)"')


class BadQuery(Exception):
    """A statement that cannot be run; the text gives the reason, and the available alternatives."""


class Answer(Struct, frozen=True):
    """The columns of a result, and its rows, in blocks; maps are `Pairs`, structs dictionaries."""

    columns: list[str]
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def answered(exports: Sequence[Export], text: str) -> Iterator[Answer]:
    """The answer to a statement; raises `BadQuery`, also while rows are read."""
    # DuckDB's default for what does not fit into memory is a folder in the current directory.
    with temporary_folder("specchk-sql-") as spill, duckdb.connect() as connection:
        schemas = _views(connection, exports, spill)
        try:
            result = connection.execute(_statement(connection, text))
            columns = result.description or []
            readers = [_reader(column[1]) for column in columns]
            yield Answer([str(column[0]) for column in columns], _rows(result, readers))
        except duckdb.Error as error:
            raise BadQuery(_reason(str(error), exports, schemas)) from error


def _rows(result: duckdb.DuckDBPyConnection, readers: Sequence[Reader | None]) -> Iterator[tuple[Any, ...]]:
    while rows := result.fetchmany(AT_ONCE):
        if not any(readers):
            yield from rows
            continue
        for row in rows:
            pairs = zip(row, readers, strict=True)
            yield tuple([value if read is None else read(value) for value, read in pairs])


def _reader(kind: Any) -> Reader | None:
    """The function that makes the maps in a value of a type `Pairs`; None if there are none in it."""
    match kind.id:
        case "map":
            return _map_reader(*[part for _, part in kind.children])
        case "list" | "array":
            item = _reader(kind.children[0][1])
            return None if item is None else lambda some: some and [item(value) for value in some]
        case "struct":
            parts = {name: read for name, part in kind.children if (read := _reader(part)) is not None}
            if parts:
                return lambda some: some and some | {name: read(some[name]) for name, read in parts.items()}
    return None


def _map_reader(key: Any, item: Any) -> Reader:
    readers, is_named = (_reader(key), _reader(item)), key.id in _NAMES

    def read(pairs: dict[Any, Any] | None) -> Pairs | None:
        if pairs is None:
            return None
        is_split = key.id in _UNHASHABLE and list(pairs) == ["key", "value"]
        columns = pairs.values() if is_split else (pairs.keys(), pairs.values())
        plain = [
            values if own is None else map(own, values) for own, values in zip(readers, columns, strict=True)
        ]
        return Pairs(tuple(zip(*plain, strict=True)), is_named)

    return read


def _views(connection: duckdb.DuckDBPyConnection, exports: Sequence[Export], spill: str) -> list[str]:
    """Create a view of each table; afterwards nothing else can be read, and nothing written but `spill`."""
    schemas = distinct(_schema(export.folder) for export in exports)
    connection.register_filesystem(_Files(exports))
    for number, (schema, export) in enumerate(zip(schemas, exports, strict=True)):
        connection.execute(f"create schema {_quoted(schema)}")
        for table, files in export.files.items():
            names = ", ".join(_literal(f"{_ROOT}{number}/{file}") for file in files)
            view = f"{_quoted(schema)}.{_quoted(table)}"
            connection.execute(f"create view {view} as from read_parquet([{names}])")
    # In this order: a directory can be allowed only before access is closed, and nothing after the lock.
    for setting in (
        f"schema = {_literal(schemas[0])}", f"temp_directory = {_literal(spill)}",
        f"allowed_directories = [{_literal(_ROOT)}]", "enable_external_access = false",
        "lock_configuration = true",
    ):  # fmt: skip
        connection.execute(f"set {setting}")
    return schemas


class _Files(AbstractFileSystem):  # type: ignore[misc]
    """The files of some exports by their name in DuckDB, `export://` and the number of the export."""

    protocol = "export"
    cachable = False  # by fsspec, which would return the files of other exports

    def __init__(self, exports: Sequence[Export]) -> None:
        super().__init__()
        self.places = {
            f"{_ROOT}{number}/{file}": (export.storage, file)
            for number, export in enumerate(exports)
            for files in export.files.values()
            for file in files
        }

    def open(self, path: str, mode: str = "rb", **_: Any) -> _File:
        """The file, for reading; `PermissionError` for any other file or mode."""
        storage, file = self._place(path, mode)
        return _File(partial(storage.open, file))

    def _place(self, path: str, mode: str) -> tuple[Storage, str]:
        if mode != "rb" or path not in self.places:
            raise PermissionError(f"{path}: an export is read-only, and only its tables can be read")
        return self.places[path]

    def glob(self, path: str, **_: Any) -> list[str]:
        """The file of this name: a `*` in a name is a character."""
        return [path] if path in self.places else []

    def exists(self, path: str, **_: Any) -> bool:
        """Whether it is a file of the exports."""
        return path in self.places

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Its size."""
        storage, file = self._place(path, "rb")
        return {"name": path, "size": storage.size(file), "type": "file"}

    def modified(self, path: str) -> datetime:
        """A constant: an export does not change."""
        return datetime.fromtimestamp(0, UTC)


class _File:
    """A file, opened by each thread that uses it: DuckDB moves to a place and reads there in two calls."""

    def __init__(self, opened: Callable[[], BinaryIO]) -> None:
        self._opened, self._files = opened, dict[int, BinaryIO]()

    def __getattr__(self, name: str) -> Any:
        # Not `threading.local`: of a thread that is not Python's, Python forgets all after each call.
        thread = get_ident()
        if thread not in self._files:
            self._files[thread] = self._opened()
        return getattr(self._files[thread], name)

    def close(self) -> None:
        """Close it for all threads."""
        for file in self._files.values():
            file.close()

    __del__ = close  # DuckDB forgets some files without closing them


def _schema(folder: str) -> str:
    path = local_path(folder)
    name = folder.rstrip("/").rpartition("/")[2] if path is None else path.absolute().name
    return re.sub(r"\W", "_", name) or "export"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _statement(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    statements = connection.extract_statements(text)
    if len(statements) != 1:
        raise BadQuery(f"there are {len(statements)} statements: write one")
    if statements[0].type not in _READS:
        raise BadQuery(f"{statements[0].type.name.lower()} is not a query: an export is read-only")
    return statements[0]


def _reason(text: str, exports: Sequence[Export], schemas: Sequence[str]) -> str:
    """The reason of an error, with the available tables or columns."""
    if text.startswith("Traceback"):  # from `_Files`: its own words come last
        return text.strip().splitlines()[-1].partition(": ")[2]
    first = text.splitlines()[0]
    if missing := _NO_TABLE.search(text):
        return f"no table {missing[1].rstrip('!')}: there are {_tables(exports, schemas)}"
    if "Binder Error" in first and (missing := _NO_COLUMN.search(text)):
        return f"no column {missing[1]}: {_columns(exports[0], text)}"
    place = next((line for line in text.splitlines()[1:] if line.startswith("LINE ")), "")
    return first if not place else f"{first} ({place.partition(': ')[2].strip()})"


def _tables(exports: Sequence[Export], schemas: Sequence[str]) -> str:
    own = ", ".join(sorted(exports[0].files))
    return own if len(exports) == 1 else f"{own}, in {' and '.join(schemas)}"


def _columns(export: Export, text: str) -> str:
    """The columns of the tables named in a statement."""
    named = [table for table in export.columns if re.search(rf"\b{table}\b", text)] or list(export.columns)
    return "; ".join(f"{table} has {', '.join(export.columns[table])}" for table in named)
