"""The steps of packed states as parts of the table `edges`."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from specchk.export.parts import Draft, TablePart, TableWriter
from specchk.export.schemas import EDGES
from specchk.ir.program import Program
from specchk.meaning.values import positions, show
from specchk.native.exchange import exchange_worker
from specchk.native.kernel.edge_kernel import OUTSIDE_BIT, RANK_BITS
from specchk.native.machine.frames import Listing, Thread, most_successors
from specchk.native.machine.layout import StateLayout, mask
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words

STEPS = 1 << 18  # steps that are listed at once
_ARRAYS = Listing.SOURCES, Listing.LABELS, Listing.TARGETS


class StepWriter:
    """Lists and writes the steps of states; `release` frees the memory."""

    def __init__(
        self, program: Program, layout: StateLayout, kernel: Loaded, draft: Draft, writer: int
    ) -> None:
        self._kernel = kernel
        self._state_bytes = 8 * layout.words
        self._table = TableWriter(draft, "edges", EDGES, writer)
        self._worker = exchange_worker(program, layout)
        most = most_successors(program)
        self._successors = Region(8 * (most + 1) * (layout.words + 1))
        self._worker.block[Thread.PENDING] = self._successors.address
        # With room behind the end for the steps of one more state: the kernel checks only between states.
        self._listing = Words(int(Listing.SIZE))
        self._arrays = {word: Region(8 * (STEPS + most + 1)) for word in _ARRAYS}
        for word, region in self._arrays.items():
            self._listing[word] = region.address
        self._listing[Listing.CAPACITY] = STEPS
        self._labels = StepLabels(program)

    def add(self, address: int, count: int) -> int:
        """List the steps of states at an address; return their number."""
        listing, steps = self._listing, 0
        while count:
            before = listing[Listing.FILLED]
            self._kernel.call["edges"](listing.address, self._worker.block.address, address, count)
            steps += listing[Listing.FILLED] - before
            done = listing[Listing.DONE]
            address, count = address + done * self._state_bytes, count - done
            if listing[Listing.FILLED] >= STEPS:
                self._flush()
        return steps

    def close(self) -> list[TablePart]:
        """Write the rest; return all parts."""
        self._flush()
        return self._table.close()

    def release(self) -> None:
        """Free the memory."""
        for region in (self._successors, *self._arrays.values()):
            region.release()
        self._worker.release()

    def _flush(self) -> None:
        count = self._listing[Listing.FILLED]
        if not count:
            return
        arrays = [pa.foreign_buffer(self._listing[word], 8 * count) for word in _ARRAYS]
        sources, labels, targets = (pa.Array.from_buffers(pa.int64(), count, [None, data]) for data in arrays)
        inside = pc.greater_equal(labels, 0)
        ends = pa.Array.from_buffers(pa.int64(), count, [inside.buffers()[1], targets.buffers()[1]])
        self._table.add(pa.table([sources, ends, *self._labels.columns(labels)], EDGES.names))
        self._listing[Listing.FILLED] = 0


class StepLabels:
    """Labels of steps (`edge_kernel`) as actions and texts of arguments."""

    def __init__(self, program: Program) -> None:
        self._names = pa.array([action.name for action in program.actions], pa.string())
        kinds = {param.type for action in program.actions for param in action.params}
        texts = {kind: [show(value, kind) for value in positions(kind)] for kind in kinds}
        self._texts = [[texts[param.type] for param in action.params] for action in program.actions]

    def columns(self, labels: pa.Array) -> tuple[pa.Array, pa.Array]:
        """The columns `action` and `args`."""
        own = pc.bit_wise_and(labels, pa.scalar(mask(OUTSIDE_BIT), pa.int64()))
        numbers = pc.shift_right(own, pa.scalar(RANK_BITS, pa.int64())).cast(pa.int32())
        each = own.dictionary_encode()
        args = pa.array(map(self._args, each.dictionary.to_pylist()), EDGES.field("args").type)
        listed = pa.ListArray.from_arrays(args.offsets, args.values.dictionary_encode())
        return pa.DictionaryArray.from_arrays(numbers, self._names), listed.take(each.indices)

    def _args(self, label: int) -> list[str]:
        rank, args = label & mask(RANK_BITS), []
        for texts in reversed(self._texts[label >> RANK_BITS]):
            rank, place = divmod(rank, len(texts))
            args.append(texts[place])
        return args[::-1]
