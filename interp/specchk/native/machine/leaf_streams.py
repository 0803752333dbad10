"""Streams of plain values and levels, and their packing for Parquet, as instructions.

Items of at most a byte are written as bytes, one after the other, and packed after each slice of rows: a
slice of all streams stays in the processor's cache.  Wider values are written directly to their place.  For
each stream (`Stream`), the block that Python and the kernel share has the place of its bytes, the number of
items there that are not packed yet, the place of packed ones, and the number of all items.  First come the
values of each leaf (`machine.shapes`), then the repetition and definition levels, by `levels`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

from msgspec import Struct

from specchk.codegen import ir
from specchk.ir.types import Int
from specchk.native.machine.asm import I8, I64, PTR, Asm, Val
from specchk.native.machine.layout import WORD, mask
from specchk.native.machine.shapes import ColumnLeaf, TableShape

SLICE = 1 << 11  # rows
PACK_STREAM, END_STREAM = "pack_stream", "end_stream"
SLACK = 16  # bytes behind a stream: items that are not taken, and the rest of a word that is read or written


class Stream(IntEnum):
    """The words of a stream in the block."""

    ITEMS = 0
    FILLED = 1
    PACKED = 2
    COUNT = 3
    SIZE = 4


class PlannedStream(Struct, frozen=True):
    """A stream by its place in the block: bytes and bits of an item, and the maximal items of a row."""

    word: int
    item_bytes: int
    bits: int
    most: int

    @property
    def is_packed(self) -> bool:
        """Whether its items are bytes to be packed."""
        return self.item_bytes == 1


def streams_of(shapes: TableShape) -> Iterator[PlannedStream]:
    """All streams of a table."""
    for leaf in shapes.leaves:
        yield PlannedStream(values_word(leaf), leaf.value_bytes, leaf.value_bits, leaf.most)
        if leaf.owns_levels:
            word = levels_word(shapes, leaf)
            yield PlannedStream(word, 1, leaf.repetition.bit_length(), leaf.most)
            yield PlannedStream(word + Stream.SIZE, 1, leaf.definition.bit_length(), leaf.most)


def block_words(shapes: TableShape) -> int:
    """The words of the shared block."""
    return Stream.SIZE * (len(shapes.leaves) + 2 * shapes.level_count)


def values_word(leaf: ColumnLeaf) -> int:
    """The position in the block of the stream of a leaf's values."""
    return Stream.SIZE * leaf.index


def levels_word(shapes: TableShape, leaf: ColumnLeaf) -> int:
    """The position of the stream of a leaf's repetition levels; the definition levels follow it."""
    return Stream.SIZE * (len(shapes.leaves) + 2 * leaf.levels)


class OpenStream(Struct, frozen=True):
    """The position of the next item of a leaf, or of both its levels."""

    words: tuple[int, ...]
    base: tuple[ir.Value, ...]
    filled: ir.Value


class LeafWriter:
    """The streams of some leaves while a function fills them."""

    def __init__(self, asm: Asm, shapes: TableShape, block: ir.Value) -> None:
        self.asm, self._shapes, self._block = asm, shapes, block
        self._values: dict[int, OpenStream] = {}
        self._levels: dict[int, OpenStream] = {}

    def fill(self, rows: Val, some: Callable[[Val, Val], None]) -> None:
        """Fill all streams: `some` emits the writing of a slice of rows, given the first and the last row."""
        asm, planned = self.asm, list(streams_of(self._shapes))
        for stream in planned:
            for word in (Stream.FILLED, Stream.COUNT):
                asm.store(0, self._block, stream.word + word)

        def each(step: str) -> None:
            pack = asm.function.module.function(step)
            for stream in planned:
                if stream.is_packed:
                    at = asm.at(self._block, stream.word)
                    asm.b.call(pack, [at, asm.val(stream.bits)])

        def visit(number: ir.Value) -> None:
            first = asm.mul(number, SLICE)
            some(first, asm.sub(asm.min(asm.add(first, SLICE), rows), 1))
            each(PACK_STREAM)

        slices = asm.shr(asm.add(rows, SLICE - 1), SLICE.bit_length() - 1)
        asm.loop(0, asm.sub(slices, 1), visit)
        each(END_STREAM)
        for stream in planned:
            if not stream.is_packed:
                count = asm.load(self._block, stream.word + Stream.FILLED)
                asm.store(count, self._block, stream.word + Stream.COUNT)

    def open(self, leaves: Sequence[ColumnLeaf]) -> None:
        """Open the streams of some leaves."""
        for leaf in leaves:
            kind = ir.int_type(8 * leaf.value_bytes).as_pointer()
            self._values[leaf.index] = self._opened([values_word(leaf)], kind)
            if leaf.owns_levels:
                word = levels_word(self._shapes, leaf)
                self._levels[leaf.levels] = self._opened([word, word + Stream.SIZE], I8.as_pointer())

    def _opened(self, words: Sequence[int], kind: ir.Type) -> OpenStream:
        asm = self.asm
        bases = [asm.b.inttoptr(asm.load(self._block, word + Stream.ITEMS), kind) for word in words]
        filled = asm.cell(I64, asm.load(self._block, words[0] + Stream.FILLED))
        return OpenStream(tuple(words), tuple(bases), filled)

    def close(self) -> None:
        """Store the numbers of items."""
        for stream in (*self._values.values(), *self._levels.values()):
            for word in stream.words:
                self.asm.store(self.asm.b.load(stream.filled), self._block, word + Stream.FILLED)
        self._values, self._levels = {}, {}

    def value(self, leaf: ColumnLeaf, code: Val, taken: Val = 1) -> None:
        """Write a value by its code; one that is not `taken` is overwritten by the next."""
        asm, stream = self.asm, self._values[leaf.index]
        if isinstance(leaf.domain, Int) and not leaf.is_listed:
            code = asm.add(code, leaf.domain.low)
        kind = ir.int_type(8 * leaf.value_bytes)
        at = asm.b.load(stream.filled)
        asm.b.store(asm.val(asm.resize(code, kind), kind), asm.at(stream.base[0], at))
        asm.advance(stream.filled, asm.resize(taken, I64))

    def entry(self, leaf: ColumnLeaf, repetition: Val, definition: Val) -> None:
        """Write the levels of a value, or of its placeholder."""
        if not leaf.owns_levels:
            return
        asm, stream = self.asm, self._levels[leaf.levels]
        at = asm.b.load(stream.filled)
        for base, level in zip(stream.base, (repetition, definition), strict=True):
            asm.b.store(asm.val(asm.resize(level, I8), I8), asm.at(base, at))
        asm.advance(stream.filled)

    def eight(self, leaf: ColumnLeaf, values: Val, levels: tuple[Val, Val], taken: tuple[Val, Val]) -> None:
        """Write values and their levels from the bytes of one word each, and count those taken.

        The others are overwritten; behind a stream there is room for them.
        """
        asm = self.asm
        streams: list[tuple[OpenStream, tuple[Val, ...], Val]] = [
            (self._values[leaf.index], (values,), taken[0])
        ]
        if leaf.owns_levels:
            streams.append((self._levels[leaf.levels], levels, taken[1]))
        for stream, words, count in streams:
            at = asm.b.load(stream.filled)
            for base, word in zip(stream.base, words, strict=True):
                place = asm.b.bitcast(asm.at(base, at), I64.as_pointer())
                asm.b.store(asm.val(word), place, align=1)
            asm.advance(stream.filled, count)

    def absent(self, leaves: Sequence[ColumnLeaf], repetition: Val, definition: int) -> None:
        """Write the levels of absent leaves."""
        for leaf in leaves:
            self.entry(leaf, repetition, definition)


def emit_packing(module: ir.IRModule) -> None:
    """Emit the packing of streams, before any function that fills one."""
    _emit_pack(module)
    for name, is_end in ((PACK_STREAM, False), (END_STREAM, True)):
        _emit_pack_stream(module, name, is_end=is_end)


def _emit_pack(module: ir.IRModule) -> None:
    """Emit `pack(bytes, count, width, out)`: pack numbers of at most 8 bits, eight at a time.

    The bytes are followed by 8 of 0, and the output by room for 8.
    """
    asm = Asm.of(module, "pack", [PTR] * 4, ir.VoidType(), internal=False)
    numbers, count_, size_, out_ = asm.function.args
    count, size = asm.b.ptrtoint(count_, I64), asm.b.ptrtoint(size_, I64)
    out = asm.cell(I64, asm.b.ptrtoint(out_, I64))

    def eight(index: ir.Value) -> None:
        code: Val = asm.load(numbers, index)
        for lane in (8, 16, 32):
            # Of two neighbours the higher one moves next to the lower one.
            low = sum(mask(lane) << at for at in range(0, WORD, 2 * lane))
            used = asm.mul(size, lane // 8)
            high = asm.shr(asm.band(code, mask(WORD) & ~low), asm.sub(lane, used))
            code = asm.bor(asm.band(code, low), high)
        at = asm.b.load(out)
        asm.b.store(asm.val(code), asm.b.inttoptr(at, PTR), align=1)
        asm.advance(out, size)

    asm.loop(0, asm.sub(asm.shr(asm.add(count, 7), 3), 1), eight)
    asm.end()


def _emit_pack_stream(module: ir.IRModule, name: str, *, is_end: bool) -> None:
    """Emit `pack_stream(stream, width)`: pack items, eight at a time; the rest moves to the start.

    `end_stream` packs the rest, too.
    """
    asm = Asm.of(module, name, [PTR, I64], ir.VoidType())
    stream, width = asm.function.args
    filled, count = asm.load(stream, Stream.FILLED), asm.load(stream, Stream.COUNT)
    items, packed = asm.pointer(stream, Stream.ITEMS), asm.load(stream, Stream.PACKED)
    words = asm.shr(filled, 3)
    # All that was packed before filled whole words.
    out = asm.add(packed, asm.mul(asm.shr(count, 3), width))
    if is_end:
        # Items that were not taken may be behind the last one.
        kept = asm.sub(asm.shl(1, asm.shl(filled, 3)), 1)
        asm.store(asm.band(asm.load(items, 0), kept), items, 0)
    whole = asm.val(1 if is_end else asm.shl(words, 3))
    pack = module.function("pack")
    asm.b.call(pack, [items, *(asm.b.inttoptr(asm.val(arg), PTR) for arg in (whole, width, out))])
    if is_end:
        asm.store(asm.add(count, filled), stream, Stream.COUNT)
        asm.store(0, stream, Stream.FILLED)
    else:
        asm.store(asm.load(items, words), items, 0)
        asm.store(asm.add(count, whole), stream, Stream.COUNT)
        asm.store(asm.band(filled, 7), stream, Stream.FILLED)
    asm.end()
