"""Packed states and their steps as parts of tables, in blocks, in bounded memory.

A state is named by its 64-bit hash, so that a step's end has a name without being looked up, on this machine
or another one.  That no two states of an export have the same name is checked when all are written.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from specchk.export.decoded import DecodedCodes, PackedBlock, place_of, spread
from specchk.export.parts import Draft, TablePart, TableWriter, Unwritten
from specchk.export.schemas import EDGES, states_schema
from specchk.ir.program import Program
from specchk.meaning.properties import Properties
from specchk.meaning.step import Stepper
from specchk.meaning.values import State, positions, show
from specchk.native.compiler import Loaded
from specchk.native.exchange import exchange_worker
from specchk.native.kernel.edge_kernel import OUTSIDE_BIT, RANK_BITS
from specchk.native.machine.frames import Listing, Thread, most_successors
from specchk.native.machine.layout import StateLayout, mask
from specchk.native.machine.memory import Region, Words

BLOCK = 1 << 16  # states that become columns at once
STEPS = 1 << 18  # steps that are listed at once
_NAMES = 1 << 21  # names that are compared at once


@dataclass(slots=True)
class Written:
    """The parts that a writer wrote, what is in them by level, and the names of its states."""

    parts: list[TablePart] = field(default_factory=list)
    states: Counter[int] = field(default_factory=Counter)
    expanded: Counter[int] = field(default_factory=Counter)
    edges: Counter[int] = field(default_factory=Counter)
    names: list[Any] = field(default_factory=list)

    def add(self, written: Written) -> None:
        """What another writer wrote, too."""
        self.parts += written.parts
        self.names += written.names
        self.states.update(written.states)
        self.expanded.update(written.expanded)
        self.edges.update(written.edges)


class PackedWriter:
    """Writes states and steps; `release` gives the memory back."""

    def __init__(
        self, program: Program, layout: StateLayout, kernel: Loaded, draft: Draft, writer: int = 0
    ) -> None:
        self.state_bytes, self.words = 8 * layout.words, layout.words
        self.written = Written()
        self._kernel = kernel
        self._places = [place_of(place.type, place.offset) for place in layout.places]
        self._schema = states_schema(program)
        self._states = TableWriter(draft, "states", self._schema, writer, ("id",))
        self._edges = TableWriter(draft, "edges", EDGES, writer, ("source", "target"))
        self._labels = Labels(program)
        self._block = Region(BLOCK * self.state_bytes)
        self._runs: list[tuple[int, int, bool]] = []  # level, states, whether they were expanded
        self._count = 0
        self._names = Region(8 * BLOCK)
        most = most_successors(program)
        self._worker = exchange_worker(program, layout)
        self._successors = Region(8 * (most + 1) * (layout.words + 1))
        self._worker.block[Thread.PENDING] = self._successors.address
        self._listing = Words(int(Listing.SIZE))
        # With room behind the end for the steps of one state: the kernel checks only between states.
        self._arrays = [Region(8 * (STEPS + most + 1)) for _ in range(3)]
        for word, array in zip((Listing.SOURCES, Listing.LABELS, Listing.TARGETS), self._arrays, strict=True):
            self._listing[word] = array.address
        self._listing[Listing.CAPACITY] = STEPS

    def add(self, level: int, address: int, count: int, *, expanded: bool) -> None:
        """States at an address; the steps of those that were expanded."""
        while count:
            some = min(count, BLOCK - self._count)
            ctypes.memmove(
                self._block.address + self._count * self.state_bytes, address, some * self.state_bytes
            )
            self._runs.append((level, some, expanded))
            self._count += some
            address, count = address + some * self.state_bytes, count - some
            if self._count == BLOCK:
                self._flush()

    def close(self) -> Written:
        """Write what is left; all that was written."""
        self._flush()
        self._flush_steps()
        self.written.parts += self._states.close() + self._edges.close()
        return self.written

    def release(self) -> None:
        """Give the memory back."""
        for region in (self._block, self._names, self._successors, *self._arrays):
            region.release()
        self._worker.release()

    def _flush(self) -> None:
        count, runs = self._count, self._runs
        if not count:
            return
        self._kernel.call["identify"](self._block.address, count, self._names.address)
        names = pa.array(_numbers(self._names.address, count))
        levels = _repeated([(level, some) for level, some, _ in runs], pa.int32())
        expanded = _repeated([(was, some) for _, some, was in runs], pa.bool_())
        codes = PackedBlock(self._block.address, count, self.words)
        columns = [place.column(codes) for place in self._places]
        self._states.add(pa.RecordBatch.from_arrays([names, levels, expanded, *columns], self._schema.names))
        self.written.names.append(pc.add(names, 0))  # a copy: the memory is used again
        self._list()
        self._count, self._runs = 0, []

    def _list(self) -> None:
        """List the steps of the block's states."""
        at = self._block.address
        for level, count, was in self._runs:
            self.written.states[level] += count
            if was:
                self.written.expanded[level] += count
                self._steps(level, at, count)
            at += count * self.state_bytes

    def _steps(self, level: int, address: int, count: int) -> None:
        listing = self._listing
        while count:
            before = listing[Listing.FILLED]
            self._kernel.call["edges"](listing.address, self._worker.block.address, address, count)
            self.written.edges[level] += listing[Listing.FILLED] - before
            done = listing[Listing.DONE]
            address, count = address + done * self.state_bytes, count - done
            if listing[Listing.FILLED] >= STEPS:
                self._flush_steps()

    def _flush_steps(self) -> None:
        count = self._listing[Listing.FILLED]
        if count:
            sources, labels, targets = (_numbers(region.address, count) for region in self._arrays)
            self._edges.add(self._labels.batch(sources, labels, targets))
            self._listing[Listing.FILLED] = 0


def _repeated(runs: Sequence[tuple[int, int]], kind: pa.DataType) -> pa.Array:
    """Each value as often as its run is long."""
    return pa.concat_arrays([pa.repeat(pa.scalar(value, kind), count) for value, count in runs])


def _numbers(address: int, count: int) -> pa.Array:
    """The words at an address as signed numbers, without copying them."""
    return pa.Array.from_buffers(pa.int64(), count, [None, pa.foreign_buffer(address, 8 * count)])


class Labels:
    """The labels of steps as actions and arguments."""

    def __init__(self, program: Program) -> None:
        self._actions = pa.array([action.name for action in program.actions], pa.string())
        self._domains = [
            [[show(value, param.type) for value in positions(param.type)] for param in action.params]
            for action in program.actions
        ]
        self._args = DecodedCodes(EDGES.field("args").type, self.arguments)

    def batch(self, sources: pa.Array, labels: pa.Array, targets: pa.Array) -> pa.RecordBatch:
        """Steps with the names of their actions and arguments."""
        outside = pc.less(labels, 0)
        if outside.true_count:
            targets = pc.if_else(outside, None, targets)
            labels = pc.bit_wise_and(labels, mask(OUTSIDE_BIT))
        encoded = labels.dictionary_encode()
        different = encoded.dictionary.to_pylist()
        actions = pa.array([label >> RANK_BITS for label in different], pa.int32()).take(encoded.indices)
        arguments = spread(self._args.of(different), encoded.indices)
        column = pa.DictionaryArray.from_arrays(actions, self._actions)
        return pa.RecordBatch.from_arrays([sources, targets, column, arguments], EDGES.names)

    def arguments(self, label: int) -> list[str]:
        """The arguments of a label, the first one first."""
        rank, values = label & mask(RANK_BITS), []
        for domain in reversed(self._domains[label >> RANK_BITS]):
            rank, index = divmod(rank, len(domain))
            values.append(domain[index])
        return values[::-1]


def names_of(
    states: Iterable[State], program: Program, layout: StateLayout, kernel: Loaded
) -> list[int | None]:
    """The names of the states that are kept of the classes of some states; None outside of a constraint."""
    names: list[int | None] = []
    words, name = Words(layout.words), Words(1)
    properties = Properties(program, Stepper(program))
    for state in states:
        # A trace may end in a state that was checked and not kept.
        if not properties.keeps(state):
            names.append(None)
            continue
        words.fill(list(layout.pack(state)))
        kernel.call["represent"](words.address)
        kernel.call["identify"](words.address, 1, name.address)
        names.append(ctypes.c_int64(name[0]).value)
    return names


def see_that_names_differ(names: Sequence[pa.Array]) -> None:
    """`Unwritten` where two states have the same name: once in 2^65 / states^2 exports."""
    every = pa.chunked_array(names, pa.int64())
    # By their lowest bits, so that the table of those that were seen is bounded.
    shares = 1 << max(0, (len(every) - 1) // _NAMES).bit_length()
    for share in range(shares):
        some = every.filter(pc.equal(pc.bit_wise_and(every, shares - 1), share)) if shares > 1 else every
        if pc.count_distinct(some).as_py() != len(some):
            raise Unwritten(f"two of {len(every)} states have the same 64-bit name: export another model")
