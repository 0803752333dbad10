"""Packed states and their steps as parts of tables, in blocks, in bounded memory.

A state is named by its 64-bit hash, so that a step's end has a name without being looked up, on this machine
or another one.  That no two states of an export have the same name is checked when all are written.
"""

from __future__ import annotations

import ctypes
from collections import Counter

from msgspec import Struct, field

from specchk.export.listed import StepWriter
from specchk.export.names import Naming, SharedNames
from specchk.export.parquet import pages
from specchk.export.parts import Draft, PageWriter, TablePart
from specchk.export.schemas import states_schema
from specchk.export.streams import ColumnPages, LeafStreams, packed
from specchk.ir.program import Program
from specchk.native.kernel.column_kernel import column_shapes
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region

BLOCK = 1 << 16  # states that become columns at once
ABOUT_COLUMNS = 3  # before those of the variables
STREAM_BYTES = 1 << 26  # of all streams, unless those of one state are more


class Written(Struct):
    """The parts of a writer, their contents by level, and the names of its states."""

    parts: list[TablePart] = field(default_factory=list)
    states: Counter[int] = field(default_factory=Counter)
    expanded: Counter[int] = field(default_factory=Counter)
    edges: Counter[int] = field(default_factory=Counter)
    names: list[SharedNames] = field(default_factory=list)

    def add(self, written: Written) -> None:
        """The sum with another writer's parts."""
        self.parts += written.parts
        self.names += written.names
        self.states.update(written.states)
        self.expanded.update(written.expanded)
        self.edges.update(written.edges)


class PackedWriter:
    """Writes states and steps; `release` frees the memory."""

    def __init__(
        self, program: Program, layout: StateLayout, kernel: Loaded, draft: Draft, writer: int = 0
    ) -> None:
        self.state_bytes = 8 * layout.words
        self.written = Written()
        self._kernel = kernel
        self._compression = compression = pages.Compression()
        self._states = PageWriter(draft, "states", states_schema(program), writer)
        shapes, _ = column_shapes(layout)
        bytes_ = sum(leaf.most * (leaf.value_bytes + 2 * leaf.owns_levels) for leaf in shapes.leaves)
        self._rows = min(BLOCK, max(1, STREAM_BYTES // max(1, bytes_)))
        self._streams = LeafStreams(shapes, self._rows, kernel)
        columns = self._states.columns[ABOUT_COLUMNS:]
        self._pages = ColumnPages(shapes.leaves, columns, compression)
        self._steps = StepWriter(program, layout, kernel, draft, writer, compression)
        self._block = Region(BLOCK * self.state_bytes)
        self._runs: list[StateRun] = []
        self._count = 0
        self._naming = Naming(kernel, BLOCK)

    def add(self, level: int, address: int, count: int, *, expanded: bool) -> None:
        """Write states at an address, and the steps of those that were expanded."""
        while count:
            some = min(count, BLOCK - self._count)
            ctypes.memmove(
                self._block.address + self._count * self.state_bytes, address, some * self.state_bytes
            )
            self._runs.append(StateRun(level, some, expanded))
            self._count += some
            address, count = address + some * self.state_bytes, count - some
            if self._count == BLOCK:
                self._flush()

    def close(self) -> Written:
        """Write the rest; return everything that was written."""
        self._flush()
        self.written.parts += self._states.close() + self._steps.close()
        return self.written

    def release(self) -> None:
        """Free the memory."""
        for region in (self._block, self._naming, self._streams, self._steps, self._states):
            region.release()

    def _flush(self) -> None:
        count = self._count
        if not count:
            return
        names, shared = self._naming.names(self._block.address, count)
        chunks = self._pages.chunks()
        for first in range(0, count, self._rows):
            some = min(self._rows, count - first)
            address = self._block.address + first * self.state_bytes
            self._kernel.call["columns"](self._streams.block.address, address, some)
            self._pages.fill(chunks, self._streams)
        self._states.add(count, [*self._about(names), *chunks])
        self.written.names.append(shared)
        self._list()
        self._count, self._runs = 0, []

    def _about(self, names: pages.Data) -> list[pages.ColumnChunk]:
        """The first columns of a row group: `id`, `level`, `expanded`."""
        runs, there = self._runs, pages.levels(pages.run(self._count, 1, 1))

        def number(level: int) -> bytes:
            return pages.plain_numbers(pages.Physical.INT32, [level])

        level = b"".join([number(one.level) * one.count for one in runs])
        expanded = b"".join([bytes([one.is_expanded]) * one.count for one in runs])
        # Names are random, and take as much room when they are compressed.
        about = ((names, False), (level, True), (packed(self._kernel, expanded, 1), True))
        chunks = [
            self._compression.chunk(column, [*there, data], self._count, is_compressed=is_compressed)
            for column, (data, is_compressed) in zip(self._states.columns, about, strict=False)
        ]
        levels = [one.level for one in runs]
        chunks[1].bounds = number(min(levels)), number(max(levels))
        return chunks

    def _list(self) -> None:
        at = self._block.address
        for run_ in self._runs:
            self.written.states[run_.level] += run_.count
            if run_.is_expanded:
                self.written.expanded[run_.level] += run_.count
                self.written.edges[run_.level] += self._steps.add(at, run_.count)
            at += run_.count * self.state_bytes


class StateRun(Struct, frozen=True):
    """Consecutive states of a level, and whether they were expanded."""

    level: int
    count: int
    is_expanded: bool
