"""Streams of plain values that the kernel fills, and their pages in Parquet's encoding.

The kernel's bytes are copied once, when they are packed into a page; nothing is done for each value here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from specchk.export.parquet.pages import (
    ColumnChunk,
    Compression,
    Encoding,
    FileColumn,
    StoredPage,
    groups,
    levels,
    plain_numbers,
    plain_texts,
    positions,
    run,
    wide_groups,
)
from specchk.ir.types import Bool, Int
from specchk.native.exchange import address_of_bytes
from specchk.native.kernel.column_kernel import LEAF_WORDS, block_words, levels_word
from specchk.native.machine.loaded import Loaded
from specchk.native.machine.memory import Region, Words
from specchk.native.machine.shapes import FIXED, ColumnLeaf, TableShape

_SLACK = 16  # bytes behind a stream: the last value that was not taken, and what `pack` reads


@dataclass(frozen=True, slots=True)
class Packer:
    """Packs numbers of at most 8 bits; a thread has one of its own."""

    kernel: Loaded

    def packed(self, address: int, count: int, width: int) -> bytes:
        """Some bytes, behind which there is room for eight, as numbers of so many bits."""
        ctypes.memset(address + count, 0, 8)
        size = -(-count // 8) * width
        out = ctypes.create_string_buffer(size + 8)
        self.kernel.call["pack"](address, count, width, ctypes.addressof(out))
        return out.raw[:size]

    def packed_bytes(self, data: bytes, width: int) -> bytes:
        """The same of bytes of Python's."""
        room = data + bytes(8)
        return self.packed(address_of_bytes(room), len(data), width)


class LeafStreams:
    """The streams of some columns, for so many states or steps at once; `release` gives the memory back."""

    def __init__(self, shapes: TableShape, rows: int, kernel: Loaded, extra_words: int = 0) -> None:
        self._shapes, self._packer = shapes, Packer(kernel)
        self.block = Words(block_words(shapes) + extra_words)
        self._regions: list[Region] = []
        self._patterns: dict[tuple[int, int], bytes] = {}
        for leaf in shapes.leaves:
            self.block[LEAF_WORDS * leaf.index] = self._room(leaf.value_bytes * leaf.most * rows)
            if leaf.owns_levels:
                for word in range(2):
                    place = levels_word(shapes, leaf.levels) + word
                    self.block[place] = self._room(leaf.most * rows)

    def _room(self, size: int) -> int:
        region = Region.of_small_pages(size + _SLACK)
        self._regions.append(region)
        return region.address

    def release(self) -> None:
        """Give the memory back."""
        for region in self._regions:
            region.release()

    def values(self, leaf: ColumnLeaf) -> tuple[int, int]:
        """Where the values of a leaf are, and their number."""
        return self.block[LEAF_WORDS * leaf.index], self.block[LEAF_WORDS * leaf.index + 1]

    def levels(self, leaf: ColumnLeaf) -> tuple[list[bytes], int]:
        """The levels of a leaf as a page has them, and the number of entries."""
        if leaf.levels == FIXED:
            count = self.values(leaf)[1]
            parts = [levels(self._pattern(leaf, count))] if leaf.repetition else []
            if leaf.definition:
                parts.append(levels(run(count, leaf.definition, leaf.definition.bit_length())))
            return parts, count
        word = levels_word(self._shapes, leaf.levels)
        count = self.block[word + 2]
        made = []
        for address, most in zip(
            (self.block[word], self.block[word + 1]), (leaf.repetition, leaf.definition), strict=True
        ):
            if most:
                width = most.bit_length()
                made.append(levels(groups(count, self._packer.packed(address, count, width))))
        return made, count

    def _pattern(self, leaf: ColumnLeaf, count: int) -> bytes:
        """The repetition levels of a leaf that has the same ones in each state."""
        key = leaf.index, count
        if key not in self._patterns:
            every = bytes(leaf.pattern) * (count // len(leaf.pattern))
            self._patterns[key] = groups(
                count, self._packer.packed_bytes(every, leaf.repetition.bit_length())
            )
        return self._patterns[key]

    def codes(self, leaf: ColumnLeaf) -> tuple[bytes, Encoding]:
        """The values of a leaf as a page has them."""
        address, count = self.values(leaf)
        if isinstance(leaf.domain, Bool):
            return self._packer.packed(address, count, 1), Encoding.PLAIN
        if not leaf.is_listed:
            return ctypes.string_at(address, leaf.value_bytes * count), Encoding.PLAIN
        width = position_bits(leaf)
        if leaf.value_bytes == 1:
            found = groups(count, self._packer.packed(address, count, width))
        else:
            size = leaf.value_bytes
            found = wide_groups(count, size, ctypes.string_at(address, size * count))
        return positions(width, found), Encoding.RLE_DICTIONARY


def position_bits(leaf: ColumnLeaf) -> int:
    """The bits of a value's position, whole bytes if these are more than one."""
    if leaf.value_bytes > 1:
        return 8 * leaf.value_bytes
    return max(1, (_values(leaf) - 1).bit_length())


def _values(leaf: ColumnLeaf) -> int:
    if isinstance(leaf.domain, Int):
        return leaf.domain.high - leaf.domain.low + 1
    assert isinstance(leaf.domain, tuple)
    return len(leaf.domain)


class ColumnPages:
    """Makes the pages of some leaves, each a column of a file."""

    def __init__(
        self, leaves: Sequence[ColumnLeaf], columns: Sequence[FileColumn], compression: Compression
    ) -> None:
        self._pairs = list(zip(leaves, columns, strict=True))
        for leaf, column in self._pairs:
            assert (leaf.definition, leaf.repetition) == (column.definition, column.repetition), column.path
        self._compression = compression
        self._dictionaries = [self._dictionary(leaf, column) for leaf, column in self._pairs]

    def _dictionary(self, leaf: ColumnLeaf, column: FileColumn) -> StoredPage | None:
        """All values of a leaf that has few."""
        if not leaf.is_listed:
            return None
        if isinstance(leaf.domain, Int):
            numbers = range(leaf.domain.low, leaf.domain.high + 1)
            return self._compression.dictionary(plain_numbers(column.physical, numbers), len(numbers))
        assert isinstance(leaf.domain, tuple)
        return self._compression.dictionary(plain_texts(leaf.domain), len(leaf.domain))

    def chunks(self) -> list[ColumnChunk]:
        """The columns of a new row group."""
        pairs = zip(self._pairs, self._dictionaries, strict=True)
        return [ColumnChunk(column, dictionary) for (_, column), dictionary in pairs]

    def fill(self, chunks: Sequence[ColumnChunk], streams: LeafStreams) -> None:
        """Add what is in the streams, a page for each column."""
        for chunk, (leaf, _) in zip(chunks, self._pairs, strict=True):
            above, entries = streams.levels(leaf)
            codes, encoding = streams.codes(leaf)
            page = self._compression.values([*above, codes], entries, encoding, is_compressed=True)
            chunk.add(page, entries)
