"""The steps of packed states as parts of the table `edges`."""

from __future__ import annotations

from array import array

import pyarrow as pa

from specchk.export.parquet import pages
from specchk.export.parts import Draft, PageWriter, TablePart
from specchk.export.schemas import EDGES
from specchk.export.streams import ColumnPages, LeafStreams
from specchk.ir.program import Program
from specchk.native.exchange import exchange_worker
from specchk.native.kernel.edge_kernel import SOURCE_BITS
from specchk.native.kernel.step_columns import step_shapes
from specchk.native.machine.frames import Listing, Thread, most_successors
from specchk.native.machine.layout import StateLayout
from specchk.native.machine.leaf_streams import block_words
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words

STEPS = 1 << 18  # steps that are listed at once
MANY = 1 << 12  # texts of arguments; if there are more, a dictionary has only those that are used
_RUN_BYTES = 6  # of a state's position and its number of steps, at most
_ROOM = (Listing.SOURCES, 8), (Listing.RUNS, _RUN_BYTES), (Listing.LABELS, 8), (Listing.TARGETS, 8)


class StepWriter:
    """Lists and writes the steps of states; `release` frees the memory."""

    def __init__(
        self, program: Program, layout: StateLayout, kernel: Loaded, draft: Draft, writer: int,
        compression: pages.Compression,
    ) -> None:  # fmt: skip
        self._kernel, self._compression = kernel, compression
        self._state_bytes = 8 * layout.words
        self._table = PageWriter(draft, "edges", EDGES, writer)
        self._worker = exchange_worker(program, layout)
        most = most_successors(program)
        self._successors = Region(8 * (most + 1) * (layout.words + 1))
        self._worker.block[Thread.PENDING] = self._successors.address
        # With room behind the end for the steps of one more state: the kernel checks only between states.
        room = STEPS + most + 1
        self._listing = Words(int(Listing.SIZE))
        self._arrays = {word: Region(size * room) for word, size in _ROOM}
        self._views = {word: self._arrays[word].view(0, size * room) for word, size in _ROOM}
        for word, region in self._arrays.items():
            self._listing[word] = region.address
        self._listing[Listing.CAPACITY] = STEPS
        self._shapes = step_shapes(program)
        numbers = [array("I", some) for some in self._shapes.numbers]
        self._streams = LeafStreams(self._shapes.shapes, room, kernel, len(numbers))
        for index, some in enumerate(numbers):
            self._streams.block[block_words(self._shapes.shapes) + index] = some.buffer_info()[0]
        self._numbers = numbers  # kept, since the kernel has their addresses
        leaves = [self._shapes.action]
        if len(self._shapes.texts) <= MANY:
            leaves.append(self._shapes.args)
        self._pages = ColumnPages(leaves, self._table.columns[2 : 2 + len(leaves)], compression)

    def add(self, address: int, count: int) -> int:
        """List the steps of states at an address; return their number."""
        listing, found = self._listing, 0
        while count:
            before = listing[Listing.FILLED]
            self._kernel.call["edges"](listing.address, self._worker.block.address, address, count)
            found += listing[Listing.FILLED] - before
            done = listing[Listing.DONE]
            address, count = address + done * self._state_bytes, count - done
            if listing[Listing.FILLED] >= STEPS:
                self._flush()
        return found

    def close(self) -> list[TablePart]:
        """Write the rest; return all parts."""
        self._flush()
        return self._table.close()

    def release(self) -> None:
        """Free the memory."""
        for region in (self._successors, *self._arrays.values()):
            region.release()
        for part in (self._streams, self._worker, self._table):
            part.release()

    def _flush(self) -> None:
        listing, count = self._listing, self._listing[Listing.FILLED]
        if not count:
            return
        block = self._streams.block.address
        self._kernel.call["step_columns"](block, listing[Listing.LABELS], listing[Listing.TARGETS], count)
        source, target, _, args = self._table.columns
        listed = self._pages.chunks()
        self._pages.fill(listed, self._streams)
        if len(self._shapes.texts) > MANY:
            listed.append(self._used_texts(args))
        self._table.add(count, [self._sources(source, count), self._targets(target, count), *listed])
        for word in (Listing.FILLED, Listing.SOURCE_COUNT, Listing.RUN_BYTES):
            listing[word] = 0

    def _sources(self, column: pages.FileColumn, count: int) -> pages.ColumnChunk:
        """The source states of steps, each named once, followed by a run of its position."""
        listing, compression = self._listing, self._compression
        names = self._views[Listing.SOURCES][: 8 * listing[Listing.SOURCE_COUNT]]
        runs = self._views[Listing.RUNS][: listing[Listing.RUN_BYTES]]
        dictionary = compression.dictionary(names, listing[Listing.SOURCE_COUNT], is_compressed=False)
        parts = [*pages.levels(pages.run(count, 1, 1)), *pages.positions(SOURCE_BITS, [runs])]
        # Names are random, and compressing the runs would save 2 % of the file.
        return compression.chunk(column, parts, count, dictionary, is_compressed=False)

    def _targets(self, column: pages.FileColumn, count: int) -> pages.ColumnChunk:
        """The target states of steps, null outside a constraint."""
        above, kept = pages.levels(pages.run(count, 1, 1)), count
        if self._shapes.target is not None:
            above, _ = self._streams.levels(self._shapes.target)
            kept = self._streams.values(self._shapes.target)[1]
        names = self._views[Listing.TARGETS][: 8 * kept]
        return self._compression.chunk(column, [*above, names], count, is_compressed=False)

    def _used_texts(self, column: pages.FileColumn) -> pages.ColumnChunk:
        """The arguments, with a dictionary of those in use."""
        leaf, compression = self._shapes.args, self._compression
        address, count = self._streams.values(leaf)
        kind = pa.uint16() if leaf.value_bytes == 2 else pa.uint32()
        numbers = pa.foreign_buffer(address, leaf.value_bytes * count)
        encoded = pa.Array.from_buffers(kind, count, [None, numbers]).dictionary_encode()
        used = [self._shapes.texts[number] for number in encoded.dictionary.to_pylist()]
        dictionary = compression.dictionary(pages.plain_texts(used), len(used))
        above, entries = self._streams.levels(leaf)
        places = encoded.indices.buffers()[1].to_pybytes()[: 4 * count]
        parts = [*above, *pages.positions(32, pages.wide_groups(count, 4, places))]
        return compression.chunk(column, parts, entries, dictionary, is_compressed=True)
