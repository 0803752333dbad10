"""The manifest of an export: its origin, and all of its files.

    {"schema": "specchk.export/1", "spec": "kip320", "verdict": "holds", "complete": true, ...,
     "tables": {"states": {"rows": 2987, "files": [{"name": "states/part-0-00000.parquet", "bytes": 40210}],
                           "columns": {"id": "int64", ...}}, ...}}

It is written last.  A directory without one is not an export, and one whose files differ from it is damaged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from specchk.export.parts import MANIFEST, TablePart
from specchk.export.places import answering
from specchk.export.storage import Storage
from specchk.search.engine import Unusable

SCHEMA = "specchk.export/1"


class NoExport(Exception):
    """A directory is not a complete export; the text gives the reason."""


class Export(Struct, frozen=True):
    """An export: its place, its manifest's members, and the files of each table, by name."""

    folder: str
    storage: Storage
    about: dict[str, Any]
    files: dict[str, list[str]]
    columns: dict[str, dict[str, str]]

    @property
    def warning(self) -> str | None:
        """The reason why the states are not all reachable states, or None."""
        if self.about["complete"]:
            return None
        reason = self.about["reason"] or f"the search ended with `{self.about['verdict']}`"
        return f"{self.folder} does not have all reachable states: {reason}"


def manifest_of(run: dict[str, Any], parts: Sequence[TablePart], columns: dict[str, dict[str, str]]) -> bytes:
    """The manifest of an export."""
    tables = {
        table: {
            "rows": sum(part.rows for part in parts if part.table == table),
            "files": [{"name": part.file, "bytes": part.size} for part in parts if part.table == table],
            "columns": columns[table],
        }
        for table in columns
    }
    about = {**run, "constants": dict(run["constants"])}
    return (json.dumps({"schema": SCHEMA, **about, "tables": tables}, indent=2) + "\n").encode()


def opened(place: Path | str) -> Export:
    """The export at a path or URI; raises `NoExport`."""
    folder = str(place)
    try:
        storage = answering(folder)
        about = _read(storage, folder)
        for table in about["tables"].values():
            for file in table["files"]:
                _require_whole(storage, file["name"], file["bytes"])
    except Unusable as error:
        raise NoExport(str(error)) from error
    tables = about.pop("tables")
    files = {name: [file["name"] for file in table["files"]] for name, table in tables.items()}
    columns = {name: table["columns"] for name, table in tables.items()}
    return Export(folder, storage, about, files, columns)


def _read(storage: Storage, folder: str) -> dict[str, Any]:
    """The manifest of a directory; raises `NoExport`."""
    name = storage.name_of(MANIFEST)
    try:
        with storage.open(MANIFEST) as file:
            about = json.loads(file.read())
    except FileNotFoundError:
        reason = (
            "it has no manifest.json, which is written last"
            if storage.exists("")
            else "there is no such directory"
        )
        raise NoExport(f"{folder} is not an export: {reason}") from None
    except (OSError, ValueError) as error:
        raise NoExport(f"{name} cannot be read ({error})") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise NoExport(f"{folder} is not an export of this version of specchk ({SCHEMA})")
    return about


def _require_whole(storage: Storage, name: str, size: int) -> None:
    path = storage.name_of(name)
    try:
        there = storage.size(name)
    except OSError as error:
        raise NoExport(f"{path} is missing ({error.strerror or error}): export again") from error
    if there != size:
        raise NoExport(f"{path} has {there} bytes instead of {size}: export again")
