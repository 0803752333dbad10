"""Streams of plain values filled by the kernel, and their pages in Parquet's encoding.

The kernel's bytes are copied once, when they are packed into a page; nothing is done for each value here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from specchk.export.parquet import pages
from specchk.ir.types import Int
from specchk.native.exchange import address_of_bytes
from specchk.native.machine import leaf_streams
from specchk.native.machine.leaf_streams import Stream
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words
from specchk.native.machine.shapes import FIXED, ColumnLeaf, TableShape

_LINE = 64  # bytes of a line of the cache


def packed(kernel: Loaded, data: bytes, width: int) -> bytes:
    """Bytes as numbers of this many bits, at most 8."""
    room, size = data + bytes(8), -(-len(data) // 8) * width
    out = ctypes.create_string_buffer(size + 8)
    kernel.call["pack"](address_of_bytes(room), len(data), width, ctypes.addressof(out))
    return out.raw[:size]


class LeafStreams:
    """The streams of some columns, for this many states or steps at once; `release` frees the memory."""

    def __init__(self, shapes: TableShape, rows: int, kernel: Loaded, extra_words: int = 0) -> None:
        self._shapes, self._kernel = shapes, kernel
        self.block = Words(leaf_streams.block_words(shapes) + extra_words)
        self._patterns: dict[tuple[int, int], pages.Pieces] = {}
        places, size = [], 0
        for stream in leaf_streams.streams_of(shapes):
            at_once = min(rows, leaf_streams.SLICE) if stream.is_packed else rows
            room_packed = -(-stream.most * rows // 8) * stream.bits if stream.is_packed else 0
            for word, room in (
                (Stream.ITEMS, stream.item_bytes * (stream.most * at_once + 7)), (Stream.PACKED, room_packed),
            ):  # fmt: skip
                places.append((stream.word + word, size))
                size += -(-(room + leaf_streams.SLACK) // _LINE) * _LINE
        self._region = Region.of_small_pages(max(1, size))
        self._view = self._region.view(0, max(1, size))
        for at, offset in places:
            self.block[at] = self._region.address + offset

    def release(self) -> None:
        """Free the memory."""
        self._region.release()

    def values(self, leaf: ColumnLeaf) -> tuple[int, int]:
        """The address of the values of a leaf wider than a byte, and their number."""
        word = leaf_streams.values_word(leaf)
        return self.block[word + Stream.ITEMS], self.block[word + Stream.COUNT]

    def levels(self, leaf: ColumnLeaf) -> tuple[pages.Pieces, int]:
        """The encoded levels of a leaf, and the number of entries."""
        made: pages.Pieces = []
        if leaf.levels == FIXED:
            count = self.values(leaf)[1]
            if leaf.repetition:
                made += pages.levels(self._pattern(leaf, count))
            if leaf.definition:
                made += pages.levels(pages.run(count, leaf.definition, leaf.definition.bit_length()))
            return made, count
        word = leaf_streams.levels_word(self._shapes, leaf)
        for at, most in ((word, leaf.repetition), (word + Stream.SIZE, leaf.definition)):
            if most:
                made += pages.levels(
                    pages.groups(self.block[at + Stream.COUNT], self._packed(at, most.bit_length()))
                )
        return made, self.block[word + Stream.COUNT]

    def _packed(self, word: int, width: int) -> memoryview:
        return self._bytes(self.block[word + Stream.PACKED], -(-self.block[word + Stream.COUNT] // 8) * width)

    def _bytes(self, address: int, size: int) -> memoryview:
        first = address - self._region.address
        return self._view[first : first + size]

    def _pattern(self, leaf: ColumnLeaf, count: int) -> pages.Pieces:
        """The repetition levels of a leaf for which they are the same in each state."""
        key = leaf.index, count
        if key not in self._patterns:
            every = bytes(leaf.pattern) * (count // len(leaf.pattern))
            levels = packed(self._kernel, every, leaf.repetition.bit_length())
            self._patterns[key] = pages.groups(count, levels)
        return self._patterns[key]

    def codes(self, leaf: ColumnLeaf) -> tuple[pages.Pieces, pages.Encoding]:
        """The encoded values of a leaf."""
        size, (address, count) = leaf.value_bytes, self.values(leaf)
        is_packed = size == 1
        data = (
            self._packed(leaf_streams.values_word(leaf), leaf.value_bits)
            if is_packed
            else self._bytes(address, size * count)
        )
        if not leaf.is_listed:
            return [data], pages.Encoding.PLAIN
        grouped = pages.groups(count, data) if is_packed else pages.wide_groups(count, size, data)
        return pages.positions(leaf.value_bits, grouped), pages.Encoding.RLE_DICTIONARY


class ColumnPages:
    """Builds the pages of some leaves, each a column of a file."""

    def __init__(
        self,
        leaves: Sequence[ColumnLeaf],
        columns: Sequence[pages.FileColumn],
        compression: pages.Compression,
    ) -> None:
        self._pairs = list(zip(leaves, columns, strict=True))
        for leaf, column in self._pairs:
            assert (leaf.definition, leaf.repetition) == (column.definition, column.repetition), column.path
        self._compression = compression
        self._dictionaries = [self._dictionary(leaf, column) for leaf, column in self._pairs]

    def _dictionary(self, leaf: ColumnLeaf, column: pages.FileColumn) -> pages.StoredPage | None:
        """All values of a leaf that has few."""
        if not leaf.is_listed:
            return None
        if isinstance(leaf.domain, Int):
            numbers = range(leaf.domain.low, leaf.domain.high + 1)
            return self._compression.dictionary(pages.plain_numbers(column.physical, numbers), len(numbers))
        assert isinstance(leaf.domain, tuple)
        return self._compression.dictionary(pages.plain_texts(leaf.domain), len(leaf.domain))

    def chunks(self) -> list[pages.ColumnChunk]:
        """The columns of a new row group."""
        pairs = zip(self._pairs, self._dictionaries, strict=True)
        return [pages.ColumnChunk(column, dictionary) for (_, column), dictionary in pairs]

    def fill(self, chunks: Sequence[pages.ColumnChunk], streams: LeafStreams) -> None:
        """Add the contents of the streams as one page for each column."""
        for chunk, (leaf, _) in zip(chunks, self._pairs, strict=True):
            above, entries = streams.levels(leaf)
            codes, encoding = streams.codes(leaf)
            page = self._compression.values([*above, *codes], entries, encoding, is_compressed=True)
            chunk.add(page, entries)
