"""Exports of searches, read back as plain values by an independent reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from msgspec.structs import replace

from specchk.compile.instantiate import instantiate
from specchk.export.export import export
from specchk.ir.program import Program
from specchk.lang.frontend import check
from specchk.native import engine as native
from specchk.search import reference
from specchk.search.engine import Options
from specchk.search.verdict import Outcome

SPEC = Path(__file__).resolve().parents[2] / "spec"
TABLES = ("coverage", "edges", "levels", "run", "states", "traces", "violations")


def program(file: str, model: str | None = None, **constants: str) -> Program:
    return instantiate(check(str(SPEC / file)), model, constants).program


def of_text(text: str, folder: Path) -> Program:
    file = folder / "small.spec"
    file.write_text(text, encoding="utf-8")
    return instantiate(check(str(file)), None).program


def exported(program: Program, engine: str, place: Path | str, options: Options = Options()) -> Outcome:
    """Search and export; the outcome."""
    own = replace(options, on_end=lambda found, outcome: export(found, outcome, place))
    if engine == "reference":
        return reference.search(program, own)
    common = (own.budget, own.symmetry, own.keep_going, own.strict, own.on_end)
    return native.search(program, native.NativeOptions(*common, workers=2))


def rows(place: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    found: list[dict[str, Any]] = pq.read_table(place / table).to_pylist()
    return found


def states(place: Path) -> dict[int, str]:
    """The content of each state, by its id, without columns about the export."""
    found = rows(place, "states")
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: repr({name: value for name, value in row.items() if name != "id"}) for row in found}


def graph(place: Path) -> tuple[list[str], list[tuple[str, str, tuple[str, ...], str | None]]]:
    """States and steps by their contents, in a canonical order."""
    known = states(place)
    steps = [
        (known[row["source"]], row["action"], tuple(row["args"]),
         None if row["target"] is None else known[row["target"]])
        for row in rows(place, "edges")
    ]  # fmt: skip
    return sorted(known.values()), sorted(steps, key=repr)
