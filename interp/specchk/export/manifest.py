"""The manifest of an export: what it is of, and all of its files.

    {"schema": "specchk.export/1", "spec": "kip320", "verdict": "holds", "complete": true, ...,
     "tables": {"states": {"rows": 2987, "files": [{"name": "states/part-0-00000.parquet", "bytes": 40210}],
                           "columns": {"id": "int64", ...}}, ...}}

It is written last.  A directory without one is no export, and one whose files differ from it was damaged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchk.export.parts import TablePart

SCHEMA = "specchk.export/1"
NAME = "manifest.json"


class NoExport(Exception):
    """A directory is no whole export; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Export:
    """An export on disk: its manifest's members, and the files of each table."""

    folder: Path
    about: dict[str, Any]
    files: dict[str, list[Path]]
    columns: dict[str, dict[str, str]]

    @property
    def warning(self) -> str | None:
        """Why the states are not all that are reachable, or None."""
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


def opened(folder: Path) -> Export:
    """The export in a directory; `NoExport`."""
    try:
        about = json.loads((folder / NAME).read_bytes())
    except FileNotFoundError:
        reason = (
            "it has no manifest.json, which is written last"
            if folder.is_dir()
            else "there is no such directory"
        )
        raise NoExport(f"{folder} is no export: {reason}") from None
    except (OSError, ValueError) as error:
        raise NoExport(f"{folder / NAME} cannot be read ({error})") from error
    if not isinstance(about, dict) or about.get("schema") != SCHEMA:
        raise NoExport(f"{folder} is no export of this version of specchk ({SCHEMA})")
    for table in about["tables"].values():
        for file in table["files"]:
            _see_whole(folder / file["name"], file["bytes"])
    tables = about.pop("tables")
    files = {name: [folder / file["name"] for file in table["files"]] for name, table in tables.items()}
    return Export(folder, about, files, {name: table["columns"] for name, table in tables.items()})


def _see_whole(path: Path, size: int) -> None:
    try:
        there = path.stat().st_size
    except OSError as error:
        raise NoExport(f"{path} is missing ({error.strerror}): export again") from error
    if there != size:
        raise NoExport(f"{path} has {there} bytes instead of {size}: export again")
