"""Parquet files composed of pages; Arrow writes the schema and everything in it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

import pyarrow as pa
import pyarrow.parquet as pq

from specchk.export.parquet.compact import Coded, Kind, binary, fields_of, i16, i64, listed, struct
from specchk.export.parquet.pages import ColumnChunk, FileColumn, Physical, Pieces

MAGIC = b"PAR1"


@dataclass(slots=True)
class PageFile:
    """A file written row group by row group; `size` is that of the pieces so far."""

    schema: pa.Schema
    rows: int = 0
    columns: list[FileColumn] = field(init=False)
    _footer: dict[int, Coded] = field(init=False)
    size: int = 0
    _groups: list[Coded] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Arrow would let readers make dictionaries again, which they cannot do inside lists.
        own = {"ARROW:schema": b64encode(self.schema.serialize().to_pybytes())}
        sink = pa.BufferOutputStream()
        pq.ParquetWriter(sink, self.schema.with_metadata(own), store_schema=False).close()
        empty = sink.getvalue().to_pybytes()
        size = int.from_bytes(empty[-8:-4], "little")
        self._footer = fields_of(empty[-8 - size : -8])
        leaves = pq.ParquetFile(pa.BufferReader(empty)).schema
        self.columns = [_column(leaves.column(index)) for index in range(len(leaves))]

    def add(self, rows: int, chunks: Sequence[ColumnChunk]) -> Pieces:
        """The pieces of a row group: a chunk for each column."""
        assert [chunk.column for chunk in chunks] == self.columns
        pieces, columns, whole = self._head(), [], 0
        start = self.size
        for chunk in chunks:
            columns.append(chunk.about(self.size))
            for page in chunk.stored:
                pieces += page.pieces
                self.size += page.size
                whole += page.whole
        self._groups.append(struct({
            1: listed(Kind.STRUCT, columns), 2: i64(whole), 3: i64(rows), 5: i64(start),
            6: i64(self.size - start), 7: i16(len(self._groups)),
        }))  # fmt: skip
        self.rows += rows
        return pieces

    def finish(self) -> Pieces:
        """The last pieces; afterwards another file of the same schema can be written."""
        made = binary(f"specchk version {version('specchk')}".encode())
        groups = listed(Kind.STRUCT, self._groups)
        footer = struct(self._footer | {3: i64(self.rows), 4: groups, 6: made})[1]
        pieces: Pieces = [*self._head(), footer, len(footer).to_bytes(4, "little"), MAGIC]
        self.rows, self.size, self._groups = 0, 0, []
        return pieces

    def _head(self) -> Pieces:
        """The first piece of a file, if none is written yet."""
        if self.size:
            return []
        self.size = len(MAGIC)
        return [MAGIC]


def _column(leaf: pq.ColumnSchema) -> FileColumn:
    path = tuple(leaf.path.split("."))
    return FileColumn(
        path, Physical[leaf.physical_type], leaf.max_definition_level, leaf.max_repetition_level
    )
