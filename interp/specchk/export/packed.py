"""Packed states and their steps as parts of tables, in blocks, in bounded memory.

A state is named by its 64-bit hash, so that a step's end has a name without being looked up, on this machine
or another one.  That no two states of an export have the same name is checked when all are written.
"""

from __future__ import annotations

import ctypes
from collections import Counter

import pyarrow as pa
from msgspec import Struct, field

from specchk.export.listed import StepWriter
from specchk.export.names import Naming, SharedNames
from specchk.export.parts import Draft, TablePart, TableWriter
from specchk.export.schemas import states_schema
from specchk.export.unpack import states_at
from specchk.ir.program import Program
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region

BLOCK = 1 << 16  # states of a row group
UNPACKED = 1 << 15  # words of states that become columns at once, while they are in the processor's cache


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
        self._layout = layout
        self._states = TableWriter(draft, "states", states_schema(program), writer)
        self._steps = StepWriter(program, layout, kernel, draft, writer)
        self._block = Region(BLOCK * self.state_bytes)
        self._runs: list[StateRun] = []
        self._count = 0
        self._naming = Naming(kernel, BLOCK)

    def add(self, level: int, address: int, count: int, *, expanded: bool) -> None:
        """Write states at an address, and the steps of those that were expanded."""
        while count:
            fitting = min(count, BLOCK - self._count)
            size = fitting * self.state_bytes
            ctypes.memmove(self._block.address + self._count * self.state_bytes, address, size)
            self._runs.append(StateRun(level, fitting, expanded))
            self._count += fitting
            address, count = address + size, count - fitting
            if self._count == BLOCK:
                self._flush()

    def close(self) -> Written:
        """Write the rest; return everything that was written."""
        self._flush()
        self.written.parts += self._states.close() + self._steps.close()
        return self.written

    def release(self) -> None:
        """Free the memory."""
        for region in (self._block, self._naming, self._steps):
            region.release()

    def _flush(self) -> None:
        count = self._count
        if not count:
            return
        names, shared = self._naming.names(self._block.address, count)
        runs, rows = self._runs, max(1, UNPACKED // self._layout.words)
        ids = pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(names)])
        levels = pa.concat_arrays([pa.repeat(pa.scalar(run.level, pa.int32()), run.count) for run in runs])
        expanded = pa.concat_arrays([pa.repeat(pa.scalar(run.is_expanded), run.count) for run in runs])
        tables = []
        for first in range(0, count, rows):
            address, length = self._block.address + first * self.state_bytes, min(rows, count - first)
            about = [column.slice(first, length) for column in (ids, levels, expanded)]
            columns = [*about, *states_at(address, length, self._layout)]
            tables.append(pa.Table.from_arrays(columns, self._states.schema.names))
        self._states.add(pa.concat_tables(tables))
        self.written.names.append(shared)
        self._list()
        self._count, self._runs = 0, []

    def _list(self) -> None:
        at = self._block.address
        for run in self._runs:
            self.written.states[run.level] += run.count
            if run.is_expanded:
                self.written.expanded[run.level] += run.count
                self.written.edges[run.level] += self._steps.add(at, run.count)
            at += run.count * self.state_bytes


class StateRun(Struct, frozen=True):
    """Consecutive states of a level, and whether they were expanded."""

    level: int
    count: int
    is_expanded: bool
