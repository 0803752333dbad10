"""An export: the state space of a search as Parquet files, once the search has ended.

The engines differ in where their states are (`sources`); tables, files and manifest are the same for all.

Not here: reading one (`query`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specchk.export.manifest import manifest_of
from specchk.export.outcome import rows_of_run, small_tables
from specchk.export.parts import TableWriter, draft_at
from specchk.export.schemas import EDGES, states_schema
from specchk.export.sources import NativeSource, ReferenceSource, SpaceSource
from specchk.native.engine import NativeEngine
from specchk.search.reference import ReferenceEngine
from specchk.search.verdict import Outcome


def export(engine: Any, outcome: Outcome, place: str | Path) -> None:
    """Write the states, steps and counts of a search that has ended to a new path or URI; `Unwritten`."""
    source = source_of(engine)
    draft = draft_at(str(place))
    try:
        written = source.write(draft)
        parts, schemas = list(written.parts), {"states": states_schema(outcome.program), "edges": EDGES}
        for table, rows in small_tables(outcome, written, source.names):
            writer = TableWriter(draft, table, rows.schema)
            writer.add(rows)
            parts += writer.close()
            schemas[table] = rows.schema
        columns = {
            table: {column.name: str(column.type) for column in schema}
            for table, schema in sorted(schemas.items())
        }
        parts.sort(key=lambda part: part.file)
        draft.finish(manifest_of(rows_of_run(outcome, written)[0], parts, columns))
    finally:
        draft.abandon()


def source_of(engine: Any) -> SpaceSource:
    """The source of an engine's states; an engine of a room above has its own."""
    match engine:
        case NativeEngine():
            return NativeSource(engine)
        case ReferenceEngine():
            return ReferenceSource(engine)
    source: SpaceSource = engine.export_source()
    return source
